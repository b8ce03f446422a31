"""The plan of a windowed query, as immutable data.

Times and lengths are whole microseconds.  A window is known by its name: the IRI it was declared with, or a name
beginning with a dot for a window written where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from etalis_rules import algebra as alg
from etalis_rules import program as ir

# --- windows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sliding:
    """[RSPQL] Definition 13: windows (o, o + width] with o = t0, t0 + slide, t0 + 2·slide, …

    A tumbling window slides by its width.  ``offset`` looks back: at t the window shows what it would otherwise show at
    t − offset.
    """

    width: int
    slide: int
    t0: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Landmark:
    """[RSEP] §3.2: everything from ``start`` on, ``start`` included."""

    start: int


@dataclass(frozen=True, slots=True)
class Interval:
    """[RSEP] §3.2: what lies in [start, end], both included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Identity:
    """[RSEP] §3.2: the whole stream (as far as it is known)."""


@dataclass(frozen=True, slots=True)
class Now:
    """The items of the instant: a stream that is used without a window ([REQ], S2S)."""


@dataclass(frozen=True, slots=True)
class Count:
    """The last ``size`` units whenever ``slide`` more have come; ``unit`` is EVENTS, TRIPLES or BGP.

    A unit of BGP is a solution of ``pattern`` in one stream item, with the triples it matched.
    """

    unit: str
    size: int
    slide: int
    pattern: tuple[alg.Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """CONSTRUCT FACT: triples that hold from a SINCE event until the next TILL event ([REQ], TEF-SPARQL).

    A SINCE is a solution of one of the patterns of ``since`` in one stream item; a TILL likewise for ``till``.  A SINCE
    begins the fact given by its values of ``keys`` (the variables of ``template``), unless it holds already; a TILL
    ends the facts with values compatible with its own that have held since an earlier instant.  A fact that ends is an
    occurrence of the instances of ``template``, from the start of its SINCE to the end of its TILL.  ``feeds`` is the
    stream of these occurrences (empty: the default one).  ``identity``: as that of ``ir.Output``.
    """

    name: str
    template: tuple[ir.Template, ...]
    keys: tuple[str, ...]
    since: tuple[alg.Pattern, ...]
    till: tuple[alg.Pattern, ...]
    feeds: str = ""
    identity: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Current:
    """The facts of all streams that hold now: one item each, whose end is the time since which the fact holds."""

    facts: tuple[Fact, ...]


Shape = Sliding | Landmark | Interval | Identity | Now | Count | Current


@dataclass(frozen=True, slots=True)
class WindowUse:
    """A window of a query: over a stream, or over another window (``inner``).

    ``default``: its content is part of the default graph, as C-SPARQL and SPARQLstream have it.  Facts (``Current``)
    have neither a stream nor an inner window: they read all streams.
    """

    name: str
    stream: str
    shape: Shape
    inner: str = ""
    default: bool = False


# --- event patterns ([RSEP] §3.3) ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Basic:
    """EVENT w P: the solutions of ``pattern`` in one item of the window."""

    window: str
    pattern: alg.Pattern


@dataclass(frozen=True, slots=True)
class First:
    event: EventExpr


@dataclass(frozen=True, slots=True)
class Last:
    event: EventExpr


@dataclass(frozen=True, slots=True)
class Sequence:
    """``policy`` is ``unrestricted``, ``naive``, ``chronological`` or ``recent`` ([RSEP] equations (7), (9)-(11))."""

    left: EventExpr
    right: EventExpr
    policy: str = "unrestricted"


EventExpr = Basic | First | Last | Sequence


def event_variables(event: EventExpr) -> frozenset[str]:
    """The variables that an event pattern binds."""
    match event:
        case Basic(_, pattern):
            return alg.scope(pattern)
        case First(inner) | Last(inner):
            return event_variables(inner)
        case Sequence(left, right, _):
            return event_variables(left) | event_variables(right)


def event_windows(event: EventExpr) -> frozenset[str]:
    """The windows that appear in an event pattern."""
    match event:
        case Basic(window, _):
            return frozenset((window,))
        case First(inner) | Last(inner):
            return event_windows(inner)
        case Sequence(left, right, _):
            return event_windows(left) | event_windows(right)


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """``MATCH {…}``: it is evaluated separately, and the query reads its solutions as triples of the stream ``name``.

    A solution is a node r with (r, ROW, ROW) and (r, column(v), term) for each variable v that it binds.
    ``pattern`` is an event pattern, or an algebra pattern with the temporal operators of EP-SPARQL.
    """

    name: str
    pattern: EventExpr | alg.Pattern

    @property
    def events(self) -> EventExpr | None:
        """The event pattern, if it is one."""
        return self.pattern if isinstance(self.pattern, EventExpr) else None

    @property
    def group(self) -> alg.Pattern | None:
        """The algebra pattern, if it is one."""
        return None if isinstance(self.pattern, EventExpr) else self.pattern


ROW = "<.row>"
TIMES = ".times"  # the stream of triple times begins with this; the window's name follows
SUBJECT, PREDICATE, OBJECT, TIME = "<.subject>", "<.predicate>", "<.object>", "<.time>"


def column(variable: str) -> str:
    """The predicate under which a MATCH gives a variable."""
    return f"<.column:{variable}>"


# --- the query -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strategy:
    """One condition of a report policy ([RSPQL] Definition 23).

    ``kind``: WC (the window closes), CC (an item entered its content), NC (its content is not empty), P (every
    ``period`` from ``start`` on), AT (the given ``times``).  ``window`` names the window it looks at; if empty, one
    window must meet all such strategies together.
    """

    kind: str
    window: str = ""
    period: int = 0
    start: int = 0
    times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The plan of a windowed query: everything that is needed to evaluate it.

    ``select`` is the algebra: a triple pattern's ``stream`` names the window (or MATCH) it reads.  ``graphs`` and
    ``named`` are the stored graphs of FROM and FROM NAMED (empty: the background as it is); ``rescan`` says how often a
    stored graph is read again.  ``r2s`` is RSTREAM, ISTREAM or DSTREAM; ``asked`` is the one that the text names.
    ``consumption`` is the policy by which event patterns consume their input ([RSEP] §4.4).  ``feeds`` is the stream
    that a CONSTRUCT query writes; ``ordered``: the text has an ORDER BY.  ``identity``: as that of ``ir.Output``.
    """

    name: str
    form: str
    windows: tuple[WindowUse, ...]
    select: alg.Select
    variables: tuple[str, ...]
    report: tuple[Strategy, ...]
    r2s: str = "RSTREAM"
    asked: str = ""
    matches: tuple[MatchPlan, ...] = ()
    times: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    restricted: bool = False
    rescan: tuple[tuple[str, int], ...] = ()
    template: tuple[ir.Template, ...] = ()
    subjects: tuple[alg.Var | alg.Const, ...] = ()
    consumption: str = "unrestricted"
    feeds: str = ""
    ordered: bool = False
    dialect: str = ""
    identity: str = field(default="", repr=False)

    def window(self, name: str) -> WindowUse:
        return next(w for w in self.windows if w.name == name)

    @property
    def streams(self) -> frozenset[str]:
        """The streams that the query reads."""
        return frozenset(w.stream for w in self.windows if w.stream)
