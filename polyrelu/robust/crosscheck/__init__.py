"""Attacks of other libraries, held against our brackets: ``pip install "polyrelu[crosscheck]"``.

foolbox and pyautoattack are imported when a peer is first run; this package imports without them.
"""

from polyrelu.robust.crosscheck.check import PEERS, CrossCheck, Peer, cross_check

__all__ = ["PEERS", "CrossCheck", "Peer", "cross_check"]
