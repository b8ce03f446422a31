"""Expressions, paths, patterns and queries as data."""

from __future__ import annotations

from dataclasses import dataclass

from ..calendar import DAY, add_months
from ..relations import OPTIONAL_FIRST, Op, OuterOp
from ..traversal import Name, Text

# --- expressions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    name: Name


@dataclass(frozen=True, slots=True)
class Const:
    term: Text


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator (``+ - * / < <= > >= = != && || ! neg IN``), a built-in in upper case, or a function ``<iri>``."""

    op: Text
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

    iri: Text


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
class Repeated:
    """``minimum`` 0 or 1; ``many`` False for ``p?``."""

    path: Path
    minimum: int
    many: bool


@dataclass(frozen=True, slots=True)
class NotAny:
    """An edge with any predicate but these, from subject to object."""

    iris: tuple[Text, ...]


Path = Step | Inverse | Chain | Choice | Repeated | NotAny


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
    stream: Text = ""
    graph: Var | Const | None = None


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path that is not one plain predicate (sequences and alternatives have been expanded already)."""

    subject: Var | Const
    path: Path
    object: Var | Const
    stream: Text = ""
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
class Record:
    """``EVENT {P}``: the solutions of P over the triples of one event and the background, that use one of the event.

    ``stream`` restricts it to the events of one stream; ``graph`` to those of one graph, or is bound to the graph's
    name.  P is evaluated for each event by itself, so it is no part of the pattern around it: what walks over patterns
    stops here.
    """

    pattern: Pattern
    stream: Text = ""
    graph: Var | Const | None = None


