"""The parts of a pattern or an expression, and patterns made from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

from ..relations import AT_ONCE, EITHER_LAST, IN_TURN, NEAREST, TOGETHER, Op
from ..roles import Role
from ..traversal import Name, transform
from .nodes import (
    BGP,
    UNIT,
    Absence,
    AggregateCall,
    Apply,
    Block,
    Bound,
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
    Minus,
    Outer,
    Path,
    PathPattern,
    Pattern,
    Record,
    Repeated,
    Runs,
    Select,
    Skip,
    Start,
    SubSelect,
    Table,
    Triple,
    Union,
    Var,
    Within,
)
from .positions import variable_of

T = TypeVar("T")

ONLY_FORWARD = "NOT, NEXT, SEQ OPTIONAL, REPEAT and SKIP"
"""The operators that decide what is next, absent, repeated or skipped (``only_forward``)."""
IN_ORDER = "SEQ, NEXT and REPEAT"
"""The usual operators that take one event for the later one (``puts_in_order``)."""


class Part(NamedTuple):
    """A pattern directly below another one, in its field ``field``.

    ``binds``: its variables are variables of the whole.  ``decides``: which solutions it has decides which solutions
    of the other parts count, so that it must not be narrowed down by what holds for the whole.  ``last``: it ends when
    the whole does.
    """

    field: str
    pattern: Pattern
    role: Role = Role.SIDE
    binds: bool = True
    decides: bool = False
    last: bool = True

    @property
    def excludes(self) -> bool:
        """Whether each of its solutions rules others out, as the right side of MINUS does."""
        return self.role is Role.ABSENT or (self.role is Role.OPTIONAL and not self.binds)


def parts(pattern: Pattern) -> tuple[Part, ...]:
    """What a pattern is made of (not what stands inside EXISTS), in the order in which it is written."""
    match pattern:
        case BGP() | PathPattern() | Table() | Record() | Start():
            return ()
        case GraphNames(child=child):
            return () if child is None else (Part("child", child),)
        case Filter() | Within() | Extend() | Block() | Known():
            return (Part("child", pattern.child),)
        case SubSelect(select):
            return (Part("select", select.pattern, binds=False),)
        case Join(op, left, right):
            first = Part("left", left, last=op in TOGETHER)
            return first, Part("right", right, decides=op in NEAREST, last=op not in EITHER_LAST)
        case Union(left, right):
            return Part("left", left), Part("right", right)
        case Outer(op, mandatory, optional):
            certain = Part("mandatory", mandatory)
            perhaps = Part("optional", optional, Role.OPTIONAL, decides=True, last=op in TOGETHER)
            return (perhaps, certain) if pattern.optional_first else (certain, perhaps)
        case Minus(left, right):
            return Part("left", left), Part("right", right, Role.OPTIONAL, binds=False, decides=True, last=False)
        case Absence(left, absent, right, bound):
            first = Part("left", left, last=right is None and bound is None)
            gone = Part("absent", absent, Role.ABSENT, binds=False, decides=True, last=False)
            return (first, gone) if right is None else (first, gone, Part("right", right))
        case Skip(child):
            return (Part("child", child, decides=True),)
        case Runs(child, absent=absent, until=until):
            found = [Part("child", child, Role.MEMBER, binds=False, decides=True, last=False)]
            if absent is not None:
                found.append(Part("absent", absent, Role.ABSENT, binds=False, decides=True, last=False))
            if until is not None:
                found.append(Part("until", until, decides=True))
            return tuple(found)
    raise TypeError(f"not a pattern: {pattern!r}")


def needed_parts(pattern: Pattern, *, selects: bool = True) -> Iterator[Pattern]:
    """The parts without which there is no solution, parents first; ``selects``: those of sub-queries, too.

    Triple patterns and filters inside EVENT have the stream of the event.
    """
    yield pattern
    match pattern:
        case Record(inner, stream):
            for part in needed_parts(inner, selects=selects):
                if isinstance(part, BGP):
                    yield replace(part, stream=stream)
                elif isinstance(part, Filter):
                    yield part
            return
        case Union() | Known():
            return
        case SubSelect() if not selects:
            return
    for below in parts(pattern):
        if below.role in (Role.SIDE, Role.MEMBER):
            yield from needed_parts(below.pattern, selects=selects)


def needed_triples(pattern: Pattern) -> Iterator[Triple]:
    """The triple patterns outside stored graphs without which there is no solution."""
    for part in needed_parts(pattern):
        if isinstance(part, BGP) and part.graph is None:
            yield from part.triples


def needed_conditions(pattern: Pattern) -> Iterator[Expr]:
    """The conditions that every solution fulfils."""
    for part in needed_parts(pattern):
        if isinstance(part, Filter):
            yield from part.conditions


def own_variables(pattern: Pattern) -> tuple[Name, ...]:
    """The variables that a pattern binds besides those of its parts."""
    match pattern:
        case Extend(_, variable):
            return (variable,)
        case Table(names):
            return names
        case SubSelect(select):
            return select.variables
        case Runs():
            return (*pattern.keys, *(a.variable for a in pattern.aggregates))
    return ()


def copied(pattern: Pattern) -> dict[Name, Name]:
    """The variables whose values are those of one variable of its first part, each with that one."""
    match pattern:
        case Extend(_, variable, Var(name)):
            return {variable: name}
        case Runs(aggregates=aggregates):
            return {a.variable: name for a in aggregates if a.takes_element and (name := variable_of(a.operand))}
    return {}


def agreed(pattern: Pattern) -> tuple[Name, ...]:
    """The variables that are the same in all elements of which one solution is made."""
    return pattern.keys if isinstance(pattern, Runs) else ()


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below (not those inside EXISTS), in the order in which they are written."""
    return tuple(part.pattern for part in parts(pattern))


