"""SKIP, DISJOINT and THROTTLE, literally: one solution after the other, in canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etalis_compiler import ast

from . import patterns
from .absence import timed
from .expressions import value_or_unbound
from .plan import Skipped, variables
from .solutions import Solution, canonical
from .times import duration, shift

if TYPE_CHECKING:
    from .patterns import Place

END = ast.Call("GETENDTIME", ())


def kept(plan: Skipped, place: Place) -> list[Solution]:
    """Per value of the BY variables: a solution is kept if it comes after what the last one kept has set."""
    found = patterns.answers(plan.child, place)
    timed(found)
    names, written = variables(plan.child), plan.written
    last: dict[tuple[str, ...], Solution] = {}
    rows = []
    for s in sorted(found, key=lambda s: (s.known, *canonical(s, names))):
        key = tuple(dict(s.mu).get(v.name, "") for v in written.by)
        if key not in last or _comes_after(s, last[key], written, place):
            last[key] = s
            rows.append(s)
    return rows


def _comes_after(s: Solution, last: Solution, written: ast.Skip, place: Place) -> bool:
    assert s.start is not None
    assert s.end is not None
    assert last.end is not None
    if written.length is not None:
        parsed = duration(written.length.lexical)
        assert parsed is not None
        return s.end >= shift(last.end, *parsed)
    written_after = written.after or END
    if isinstance(written_after, ast.Call) and written_after.name in ("GETENDTIME", "GETSTARTTIME"):
        since = last.end if written_after.name == "GETENDTIME" else last.start
        assert since is not None
        return s.start >= since if written.kind == "TO" else s.start > since
    start = value_or_unbound(ast.Call("GETSTARTTIME", ()), place.environment(s))
    time = ast.Term(value_or_unbound(written_after, place.environment(last)))
    test = ast.Binary(">=" if written.kind == "TO" else ">", ast.Term(start), time)
    return place.fulfils(s, (test,))
