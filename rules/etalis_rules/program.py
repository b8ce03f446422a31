"""Event-driven backward-chaining rules, as a network of goals.

A *node* stands for a predicate over solutions: a streamed triple that matches a leaf, an intermediate goal of the
binarized pattern, or a finished query.  A node's ``head`` names its columns; a node that uses it says by a ``Ref``
which of its own variables stand for these columns, as a rule body does in logic programming.  So equal goals of
different queries are one node, whatever their variables are called.

Each join node stands for a pair of EDBC rules for every side that can arrive last ([EP] rules (11) and (12)): a
*goal-insertion rule*, by which an arriving solution asserts the goal that awaits its partner, and a *checking rule*,
by which the partner finds it, and under a consuming policy retracts it.

A node's ``id`` is a hash of its definition, so that programs can be compared, merged and stored.  The definition is
what the node prints.  What follows from the rest is left out (``leaves`` from the EXISTS among its steps, ``sources``
from the background), so a node keeps the id that it had before there were such fields.
"""

from __future__ import annotations

import hashlib
import typing
from dataclasses import dataclass, field, fields
from functools import lru_cache

from .algebra import AggregateCall, Bound, Const, Expr, OrderKey, Pattern, Triple, Var
from .relations import Op, OuterOp
from .steps import Assign as Assign
from .steps import Background as Background
from .steps import Condition as Condition
from .steps import Duration as Duration
from .steps import Lasting as Lasting
from .steps import Longest as Longest
from .steps import Parameters as Parameters
from .steps import Step as Step
from .templates import NewTerm as NewTerm
from .templates import Template as Template
from .traversal import Name, Text


@dataclass(frozen=True, slots=True)
class Ref:
    """The use of a node: its columns under the names they have here."""

    node: Text
    columns: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """A position of a leaf that may hold any of these terms (sub-properties, sub-classes); sorted."""

    terms: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """A position of a leaf that may hold any term but these (a negated property set); sorted."""

    terms: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """A position of a leaf that may hold any term and is not read."""


Position = Var | Const | OneOf | NoneOf | Any


# --- nodes -----------------------------------------------------------------------------------------------------


IF_SET = {"if set": True}
"""The metadata of a field that a node prints, and that makes its id, only if it is set."""


def _definition(node: typing.Any) -> str:
    """What a node prints: its fields, without those of ``IF_SET`` that are not set."""
    shown = (f for f in fields(node) if f.repr and (not f.metadata.get("if set") or getattr(node, f.name)))
    return f"{type(node).__name__}({', '.join(f'{f.name}={getattr(node, f.name)!r}' for f in shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class Leaf:
    """A triple pattern over the stream.  ``entailed``: it also sees what the schema derives from an occurrence."""

    head: tuple[Name, ...]
    subject: Position
    predicate: Position
    object: Position
    stream: Text = ""
    entailed: bool = False
    late: int = field(default=0, repr=False)  # this and the next one are explained in ``lateness``
    in_time: bool = field(default=False, metadata=IF_SET)

    __repr__ = _definition


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """EVENT: the solutions of a pattern over the triples of one event and the background, event by event.

    Like a leaf it is made from no other node; what it reads are whole events.  ``stream`` and ``graph`` are those of
    ``algebra.Record``.  ``alone``: no triple of the background can match the pattern.  ``entailed``: what the schema
    derives from the triples of the event is in it.  ``sources``: what matches or implies each triple pattern.
    """

    head: tuple[Name, ...]
    pattern: Pattern
    stream: Text = ""
    graph: Var | Const | None = None
    alone: bool = True
    entailed: bool = False
    late: int = field(default=0, repr=False)
    in_time: bool = field(default=False, metadata=IF_SET)
    sources: tuple[tuple[Triple, tuple[Leaf, ...]], ...] = field(default=(), repr=False)

    __repr__ = _definition