def with_children(pattern: Pattern, patterns: Iterable[Pattern]) -> Pattern:
    """The pattern with others below it, in the order of ``parts``."""
    fields: dict[str, Any] = {part.field: below for part, below in zip(parts(pattern), patterns, strict=True)}
    if "select" in fields:
        fields["select"] = replace(cast(SubSelect, pattern).select, pattern=fields["select"])
    return cast(Pattern, replace(cast(Any, pattern), **fields)) if fields else pattern


def keyword(pattern: Pattern) -> str:
    """The operator as it is written; empty for a pattern that no single word stands for."""
    match pattern:
        case Join(deadline=Bound()) | Absence(optional=True):
            return "SEQ OPTIONAL"
        case Join(op) | Outer(op):
            return op.upper()
        case Absence(Start(), Start()):
            return "START"
        case Absence(_, _, None, None):
            return "NOT"
        case Absence():
            return "SEQ NOT"
        case Runs():
            return "REPEAT"
        case Start():
            return "START"
        case Skip(after=Apply("GETENDTIME"), at=False):
            return "DISJOINT"
        case Skip(length=length):
            return "SKIP" if length is None else "THROTTLE"
        case Union() | Minus():
            return type(pattern).__name__.upper()
    return ""


def only_forward(pattern: Pattern) -> str:
    """The operator as it is written, if it decides what is next, absent, repeated or skipped; else nothing.

    All its sides have a time.  It follows the stream as it comes and is not looked for backwards in the past.
    """
    if isinstance(pattern, Join):
        return keyword(pattern) if pattern.op in NEAREST or pattern.deadline is not None else ""
    return keyword(pattern) if isinstance(pattern, Absence | Runs | Start | Skip) else ""


def is_seq_optional(pattern: Pattern) -> bool:
    """Whether it is SEQ OPTIONAL: the union of a half with the optional part and one without it."""
    if not isinstance(pattern, Union):
        return False
    return any(keyword(unconditional(half)) == "SEQ OPTIONAL" for half in children(pattern))


def ends_with_stream(pattern: Pattern) -> bool:
    """Whether it has runs that only the end of the stream ends."""
    return isinstance(pattern, Runs) and pattern.maximal and pattern.gap is None


def across(pattern: Pattern) -> tuple[Expr, ...]:
    """What a solution that is next, or must be absent, fulfils together with the one of the first part."""
    return pattern.condition if isinstance(pattern, Join | Absence) else ()


