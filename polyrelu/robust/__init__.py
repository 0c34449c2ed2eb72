"""How far a classifier holds: attacks (upper bounds), certificates (lower bounds), brackets and curves."""
