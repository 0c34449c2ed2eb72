"""The explorer: one local page on which neurons are seen to choose between class averages and sub-class centres."""
