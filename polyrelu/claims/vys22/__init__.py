"""Vardi, Yehudai & Shamir, NeurIPS 2022: nets trained on nearly orthogonal points break along one direction."""
