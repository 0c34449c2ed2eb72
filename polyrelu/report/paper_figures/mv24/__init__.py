"""Figures of Min & Vidal (ICML 2024)."""