@dataclass(frozen=True, slots=True, repr=False)
class Map:
    """One body goal, then steps.  ``distinct``: the solutions of an instant are a set.

    ``at_end``: a solution is a point, the end of the child's.
    """

    head: tuple[Name, ...]
    child: Ref
    steps: tuple[Step, ...] = ()
    distinct: bool = False
    owner: Text = ""
    at_end: bool = field(default=False, metadata=IF_SET)

    __repr__ = _definition


@dataclass(frozen=True, slots=True, repr=False)
class Join:
    """``op`` relates the two sides in time; ``policy`` is set where goals are consumed.

    ``certain`` are the shared variables that are bound on both sides in every solution: they index the goals.
    ``bound`` limits end − start of the joined solution and lets goals expire.  Under a policy an EXISTS among the steps
    is part of what makes a candidate; it is evaluated backwards over the occurrences of ``leaves``.  ``condition`` says
    which right solutions may be the next one of a left one, ``deadline`` how long after its end the right one may end.
    """

    head: tuple[Name, ...]
    op: Op
    left: Ref
    right: Ref
    certain: tuple[Name, ...]
    steps: tuple[Step, ...] = ()
    bound: Bound | None = None
    policy: Text = ""
    owner: Text = ""
    leaves: tuple[Text, ...] = field(default=(), repr=False)
    condition: tuple[Step, ...] = field(default=(), metadata=IF_SET)
    deadline: Bound | None = field(default=None, metadata=IF_SET)

    __repr__ = _definition


@dataclass(frozen=True, slots=True)
class Chain:
    """A SEQ of three parts or more, for which no solution of only some parts is made.

    No query is compiled to it: executors put it in place of a join whose left side is a join, and so on.  The solutions
    of part i + 1 find those of part i by the variables ``keys[i]``, which both have; parts that share a variable agree
    on it if neighbours do.  ``bound`` limits end − start of the whole, and ``steps`` are applied to it.
    """

    head: tuple[Name, ...]
    parts: tuple[Ref, ...]
    keys: tuple[tuple[Name, ...], ...]
    steps: tuple[Step, ...] = ()
    bound: Bound | None = None
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Union:
    """Several rules with one head.  ``distinct``: the solutions of an instant are a set."""

    head: tuple[Name, ...]
    branches: tuple[Ref, ...]
    distinct: bool = False
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Outer:
    """A mandatory ``left`` and an optional ``right``.

    ``op``: ``optional`` (right.end ≤ left.end), ``optionalseq`` (right.end < left.start), ``equalsoptional`` (equal
    intervals), ``minus`` (left survives without a compatible right sharing one of ``scope``) and ``exists`` (left
    gets the column ``mark``: was there a compatible right).  ``right`` is the streamed part, ``background`` the part in
    the knowledge.  ``condition`` is F, on the combined solution and interval; an EXISTS in it is evaluated backwards
    over the occurrences of ``leaves``.  ``steps`` are applied to the result.
    """

    head: tuple[Name, ...]
    op: OuterOp
    left: Ref
    right: Ref | None
    background: Pattern | None
    certain: tuple[Name, ...]
    condition: tuple[Step, ...] = ()
    bound: Bound | None = None
    scope: tuple[Name, ...] = ()
    mark: Name = ""
    leaves: tuple[Text, ...] = ()
    steps: tuple[Step, ...] = ()
    policy: Text = ""
    owner: Text = ""


