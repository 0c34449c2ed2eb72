"""Tools that search for errors in the package: campaign (proofs), fuzz (bad input), mutants (tests that notice)."""
