"""`polyrelu fit`: a table to a head in a file."""
