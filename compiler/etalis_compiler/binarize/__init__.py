"""Temporal algebra to rules: binarization ([EP] §5, rules (8) to (12)).

A pattern is split in two.  Its *timed* part consists of the solutions with at least one occurrence; it becomes nodes.
Its *timeless* part consists of the solutions from the background alone; it stays a pattern, which the rules evaluate
when they need it.  For a binary operator, with A = At ∪ A0 and B = Bt ∪ B0:

    timed(A op B) = At op Bt  ∪  At ⋈ B0  ∪  A0 ⋈ Bt          timeless(A op B) = A0 ⋈ B0

because timeless solutions satisfy every temporal condition.  A BGP is split by the subset of its triples that match
occurrences; the rest is looked up when the last occurrence has arrived, so that the background is that of the
solution's end.

Without a consuming policy a node carries only the variables that are needed above it, and its variables are renamed
to ``~0, ~1, ~2 …`` in the order in which they occur, so that equal goals of different queries are one node.  Under a
consuming policy each node belongs to its query and carries all variables, in alphabetical order, because the order of
candidates depends on them.  If only the key of a side is read, the side carries only the key, as its candidates with
the same key and interval are interchangeable.

A pattern is lowered by the function that ``patterns`` lists for its type, in one file per kind: ``triples``, ``paths``,
``joins``, ``outer``, ``exists``, ``selects``.  Each gets the pattern, its ``LoweringContext`` (what is asked of it from
above) and the ``NodeBuilder``, which collects the nodes and lowers the patterns below (``NodeBuilder.lower``).  It
returns the two halves as a ``Lowered``.
"""

from .builder import Lowered, LoweringContext, NodeBuilder
from .patterns import builder
from .records import backwards, holds_event
from .selects import lower_select

__all__ = ["Lowered", "LoweringContext", "NodeBuilder", "backwards", "builder", "holds_event", "lower_select"]
