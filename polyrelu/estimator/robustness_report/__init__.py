"""Is a classifier fragile, why, and what would a polynomial head do on the same data? Measured, in parts."""
