"""Expressions, patterns and queries, which contain one another."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..diagnostics import Diagnostic, Source
from .terms import Duration, Operator, Spanned, Term, TriplePattern, Var

# --- expressions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unary(Spanned):
    """``operator`` is ``!``, ``-`` or ``+``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Spanned):
    """``operator`` is one of ``|| && = != < > <= >= + - * /``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Spanned):
    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Call(Spanned):
    """A built-in by its upper-case name (``STRLEN``, ``BOUND``, ``IF``, ``GETDURATION``, …).

    ``base`` is the IRI against which IRI(…) resolves a relative IRI; it follows from the prologue.
    """

    name: str
    arguments: tuple[Expression, ...]
    base: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionCall(Spanned):
    """A function named by an IRI (casts among them); ``iri`` is a spelling in angle brackets."""

    iri: str
    arguments: tuple[Expression, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(Spanned):
    """``name`` in upper case; ``operand`` is None for ``COUNT(*)``; ``separator`` only for GROUP_CONCAT."""

    name: str
    operand: Expression | None
    distinct: bool = False
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Exists(Spanned):
    group: Group
    negated: bool


@dataclass(frozen=True, slots=True)
class TripleTime(Spanned):
    """C-SPARQL's ``timestamp(s p o)``: the time of a triple in the window."""

    pattern: TriplePattern


Expression = Var | Term | Unary | Binary | In | Call | FunctionCall | Aggregate | Exists | TripleTime


# --- graph patterns --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triples(Spanned):
    """A block of adjacent triple patterns (a basic graph pattern, before paths are translated)."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Filter(Spanned):
    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind(Spanned):
    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values(Spanned):
    """Rows of terms; None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Optional(Spanned):
    group: Group


@dataclass(frozen=True, slots=True)
class Minus(Spanned):
    group: Group


@dataclass(frozen=True, slots=True)
class GraphGroup(Spanned):
    graph: Var | Term
    group: Group


@dataclass(frozen=True, slots=True)
class Service(Spanned):
    endpoint: Var | Term
    group: Group
    silent: bool = False


@dataclass(frozen=True, slots=True)
class StreamGroup(Spanned):
    """``STREAM <s> {…}``, with a window when written ``STREAM <s> [RANGE …] {…}`` (CQELS)."""

    stream: Var | Term
    group: Group
    window: WindowSpec | None = None


@dataclass(frozen=True, slots=True)
class EventGroup(Spanned):
    """``EVENT {…}``: what one event says; ``EVENT ?g {…}`` binds its graph name, ``EVENT <g> {…}`` asks for one."""

    group: Group
    graph: Var | Term | None = None


@dataclass(frozen=True, slots=True)
class WindowGroup(Spanned):
    """``WINDOW :w {…}``."""

    window: Var | Term
    group: Group


@dataclass(frozen=True, slots=True)
class Current(Spanned):
    """``CURRENT {…}``: a pattern that is matched with the facts that hold now (TEF-SPARQL)."""

    group: Group


@dataclass(frozen=True, slots=True)
class Combined(Spanned):
    """``left OPERATOR right``."""

    operator: Operator
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class SeqNot(Spanned):
    """``left SEQ NOT absent SEQ right`` or ``left SEQ NOT absent WITHIN bound``: ``right`` or ``bound`` is None."""

    left: Pattern
    absent: Pattern
    right: Pattern | None = None
    bound: Duration | None = None


@dataclass(frozen=True, slots=True)
class SeqOptional(Spanned):
    """``left SEQ OPTIONAL {…} … SEQ right`` or ``left SEQ OPTIONAL {…} WITHIN bound``: ``right`` or ``bound`` is None.

    Several ``optionals`` may stand in a row before ``right``; ``WITHIN`` follows a single one.
    """

    left: Pattern
    optionals: tuple[Pattern, ...]
    right: Pattern | None = None
    bound: Duration | None = None


