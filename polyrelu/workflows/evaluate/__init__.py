"""`polyrelu evaluate`: settings, inputs, evaluation in checkpoints, tables."""
