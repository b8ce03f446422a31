"""The temporal algebra: SPARQL's operators and those of [EP] §4.2, over solutions ⟨μ, start, end⟩.

This is what a query means.  The compiler makes it from the syntax and turns it into rules; what a rule asks of the
background knowledge, and patterns that can only be evaluated backwards (a correlated EXISTS), stay algebra inside
the rules.  Everything is immutable and hashable.

Variables are names without the question mark; a name that begins with ``_:`` stands for a blank node of the query,
one that begins with ``.`` was introduced by the compiler.  Terms are N-Triples spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

# --- expressions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    name: str


@dataclass(frozen=True, slots=True)
class Const:
    term: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator (``+ - * / < <= > >= = != && || ! neg IN``), a built-in in upper case, or a function ``<iri>``."""

    op: str
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS { pattern }: the pattern has a solution, with the variables of the outer solution substituted."""

    pattern: Pattern


Expr = Var | Const | Apply | Exists


# --- property paths --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One edge with this predicate, from subject to object."""

    iri: str


@dataclass(frozen=True, slots=True)
class Inverse:
    path: Path


@dataclass(frozen=True, slots=True)
class Chain:
    first: Path
    second: Path


@dataclass(frozen=True, slots=True)
class Choice:
    first: Path
    second: Path


@dataclass(frozen=True, slots=True)
class Repeat:
    """``minimum`` 0 or 1; ``many`` False for ``p?``."""

    path: Path
    minimum: int
    many: bool


@dataclass(frozen=True, slots=True)
class NotAny:
    """An edge whose predicate is none of these, from subject to object."""

    iris: tuple[str, ...]


Path = Step | Inverse | Chain | Choice | Repeat | NotAny


# --- patterns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triple:
    subject: Var | Const
    predicate: Var | Const
    object: Var | Const


@dataclass(frozen=True, slots=True)
class BGP:
    """A set of triple patterns.  ``stream`` restricts it to one stream; ``graph`` to background graphs."""

    triples: tuple[Triple, ...]
    stream: str = ""
    graph: Var | Const | None = None


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path that is not one plain predicate (sequences and alternatives are already taken apart)."""

    subject: Var | Const
    path: Path
    object: Var | Const
    stream: str = ""
    graph: Var | Const | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The solutions of joined triple patterns and paths as a set over all their variables: one written block."""

    child: Pattern


@dataclass(frozen=True, slots=True)
class Known:
    """The solutions of the pattern over the background alone."""

    child: Pattern


@dataclass(frozen=True, slots=True)
class GraphNames:
    """``GRAPH ?g {}``: one timeless solution per named background graph.

    ``GRAPH ?g {P}`` with a ``child``: P evaluated once for every named graph, which is ``inner`` inside of P; what P
    itself binds to ?g must be that graph.
    """

    graph: Var | Const
    inner: Var | None = None
    child: Pattern | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Inline rows, timeless.  One row without variables is the unit: what ``{}`` means."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


UNIT = Table((), ((),))