@dataclass(frozen=True, slots=True)
class Repeat(Spanned):
    """``pattern REPEAT least [TO most | OR MORE] [BY …] [WHERE (…)] [NOT {…}] [GAP …] [LONGEST | MAXIMAL | UNTIL {…}]
    [AS (…)]``.

    ``most`` is None for OR MORE.  In the condition ``PREVIOUS(?p)``, ``PREVIOUS(?p, 2)`` and ``FIRST(?p)`` are calls; a
    column is a variable with an aggregate, or with the call of FIRST or LAST.
    """

    pattern: Pattern
    least: int
    most: int | None
    by: tuple[Var, ...] = ()
    condition: Expression | None = None
    absent: Pattern | None = None
    longest: bool = False
    columns: tuple[Projection, ...] = ()
    gap: Duration | None = None
    maximal: bool = False
    until: Pattern | None = None


@dataclass(frozen=True, slots=True)
class Start(Spanned):
    """``{ START }``: the beginning of the stream."""


@dataclass(frozen=True, slots=True)
class Skip(Spanned):
    """``pattern SKIP PAST (after)``, ``SKIP TO (after)``, ``DISJOINT`` or ``THROTTLE length``, each with ``[BY …]``.

    ``kind`` is PAST, TO, DISJOINT or THROTTLE.
    """

    pattern: Pattern
    kind: str
    after: Expression | None = None
    length: Duration | None = None
    by: tuple[Var, ...] = ()


@dataclass(frozen=True, slots=True)
class Within(Spanned):
    """``{…} WITHIN bound``: the group's solutions that last no longer than the bound."""

    pattern: Pattern
    bound: Duration


@dataclass(frozen=True, slots=True)
class Group(Spanned):
    """``{ … }``: its elements in order.  A sub-SELECT is a group whose only element is a ``Query``."""

    elements: tuple[Element, ...]


# RSEP-QL ([RSEP] Example 4)


@dataclass(frozen=True, slots=True)
class EventDeclaration(Spanned):
    """``EVENT ON :w {…} AS E1``."""

    window: Var | Term
    group: Group
    name: str


@dataclass(frozen=True, slots=True)
class EventName(Spanned):
    name: str


@dataclass(frozen=True, slots=True)
class EventUnary(Spanned):
    """``FIRST E`` or ``LAST E``."""

    operator: str
    operand: EventPattern


@dataclass(frozen=True, slots=True)
class EventSequence(Spanned):
    """``left SEQ right``; ``policy`` is ``""``, ``naive``, ``chronological`` or ``recent``."""

    left: EventPattern
    right: EventPattern
    policy: str = ""


EventPattern = EventName | EventUnary | EventSequence


@dataclass(frozen=True, slots=True)
class Match(Spanned):
    """``MATCH {…}``: an event pattern over declared names, or (ours) a group with EP-SPARQL operators."""

    pattern: EventPattern | Group


Pattern = (
    Group
    | StreamGroup
    | EventGroup
    | WindowGroup
    | GraphGroup
    | Current
    | Combined
    | SeqNot
    | SeqOptional
    | Repeat
    | Start
    | Skip
    | Within
)
# --- queries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Projection(Spanned):
    """One column of a SELECT: a variable, or an expression and the variable it is bound to."""

    variable: Var
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select(Spanned):
    """``projections`` is empty for ``SELECT *``; ``modifier`` is ``""``, ``DISTINCT`` or ``REDUCED``."""

    projections: tuple[Projection, ...]
    modifier: str = ""


@dataclass(frozen=True, slots=True)
class Construct(Spanned):
    """``template`` is None for ``CONSTRUCT WHERE {…}``; ``at_end``: what it derives is a point, CONSTRUCT … AT END."""

    template: tuple[TriplePattern, ...] | None
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Ask(Spanned):
    pass


@dataclass(frozen=True, slots=True)
class Describe(Spanned):
    """``subjects`` is empty for ``DESCRIBE *``."""

    subjects: tuple[Var | Term, ...]


@dataclass(frozen=True, slots=True)
class Fact(Spanned):
    """``CONSTRUCT FACT {…} (UNION (SINCE …) (TILL …))``: triples that hold from one event until another."""

    template: tuple[TriplePattern, ...]
    since: tuple[Group, ...]
    till: tuple[Group, ...]


