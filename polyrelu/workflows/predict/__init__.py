"""`polyrelu predict`: rows to classes, probabilities and proven radii."""