@dataclass(frozen=True, slots=True, repr=False)
class Absence:
    """``left`` without a solution of ``absent`` inside it, between it and ``right``, or until ``deadline`` after it.

    ``certain`` are the shared variables of left and right that are bound in every solution, ``shared`` those of the
    result and ``absent``.  ``bound`` limits end − start of the result and lets goals expire; ``leaves`` as in ``Join``.
    ``condition`` holds for an absent solution together with the left one, if it counts.  ``optional``: what is
    absent is the optional part of a SEQ OPTIONAL.
    """

    head: tuple[Name, ...]
    left: Ref
    absent: Ref
    right: Ref | None
    certain: tuple[Name, ...]
    shared: tuple[Name, ...]
    deadline: Bound | None = None
    steps: tuple[Step, ...] = ()
    bound: Bound | None = None
    policy: Text = ""
    owner: Text = ""
    leaves: tuple[Text, ...] = field(default=(), repr=False)
    condition: tuple[Step, ...] = field(default=(), metadata=IF_SET)
    optional: bool = field(default=False, metadata=IF_SET)

    __repr__ = _definition


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """REPEAT: runs of ``least`` to ``most`` solutions of ``child`` (None: without end) that agree on ``keys``.

    Each is the next of the one before it, ``condition`` holds at every step, and no solution of ``absent`` that is
    compatible on the keys lies between them.  ``longest``: of the runs with the same last element, only the longest.
    ``bound`` limits end − start of the result, and with it the runs that are kept; ``gap`` the time between elements.
    ``maximal``: only runs that can grow at neither end; each ends when that is certain, or with its last element if the
    stream ends before.  ``until``: what ends the longest run before it.  ``totals``: aggregates of ``condition``.
    """

    head: tuple[Name, ...]
    child: Ref
    absent: Ref | None
    least: int
    most: int | None
    keys: tuple[Name, ...]
    condition: tuple[Expr, ...] = ()
    longest: bool = False
    aggregates: tuple[AggregateCall, ...] = ()
    bound: Bound | None = None
    owner: Text = ""
    gap: Bound | None = field(default=None, metadata=IF_SET)
    maximal: bool = field(default=False, metadata=IF_SET)
    until: Ref | None = field(default=None, metadata=IF_SET)
    totals: tuple[AggregateCall, ...] = field(default=(), metadata=IF_SET)

    __repr__ = _definition


@dataclass(frozen=True, slots=True)
class Start:
    """START: one solution [t, t − 1 µs], t the start of the stream: it ends before all that starts at t or later."""

    head: tuple[Name, ...] = ()
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """SKIP and THROTTLE: of the solutions of ``child`` in canonical order those that come after the last one kept.

    ``at``, ``keys``, ``after`` and ``length`` are those of ``algebra.Skip``; ``canonical`` are the child's columns in
    the order in which solutions are compared.
    """

    head: tuple[Name, ...]
    child: Ref
    canonical: tuple[Name, ...]
    keys: tuple[Name, ...]
    at: bool
    after: Expr | None = None
    length: Bound | None = None
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """EXISTS evaluated backwards over the history of occurrences, where no incremental join can express it.

    The left gets the column ``mark``.  ``leaves`` are the nodes whose occurrences make up the history.
    """

    head: tuple[Name, ...]
    child: Ref
    pattern: Pattern
    mark: Name
    leaves: tuple[Text, ...]
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Closure:
    """``path+`` over timed edges ``edge`` and background edges ``background`` (a path, or None).

    ``ends`` are the two columns, from and to.
    """

    head: tuple[Name, ...]
    edge: Ref
    ends: tuple[Name, Name]
    background: Pattern | None
    bound: Bound | None = None
    owner: Text = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Aggregation: in each instant in which a solution enters, the changed rows of the full result.

    An EXISTS in ``having`` or ``extends`` looks back at the occurrences of ``leaves``.  ``canonical`` are the child's
    columns in the order in which solutions are compared, ``shown`` those of the rows.
    """

    head: tuple[Name, ...]
    child: Ref
    canonical: tuple[Name, ...]
    shown: tuple[Name, ...]
    keys: tuple[Name, ...]
    aggregates: tuple[AggregateCall, ...]
    having: tuple[Expr, ...] = ()
    extends: tuple[tuple[Name, Expr], ...] = ()
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    window: Bound | None = None
    background: Pattern | None = None
    leaves: tuple[Text, ...] = ()
    owner: Text = ""

    @property
    def hides_keys(self) -> bool:
        """Whether the rows of two groups may be equal."""
        return not set(self.keys) <= set(self.head)


@dataclass(frozen=True, slots=True)
class Slice:
    """A sub-SELECT's DISTINCT, ORDER BY, LIMIT and OFFSET over plain solutions, compared by ``canonical``."""

    head: tuple[Name, ...]
    child: Ref
    canonical: tuple[Name, ...]
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    owner: Text = ""


