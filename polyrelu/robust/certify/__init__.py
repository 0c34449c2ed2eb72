"""Certificates, one file each: radii within which no perturbation changes the decision."""
