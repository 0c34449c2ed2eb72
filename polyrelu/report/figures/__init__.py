"""Figures of nets, data, training runs and robustness curves, one subject a file."""
