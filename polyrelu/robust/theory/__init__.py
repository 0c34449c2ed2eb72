"""Bounds, probabilities and radii of the papers as functions."""
