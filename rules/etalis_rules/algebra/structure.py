"""The parts of a pattern or an expression, and patterns made from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from ..relations import Op
from ..traversal import transform
from .nodes import (
    BGP,
    UNIT,
    Absence,
    Apply,
    Block,
    Chain,
    Choice,
    Exists,
    Expr,
    Extend,
    Filter,
    GraphNames,
    Inverse,
    Join,
    Known,
    Outer,
    Path,
    PathPattern,
    Pattern,
    Record,
    Repeat,
    Runs,
    SubSelect,
    Table,
    Within,
)

T = TypeVar("T")


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below (not those inside EXISTS), in the order in which they are written."""
    match pattern:
        case GraphNames(_, _, child) if child is not None:
            return (child,)
        case BGP() | PathPattern() | GraphNames() | Table() | Record():
            return ()
        case Filter(child, _) | Within(child, _) | Extend(child, _, _) | Block(child) | Known(child):
            return (child,)
        case SubSelect(select):
            return (select.pattern,)
        case Absence(left, absent, right):
            return (left, absent) if right is None else (left, absent, right)
        case Runs(child, absent=absent):
            return (child,) if absent is None else (child, absent)
        case Outer():
            return pattern.sides
        case _:
            return (pattern.left, pattern.right)


def subpatterns(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all below it, those inside EXISTS included, parents first."""
    yield pattern
    for child in children(pattern):
        yield from subpatterns(child)
    for expression in expressions(pattern):
        for part in subexpressions(expression):
            if isinstance(part, Exists):
                yield from subpatterns(part.pattern)


def read_of_event(record: Record) -> Iterator[BGP | PathPattern]:
    """The patterns inside EVENT that may match triples of the event, those inside EXISTS included."""
    for part in subpatterns(record.pattern):
        if isinstance(part, BGP | PathPattern) and part.graph is None:
            yield replace(part, stream=record.stream)


def read_of_stream(pattern: Pattern) -> Iterator[BGP | PathPattern]:
    """The triple patterns and paths outside stored graphs, those inside EXISTS and EVENT included, parents first."""
    for part in subpatterns(pattern):
        if isinstance(part, Record):
            yield from read_of_event(part)
        elif isinstance(part, BGP | PathPattern) and part.graph is None:
            yield part


def expressions(pattern: Pattern) -> tuple[Expr, ...]:
    """The expressions directly in a pattern."""
    match pattern:
        case Filter(_, conditions):
            return conditions
        case Outer():
            return pattern.condition
        case Extend(_, _, expression):
            return (expression,)
        case Runs(condition=condition, aggregates=aggregates):
            return (*condition, *(a.operand for a in aggregates if a.operand is not None))
        case SubSelect(s):
            operands = (a.operand for a in s.aggregates if a.operand is not None)
            return (*(e for _, e in s.extends), *operands, *s.having, *(k.expression for k in s.order))
    return ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Apply):
        for arg in expr.args:
            yield from subexpressions(arg)


def conjoin(left: Pattern, right: Pattern) -> Pattern:
    """The join of two patterns, in which the unit disappears."""
    if left == UNIT:
        return right
    return left if right == UNIT else Join(Op.AND, left, right)


def invert(path: Path) -> Path:
    """The same path walked from its end to its start."""
    match path:
        case Inverse(inner):
            return inner
        case Chain(first, second):
            return Chain(invert(second), invert(first))
        case Choice(first, second):
            return Choice(invert(first), invert(second))
        case Repeat(inner, minimum, many):
            return Repeat(invert(inner), minimum, many)
        case _:
            return Inverse(path)


def may_be_empty(path: Path) -> bool:
    """Whether a path may lead from a node to itself without a step."""
    match path:
        case Repeat(inner, minimum, _):
            return minimum == 0 or may_be_empty(inner)
        case Chain(first, second):
            return may_be_empty(first) and may_be_empty(second)
        case Choice(first, second):
            return may_be_empty(first) or may_be_empty(second)
        case Inverse(inner):
            return may_be_empty(inner)
    return False


def without_blocks(value: T) -> T:
    """The same with every ``Block`` replaced by its content: without intervals a join of sets is a set."""
    return transform(value, lambda node: without_blocks(node.child) if isinstance(node, Block) else None)


def with_known(value: T, table: Callable[[Pattern], Pattern]) -> T:
    """The same with every ``Known`` pattern replaced by the result of ``table``."""
    return transform(value, lambda node: table(node.child) if isinstance(node, Known) else None)
