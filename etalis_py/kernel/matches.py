"""Matches: the solutions of a query, made lazily from the rows of the engine.

The order is fixed: by instant, then by query in the order of the program, then in the row order of the query (ORDER BY,
otherwise end, start and the terms in alphabetical order of their variables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, overload

from etalis_py.garbage import few_collections
from etalis_py.kernel.batch import Report, Row, are_rows, as_reported
from etalis_py.kernel.frames import Decimals, Look, Tabular, Terms, python_value
from etalis_py.kernel.provenance_tree import Explanation, events_behind
from etalis_py.kernel.shapes import Shape
from etalis_py.streams.json_terms import json_term
from etalis_py.values.time import TIMELESS_END

if TYPE_CHECKING:
    import pyarrow as pa

    from etalis_py.notebook.timeline import Timeline

Triple = tuple[str, str, str]
AT_ONCE, FEW = 4096, 64
TRIPLES = 1 << 16  # of one part
ROWS = itemgetter(2)  # of a report


class Match(Mapping[str, Any]):
    """One solution of a query: its bindings, its interval, and what it constructs.

    As a mapping it has the Python values of the variables that are bound; ``bindings`` has their terms.  Two matches
    are equal if they have the same id.  A match without variables is true as well.

    ``start`` and ``end`` have the form of the stream's times; both are None for a timeless solution.
    """

    __slots__ = ("_row", "ordinal", "shape")

    retracted = False
    """Whether this takes back an earlier match, the one with the same id."""

    def __init__(self, shape: Shape, row: Row, ordinal: int = 0) -> None:
        self.shape = shape
        self._row = row
        self.ordinal = ordinal

    @property
    def query(self) -> str:
        return self.shape.output.query

    @property
    def row(self) -> tuple[str, ...]:
        """The terms, in alphabetical order of the variables; ``""`` where unbound."""
        row = self._row
        return tuple([row[i] if i > 0 else "" for i in self.shape.places])

    @property
    def bindings(self) -> dict[str, str]:
        """Variable → term in N-Triples spelling, for the variables that are bound."""
        row = self._row
        shape = self.shape
        return {v: row[i] for v, i in zip(shape.variables, shape.places, strict=True) if i > 0 and row[i]}

    def _term(self, variable: object) -> str:
        """The term of a variable, or ``""``."""
        if not isinstance(variable, str):
            return ""
        shape, name = self.shape, variable.removeprefix("?")
        if name not in shape.variables:
            return ""
        place = shape.places[shape.variables.index(name)]
        return self._row[place] if place > 0 else ""

    def __getitem__(self, variable: str) -> Any:
        """The Python value of a variable: int, Decimal, float, bool, str, or the IRI as a str.

        Times are ``datetime``, ``date``, ``time`` and ``timedelta``.  What these do not have is text: years before 1
        and after 9999, dates with a zone, durations with months.
        """
        term = self._term(variable)
        if not term:
            known = ", ".join(self.shape.variables) or "no variables"
            raise KeyError(f"{variable} is not bound in this match of {self.query}; it has {known}")
        return python_value(term)

    def get(self, variable: str, default: Any = None) -> Any:
        """Like ``m[variable]``, with a default for an unbound variable."""
        term = self._term(variable)
        return python_value(term) if term else default

    def __contains__(self, variable: object) -> bool:
        return bool(self._term(variable))

    def __iter__(self) -> Iterator[str]:
        return iter(self.bindings)

    def __len__(self) -> int:
        return len(self.bindings)

    def __bool__(self) -> bool:
        return True

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
        return None if self.is_timeless else self.shape.render(self._row[1])

    @property
    def end(self) -> int | str | None:
        return None if self.is_timeless else self.shape.render(self._row[0])

    @property
    def boolean(self) -> bool | None:
        """The answer of an ASK query."""
        if self.shape.output.form != "ask":
            return None
        return bool(self._row[2] == "true")

    @property
    def triples(self) -> tuple[Triple, ...] | None:
        """What a CONSTRUCT or DESCRIBE makes of this solution; None for other queries."""
        make = self.shape.triples
        return None if make is None else make(self._row)

    @property
    def id(self) -> str:
        """A name that is the same in every run over the same events."""
        return self.shape.identify(self._row, self.ordinal)

    def why(self) -> Any:
        """The rules, goals, events and background triples behind this match, as a printable tree."""
        if self.shape.explain is None:
            raise ValueError("this match carries no explanation: give explain=True to run(…) or Engine(…)")
        reason = self.shape.explain(self._row)
        return reason.under(self.shape.prefixes) if isinstance(reason, Explanation) else reason

    def events(self, most: int = 100) -> list[tuple[Triple, int, int]]:
        """The first events behind this match, each a triple with its start and end in microseconds.

        Empty for queries over windows, and where matches carry no explanation: ``run`` and ``Engine`` take
        ``explain=True``.
        """
        provenance = self._row[-1] if self.shape.explain is not None else None
        return list(events_behind(provenance, most)) if hasattr(provenance, "rule") else []

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--format jsonl`` prints."""
        result: dict[str, Any] = {"query": self.query, "id": self.id}
        triples = self.triples
        if triples is not None:
            result["triples"] = [f"{s} {p} {o} ." for s, p, o in triples]
        elif self.shape.output.form == "ask":
            result["boolean"] = self.boolean
        else:
            result["bindings"] = {v: json_term(t) for v, t in self.bindings.items()}
        result["start"], result["end"] = self.start, self.end
        if self.retracted:
            result["retracted"] = True
        return result

    def taken_back(self) -> Match:
        """The retraction of this match: it no longer holds."""
        return Retracted(self.shape, self._row, self.ordinal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Match) and self.id == other.id and self.retracted == other.retracted

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        triples = self.triples
        if triples is not None:
            shown = " . ".join(" ".join(t) for t in triples)
        elif self.shape.output.form == "ask":
            shown = str(self.boolean)
        else:
            shown = ", ".join(f"?{v}={t}" for v, t in self.bindings.items())
        when = "timeless" if self.is_timeless else f"[{self.start}, {self.end}]"
        return f"<{'retracted ' * self.retracted}{self.query} {when} {shown}>"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(f"<tr><th>?{escape(v)}</th><td>{escape(t)}</td></tr>" for v, t in self.bindings.items())
        return f"<table><caption>{escape(self.query)} [{self.start}, {self.end}]</caption>{cells}</table>"


