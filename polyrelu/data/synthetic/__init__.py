"""Recipes for data with known structure: mixtures, spheres, mirrored pairs."""
