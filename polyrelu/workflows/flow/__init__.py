"""`polyrelu flow`: settings, run folder, progress."""
