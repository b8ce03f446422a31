"""The conditions of Allen's relations, NEXT, NOT, REPEAT and SKIP, and the plan without each of them.

A OVERLAPS B           ↦   A AND B, with both intervals
A NEXT B               ↦   A SEQ B, with both intervals: was there a nearer B?
A SEQ NOT N SEQ B      ↦   the same where N never occurs, with both intervals: which N lies between them?
A SKIP PAST (…)        ↦   A
A REPEAT 3 OR MORE …   ↦   A REPEAT 1 OR MORE …, with the number of elements
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.relations import Op

from etalis_py.whynot.condition import Gap, PlanCondition, keys_of, timed
from etalis_py.whynot.plan_shapes import Change, Path
from etalis_py.whynot.titles import Titles

NEVER = alg.BGP((alg.Triple(alg.Var(".never.s"), alg.Const("<urn:etalis:never>"), alg.Var(".never.o")),))
"""A pattern that has no solution in any stream."""

_BOTH: tuple[str, ...] = ("ls", "le", "rs", "re")


def of_operator(pattern: alg.Pattern, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    match pattern:
        case alg.Join():
            yield from _of_relation(pattern, path, f".why{next(numbers)}.", titles)
            if alg.only_forward(pattern):
                yield _nearer(pattern, path, f".why{next(numbers)}.", titles)
            yield from keys_of(pattern, path, numbers, titles)
        case alg.Absence():
            yield _absence(pattern, path, f".why{next(numbers)}.", titles)
            if pattern.right is not None:
                yield _in_order(pattern, path, f".why{next(numbers)}.", titles)
                yield from keys_of(pattern, path, numbers, titles)
        case alg.Skip():
            whole: Change = lambda p: alg.children(p)[0]  # noqa: E731
            yield PlanCondition("skip", titles.skip(pattern), path, whole, f".why{next(numbers)}.")
        case alg.Runs():
            yield from _of_runs(pattern, path, numbers, titles)


def _side_by_side(mark: str, op: Op = Op.AND) -> Any:
    """Both sides of the node, with their intervals, under the condition of a NEXT."""

    def change(pattern: Any) -> alg.Pattern:
        if isinstance(pattern, alg.Filter):  # another condition of the node has been removed already
            return replace(pattern, child=change(pattern.child))
        joined = alg.Join(op, timed(pattern.left, mark, "l"), timed(pattern.right, mark, "r"))
        across = pattern.condition if isinstance(pattern, alg.Join) else ()
        return alg.filtered(joined, across)

    return change


def _of_relation(pattern: alg.Join, path: Path, mark: str, titles: Titles) -> Iterator[PlanCondition]:
    kind = "order" if alg.only_forward(pattern) else "relation"
    text = titles.inner(pattern)
    yield PlanCondition(kind, text, path, _side_by_side(mark), mark, _BOTH, pattern, pattern.op)


def _nearer(pattern: alg.Join, path: Path, mark: str, titles: Titles) -> PlanCondition:
    text = f"no nearer {titles.inner(pattern.right)}"
    return PlanCondition("absence", text, path, _side_by_side(mark, Op.SEQ), mark, _BOTH, pattern, gap=Gap("le", "re"))


def _absence(pattern: alg.Absence, path: Path, mark: str, titles: Titles) -> PlanCondition:
    def change(p: Any) -> alg.Pattern:
        right = None if p.right is None else timed(p.right, mark, "r")
        left = timed(p.left, mark, "l")
        return replace(p, left=left, absent=NEVER, right=right, condition=())  # type: ignore[no-any-return]

    if pattern.right is not None:
        marks, gap = _BOTH, Gap("le", "rs")
    else:
        marks, gap = ("ls", "le"), Gap("ls", "le") if pattern.bound is None else Gap("le", bound=pattern.bound)
    return PlanCondition("absence", titles.pattern(pattern), path, change, mark, marks, pattern, gap=gap)


def _in_order(pattern: alg.Absence, path: Path, mark: str, titles: Titles) -> PlanCondition:
    return PlanCondition("order", titles.inner(pattern), path, _side_by_side(mark), mark, _BOTH, pattern, "SEQ")


def _of_runs(pattern: alg.Runs, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    for i, test in enumerate(pattern.condition):

        def dropped(p: Any, i: int = i) -> alg.Pattern:
            return replace(p, condition=p.condition[:i] + p.condition[i + 1 :])  # type: ignore[no-any-return]

        (spelled,) = alg.with_totals((test,), pattern.totals)
        text = f"WHERE ({titles.expression(spelled)}) in {titles.repeat(pattern)}"
        yield PlanCondition("filter", text, path, dropped, f".why{next(numbers)}.", (), spelled)
    if pattern.absent is not None:
        text = f"NOT {{ {titles.inner(pattern.absent)} }} in {titles.repeat(pattern)}"
        change = lambda p: replace(p, absent=None)  # noqa: E731
        yield PlanCondition("absence", text, path, change, f".why{next(numbers)}.", (), pattern, gap=Gap())
    if pattern.gap is not None:
        text = f"GAP {titles.bound(pattern.gap)} in {titles.repeat(pattern)}"
        change = lambda p: replace(p, gap=None)  # noqa: E731
        yield PlanCondition("gap", text, path, change, f".why{next(numbers)}.", (), pattern)
    if pattern.least > 1:
        mark = f".why{next(numbers)}."
        count = alg.AggregateCall(mark + "n", "COUNT", None)

        def fewer(p: Any) -> alg.Pattern:
            return replace(p, least=1, aggregates=(*p.aggregates, count))  # type: ignore[no-any-return]

        yield PlanCondition("repeat", titles.repeat(pattern), path, fewer, mark, ("n",), pattern)
    if pattern.longest:
        change = lambda p: replace(p, longest=False)  # noqa: E731
        yield PlanCondition("longest", "LONGEST", path, change, f".why{next(numbers)}.", (), pattern)
    if pattern.until is not None:
        text = f"UNTIL {{ {titles.inner(pattern.until)} }} in {titles.repeat(pattern)}"
        change = lambda p: replace(p, until=None, longest=True)  # noqa: E731
        yield PlanCondition("until", text, path, change, f".why{next(numbers)}.", (), pattern)
    if pattern.maximal:
        change = lambda p: replace(p, maximal=False)  # noqa: E731
        yield PlanCondition("maximal", "MAXIMAL", path, change, f".why{next(numbers)}.", (), pattern)
