"""The conditions of a plan, one by one, and the plan without one of them.

A condition is removed by a change at one node.  The changed node has the solutions that the condition let pass and
those that it refused, with *marks*: variables that say for each solution whether it was refused and what the condition
compared.  So one evaluation gives the refused solutions together with the measure of how far each was from passing:

    Filter(P, ?y > 13)   ↦   Extend(P, .why1.ok, ?y > 13) with .why1.a = ?y and .why1.b = 13
    P SEQ Q              ↦   P AND Q, with the intervals of both sides
    ?c shared by P, Q    ↦   ?c renamed in Q, and the two terms side by side

Patterns inside EXISTS, NOT { … } and at the right of MINUS are not analysed: removing a condition there gives fewer
answers, not more.  The conditions of Allen's relations and of what only follows the stream are in ``operators``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import cast

from etalis_rules import algebra as alg
from etalis_rules.relations import SAME_INTERVAL, Op
from etalis_rules.terms import TRUE

from etalis_py.whynot.condition import PlanCondition, keys_of, timed
from etalis_py.whynot.operators import of_operator
from etalis_py.whynot.plan_shapes import Change, Path
from etalis_py.whynot.titles import Titles, as_written


def without_conditions(plan: alg.Pattern, some: Iterable[PlanCondition]) -> alg.Pattern:
    """The plan without several conditions, each with its marks."""
    for condition in sorted(some, key=_depth):
        plan = condition.taken_from(plan)
    return plan


def _depth(condition: PlanCondition) -> tuple[int, bool, bool, bool]:
    """Deeper nodes first, so that the paths to the upper ones stay valid; keys before conditions that change the
    operator.

    Filters come last: what they add goes above the node.  Columns come after the terms in them, which are counted.
    """
    return -len(condition.node), condition.kind != "key", condition.kind == "filter", condition.kind == "column"


def conditions(plan: alg.Pattern, titles: Titles) -> tuple[PlanCondition, ...]:
    """All conditions of a plan, those of upper nodes first."""
    numbers = count(1)
    return tuple(_below(plan, (), numbers, titles))


def _below(pattern: alg.Pattern, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    if alg.is_opaque(pattern):
        return
    yield from of_node(pattern, path, numbers, titles)
    for i, part in enumerate(alg.parts(pattern)):
        if not part.excludes:
            yield from _below(part.pattern, (*path, i), numbers, titles)


def of_node(pattern: alg.Pattern, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    """The conditions of the node itself."""
    match pattern:
        case alg.Filter(_, tests):
            for i, test in enumerate(tests):
                seen = alg.scope(pattern)
                yield replace(_filter(test, i, path, f".why{next(numbers)}.", titles), sees=seen)
        case alg.Within(_, bound):
            mark = f".why{next(numbers)}."
            yield PlanCondition("window", titles.pattern(pattern), path, _first_child(mark), mark, ("ls", "le"), bound)
        case alg.Minus(left, right, _):
            mark, text, seen = f".why{next(numbers)}.", f"MINUS {{ {titles.inner(right)} }}", alg.scope(left)
            yield PlanCondition("minus", text, path, _first_child(mark), mark, ("ls", "le"), pattern, sees=seen)
        case alg.Table(names, _) if names:
            yield PlanCondition("values", titles.pattern(pattern), path, lambda p: alg.UNIT, f".why{next(numbers)}.")
        case alg.BGP():
            yield from _of_triples(pattern, path, numbers, titles)
        case alg.Record(alg.BGP()):
            yield from _of_record(pattern, path, numbers, titles)
        case alg.PathPattern(subject, _, target, _, _):
            for place, node in (("subject", subject), ("object", target)):
                if isinstance(node, alg.Const):
                    mark = f".why{next(numbers)}."
                    change = lambda p, place=place, m=mark: replace(p, **{place: alg.Var(m + "t")})  # noqa: E731
                    yield PlanCondition("term", titles.term(node.term), path, change, mark, ("t",), (node.term, place))
        case alg.Join(Op.AND | Op.SEQ | Op.EQUALS) | alg.Outer():
            if isinstance(pattern, alg.Join) and pattern.deadline is not None:
                yield _in_time(pattern, pattern.deadline, path, f".why{next(numbers)}.", titles)
            yield from _of_pair(pattern, path, numbers, titles)
        case alg.Join():
            yield from of_operator(pattern, path, numbers, titles)
            for test in pattern.condition:
                found = _condition_filter(test, path, f".why{next(numbers)}.", titles)
                yield replace(found, text=titles.filter(as_written(pattern.right, test)))
        case _:
            yield from of_operator(pattern, path, numbers, titles)


def _filter(test: alg.Expr, i: int, path: Path, mark: str, titles: Titles) -> PlanCondition:
    sides: tuple[alg.Expr, ...]
    match test:
        case alg.Exists():
            kind, sides = "existence", ()
        case alg.Apply("!", (alg.Exists(),)):
            kind, sides = "absence", ()
        case _:
            kind, sides = "filter", sides_of(test)

    def change(pattern: alg.Pattern) -> alg.Pattern:
        assert isinstance(pattern, alg.Filter)
        rest = pattern.conditions[:i] + pattern.conditions[i + 1 :]
        child = _recorded(pattern.child, test, sides, mark)
        return alg.Filter(child, rest)

    marks = ("in", "ok", "ls", "le", *(("a", "b") if sides else ()))
    return PlanCondition(kind, titles.filter(test), path, change, mark, marks, test)


def _recorded(child: alg.Pattern, test: alg.Expr, sides: tuple[alg.Expr, ...], mark: str) -> alg.Pattern:
    """The pattern with marks for the result of the test on each solution, and the values it compares."""
    truth = alg.Apply("!", (alg.Apply("!", (test,)),))
    child = alg.Extend(alg.Extend(child, mark + "in", alg.Const(TRUE)), mark + "ok", truth)
    child = timed(child, mark, "l")
    for name, side in zip("ab", sides, strict=False):
        child = alg.Extend(child, mark + name, side)
    return child


def _first_child(mark: str) -> Change:
    """The (left) child with its intervals, in place of the node."""
    return lambda pattern: timed(alg.children(pattern)[0], mark, "l")


# --- pairs -----------------------------------------------------------------------------------------------------


def _of_pair(
    pattern: alg.Join | alg.Outer, path: Path, numbers: Iterator[int], titles: Titles
) -> Iterator[PlanCondition]:
    optional = pattern.condition if isinstance(pattern, alg.Outer) else ()
    if pattern.op is not Op.AND:
        kind = "interval" if pattern.op in SAME_INTERVAL else "order"
        word = pattern.op.upper()
        mark = f".why{next(numbers)}."

        def side_by_side(p: alg.Pattern, m: str = mark) -> alg.Pattern:
            left, right = alg.children(p)
            joined = alg.Join(Op.AND, timed(left, m, "l"), timed(right, m, "r"))
            return alg.filtered(joined, optional)

        yield PlanCondition(
            kind, titles.inner(pattern), path, side_by_side, mark, ("ls", "le", "rs", "re"), pattern, word
        )
    for test in optional:
        yield _condition_filter(test, path, f".why{next(numbers)}.", titles)
    yield from keys_of(pattern, path, numbers, titles)


def _in_time(pattern: alg.Join, bound: alg.Bound, path: Path, mark: str, titles: Titles) -> PlanCondition:
    """That the right side ends in time after the left one."""

    def whenever(p: alg.Pattern) -> alg.Pattern:
        join = cast(alg.Join, p)
        return replace(join, left=timed(join.left, mark, "l"), right=timed(join.right, mark, "r"), deadline=None)

    return PlanCondition("window", titles.pattern(pattern), path, whenever, mark, ("ls", "le", "rs", "re"), bound)


def sides_of(test: alg.Expr) -> tuple[alg.Expr, ...]:
    """The two sides of a comparison; nothing for any other condition."""
    found = alg.comparison(test)
    return () if found is None else found[1:]


def _condition_filter(test: alg.Expr, path: Path, mark: str, titles: Titles) -> PlanCondition:
    """A conjunct of the condition under which an optional part is taken, or something is next."""
    sides = sides_of(test)

    def change(pattern: alg.Pattern) -> alg.Pattern:
        return _recorded(_unconditional(pattern, test), test, sides, mark)

    marks = ("in", "ok", "ls", "le", *(("a", "b") if sides else ()))
    return PlanCondition("filter", titles.filter(test), path, change, mark, marks, test)


def _unconditional(pattern: alg.Pattern, test: alg.Expr) -> alg.Pattern:
    """The operator without a conjunct of its condition, even if other conditions have been removed already."""
    match pattern:
        case alg.Extend(child):
            return replace(pattern, child=_unconditional(child, test))
        case alg.Filter(child, tests):
            rest = _but(tests, test)
            return replace(pattern, conditions=rest) if rest else child
        case alg.Outer() | alg.Join():
            return replace(pattern, condition=_but(pattern.condition, test))
    raise TypeError(f"no condition on both sides stands in {pattern!r}")


def _but(tests: tuple[alg.Expr, ...], test: alg.Expr) -> tuple[alg.Expr, ...]:
    place = next(i for i, other in enumerate(tests) if other is test)
    return tests[:place] + tests[place + 1 :]


# --- records ---------------------------------------------------------------------------------------------------


def _of_record(pattern: alg.Record, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    """The columns that an event must have, and the terms in them."""
    bgp = cast(alg.BGP, pattern.pattern)
    for triple in bgp.triples if len(bgp.triples) > 1 else ():

        def without(p: alg.Pattern, triple: alg.Triple = triple) -> alg.Pattern:
            record = cast(alg.Record, p)
            kept = tuple(t for t in cast(alg.BGP, record.pattern).triples if t is not triple)
            return replace(record, pattern=alg.BGP(kept))

        text = f"{titles.triple(triple)} in the same event"
        yield PlanCondition("column", text, path, without, f".why{next(numbers)}.", (), triple)
    for condition in _of_triples(bgp, path, numbers, titles):
        if condition.kind == "term":

            def inside(p: alg.Pattern, change: Change = condition.change) -> alg.Pattern:
                return replace(cast(alg.Record, p), pattern=change(cast(alg.Record, p).pattern))

            yield replace(condition, change=inside)


# --- triples ---------------------------------------------------------------------------------------------------


def _of_triples(pattern: alg.BGP, path: Path, numbers: Iterator[int], titles: Titles) -> Iterator[PlanCondition]:
    for i, triple in enumerate(pattern.triples):
        for place in ("predicate", "subject", "object"):
            node = getattr(triple, place)
            mark = f".why{next(numbers)}."
            if isinstance(node, alg.Const):

                def opened(p: alg.Pattern, i: int = i, place: str = place, m: str = mark) -> alg.Pattern:
                    return _with_node(p, i, place, alg.Var(m + "t"))

                title = titles.term(node.term)
                yield PlanCondition("term", title, path, opened, mark, ("t",), (node.term, place, triple))
            elif sum(_mentions(t, node.name) for t in pattern.triples) > 1:

                def parted(p: alg.Pattern, i: int = i, place: str = place, m: str = mark) -> alg.Pattern:
                    return _with_node(p, i, place, alg.Var(m + "k"))

                title = titles.node(node)
                yield PlanCondition("key", title, path, parted, mark, ("k",), (node.name, alg.BGP((triple,))))
    if pattern.stream:
        yield PlanCondition(
            "stream",
            f"STREAM {titles.term(pattern.stream)}",
            path,
            lambda p: replace(cast(alg.BGP, p), stream=""),
            f".why{next(numbers)}.",
            (),
            pattern,
        )


def _mentions(triple: alg.Triple, name: str) -> int:
    return sum(n == alg.Var(name) for n in (triple.subject, triple.predicate, triple.object))


def _with_node(pattern: alg.Pattern, i: int, place: str, node: alg.Var) -> alg.Pattern:
    bgp = cast(alg.BGP, pattern)
    triples = list(bgp.triples)
    triples[i] = replace(triples[i], **{place: node})
    return replace(bgp, triples=tuple(triples))