def own_conditions(pattern: Pattern) -> tuple[Expr, ...]:
    """What each solution of a pattern fulfils by itself: at a filter, at NEXT, at each step of a run."""
    match pattern:
        case Filter(_, conditions):
            return conditions
        case Join() | Runs():
            return pattern.condition
    return ()


def conditions_of_branches(pattern: Pattern) -> tuple[Expr, ...]:
    """What a solution of a part that may be missing, or must be absent, fulfils together with the others."""
    return pattern.condition if isinstance(pattern, Outer | Absence) else ()


def shown_to_branches(pattern: Pattern, names: Iterable[Name]) -> Iterator[Name]:
    """Those of the variables on which parts that may be missing, or must be absent, agree with the others."""
    return (name for name in names if not isinstance(pattern, Runs) or name in pattern.keys)


def aggregate_calls(pattern: Pattern) -> tuple[AggregateCall, ...]:
    """The aggregates directly in a pattern."""
    if isinstance(pattern, SubSelect):
        return pattern.select.aggregates
    return (*pattern.totals, *pattern.aggregates) if isinstance(pattern, Runs) else ()


def always_lasts(pattern: Pattern) -> bool:
    """Whether the solutions of a pattern certainly have a duration."""
    match pattern:
        case Join(op) if op not in AT_ONCE:
            return True
        case Absence(_, _, right, bound) if right is not None or bound is not None:
            return True
        case Union():
            return all(map(always_lasts, children(pattern)))
    return any(always_lasts(part.pattern) for part in parts(pattern) if part.role is Role.SIDE and part.binds)


def puts_in_order(pattern: Pattern) -> bool:
    """Whether an operator wants one thing to be over before another begins, as no two simultaneous ones are."""
    match pattern:
        case Join(op) | Outer(op):
            return op in IN_TURN
        case Absence():
            return pattern.right is not None or pattern.bound is not None
    return isinstance(pattern, Runs)


def is_start(pattern: Pattern) -> bool:
    """Whether it is START, perhaps under conditions."""
    return isinstance(unconditional(pattern), Start)


def unconditional(pattern: Pattern) -> Pattern:
    """The pattern without the conditions and the bounds on its duration that it stands under."""
    while isinstance(pattern, Filter | Within):
        pattern = pattern.child
    return pattern


def filtered(pattern: Pattern, conditions: tuple[Expr, ...]) -> Pattern:
    """The pattern under these conditions, if there are any."""
    return Filter(pattern, conditions) if conditions else pattern


def unfiltered(pattern: Pattern) -> tuple[Pattern, tuple[Expr, ...]]:
    """What a filter stands around, and its conditions; a pattern that is no filter has none."""
    return (pattern.child, pattern.conditions) if isinstance(pattern, Filter) else (pattern, ())


def has_start(pattern: Pattern) -> bool:
    """Whether START stands somewhere in a pattern."""
    return any(map(is_start, subpatterns(pattern)))


