"""Figures of Min, Mallada & Vidal (ICLR 2024)."""