class Retracted(Match):
    """A match that was reported but no longer holds after a correction of the input."""

    __slots__ = ()

    retracted = True


@dataclass(slots=True)
class Matches(Tabular, Sequence[Match]):
    """The matches of the instants that a call closed; made one by one as they are looked at."""

    shapes: Sequence[Shape]
    reports: list[Report] = field(default_factory=list)

    def __len__(self) -> int:
        reports = self.reports
        if are_rows(reports):
            return len(reports[0][2]) if len(reports) == 1 else sum(map(len, map(ROWS, reports)))
        return sum(len(report[2]) if isinstance(report, tuple) else len(report) for report in reports)

    @property
    def outputs(self) -> set[int]:
        """The numbers of the queries that have matches here."""
        return set().union(*({r[0]} if isinstance(r, tuple) else r.outputs for r in self.reports))

    def _rows(self) -> list[Report]:
        """The reports in rows; reports in columns are converted when this is first called."""
        if not are_rows(self.reports):
            self.reports = as_reported(self.reports, one_by_one=True)
        return self.reports

    def __iter__(self) -> Iterator[Match]:
        """Iterate over the matches.

        Those of some thousand instants are made together, without garbage collection, which is faster than one by one.
        """
        reports = self._rows()
        for first in range(0, len(reports), AT_ONCE):
            some = reports if len(reports) <= AT_ONCE else reports[first : first + AT_ONCE]
            if len(some) < FEW:
                for number, _, rows in some:
                    if len(rows) == 1:
                        yield Match(self.shapes[number], rows[0])
                    else:
                        yield from self._matches_of(self.shapes[number], rows)
                continue
            with few_collections():
                matches = self._matches_together(some)
            yield from matches

    def tables(self) -> Iterator[tuple[Shape, list[Row], list[int]]]:
        """The rows of each query with their ordinals, for code that takes many matches at once, by columns."""
        tables: dict[int, tuple[list[Row], list[int]]] = {}
        for number, _, rows in self._rows():
            table = tables.get(number)
            if table is None:
                table = tables[number] = ([], [])
            if len(rows) == 1:
                table[0].append(rows[0])
                table[1].append(0)
            else:
                for match in self._matches_of(self.shapes[number], rows):
                    table[0].append(match._row)
                    table[1].append(match.ordinal)
        for number, (rows, ordinals) in tables.items():
            yield self.shapes[number], rows, ordinals

    def parts(self) -> Iterator[Matches]:
        """The matches in parts, so that what one CONSTRUCT makes of many need not be in memory all at once."""
        numbers, reports = self.outputs, self.reports
        shape = self.shapes[next(iter(numbers))] if len(numbers) == 1 else None
        if shape is None or shape.triples is None or not reports:
            yield self
            return
        first, triples = 0, 0
        for place, (_, _, rows) in enumerate(self._rows(), 1):
            triples += len(rows) * max(1, len(shape.output.template))
            if triples >= TRIPLES:
                yield Matches(self.shapes, self.reports[first:place])
                first, triples = place, 0
        if first < len(self.reports):
            yield Matches(self.shapes, self.reports[first:])

    def to_arrow(self, *, query: str | None = None, terms: Terms = "full", decimals: Decimals = "exact") -> pa.Table:
        """A table with native types: a column for each variable, then ``start``, ``end`` and ``id``.

        Numbers, booleans and dates have their native types, everything else is text; a CONSTRUCT gives rows of triples
        (``s``, ``p`` and ``o``).  ``query`` names one of several queries.  ``terms="short"`` shortens IRIs by the
        prefixes of the query, ``decimals="float"`` makes floats of decimals.
        """
        look = Look(terms, decimals)
        from etalis_py.kernel.tabular import arrow_table  # takes a while to import

        return arrow_table([self], query, look)

    def _matches_together(self, reports: Sequence[Report]) -> list[Match]:
        shapes = self.shapes
        if max(map(len, map(ROWS, reports))) == 1:
            return [Match(shapes[number], row) for number, _, (row,) in reports]
        matches: list[Match] = []
        for number, _, rows in reports:
            if len(rows) == 1:
                matches.append(Match(shapes[number], rows[0]))
            else:
                matches += self._matches_of(shapes[number], rows)
        return matches

    def _matches_of(self, shape: Shape, rows: list[Row]) -> Iterator[Match]:
        apart = shape.output.order or not shape.adjacent
        return self._unsorted(shape, rows) if apart else self._sorted(shape, rows)

    @staticmethod
    def _sorted(shape: Shape, rows: list[Row]) -> Iterator[Match]:
        # Rows are sorted, so equal ones are neighbours.
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

    def __radd__(self, other: Iterable[Match]) -> list[Match]:
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))

    def _repr_html_(self) -> str:
        from etalis_py.notebook.tables import matches_html  # notebooks only

        return matches_html(self, len(self), self.shapes)

    def timeline(self) -> Timeline:
        """The matches as a picture over time, one row per match; a notebook shows it."""
        from etalis_py.notebook.timeline import timeline_of

        return timeline_of(self)


