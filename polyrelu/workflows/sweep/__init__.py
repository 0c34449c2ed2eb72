"""`polyrelu sweep`: progress."""
