"""Tools that search for errors in the package.

campaign (proofs), rounding (proofs as they run), fuzz (bad input), mutants (tests that notice).
"""
