"""`polyrelu diagnose`: a table to one page."""
