"""The same numbers as another commit: fixed seeds, run in both trees, compared bit by bit."""
