"""RSP-QL and RSEP-QL at run time: streams to relations, relations to relations, relations to streams.

    event ──▶ windows (S2R) ──▶ SPARQL over a dataset of one time (R2R) ──▶ RSTREAM, ISTREAM, DSTREAM (R2S) ──▶ matches

It knows events, the algebra and the backward evaluator; nothing of files, Spark, or the rules of the EP-SPARQL engine
but how to run it beside the windows.  ``times`` has the definitions as pure functions; everything else keeps their
results up to date.
"""

from etalis_py.windows.engine import Answer, MissingGraph, WindowCounters, WindowEngine
from etalis_py.windows.oracle import Recorded, Unjudgeable, which_t0
from etalis_py.windows.program import WindowProgram, compile_windows

__all__ = [
    "Answer",
    "MissingGraph",
    "Recorded",
    "Unjudgeable",
    "WindowCounters",
    "WindowEngine",
    "WindowProgram",
    "compile_windows",
    "which_t0",
]
