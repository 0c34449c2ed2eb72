"""Tools that search for errors in the package, or hold it under load: campaign, rounding, fuzz, mutants, busy."""
