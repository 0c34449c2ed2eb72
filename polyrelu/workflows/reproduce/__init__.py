"""`polyrelu reproduce` and `polyrelu claims run`: claims chosen, measured, judged, drawn."""