@dataclass(frozen=True, slots=True)
class GraphNames:
    """``GRAPH ?g {}``: one timeless solution per named background graph.

    ``GRAPH ?g {P}`` with a ``child``: P evaluated once for every named graph, which is ``inner`` inside P; if P itself
    binds ?g, it must be to that graph.
    """

    graph: Var | Const
    inner: Var | None = None
    child: Pattern | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Inline rows, timeless.  One row without variables is the unit, the meaning of ``{}``."""

    variables: tuple[Name, ...]
    rows: tuple[tuple[Text, ...], ...]


UNIT = Table((), ((),))


@dataclass(frozen=True, slots=True, repr=False)
class Join:
    """[EP] §4.2 Join, SeqJoin, EqJoin: the compatible pairs whose intervals are related as ``op`` says.

    ``next`` is a SEQ, and no other solution of ``right`` that is compatible with the left one starts after the left one
    ends, and ends before the right one does.  Its ``condition`` is evaluated on the joined solution: what does not
    satisfy it is not next.  ``deadline``: the right side ends at most so long after the left one ends.
    """

    op: Op
    left: Pattern
    right: Pattern
    condition: tuple[Expr, ...] = ()
    deadline: Bound | None = None

    def __repr__(self) -> str:
        # Ids of rules are hashes of this text, which dates from when these operators had classes of their own.
        known = {Op.AND: "Join", Op.SEQ: "SeqJoin", Op.EQUALS: "EqJoin"}
        name = f"{known[self.op]}(" if self.op in known else f"TimeJoin(op={self.op!r}, "
        condition = f", condition={self.condition!r}" if self.condition else ""
        deadline = f", deadline={self.deadline!r}" if self.deadline is not None else ""
        return f"{name}left={self.left!r}, right={self.right!r}{condition}{deadline})"


@dataclass(frozen=True, slots=True)
class Absence:
    """``left`` without ``absent``, whose solutions [n, n′] count if they are compatible.

    Without ``right`` and ``bound``: none lies strictly inside left.  With ``right`` [c, c′]: a SEQ, and none has a′ < n
    and n′ < c.  With ``bound``: the solution lasts until a′ + bound, and none has a′ < n and n′ ≤ a′ + bound.
    Those count that satisfy ``condition`` together with the left solution.  ``optional``: it is the half of
    SEQ OPTIONAL without the optional part.
    """

    left: Pattern
    absent: Pattern
    right: Pattern | None = None
    bound: Bound | None = None
    condition: tuple[Expr, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """``child REPEAT …``: runs of ``least`` to ``most`` solutions that agree on ``keys``, each the next of the last.

    ``condition`` holds at every step; ``PREVIOUS(?p)`` and ``FIRST(?p)`` in it are values of the previous and the first
    element, ``PREVIOUS(?p, n)`` that of the nth before, unbound where there is none; no solution of ``absent`` that is
    compatible on the keys lies in a gap.  ``longest``: of the runs with the same last element, only the longest.
    ``aggregates`` may also be FIRST and LAST.  ``gap`` limits the time from the
    end of an element to the start of the next.  ``maximal``: only runs that can grow at neither end, once that is
    certain.  ``until``: the runs that its solutions, compatible on the keys, end.
    ``totals``: what the condition counts over the run with the new element.
    """

    child: Pattern
    least: int
    most: int | None
    keys: tuple[Name, ...] = ()
    condition: tuple[Expr, ...] = ()
    absent: Pattern | None = None
    longest: bool = False
    aggregates: tuple[AggregateCall, ...] = ()
    gap: Bound | None = None
    maximal: bool = False
    until: Pattern | None = None
    totals: tuple[AggregateCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """START: one solution without variables, which starts with the stream and ends before everything in it."""


@dataclass(frozen=True, slots=True)
class Skip:
    """``child SKIP PAST (after)``: of its solutions in order (end, start, terms) those that start after the last kept.

    To be kept, one must start after the value that ``after`` had in the last one kept with the same ``keys``; with
    ``at`` it may start there, too.  With ``length``, THROTTLE: it must end at least so long after that one's end.
    """

    child: Pattern
    at: bool
    keys: tuple[Name, ...] = ()
    after: Expr | None = None
    length: Bound | None = None


@dataclass(frozen=True, slots=True)
class Union:
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True, repr=False)
class Outer:
    """[EP] §4.2 LeftJoin, SeqRightJoin, EqLeftJoin: ``optional`` may be missing.

    Where it is present, it is related to ``mandatory`` as ``op`` says, and the combined solution satisfies the
    condition.
    """

    op: OuterOp
    mandatory: Pattern
    optional: Pattern
    condition: tuple[Expr, ...] = ()

    @property
    def optional_first(self) -> bool:
        """Whether the optional side is written before the mandatory one."""
        return self.op in OPTIONAL_FIRST

    @property
    def sides(self) -> tuple[Pattern, Pattern]:
        """The two sides in the order in which they are written."""
        return (self.optional, self.mandatory) if self.optional_first else (self.mandatory, self.optional)

    def __repr__(self) -> str:
        # Ids of rules are hashes of this text, which dates from when these operators had classes of their own.
        names = {OuterOp.OPTIONALSEQ: "SeqRightJoin", OuterOp.EQUALSOPTIONAL: "EqLeftJoin"}
        left, right = self.sides
        return f"{names.get(self.op, 'LeftJoin')}(left={left!r}, right={right!r}, condition={self.condition!r})"


@dataclass(frozen=True, slots=True)
class Minus:
    """``left`` without the solutions that are compatible, and share a variable, with a solution of ``right``.

    ``scope`` names the variables of ``left`` that count (MINUS is decided at the end of its group, when later
    elements have been joined already).
    """

    left: Pattern
    right: Pattern
    scope: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    child: Pattern
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    child: Pattern
    variable: Name
    expression: Expr


@dataclass(frozen=True, slots=True)
class Bound:
    """The length of a window: ``micros`` plus ``months`` by calendar, or a count of ``events``."""

    micros: int = 0
    months: int = 0
    events: int = 0

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same number of microseconds from every time on."""
        return not self.months

    @property
    def longest(self) -> int:
        """The number of microseconds that it has at most: a month has at most 31 days."""
        return self.micros + self.months * 31 * DAY

    def after(self, t: int) -> int:
        """The time so long after ``t``."""
        return (add_months(t, self.months) if self.months else t) + self.micros

    def before(self, t: int) -> int:
        """The time so long before ``t``."""
        earlier = t - self.micros
        return add_months(earlier, -self.months) if self.months else earlier


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
    | Record
    | GraphNames
    | Table
    | Join
    | Absence
    | Runs
    | Start
    | Skip
    | Union
    | Outer
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

    variable: Name
    name: Text
    operand: Expr | None
    distinct: bool = False
    separator: Text = " "

    @property
    def takes_element(self) -> bool:
        """Whether it takes its value from one element of a run, the first or the last one, and counts none."""
        return self.name in ("FIRST", "LAST")


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """A pattern with grouping, HAVING, SELECT expressions, DISTINCT, ORDER BY, LIMIT and window.

    Evaluated in this order: ``window`` over the solutions of ``pattern``; ``keys`` and ``aggregates`` when
    ``grouped``; ``having``; ``extends``; ``order``; projection to ``variables``; ``distinct``; slice.
    """

    pattern: Pattern
    variables: tuple[Name, ...]
    extends: tuple[tuple[Name, Expr], ...] = ()
    grouped: bool = False
    keys: tuple[Name, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    having: tuple[Expr, ...] = ()
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    window: Bound | None = None
