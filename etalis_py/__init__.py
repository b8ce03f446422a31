"""etalis-py: complex event processing and stream reasoning with logic.

Compile EP-SPARQL queries to a ``Program``, run it in an ``Engine``, and read ``Match`` objects.

>>> from etalis_py import Engine, event
>>> engine = Engine("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }")
>>> _ = engine.push_all([event("<urn:c> <http://example.org/p> 1", 1), event("<urn:c> <http://example.org/p> 2", 2)])
>>> engine.close()
[<q1 [1, 2] ?c=<urn:c>>]
"""

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from etalis_compiler.diagnostics import QueryError

    from etalis_py.engine.engine import Engine
    from etalis_py.engine.program import Program, compile
    from etalis_py.engine.running import run
    from etalis_py.events import Event, event
    from etalis_py.kernel.matches import Match, Matches
    from etalis_py.kernel.position import Counters
    from etalis_py.streams import read_stream
    from etalis_py.streams.reference import reference_table, table_updates
    from etalis_py.values.errors import BrokenEngine, EngineInUse, LimitExceeded
    from etalis_py.values.limits import Limits
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "etalis_compiler.diagnostics": ("QueryError",),
            "etalis_py.engine.engine": ("Engine",),
            "etalis_py.events": ("Event", "event"),
            "etalis_py.values.limits": ("Limits",),
            "etalis_py.kernel.matches": ("Match", "Matches"),
            "etalis_py.kernel.position": ("Counters",),
            "etalis_py.engine.program": ("Program", "compile"),
            "etalis_py.engine.running": ("run",),
            "etalis_py.streams": ("read_stream",),
            "etalis_py.streams.reference": ("reference_table", "table_updates"),
            "etalis_py.values.errors": ("BrokenEngine", "EngineInUse", "LimitExceeded"),
        },
    )

__all__ = [
    "BrokenEngine",
    "Counters",
    "Engine",
    "EngineInUse",
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
    "reference_table",
    "run",
    "table_updates",
]
