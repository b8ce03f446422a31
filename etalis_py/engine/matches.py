"""Matches: what a query found, lazily made from the rows of the engine.

The order is fixed: by instant, then by query in the order of the program, then as the query orders its rows (ORDER BY,
else end, start and the terms in alphabetical order of their variables).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, overload

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import iri_value, is_blank, is_iri, parts

from etalis_py.engine.garbage import few_collections
from etalis_py.engine.time import TIMELESS_END
from etalis_py.engine.values import BlankValue, DateTime, Duration, IriValue, LangString, Opaque, decode

Row = tuple[Any, ...]
Triple = tuple[str, str, str]
Report = tuple[int, int, list[Row]]
AT_ONCE, FEW = 4096, 64


@dataclass(frozen=True, slots=True)
class Shape:
    """How the rows of one query are read: its variables and where they stand; its template; its times.

    ``triples`` makes the triples of a CONSTRUCT or DESCRIBE from a row; ``explain`` the explanation of a row.
    """

    output: ir.Output
    variables: tuple[str, ...]
    places: tuple[int, ...]
    render: Callable[[int], int | str]
    triples: Callable[[Row], tuple[Triple, ...]] | None = None
    explain: Callable[[Row], Any] | None = None
    adjacent: bool = True
    """Whether equal rows of a report stand together."""
    identify: Callable[[Row, int], str] = field(init=False, compare=False, repr=False)
    """The id of a match, from its row and its ordinal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identify", _identity(self))

    @property
    def query(self) -> str:
        return self.output.query


def _identity(shape: Shape) -> Callable[[Row, int], str]:
    """A hash of query, variables, terms, interval and ordinal, a line each; no name and no term holds a line break."""
    places = (2,) if shape.output.form == "ask" else tuple(i for i in shape.places if i > 0)
    names = [v for v, i in zip(shape.variables, shape.places, strict=True) if i > 0]
    # The hash of the first two lines is computed once, and copied for every match.
    begun = blake2b(f"{shape.output.query}\n{' '.join(names)}\n".encode(), digest_size=16)
    terms = "".join(f"{{row[{i}]}}\\n" for i in places)
    text = f"""
def identify(row, n):
    begun = copy()
    begun.update(f'{terms}{{row[1]}} {{row[0]}} {{n}}'.encode())
    return begun.hexdigest()
"""
    scope: dict[str, Any] = {"copy": begun.copy}
    exec(text, scope)
    return scope["identify"]  # type: ignore[no-any-return]


