"""Both sides of a robustness number: attack and certificate brought together, at one radius or for every radius."""