@dataclass(slots=True, eq=False, repr=False)
class Revised(Matches):
    """What a correction of the input changed: matches that are taken back, and matches that are new."""

    chosen: list[Match] = field(default_factory=list)

    def __init__(self, shapes: Sequence[Shape], chosen: Iterable[Match]) -> None:
        self.shapes, self.reports, self.chosen = shapes, [], list(chosen)

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[Match]:
        return iter(self.chosen)

    def tables(self) -> Iterator[tuple[Shape, list[Row], list[int]]]:
        """The rows of each query; matches that are taken back are in tables of their own."""
        tables: dict[tuple[str, bool], tuple[Shape, list[Row], list[int]]] = {}
        for match in self.chosen:
            name = match.query, match.retracted
            if name not in tables:
                shape = replace(match.shape, retracted=True) if match.retracted else match.shape
                tables[name] = (shape, [], [])
            tables[name][1].append(match._row)
            tables[name][2].append(match.ordinal)
        yield from tables.values()


def join_matches(parts: Sequence[Matches]) -> Matches:
    """The matches of several steps, joined as if one step had given them."""
    some = [part for part in parts if len(part)]
    if len(some) == 1:
        return some[0]
    if some and all(type(part) is Matches and part.shapes is some[0].shapes for part in some):
        return Matches(some[0].shapes, [report for part in some for report in part.reports])
    if not some:
        return parts[-1]
    return Revised(some[-1].shapes, list(chain.from_iterable(some)))
