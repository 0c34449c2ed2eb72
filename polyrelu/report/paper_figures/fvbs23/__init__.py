"""Figures of Frei, Vardi, Bartlett & Srebro (NeurIPS 2023) and of Vardi, Yehudai & Shamir (NeurIPS 2022)."""
