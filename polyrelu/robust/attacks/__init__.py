"""Attacks, one file each: at a given radius, or of minimal norm."""
