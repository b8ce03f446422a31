"""Top-down evaluation of the temporal algebra over indexed triples, with bindings passed sideways.

The engine uses it for all look-ups of rules in the background knowledge, for plain SPARQL over the background, and for
EXISTS patterns that depend on the solution around them in a way an incremental join cannot express.  It knows the
algebra, the expressions and its sources; nothing of rules, goals or streams.

    Prepared: pattern ──standardise_apart──▶ one closure per operator, for each set of bound variables ──▶ solutions
"""

from etalis_py.sparql.errors import Unsupported
from etalis_py.sparql.prepared import ExpressionClock, Prepared, prepare, solve
from etalis_py.sparql.run import Bindings, EvaluationLimits, Solution
from etalis_py.sparql.sources import BackgroundSource, EventSource, HistorySource, Occurrence, OccurrenceLog, Source

__all__ = [
    "BackgroundSource",
    "Bindings",
    "EvaluationLimits",
    "EventSource",
    "ExpressionClock",
    "HistorySource",
    "Occurrence",
    "OccurrenceLog",
    "Prepared",
    "Solution",
    "Source",
    "Unsupported",
    "prepare",
    "solve",
]
