"""The base of all nodes; terms, paths, triple patterns and lengths of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from etalis_rules.durations import parse_duration


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in the source text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Spanned:
    """The base of all nodes: the span of text a node came from, which takes no part in equality."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- terms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var(Spanned):
    name: str


@dataclass(frozen=True, slots=True)
class Term(Spanned):
    """An IRI or a literal, as its canonical N-Triples spelling."""

    spelling: str


def spelling_of(node: object) -> str:
    """The spelling of an IRI or a literal; empty for any other node."""
    return node.spelling if isinstance(node, Term) else ""


@dataclass(frozen=True, slots=True)
class Blank(Spanned):
    """A blank node of the query; ``label`` is unique within the query (``[]`` and collections get labels too)."""

    label: str


@dataclass(frozen=True, slots=True)
class TripleTerm(Spanned):
    """A triple term that holds a variable or a blank node, or that is no RDF; any other is a ``Term``."""

    subject: Node
    predicate: Var | Term
    object: Node


Node = Var | Term | Blank | TripleTerm


# --- property paths --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathIri(Spanned):
    iri: str


@dataclass(frozen=True, slots=True)
class PathInverse(Spanned):
    path: Path


@dataclass(frozen=True, slots=True)
class PathSequence(Spanned):
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative(Spanned):
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathRepeat(Spanned):
    """``p*``, ``p+`` or ``p?``."""

    path: Path
    mark: str


@dataclass(frozen=True, slots=True)
class PathNegated(Spanned):
    """``!(p1|^p2|…)``: any predicate not in ``forward``, or backwards any not in ``inverse``."""

    forward: tuple[str, ...]
    inverse: tuple[str, ...]


Path = PathIri | PathInverse | PathSequence | PathAlternative | PathRepeat | PathNegated


@dataclass(frozen=True, slots=True)
class TriplePattern(Spanned):
    """A pattern whose predicate is a variable, an IRI (``Term``) or a path that is more than one IRI."""

    subject: Node
    predicate: Var | Term | Path
    object: Node


class Operator(Enum):
    """The binary operators between groups; EQUALS and Allen's relations bind tighter than the others."""

    SEQ = "SEQ"
    NEXT = "NEXT"
    NOT = "NOT"
    EQUALS = "EQUALS"
    MEETS = "MEETS"
    OVERLAPS = "OVERLAPS"
    STARTS = "STARTS"
    DURING = "DURING"
    FINISHES = "FINISHES"
    PAR = "PAR"
    OPTIONALSEQ = "OPTIONALSEQ"
    EQUALSOPTIONAL = "EQUALSOPTIONAL"
    AND = "AND"
    UNION = "UNION"


ALLEN = frozenset({Operator.MEETS, Operator.OVERLAPS, Operator.STARTS, Operator.DURING, Operator.FINISHES})
TIGHT = ALLEN | {Operator.EQUALS, Operator.PAR}
"""The operators that bind tighter than SEQ."""
OF_ONE_SIDE = frozenset({Operator.UNION, Operator.OPTIONALSEQ, Operator.EQUALSOPTIONAL})
"""The operators of whose sides only one may be there."""
OF_THE_PAPER = frozenset(
    {Operator.SEQ, Operator.EQUALS, Operator.OPTIONALSEQ, Operator.EQUALSOPTIONAL, Operator.AND, Operator.UNION}
)
"""The operators whose words are never plain names: those of [EP]."""
FORWARD = frozenset({Operator.NOT, Operator.NEXT})
"""The operators that decide what is absent or next."""
SEEING_LEFT = FORWARD | {Operator.EQUALSOPTIONAL}
"""The operators for which the filters of the right group also read what the left one binds."""
SEEING_RIGHT = frozenset({Operator.OPTIONALSEQ})
"""The operators for which the filters of the left group also read what the right one binds."""
IN_TURN = frozenset({Operator.SEQ, Operator.NEXT})
"""The operators whose left side is over before the right one starts, and of which both sides are there."""


@dataclass(frozen=True, slots=True)
class Duration(Spanned):
    """The bound of a WITHIN or window: a duration literal, a number of events, triples or BGPs."""

    kind: str  # "duration" (spelling is an xsd duration lexical such as PT5M), "EVENTS", "TRIPLES", "BGP"
    lexical: str = ""
    count: int = 0

    @property
    def length(self) -> tuple[int, int] | None:
        """Months and microseconds; None of a number of events, and of text that is no length of time."""
        return parse_duration(self.lexical) if self.kind == "duration" else None
