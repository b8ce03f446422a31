"""etalis-py: complex event processing and stream reasoning with logic.

Compile EP-SPARQL queries to a ``Program``, run it in an ``Engine``, and read ``Match`` objects.

>>> from etalis_py import Engine, compile, event
>>> engine = Engine(compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }"))
>>> _ = engine.push_all([event("<urn:c> <http://example.org/p> 1", 1), event("<urn:c> <http://example.org/p> 2", 2)])
>>> engine.close()
[<q1 [1, 2] ?c=<urn:c>>]
"""

from etalis_compiler.diagnostics import QueryError

from etalis_py.engine.engine import Counters, Engine
from etalis_py.engine.matches import Match, Matches
from etalis_py.engine.runtime import LimitExceeded, Limits
from etalis_py.events import Event, event
from etalis_py.program import Program, compile
from etalis_py.running import run
from etalis_py.streams import read_stream

__all__ = [
    "Counters",
    "Engine",
    "Event",
    "LimitExceeded",
    "Limits",
    "Match",
    "Matches",
    "Program",
    "QueryError",
    "compile",
    "event",
    "read_stream",
    "run",
]
