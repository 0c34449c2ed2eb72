"""Attacks of other libraries, compared with our brackets: ``pip install "polyrelu[crosscheck]"``.

foolbox and pyautoattack are imported when a peer is first run; this subpackage imports without them.
"""

from polyrelu.robust.crosscheck.peers import LIBRARIES, PEERS, CrossCheck, Peer, cross_check, library

__all__ = ["LIBRARIES", "PEERS", "CrossCheck", "Peer", "cross_check", "library"]