Form = Select | Construct | Ask | Describe | Fact


@dataclass(frozen=True, slots=True)
class WindowSpec(Spanned):
    """The part of a window between the brackets.

    ``kind``: ``sliding`` (with ``range``, ``slide``), ``tumbling``, ``landmark`` (``start``), ``interval``
    (``start``, ``end``), ``identity``, ``now``.  Omitted parts are None.
    """

    kind: str
    range: Duration | None = None
    slide: Duration | None = None
    start: Expression | None = None
    end: Expression | None = None
    offset: Duration | None = None
    t0: Expression | None = None


@dataclass(frozen=True, slots=True)
class DatasetClause(Spanned):
    """``FROM``/``FROM NAMED`` and their stream and window forms.

    ``kind``: ``graph`` (FROM <g>), ``stream`` (FROM STREAM <s> [..]), ``window`` (FROM [NAMED] WINDOW :w ON <s> [..];
    ``nested`` is the window it is defined on if not a stream: ON WINDOW :v).
    """

    kind: str
    iri: Term
    named: bool = False
    source: Term | None = None
    window: WindowSpec | None = None
    nested: str = ""
    rescan: Duration | None = None  # FROM <g> [RESCAN d]: how often the stored graph is read again


@dataclass(frozen=True, slots=True)
class OrderKey(Spanned):
    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Register(Spanned):
    """``REGISTER QUERY name AS`` or ``REGISTER STREAM name [COMPUTED EVERY d] AS``."""

    kind: str  # "QUERY" or "STREAM"
    name: str
    every: Duration | None = None


@dataclass(frozen=True, slots=True)
class ReportItem(Spanned):
    """One report policy: ``kind`` is CC, WC, NC (each perhaps OF a ``window``), P (a ``period``) or AT (``times``)."""

    kind: str
    window: Term | None = None
    period: Duration | None = None
    times: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportClause(Spanned):
    """Report policies in the text, e.g. ``REPORT ON WINDOW CLOSE AND NON-EMPTY CONTENT OF :w``."""

    items: tuple[ReportItem, ...]


@dataclass(frozen=True, slots=True)
class Query(Spanned):
    """One query or rule.  ``r2s`` is ``""``, ``RSTREAM``, ``ISTREAM`` or ``DSTREAM``.

    ``within`` stands after the WHERE clause (a sliding window over solutions); ``policy`` is ``""`` or one of
    ``unrestricted``, ``chronological``, ``recent``.  ``group_by`` holds expressions or projections
    (``GROUP BY (expr AS ?v)``).  ``identity`` is what the ids of its matches count it by, if that is neither its name
    nor its text.
    """

    form: Form
    where: Group | None
    dataset: tuple[DatasetClause, ...] = ()
    group_by: tuple[Projection | Expression, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    within: Duration | None = None
    policy: str = ""
    register: Register | None = None
    r2s: str = ""
    report: ReportClause | None = None
    dialect: str = ""  # recognised by its spelling: "c-sparql", "cqels", "sparqlstream", "rsp-ql", "rsep-ql"

    @property
    def kind(self) -> str:
        """Its form in one word: ``select``, ``construct``, ``ask``, ``describe`` or ``fact``."""
        return type(self.form).__name__.lower()

    events: tuple[EventDeclaration, ...] = ()  # the events declared before WHERE
    identity: str = field(default="", compare=False, repr=False)


Element = Pattern | Triples | Filter | Bind | Values | Optional | Minus | Service | EventDeclaration | Match | Query


@dataclass(frozen=True, slots=True)
class Document(Spanned):
    """A file of queries, which share the prologue before them.

    ``warnings`` are those of the parser; ``text`` is the text that every span points into (neither takes part in
    equality).
    """

    queries: tuple[Query, ...]
    base: str = ""
    prefixes: tuple[tuple[str, str], ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    text: Source = field(default=Source(""), compare=False, repr=False)