@dataclass(frozen=True, slots=True)
class Join:
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class SeqJoin:
    """[EP] §4.2 SeqJoin: compatible, and left ends strictly before right starts."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class EqJoin:
    """[EP] §4.2 EqJoin: compatible, with equal intervals."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Union:
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL: ``right`` may be missing; where present it ends no later than ``left``."""

    left: Pattern
    right: Pattern
    condition: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class SeqRightJoin:
    """[EP] §4.2 SeqRightJoin, ``left OPTIONALSEQ right``: ``right`` is mandatory, ``left`` optional and earlier."""

    left: Pattern
    right: Pattern
    condition: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class EqLeftJoin:
    """[EP] §4.2 EqLeftJoin, ``left EQUALSOPTIONAL right``: ``left`` is mandatory, ``right`` optional and equal."""

    left: Pattern
    right: Pattern
    condition: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Minus:
    """``left`` without what is compatible with, and shares a variable with, a solution of ``right``.

    ``scope`` names the variables of ``left`` that count (MINUS is decided at the end of its group, when later
    elements have been joined already).
    """

    left: Pattern
    right: Pattern
    scope: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    child: Pattern
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    child: Pattern
    variable: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class Bound:
    """The length of a window: ``micros`` plus ``months`` by calendar, or a count of ``events``."""

    micros: int = 0
    months: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class Within:
    """``{…} WITHIN bound``: solutions with end − start ≤ bound."""

    child: Pattern
    bound: Bound


@dataclass(frozen=True, slots=True)
class SubSelect:
    select: Select


Pattern = (
    BGP
    | PathPattern
    | Block
    | Known
    | GraphNames
    | Table
    | Join
    | SeqJoin
    | EqJoin
    | Union
    | LeftJoin
    | SeqRightJoin
    | EqLeftJoin
    | Minus
    | Filter
    | Extend
    | Within
    | SubSelect
)


# --- queries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``variable`` receives ``name(operand)``; ``operand`` is None for COUNT(*)."""

    variable: str
    name: str
    operand: Expr | None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """What stands around a pattern: grouping, HAVING, SELECT expressions, DISTINCT, ORDER BY, LIMIT, window.

    Evaluated in this order: ``window`` over the solutions of ``pattern``; ``keys`` and ``aggregates`` when
    ``grouped``; ``having``; ``extends``; ``order``; projection to ``variables``; ``distinct``; slice.
    """

    pattern: Pattern
    variables: tuple[str, ...]
    extends: tuple[tuple[str, Expr], ...] = ()
    grouped: bool = False
    keys: tuple[str, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    having: tuple[Expr, ...] = ()
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    window: Bound | None = None


# --- what every pass needs -------------------------------------------------------------------------------------


def variables(expr: Expr) -> frozenset[str]:
    """The variables an expression reads (those of an EXISTS pattern included)."""
    match expr:
        case Var(name):
            return frozenset((name,))
        case Const():
            return frozenset()
        case Apply(_, args):
            return frozenset().union(*map(variables, args)) if args else frozenset()
        case Exists(pattern):
            read = (variables(e) for part in subpatterns(pattern) for e in expressions(part))
            return scope(pattern).union(*read)


def node_variables(*nodes: Var | Const | None) -> frozenset[str]:
    return frozenset(n.name for n in nodes if isinstance(n, Var))


def scope(pattern: Pattern) -> frozenset[str]:
    """The in-scope variables of a pattern (SPARQL 1.1 §18.2.1), blank-node ones included."""
    match pattern:
        case BGP(triples, _, graph):
            inner = (node_variables(t.subject, t.predicate, t.object) for t in triples)
            return node_variables(graph).union(*inner)
        case PathPattern(subject, _, object, _, graph):
            return node_variables(subject, object, graph)
        case GraphNames(graph, inner, child):
            return node_variables(graph) | (frozenset() if child is None else scope(child) - node_variables(inner))
        case Table(names, _):
            return frozenset(names)
        case Minus(left, _, _):
            return scope(left)
        case Filter(child, _) | Within(child, _) | Block(child) | Known(child):
            return scope(child)
        case Extend(child, variable, _):
            return scope(child) | {variable}
        case SubSelect(select):
            return frozenset(select.variables)
        case _:
            return scope(pattern.left) | scope(pattern.right)


def certain(pattern: Pattern) -> frozenset[str]:
    """The variables that every solution of the pattern binds."""
    match pattern:
        case GraphNames(graph, inner, child) if child is not None:
            return node_variables(graph) | (certain(child) - node_variables(inner))
        case BGP() | PathPattern() | GraphNames():
            return scope(pattern)
        case Table(names, rows):
            return frozenset(n for i, n in enumerate(names) if all(row[i] for row in rows))
        case Join(left, right) | SeqJoin(left, right) | EqJoin(left, right):
            return certain(left) | certain(right)
        case Union(left, right):
            return certain(left) & certain(right)
        case LeftJoin(left, _, _) | EqLeftJoin(left, _, _) | Minus(left, _, _):
            return certain(left)
        case SeqRightJoin(_, right, _):
            return certain(right)
        case Filter(child, _) | Within(child, _) | Block(child) | Known(child):
            return certain(child)
        case Extend(child, _, _):
            return certain(child)  # an error leaves the variable unbound
        case SubSelect(select):
            bound = certain(select.pattern)
            if select.grouped:
                bound &= frozenset(select.keys)
                bound |= {a.variable for a in select.aggregates if a.name == "COUNT"}
            return bound & frozenset(select.variables)
    raise TypeError(f"not a pattern: {pattern!r}")


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below (not those inside EXISTS)."""
    match pattern:
        case GraphNames(_, _, child) if child is not None:
            return (child,)
        case BGP() | PathPattern() | GraphNames() | Table():
            return ()
        case Filter(child, _) | Within(child, _) | Extend(child, _, _) | Block(child) | Known(child):
            return (child,)
        case SubSelect(select):
            return (select.pattern,)
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


def expressions(pattern: Pattern) -> tuple[Expr, ...]:
    """The expressions that stand directly in a pattern."""
    match pattern:
        case Filter(_, conditions):
            return conditions
        case LeftJoin(_, _, condition) | SeqRightJoin(_, _, condition) | EqLeftJoin(_, _, condition):
            return condition
        case Extend(_, _, expression):
            return (expression,)
        case SubSelect(s):
            operands = (a.operand for a in s.aggregates if a.operand is not None)
            return (*(e for _, e in s.extends), *operands, *s.having, *(k.expression for k in s.order))
    return ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Apply):
        for arg in expr.args:
            yield from subexpressions(arg)


def without_blocks(value: object) -> object:
    """The same with every ``Block`` replaced by what is in it: without intervals a join of sets is a set."""
    if isinstance(value, Block):
        return without_blocks(value.child)
    if isinstance(value, tuple):
        return tuple(map(without_blocks, value))
    if not hasattr(value, "__dataclass_fields__"):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
    return type(value)(**{name: without_blocks(part) for name, part in parts.items()})


def with_known(value: object, table: Callable[[Pattern], Pattern]) -> object:
    """The same with every ``Known`` pattern replaced by what ``table`` makes of it."""
    if isinstance(value, Known):
        return table(value.child)
    if isinstance(value, tuple):
        return tuple(with_known(v, table) for v in value)
    if not hasattr(value, "__dataclass_fields__"):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
    return type(value)(**{name: with_known(part, table) for name, part in parts.items()})


def rename(value: object, names: dict[str, str]) -> object:
    """The same expression or pattern with its variables renamed (α-renaming, everywhere)."""
    if isinstance(value, Var):
        return Var(names.get(value.name, value.name))
    if isinstance(value, tuple):
        return tuple(rename(v, names) for v in value)
    if isinstance(value, Table):
        return Table(tuple(names.get(v, v) for v in value.variables), value.rows)
    if isinstance(value, (Const, Bound)) or not hasattr(value, "__dataclass_fields__"):
        return value
    changed = {}
    for f in fields(value):  # type: ignore[arg-type]
        part = getattr(value, f.name)
        if f.name in NAME_FIELDS:
            part = names.get(part, part) if isinstance(part, str) else _rename_names(part, names)
        else:
            part = rename(part, names)
        changed[f.name] = part
    return type(value)(**changed)


# The fields that hold variable names, here and in the rules.
NAME_FIELDS = frozenset(
    {
        "variable",
        "variables",
        "keys",
        "scope",
        "extends",
        "head",
        "columns",
        "certain",
        "binds",
        "mark",
        "ends",
        "canonical",
        "shown",
    }
)


def _rename_names(part: Any, names: dict[str, str]) -> tuple[object, ...]:
    return tuple(
        names.get(item, item) if isinstance(item, str) else (names.get(item[0], item[0]), rename(item[1], names))
        for item in part
    )
