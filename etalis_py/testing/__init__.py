"""For testing your own rules: scripts of events, a clock moved by hand, crashes, and comparison of matches.

>>> from etalis_py import compile, event
>>> rising = compile("SELECT ?c WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)")
>>> played = play(rising, [event(":acme :price 10", 1), ABORT, event(":acme :price 12", 3), EOF])
>>> assert_matches(played, [{"c": ":acme", "start": 1, "end": 3}])

This package may use the engine, events and streams; nothing in the product uses it.
"""

from etalis_py.testing.clock import MovableClock
from etalis_py.testing.expect import assert_matches
from etalis_py.testing.script import ABORT, EOF, SNAPSHOT, Played, play, wait

__all__ = ["ABORT", "EOF", "SNAPSHOT", "MovableClock", "Played", "assert_matches", "play", "wait"]
