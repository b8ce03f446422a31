"""Handles solutions that only become known when the stream has ended.

A run of MAXIMAL without GAP may last until the end.  It is reported then, with the times of its elements.  Like the row
of an aggregate that changes because something left the window, it may have ended long ago, and so may what it is
compared with: a bound on the length of both does not say when that can be forgotten.

The mandatory side of OPTIONAL, MINUS and EXISTS may hold solutions from the background alone.  Such a solution has no
end, so whether it has a partner in the stream is decided after the last event.  The pattern is then evaluated backwards
over the whole history, with the mandatory side taken from the background (``Known``), and its timeless solutions are
reported.  This is possible only at the top level of a query: if such a solution were joined with anything that has a
time, a longer stream could take rows back.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules.traversal import remembered

from .unsupported import Fault


def only_forward(pattern: alg.Pattern) -> alg.Pattern:
    """The pattern itself; raises a ``Fault`` if it has an operator that cannot be evaluated backwards."""
    for part in alg.subpatterns(pattern):
        if word := alg.only_forward(part).replace("SEQ NOT", "NOT"):
            raise Fault(
                "not-backwards",
                f"{word} stands in a pattern that is looked for backwards, such as an EXISTS that reads variables from "
                "outside in a filter of its own",
                f"make a rule of it, CONSTRUCT {{ … }} WHERE {{ … {word} … }}, and ask for the triple that it derives",
            )
        if isinstance(part, alg.SubSelect) and (clauses := alg.clauses_over_stream(part.select)):
            raise Fault(
                "not-backwards",
                f"a sub-SELECT with {clauses} over the stream stands in a pattern that is looked for backwards: in an "
                "EXISTS that depends on the solution around it, or in an OPTIONAL, MINUS or EXISTS beside what may "
                "come from the background alone",
                "make a rule of it, CONSTRUCT { … } WHERE { { SELECT … } }, and ask for the triples that it derives",
            )
    return pattern


def settled(late: alg.Pattern | None) -> None:
    """Refuse to use solutions known only at the end of the stream for anything but a report."""
    if late is not None:
        raise Fault(
            "timeless-mandatory",
            "a pattern that may come from the background alone stands before an OPTIONAL, MINUS or EXISTS over the "
            "stream, inside another pattern",
            "whether the optional part is absent is known at the end of the stream only, so this may stand at the "
            "top level of the query: move it there, or put a streamed triple into its group",
        )


@remembered
def may_end_with_stream(pattern: alg.Pattern) -> bool:
    """Whether solutions of the pattern may be known at the end of the stream alone, though they ended before."""
    return alg.ends_with_stream(pattern) or any(map(may_end_with_stream, alg.nested_patterns(pattern)))
