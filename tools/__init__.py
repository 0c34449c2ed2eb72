"""Tools that search for errors in the package: campaign (proofs), fuzz (bad input), mutants (tests that notice).

They are programs, not a library, so importing any of them sets the threads of torch, which comes after.
"""

from polyrelu.threads import prepare

PREPARED = prepare()  # the environment variables that were not set before
