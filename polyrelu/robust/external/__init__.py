"""Classifiers fitted elsewhere, read as modules: their layers, their weights, what can be proven of them."""
