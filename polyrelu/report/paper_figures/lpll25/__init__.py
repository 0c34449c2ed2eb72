"""Figures of Li et al. (ICLR 2025)."""
