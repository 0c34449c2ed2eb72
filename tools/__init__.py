"""Tools that search for errors in the package, or hold it under load.

campaign (proofs), rounding (proofs as they run), fuzz (bad input), mutants (tests that notice), busy (a busy machine).
They are programs, not a library, so importing any of them sets the threads of torch, which comes after.
"""

from polyrelu.threads import prepare

PREPARED = prepare()  # the environment variables that were not set before