class Match:
    """One solution of a query: its bindings, its interval, and what it constructs.

    ``start`` and ``end`` are as the stream gave its times; both are None for a timeless solution.
    """

    __slots__ = ("_row", "_shape", "ordinal")

    def __init__(self, shape: Shape, row: Row, ordinal: int = 0) -> None:
        self._shape = shape
        self._row = row
        self.ordinal = ordinal

    @property
    def query(self) -> str:
        return self._shape.output.query

    @property
    def row(self) -> tuple[str, ...]:
        """The terms, in alphabetical order of the variables; ``""`` where unbound."""
        row = self._row
        return tuple([row[i] if i > 0 else "" for i in self._shape.places])

    @property
    def bindings(self) -> dict[str, str]:
        """Variable → term in N-Triples spelling, for the variables that are bound."""
        row = self._row
        shape = self._shape
        return {v: row[i] for v, i in zip(shape.variables, shape.places, strict=True) if i > 0 and row[i]}

    def __getitem__(self, variable: str) -> Any:
        """The Python value of a variable: int, Decimal, float, bool, str, datetime values, or the IRI as a str."""
        term = self.bindings.get(variable.removeprefix("?"))
        if term is None:
            known = ", ".join(self._shape.variables) or "no variables"
            raise KeyError(f"{variable} is not bound in this match of {self.query}; it has {known}")
        return python_value(term)

    def get(self, variable: str, default: Any = None) -> Any:
        """Like ``m[variable]``, with a default for an unbound variable."""
        term = self.bindings.get(variable.removeprefix("?"))
        return default if term is None else python_value(term)

    @property
    def is_timeless(self) -> bool:
        return bool(self._row[0] == TIMELESS_END)

    @property
    def start_us(self) -> int | None:
        return None if self.is_timeless else self._row[1]

    @property
    def end_us(self) -> int | None:
        return None if self.is_timeless else self._row[0]

    @property
    def start(self) -> int | str | None:
        return None if self.is_timeless else self._shape.render(self._row[1])

    @property
    def end(self) -> int | str | None:
        return None if self.is_timeless else self._shape.render(self._row[0])

    @property
    def boolean(self) -> bool | None:
        """The answer of an ASK query."""
        if self._shape.output.form != "ask":
            return None
        return bool(self._row[2] == "true")

    @property
    def triples(self) -> tuple[Triple, ...] | None:
        """What a CONSTRUCT or DESCRIBE makes of this solution; None for other queries."""
        make = self._shape.triples
        return None if make is None else make(self._row)

    @property
    def id(self) -> str:
        """A name that is the same in every run over the same events."""
        return self._shape.identify(self._row, self.ordinal)

    def why(self) -> Any:
        """The rules, goals, events and background triples behind this match, as a printable tree."""
        if self._shape.explain is None:
            raise ValueError("this match carries no explanation: make the engine with Engine(…, explain=True)")
        return self._shape.explain(self._row)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--format jsonl`` prints."""
        result: dict[str, Any] = {"query": self.query, "id": self.id}
        triples = self.triples
        if triples is not None:
            result["triples"] = [f"{s} {p} {o} ." for s, p, o in triples]
        elif self._shape.output.form == "ask":
            result["boolean"] = self.boolean
        else:
            result["bindings"] = {v: json_term(t) for v, t in self.bindings.items()}
        result["start"], result["end"] = self.start, self.end
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Match) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        triples = self.triples
        if triples is not None:
            shown = " . ".join(" ".join(t) for t in triples)
        elif self._shape.output.form == "ask":
            shown = str(self.boolean)
        else:
            shown = ", ".join(f"?{v}={t}" for v, t in self.bindings.items())
        when = "timeless" if self.is_timeless else f"[{self.start}, {self.end}]"
        return f"<{self.query} {when} {shown}>"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(f"<tr><th>?{escape(v)}</th><td>{escape(t)}</td></tr>" for v, t in self.bindings.items())
        return f"<table><caption>{escape(self.query)} [{self.start}, {self.end}]</caption>{cells}</table>"


def json_term(term: str) -> dict[str, str]:
    """A term as in the SPARQL 1.1 Query Results JSON Format."""
    if is_iri(term):
        return {"type": "uri", "value": iri_value(term)}
    if is_blank(term):
        return {"type": "bnode", "value": term[2:]}
    lexical, datatype, language = parts(term)
    result = {"type": "literal", "value": lexical}
    if datatype:
        result["datatype"] = datatype
    if language:
        result["xml:lang"] = language
    return result


def python_value(term: str) -> Any:
    """A term as the Python object a user expects."""
    from datetime import UTC, datetime, timedelta

    value = decode(term)
    match value:
        case IriValue() | BlankValue():
            return str(value)
        case LangString():
            return value.text
        case DateTime():
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.us)
            return moment.replace(tzinfo=None) if value.offset is None else moment
        case Duration(0, micros):
            return timedelta(microseconds=micros)
        case Opaque():
            return value.lexical
    return value


@dataclass(slots=True)
class Matches(Sequence[Match]):
    """The matches of the instants that a call closed; made one by one as they are looked at."""

    shapes: Sequence[Shape]
    reports: list[Report] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(rows) for _, _, rows in self.reports)

    def __iter__(self) -> Iterator[Match]:
        """Matches are made some thousand instants at a time: nothing else happens between them, not even garbage."""
        reports = self.reports
        for first in range(0, len(reports), AT_ONCE):
            some = reports if len(reports) <= AT_ONCE else reports[first : first + AT_ONCE]
            if len(some) < FEW:
                for number, _, rows in some:
                    yield from self._made(self.shapes[number], rows)
                continue
            with few_collections():
                made = self._made_together(some)
            yield from made

    def tables(self) -> Iterator[tuple[Shape, list[Row], list[int]]]:
        """The rows of each query with their ordinals, for what takes many matches at once and by columns."""
        found: dict[int, tuple[list[Row], list[int]]] = {}
        for number, _, rows in self.reports:
            table = found.get(number)
            if table is None:
                table = found[number] = ([], [])
            if len(rows) == 1:
                table[0].append(rows[0])
                table[1].append(0)
            else:
                for match in self._made(self.shapes[number], rows):
                    table[0].append(match._row)
                    table[1].append(match.ordinal)
        for number, (rows, ordinals) in found.items():
            yield self.shapes[number], rows, ordinals

    def _made_together(self, reports: Iterable[Report]) -> list[Match]:
        shapes = self.shapes
        made: list[Match] = []
        for number, _, rows in reports:
            if len(rows) == 1:
                made.append(Match(shapes[number], rows[0]))
            else:
                made += self._made(shapes[number], rows)
        return made

    def _made(self, shape: Shape, rows: list[Row]) -> Iterator[Match]:
        apart = shape.output.order or not shape.adjacent
        return self._unsorted(shape, rows) if apart else self._sorted(shape, rows)

    @staticmethod
    def _sorted(shape: Shape, rows: list[Row]) -> Iterator[Match]:
        # Rows are sorted, so equal ones stand together.
        places = [0, 1, *(i for i in shape.places if i > 0)]
        whole = sorted(places) == list(range(len(rows[0])))
        before: Any = None
        ordinal = 0
        for row in rows:
            key = row if whole else [row[i] for i in places]
            ordinal = ordinal + 1 if key == before else 0
            before = key
            yield Match(shape, row, ordinal)

    @staticmethod
    def _unsorted(shape: Shape, rows: list[Row]) -> Iterator[Match]:
        seen: dict[Any, int] = {}
        for row in rows:
            key = (row[0], row[1], *(row[i] for i in shape.places if i > 0))
            ordinal = seen.get(key, 0)
            seen[key] = ordinal + 1
            yield Match(shape, row, ordinal)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...
    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        return list(self)[index]

    def __add__(self, other: Iterable[Match]) -> list[Match]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))

    def _repr_html_(self) -> str:
        from etalis_py.notebook import matches_html  # notebooks only

        return matches_html(self, len(self))


def template_triples(
    output: ir.Output, columns: tuple[str, ...], fresh: Callable[[Row], dict[str, str]] | None
) -> Callable[[Row], tuple[Triple, ...]]:
    """A function from a row to the triples of the template; one that would not be RDF is left out (SPARQL §16.2)."""
    places = {name: 2 + i for i, name in enumerate(columns)}

    def make(row: Row) -> tuple[Triple, ...]:
        made = {} if fresh is None else fresh(row)

        def term(node: alg.Var | alg.Const) -> str:
            if isinstance(node, alg.Const):
                return node.term
            if node.name in made:
                return made[node.name]
            return row[places[node.name]] if node.name in places else ""

        triples = tuple((term(t.subject), term(t.predicate), term(t.object)) for t in output.template)
        return tuple(dict.fromkeys(t for t in triples if "" not in t and t[0][0] != '"' and t[1][0] == "<"))

    return make
