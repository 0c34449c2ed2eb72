"""Figures of Lyu & Li (ICLR 2020)."""