Node = (
    Leaf | Record | Map | Join | Chain | Union | Outer | Absence | Run | Start | Skip | Recall | Closure | Group | Slice
)


# --- output --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output:
    """A query: where its solutions come from and how they are reported.

    ``form`` is ``select``, ``construct``, ``ask`` or ``describe``; ``source`` is None when no pattern of the query
    can match an occurrence; ``timeless`` is the pattern reported without an interval, ``late`` the one so reported when
    the stream has ended and the whole history is known.  The ids of its matches begin with ``identity``, or else with
    its name; it says nothing about what the query means.
    """

    query: Text
    form: Text
    source: Ref | None
    timeless: Pattern | None
    variables: tuple[Name, ...]
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    template: tuple[Template, ...] = ()
    stream: Text = ""
    subjects: tuple[Var | Const, ...] = ()
    late: Pattern | None = None
    identity: Text = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """A compiled program: nodes in an order in which they can be evaluated within an instant, and its queries.

    ``strata`` are the groups of mutually recursive nodes, in evaluation order; a stratum of one node that does not
    feed itself is the usual case.  ``policy`` is the consumption policy the program was compiled with.
    """

    nodes: tuple[tuple[Text, Node], ...]
    outputs: tuple[Output, ...]
    strata: tuple[tuple[Text, ...], ...]
    policy: Text = "unrestricted"

    def node(self, identifier: str) -> Node:
        return dict(self.nodes)[identifier]


@lru_cache(maxsize=64)
def _ref_fields(cls: typing.Any) -> tuple[str, ...]:
    hints = typing.get_type_hints(cls)
    return tuple(f.name for f in fields(cls) if hints[f.name] in (Ref, Ref | None, tuple[Ref, ...]))


def refs(node: Node) -> tuple[Ref, ...]:
    """The nodes that a node is made from: those in its fields, in their order."""
    kind: typing.Any = type(node)
    found: list[Ref] = []
    for name in _ref_fields(kind):
        part = getattr(node, name)
        if isinstance(part, tuple):
            found += part
        elif part is not None:
            found.append(part)
    return tuple(found)


def parameter_of(bound: Bound | None) -> tuple[str, int] | None:
    """The family and the place of the parameter that says how long a window is, if each query has its own."""
    return (bound.family, bound.place) if isinstance(bound, Longest) else None


def identify(node: Node) -> str:
    """The node's id: a letter for its kind and a hash of its definition."""
    digest = hashlib.blake2s(repr(node).encode(), digest_size=6).hexdigest()
    return f"{type(node).__name__[0].lower()}{digest}"


def made_from(node: Node) -> tuple[str, ...]:
    """The ids of all nodes that a node reads: those of its refs, and the leaves whose history it looks back at."""
    return (*(ref.node for ref in refs(node)), *getattr(node, "leaves", ()))


__all__ = [
    "IF_SET",
    "Absence",
    "Any",
    "Assign",
    "Background",
    "Chain",
    "Closure",
    "Condition",
    "Duration",
    "Group",
    "Join",
    "Lasting",
    "Leaf",
    "Longest",
    "Map",
    "Node",
    "NoneOf",
    "OneOf",
    "Outer",
    "Output",
    "Parameters",
    "Position",
    "Recall",
    "Record",
    "Ref",
    "Rules",
    "Run",
    "Skip",
    "Slice",
    "Start",
    "Step",
    "Template",
    "Union",
    "identify",
    "made_from",
    "parameter_of",
    "refs",
]
