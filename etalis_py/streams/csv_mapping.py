"""Rows → events by a mapping that takes five lines of TOML:

    subject = "<http://example.org/company/{Symbol}>"
    predicate = "<http://example.org/hasStockPrice>"
    object = "{Close}"
    time = "{Date} {Time}"
    time_format = "%m/%d/%Y %H:%M"

``{column}`` is the cell of that column, percent-encoded inside an IRI.  A term is ``<iri>``, ``prefix:name``,
``_:label``, ``"text"``, ``"text"^^xsd:decimal``, ``"text"@en``, or bare: then it is a number if it looks like one and a
text otherwise.  A triple with an empty cell is left out and counted.  Optional: several ``[[triple]]`` tables instead
of the three lines, ``[prefixes]``, ``time = [start, end]``, ``time_zone``, ``time_unit``, ``graph``, ``stream``,
``delimiter`` and ``columns`` (a file without a header line), ``decimal`` (a comma: ``10,50`` is a number),
``missing`` (cells that count as empty), ``rest`` (``true``: every other column is a property of its name), ``retract``
(a row in which it is ``true`` or ``1``, not ``false``, ``0`` or empty, withdraws what an earlier row stated), and
``ties`` (``source``, or the column that orders rows of one time).  Every row is a message.  The prefix ``:`` is
``http://example.org/`` unless the mapping says otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from etalis_rules.messages import INTO_UTF8, closest
from etalis_rules.terms import RDF, RDFS, XSD

from etalis_py.events import SOURCE_ORDER
from etalis_py.events.clock import UNITS, Clock, nearest
from etalis_py.events.errors import StreamError, no_such_file
from etalis_py.streams.blanks import Row
from etalis_py.streams.draft import local_names
from etalis_py.streams.draft_times import time_format
from etalis_py.streams.elements import Item, StreamContext, withdrawn
from etalis_py.streams.message_elements import message_events
from etalis_py.streams.templates import Cells, RowTemplate, Typed, brace_alone, read_template, text_template
from etalis_py.streams.timing import PROV, Span

_KEYS = frozenset(("subject", "predicate", "object", "triple", "prefixes", "time", "time_format", "time_zone"))
_KEYS |= frozenset(("time_unit", "graph", "stream", "delimiter", "columns", "missing", "retract", "decimal", "ties"))
_KEYS |= {"rest"}
_DOUBLE = f"<{XSD}double>"
_YES, _NO = ("true", "1"), ("false", "0", "")
EX = "http://example.org/"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RowMapping:
    """A mapping, ready for rows: its templates make terms from cells ("" where a cell is empty)."""

    triples: tuple[tuple[RowTemplate, RowTemplate, RowTemplate], ...]
    times: tuple[RowTemplate, ...]
    time_format: str
    time_zone: ZoneInfo | None
    graph: RowTemplate | None
    stream: RowTemplate | None
    delimiter: str
    columns: tuple[str, ...]
    used: frozenset[str]
    time_unit: str = ""
    retract: RowTemplate | None = None
    ties: str = ""
    """What orders events of one time: ``source``, or the predicate of a column; "" if nothing does."""
    rest: RowTemplate | None = None
    """How the objects of all other columns are read, if these are properties of their names; ``base``: of the names."""
    about: RowTemplate | None = None
    """What these other properties are about."""
    counted: tuple[bool, ...] = ()
    """Which of its triples are counted where a cell is empty: those that it names itself."""
    in_order: tuple[str, ...] = field(init=False)
    """The columns that are used, in an order that is the same in every run: the first that is wrong is told."""
    columns_of_terms: frozenset[str] = field(init=False)
    """The columns that are used for more than times."""
    columns_of_texts: frozenset[str] = field(init=False)
    """The same, and that of ``retract``."""

    def __post_init__(self) -> None:
        terms = frozenset(hole for template in self.templates for hole in template.holes)
        object.__setattr__(self, "in_order", tuple(sorted(self.used)))
        object.__setattr__(self, "columns_of_terms", terms)
        retract = frozenset(() if self.retract is None else self.retract.holes)
        object.__setattr__(self, "columns_of_texts", terms | retract)

    def with_columns(self, names: Iterable[str]) -> RowMapping:
        """The mapping of rows with these columns: those that it does not use are properties if it takes the rest."""
        rest, about = self.rest, self.about
        more = () if rest is None else dict.fromkeys(name for name in names if name.strip() and name not in self.used)
        if rest is None or about is None or not more:
            return self
        triples = [
            (about, RowTemplate("iri", (rest.base + local_names([name])[name],)), replace(rest, parts=("", name, "")))
            for name in more
        ]
        counted = (*self.counted, *(False for _ in triples))
        return replace(self, triples=(*self.triples, *triples), counted=counted, used=self.used.union(more))

    @property
    def outlives_lists(self) -> bool:
        """Whether a record says something even without an element of the list that the mapping reaches into."""
        timed = not any("[]" in hole for one in self.times for hole in one.holes)
        return timed and any(not any("[]" in hole for one in triple for hole in one.holes) for triple in self.triples)

    @property
    def subjects(self) -> frozenset[str]:
        """The columns that are subjects of their own, and no objects."""
        objects = {hole for _, _, template in self.triples for hole in template.holes}
        return frozenset(s.holes[0] for s, _, _ in self.triples if len(s.holes) == 1 and s.kind == "iri") - objects

    @property
    def times_of_rows(self) -> frozenset[str]:
        """The columns that are times, and no objects."""
        return frozenset(hole for one in self.times for hole in one.holes) - {
            hole for _, _, template in self.triples for hole in template.holes
        }

    @property
    def properties(self) -> dict[str, frozenset[str]] | None:
        """The predicates of its triples, each with the columns that are objects; None if rows name predicates."""
        if any(p.holes for _, p, _ in self.triples):
            return None
        made: dict[str, frozenset[str]] = {}
        for _, p, o in self.triples:
            made[p.fill({})] = made.get(p.fill({}), frozenset()) | {hole for hole in o.holes if o.is_hole}
        return made

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """The templates for terms."""
        for triple in self.triples:
            yield from triple
        yield from (one for one in (self.graph, self.stream) if one is not None)


def read_mapping(
    mapping: RowMapping | str | Path | Mapping[str, Any], prefixes: Mapping[str, str] | None = None
) -> RowMapping:
    """A mapping from a TOML file, or from a dictionary with the same keys; ``prefixes`` are known besides its own.

    One that has been read already stays as it is.
    """
    if isinstance(mapping, RowMapping):
        return mapping
    if isinstance(mapping, Mapping):
        return _compile(mapping, "the mapping", prefixes or {})
    if not isinstance(mapping, str | os.PathLike):
        raise TypeError(
            f"a mapping is the path of a TOML file, or a dict such as {{'time': '{{at}}', 'subject': ':{{id}}', "
            f"'predicate': ':price', 'object': '{{price}}'}}, not {mapping!r} ({type(mapping).__name__})"
        )
    import tomllib  # few runs read a mapping

    name = str(mapping)
    try:
        table = tomllib.loads(Path(mapping).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise no_such_file(name, "mapping") from None
    except OSError as error:
        raise StreamError(f"the mapping cannot be read: {error.strerror}", source=name) from None
    except UnicodeDecodeError:
        raise StreamError("the mapping is no text in UTF-8", source=name, hint=INTO_UTF8) from None
    except tomllib.TOMLDecodeError as error:
        raise StreamError(f"the mapping is not TOML: {error}", source=name) from None
    return _compile(table, name, prefixes or {})


def _compile(table: Mapping[str, Any], name: str, known: Mapping[str, str]) -> RowMapping:
    def refuse(reason: str, hint: str = "") -> StreamError:
        return StreamError(reason, source=name, hint=hint)

    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise refuse(f"unknown key {unknown[0]!r} in a mapping", f"known keys: {', '.join(sorted(_KEYS))}")
    _check_kinds(table, refuse)
    prefixes = {"": EX, "xsd": XSD, "rdf": RDF, "rdfs": RDFS, "prov": PROV, **known, **table.get("prefixes", {})}
    missing = frozenset(("", *table.get("missing", ())))
    decimal = table.get("decimal", ".")
    if decimal not in (".", ","):
        raise refuse("'decimal' must be a comma or a point", 'decimal = "," reads 10,50 as a number')
    used: set[str] = set()

    def template(key: str, text: object, position: str) -> RowTemplate:
        if not isinstance(text, str) or not text:
            raise refuse(f'{key!r} must be a text such as "<http://example.org/{{Column}}>"')
        try:
            read = read_template(text, prefixes, missing, position, decimal == ",")
        except ValueError as error:
            raise refuse(f"{key!r}: {error}") from None
        used.update(read.holes)
        return read

    triples = table.get("triple", [])
    if not isinstance(triples, list) or not all(isinstance(one, Mapping) for one in triples):
        raise refuse("'triple' must be [[triple]] tables")
    rest = table.get("rest", False)
    if not isinstance(rest, bool):
        raise refuse("'rest' is true or false", "with true every column that no triple names is a property of its name")
    subject = table.get("subject")
    if "predicate" in table or "object" in table or (subject is not None and not triples and not rest):
        triples = [{key: table.get(key) for key in ("subject", "predicate", "object")}, *triples]
    if not triples and not (rest and subject):
        raise refuse("the mapping makes no triple", "give subject, predicate and object")
    # A [[triple]] without a subject is about the subject of the one before, the first about that of the whole mapping.
    compiled = []
    if subject is None and triples and triples[0].get("subject") is None:
        raise refuse("the first triple has no subject", 'say what the rows are about, such as subject = ":{Column}"')
    about = template("subject", subject or triples[0].get("subject"), "subject") if rest else None
    for one in triples:
        subject = one.get("subject") or subject
        compiled.append(
            tuple(
                template(key, value, key)
                for key, value in zip(
                    ("subject", "predicate", "object"), (subject, one.get("predicate"), one.get("object")), strict=True
                )
            )
        )
    times = table.get("time", [])
    times = [times] if isinstance(times, str) else times
    if len(times) > 2 or not all(isinstance(one, str) for one in times):
        raise refuse("'time' must be one template, or a list of two (start and end)")
    time_templates = tuple(map(text_template, times))
    for text, one in zip(times, time_templates, strict=True):
        if odd := brace_alone(text):
            raise refuse(f"'time': {odd}", 'a column is written "{at}"')
        if text and not one.holes and not re.search(r"\d", text):
            raise refuse(f"'time': {text!r} is neither a time nor a column", f'a column is written "{{{text}}}"')
    used.update(hole for one in time_templates for hole in one.holes)
    retract = table.get("retract")
    if retract is not None and not isinstance(retract, str):
        raise refuse("'retract' must be a text such as \"{Withdrawn}\"", "it names the column that says true or false")
    retract_template = None if retract is None else text_template(retract)
    used.update(() if retract_template is None else retract_template.holes)
    delimiter = table.get("delimiter", "")
    if not isinstance(delimiter, str) or len(delimiter) > 1:
        raise refuse("'delimiter' must be one character", r'a tab is written "\t"')
    try:
        zone = ZoneInfo(table["time_zone"]) if "time_zone" in table else None
    except (ZoneInfoNotFoundError, ValueError):
        raise refuse(f"unknown time zone {table['time_zone']!r}", "use a name such as America/New_York") from None
    if zone and "time_format" not in table:
        raise refuse("'time_zone' needs 'time_format'", 'such as "%Y-%m-%d %H:%M:%S"')
    unit = table.get("time_unit", "")
    if unit and unit not in UNITS:
        raise refuse(f"unknown time_unit {unit!r}", f"known units: {', '.join(UNITS)}")
    if unit and table.get("time_format"):
        raise refuse("'time_unit' is for times that are numbers, and 'time_format' for others", "leave one of them out")
    columns = tuple(table.get("columns", ()))
    if columns and (absent := sorted(used - {*columns})):
        raise refuse(f"'columns' lacks {absent[0]!r}, which the mapping names", "list all columns, in their order")
    return RowMapping(
        triples=tuple(compiled),  # type: ignore[arg-type]
        counted=(True,) * len(compiled),
        times=time_templates,
        time_format=table.get("time_format", ""),
        time_zone=zone,
        graph=template("graph", table["graph"], "graph") if "graph" in table else None,
        stream=template("stream", table["stream"], "stream") if "stream" in table else None,
        delimiter=delimiter,
        columns=columns,
        used=frozenset(used),
        time_unit=unit,
        retract=retract_template,
        ties=_ties(table["ties"], compiled, refuse) if "ties" in table else "",
        rest=RowTemplate("comma" if decimal == "," else "bare", ("",), missing, base=prefixes[""]) if rest else None,
        about=about,
    )


def _check_kinds(table: Mapping[str, Any], refuse: Callable[..., StreamError]) -> None:
    """Refuse a value of the wrong type, such as a text where a list of texts belongs, whose characters it would be."""
    for key in ("decimal", "delimiter", "time_format", "time_unit", "time_zone"):
        if not isinstance(table.get(key, ""), str):
            raise refuse(f"{key!r} must be a text, not {table[key]!r}")
    for key in ("columns", "missing"):
        value = table.get(key, ())
        if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(one, str) for one in value):
            raise refuse(f"{key!r} must be a list of texts, not {value!r}", f'such as {key} = ["n/a", "-999"]')
    prefixes = table.get("prefixes", {})
    if not isinstance(prefixes, Mapping) or not all(isinstance(one, str) for one in prefixes.values()):
        raise refuse(
            "'prefixes' must be a table of IRIs", 'such as [prefixes], and below it shop = "http://shop.example/"'
        )


def _ties(
    given: object,
    triples: Sequence[tuple[RowTemplate, ...]],
    refuse: Callable[[str, str], StreamError],
) -> str:
    """What orders events of one time: "source", or the predicate of the triple that has this column as its object."""
    if not isinstance(given, str) or not given or set(given) & set("{}"):
        raise refuse(
            f"'ties' is {given!r}, and must be the name of a column, or \"source\"",
            'the name stands alone, without braces: ties = "seq"',
        )
    if given == SOURCE_ORDER:
        return given
    objects = {o.holes[0]: p for _, p, o in triples if o.holes and o.is_hole}
    predicates = {p for _, p, o in triples if o.is_hole and o.holes[0] == given}
    if not predicates:
        near = closest(given, list(objects))
        raise refuse(
            f"'ties': no triple has the column {given!r} for its object, as \"{{{given}}}\"",
            f"did you mean {near!r}?" if near else f"columns that are objects: {', '.join(objects) or 'none'}",
        )
    if len(predicates) > 1 or any(p.holes for p in predicates):
        raise refuse(
            f"'ties': the column {given!r} has no predicate of its own",
            f'add a triple such as predicate = ":order", object = "{{{given}}}"',
        )
    (predicate,) = predicates
    return predicate.fill({})


def row_events(row: Cells, mapping: RowMapping, context: StreamContext, line: int, text: str) -> Iterator[Item]:
    """The event of one row; a bad row is reported, with its line and ``text``, and left out whole."""
    stream = context.stream
    try:
        span = span_of_row(row, mapping, context)
        if mapping.stream:
            context.stream = mapping.stream.fill(row) or stream
        items = message_events(rows_of(row, mapping, context), context, line, span)
        yield from withdrawn(items) if retracts_row(row, mapping) else items
    except StreamError as error:
        context.report(error.at("", line, text))
    finally:
        context.stream = stream


def retracts_row(row: Cells, mapping: RowMapping) -> bool:
    """Whether a row withdraws what it states."""
    if mapping.retract is None:
        return False
    text = mapping.retract.fill(row)
    if text.strip().lower() not in (*_YES, *_NO):
        raise StreamError(
            f"{text!r} does not say whether the row withdraws what it says",
            hint=f"in the column of 'retract' write one of {', '.join((*_YES, *_NO[:-1]))}, or nothing",
        )
    return text.strip().lower() in _YES


def states(text: str | None) -> bool:
    """Whether this text, in the column of ``retract``, leaves the row a plain statement."""
    return text is None or text.strip().lower() in _NO


def rows_of(row: Cells, mapping: RowMapping, context: StreamContext) -> list[Row]:
    """The triples of a row; one with a missing cell is left out and counted."""
    rows: list[Row] = []
    graph = mapping.graph.fill(row) if mapping.graph else ""
    for (subject, predicate, obj), counted in zip(mapping.triples, mapping.counted, strict=True):
        s, p, o = subject.fill(row), predicate.fill(row), obj.fill(row)
        if s and p and o:
            rows.append((s, p, o, graph))
        else:
            context.counters.missing += counted
    return rows


def span_of_row(row: Cells, mapping: RowMapping, context: StreamContext) -> Span | None:
    """The interval of a row; None if the mapping has no time."""
    if not mapping.times:
        return None
    cells = [template.fill(row) for template in mapping.times]
    try:
        texts = [_time_text(cell, context.times.unit) for cell in cells]
    except ValueError as error:
        hint = "a time fits into 64 bits of microseconds"
        raise StreamError(f"the time cannot be read: {error}", hint=hint) from None
    return span_of_texts(texts, mapping, context)


def _time_text(cell: str, unit: str) -> str:
    """A cell as the text of a time: a double is a number of units, to the microsecond, whatever its exponent."""
    if isinstance(cell, Typed) and cell.term.endswith(_DOUBLE) and (number := Decimal(cell)).is_finite():
        return str(Clock("integer", unit).render(nearest(number, unit)))
    return cell.strip()


def span_of_texts(texts: list[str], mapping: RowMapping, context: StreamContext) -> Span:
    """The interval that the filled templates of time spell."""
    try:
        if not mapping.time_format:
            return context.times.of_cells(texts)
        bounds = [_strptime(text, mapping) for text in texts]
    except ValueError as error:
        if not any(texts):
            raise StreamError(
                "the time is empty",
                hint='every row needs one; --on-error skip (on_error="skip" of read_stream) leaves out the others',
            ) from None
        raise StreamError(
            f"the time cannot be read: {error}", hint=_form_of(tuple(texts), mapping.time_format)
        ) from None
    try:
        # The clock of the stream is one of dates, whatever the spelling in the file.
        context.times.of_text("1970-01-01")
    except ValueError:
        raise StreamError(
            "the time_format of the mapping makes dates, and the clock of this stream counts plain numbers",
            hint="leave out one of the two",
        ) from None
    if bounds[0] > bounds[-1]:
        raise StreamError("the interval ends before it starts")
    return bounds[0], bounds[-1]


@lru_cache(maxsize=1 << 10)
def _form_of(texts: tuple[str, ...], given: str) -> str:
    """What a mapping must say about times that are spelled in a known way."""
    form = time_format(texts)
    if form is None:
        return 'say how it is spelled, as a format of strptime: time_format = "%d.%m.%Y %H:%M"'
    says = " and ".join(f'{key} = "{value}"' for key, value in form.items())
    if says:
        return f"in the mapping write {says}"
    if given:
        return "such a time needs no time_format: leave it out of the mapping"
    return "all times of a stream are of one kind: give this one as the others"


def _strptime(text: str, mapping: RowMapping) -> int:
    moment = datetime.strptime(text, mapping.time_format)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=mapping.time_zone or UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