def subpatterns(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all below it, those inside EXISTS included, parents first."""
    waiting = [pattern]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += reversed(nested_patterns(here))


def nested_patterns(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below, and those inside the EXISTS of its expressions."""
    asked = (below for expression in expressions(pattern) for below in patterns_of_exists(expression))
    return *children(pattern), *asked


def expressions(pattern: Pattern) -> tuple[Expr, ...]:
    """The expressions directly in a pattern."""
    match pattern:
        case Filter(_, conditions):
            return conditions
        case Outer() | Join() | Absence():
            return pattern.condition
        case Extend(_, _, expression):
            return (expression,)
        case Skip(after=after):
            return () if after is None else (after,)
        case Runs(condition=condition, aggregates=aggregates, totals=totals):
            return (*condition, *(a.operand for a in (*aggregates, *totals) if a.operand is not None))
        case SubSelect(s):
            operands = (a.operand for a in s.aggregates if a.operand is not None)
            return (*(e for _, e in s.extends), *operands, *s.having, *(k.expression for k in s.order))
    return ()


def with_totals(conditions: Iterable[Expr], totals: Iterable[AggregateCall]) -> tuple[Expr, ...]:
    """The conditions with aggregates in place of the variables that have their values, for texts."""
    calls = {
        a.variable: Apply(f"{a.name} DISTINCT" if a.distinct else a.name, () if a.operand is None else (a.operand,))
        for a in totals
    }
    spelled = lambda part: calls.get(part.name) if isinstance(part, Var) else None  # noqa: E731
    return tuple(transform(e, spelled) for e in conditions)


def with_expressions(pattern: Pattern, change: Callable[[Expr], Expr]) -> Pattern:
    """The pattern with its own expressions changed; those of a sub-SELECT stay."""
    match pattern:
        case Filter(child, conditions):
            return Filter(child, tuple(map(change, conditions)))
        case Outer() | Join() | Absence():
            return replace(pattern, condition=tuple(map(change, pattern.condition)))
        case Skip(after=after):
            return replace(pattern, after=None if after is None else change(after))
        case Extend(child, variable, expression):
            return Extend(child, variable, change(expression))
        case Runs():
            operand = lambda a: replace(a, operand=None if a.operand is None else change(a.operand))  # noqa: E731
            steps, aggregates = map(change, pattern.condition), map(operand, pattern.aggregates)
            totals = tuple(map(operand, pattern.totals))
            return replace(pattern, condition=tuple(steps), aggregates=tuple(aggregates), totals=totals)
    return pattern


def patterns_of_exists(expr: Expr) -> Iterator[Pattern]:
    """The pattern of each EXISTS in an expression, from left to right."""
    return (part.pattern for part in subexpressions(expr) if isinstance(part, Exists))


def with_selects(value: T, change: Callable[[Select], Select]) -> T:
    """The same with every SELECT replaced by the result of ``change``, which has to see to those inside it."""
    return transform(value, lambda node: change(node) if isinstance(node, Select) else None)


def with_exists(expr: Expr, change: Callable[[Pattern], Pattern]) -> Expr:
    """The expression with the patterns of its EXISTS changed."""
    return without_exists(expr, lambda pattern: Exists(change(pattern)))


def without_exists(expr: Expr, answer: Callable[[Pattern], Expr]) -> Expr:
    """The expression with another one in place of each EXISTS, for its pattern."""
    match expr:
        case Exists(pattern):
            return answer(pattern)
        case Apply(op, args) if args:
            return Apply(op, tuple(without_exists(arg, answer) for arg in args))
    return expr


def selects(select: Select) -> Iterator[Select]:
    """The select and those inside it, those inside EXISTS included, parents first."""
    yield select
    for part in subpatterns(select.pattern):
        if isinstance(part, SubSelect):
            yield part.select


def is_opaque(pattern: Pattern) -> bool:
    """Whether it is more than the solutions below it one by one: a sub-SELECT that groups, counts or limits."""
    if not isinstance(pattern, SubSelect):
        return False
    s = pattern.select
    return s.grouped or s.limit is not None or bool(s.offset) or s.window is not None


def showing(pattern: Pattern, variables: Iterable[Name]) -> Pattern:
    """A sub-SELECT that passes these variables on as well; any other pattern as it is."""
    if not isinstance(pattern, SubSelect):
        return pattern
    select = pattern.select
    return SubSelect(replace(select, variables=(*select.variables, *variables)))


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
        case Repeated(inner, minimum, many):
            return Repeated(invert(inner), minimum, many)
        case _:
            return Inverse(path)


def may_be_empty(path: Path) -> bool:
    """Whether a path may lead from a node to itself without a step."""
    match path:
        case Repeated(inner, minimum, _):
            return minimum == 0 or may_be_empty(inner)
        case Chain(first, second):
            return may_be_empty(first) and may_be_empty(second)
        case Choice(first, second):
            return may_be_empty(first) or may_be_empty(second)
        case Inverse(inner):
            return may_be_empty(inner)
    return False


def without_blocks(value: T) -> T:
    """The same with every ``Block`` replaced by its content: without intervals a join of sets is a set.

    Those inside EVENT stay, where there are intervals.
    """

    def changed(node: object) -> object:
        if isinstance(node, Record):
            return node
        return without_blocks(node.child) if isinstance(node, Block) else None

    return transform(value, changed)


def with_known(value: T, table: Callable[[Pattern], Pattern]) -> T:
    """The same with every ``Known`` pattern replaced by the result of ``table``."""
    return transform(value, lambda node: table(node.child) if isinstance(node, Known) else None)
