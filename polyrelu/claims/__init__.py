"""What the papers say, measured again: each claim is a sentence, its source, an experiment and a verdict."""
