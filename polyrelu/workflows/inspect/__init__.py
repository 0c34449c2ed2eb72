"""`polyrelu inspect`: everything that can be measured of a net."""
