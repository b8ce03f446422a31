"""CSV → events by a mapping that fits on five lines of TOML:

    subject = "<http://example.org/company/{Symbol}>"
    predicate = "<http://example.org/hasStockPrice>"
    object = "{Close}"
    time = "{Date} {Time}"
    time_format = "%m/%d/%Y %H:%M"

``{column}`` is the cell of that column, percent-encoded inside an IRI.  A term is ``<iri>``, ``prefix:name``,
``_:label``, ``"text"``, ``"text"^^xsd:decimal``, ``"text"@en``, or bare: then it is a number where it looks like one
and a text otherwise.  A triple with an empty cell is left out and counted.  Optional: several ``[[triple]]`` tables
instead of the three lines, ``[prefixes]``, ``time = [start, end]``, ``time_zone``, ``graph``, ``stream``, ``delimiter``
and ``columns`` (a file without a header line), ``missing`` (cells that count as empty).  Every row is a message.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from etalis_rules.terms import RDF, RDFS, XSD, iri, literal

from etalis_py.streams.blanks import Row
from etalis_py.streams.clock import TimeError
from etalis_py.streams.elements import Context, Item, message_events
from etalis_py.streams.errors import StreamError
from etalis_py.streams.sources import now
from etalis_py.streams.timing import PROV, Idle, Span

_KEYS = frozenset(("subject", "predicate", "object", "triple", "prefixes", "time", "time_format", "time_zone"))
_KEYS |= frozenset(("graph", "stream", "delimiter", "columns", "missing"))
_HOLE = re.compile(r"\{([^{}]*)\}")
_INTEGER, _DECIMAL = re.compile(r"[+-]?[0-9]+"), re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_LITERAL = re.compile(r'"(.*)"(?:\^\^(\S+)|@([A-Za-z]+(?:-[A-Za-z0-9]+)*))?', re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Cells = Mapping[str, str]
Fill = Callable[[Cells], str]


@dataclass(frozen=True, slots=True)
class RowMapping:
    """A mapping, ready for rows: its templates as functions from cells to terms ("" where a cell is empty)."""

    triples: tuple[tuple[Fill, Fill, Fill], ...]
    times: tuple[Fill, ...]
    time_format: str
    time_zone: ZoneInfo | None
    graph: Fill | None
    stream: Fill | None
    delimiter: str
    columns: tuple[str, ...]
    used: frozenset[str]


def read_mapping(mapping: str | Path | Mapping[str, Any]) -> RowMapping:
    """A mapping from a TOML file, or from a dictionary with the same keys."""
    if isinstance(mapping, Mapping):
        return _compile(mapping, "the mapping")
    name = str(mapping)
    try:
        table = tomllib.loads(Path(mapping).read_text(encoding="utf-8"))
    except OSError as error:
        raise StreamError(f"the mapping cannot be read: {error.strerror}", source=name) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StreamError(f"the mapping is no TOML: {error}", source=name) from None
    return _compile(table, name)


def _compile(table: Mapping[str, Any], name: str) -> RowMapping:
    def refuse(reason: str, hint: str = "") -> StreamError:
        return StreamError(reason, source=name, hint=hint)

    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise refuse(f"unknown key {unknown[0]!r} in a CSV mapping", f"known keys: {', '.join(sorted(_KEYS))}")
    prefixes = {"xsd": XSD, "rdf": RDF, "rdfs": RDFS, "prov": PROV, **table.get("prefixes", {})}
    missing = frozenset(("", *table.get("missing", ())))
    used: set[str] = set()

    def template(key: str, text: object, position: str) -> Fill:
        if not isinstance(text, str) or not text:
            raise refuse(f'{key!r} must be a text such as "<http://example.org/{{Column}}>"')
        used.update(_HOLE.findall(text))
        try:
            return _term(text, prefixes, missing, position)
        except ValueError as error:
            raise refuse(f"{key!r}: {error}") from None

    triples = table.get("triple", [])
    if not isinstance(triples, list) or not all(isinstance(one, Mapping) for one in triples):
        raise refuse("'triple' must be [[triple]] tables")
    if any(key in table for key in ("subject", "predicate", "object")):
        triples = [{key: table.get(key) for key in ("subject", "predicate", "object")}, *triples]
    if not triples:
        raise refuse("the mapping makes no triple", "give subject, predicate and object")
    # A [[triple]] without a subject is about the subject of the one before.
    compiled, subject = [], None
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
    for one in times:
        used.update(_HOLE.findall(one))
    delimiter = table.get("delimiter", "")
    if not isinstance(delimiter, str) or len(delimiter) > 1:
        raise refuse("'delimiter' must be one character", r'a tab is written "\t"')
    try:
        zone = ZoneInfo(table["time_zone"]) if "time_zone" in table else None
    except (ZoneInfoNotFoundError, ValueError):
        raise refuse(f"unknown time zone {table['time_zone']!r}", "use a name such as America/New_York") from None
    if zone and "time_format" not in table:
        raise refuse("'time_zone' needs 'time_format'", 'such as "%Y-%m-%d %H:%M:%S"')
    return RowMapping(
        triples=tuple(compiled),  # type: ignore[arg-type]
        times=tuple(_text(one) for one in times),
        time_format=table.get("time_format", ""),
        time_zone=zone,
        graph=template("graph", table["graph"], "graph") if "graph" in table else None,
        stream=template("stream", table["stream"], "stream") if "stream" in table else None,
        delimiter=delimiter,
        columns=tuple(table.get("columns", ())),
        used=frozenset(used),
    )


def _text(template: str) -> Fill:
    parts = _HOLE.split(template)
    if len(parts) == 3 and not parts[0] and not parts[2]:
        return lambda cells: cells[parts[1]]
    return lambda cells: "".join(cells[part] if index % 2 else part for index, part in enumerate(parts))


def _term(template: str, prefixes: Mapping[str, str], missing: frozenset[str], position: str) -> Fill:
    """The function that fills one term; ValueError when the template is no term."""
    holes = _HOLE.findall(template)

    def unless_missing(fill: Fill) -> Fill:
        return lambda cells: "" if any(cells[hole].strip() in missing for hole in holes) else fill(cells)

    is_object = position == "object"
    if template.startswith("<") and template.endswith(">"):
        return unless_missing(_iri(template[1:-1]))
    if template.startswith("_:"):
        if position in ("predicate", "stream"):
            raise ValueError(f"a blank node cannot be a {position}")
        fill = _text(template[2:])
        return unless_missing(lambda cells: "_:" + re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):x}_", fill(cells)))
    quoted = _LITERAL.fullmatch(template)
    if quoted:
        if not is_object:
            raise ValueError(f"a literal cannot be a {position}")
        fill, language = _text(quoted[1]), quoted[3] or ""
        datatype = _expand(quoted[2], prefixes) if quoted[2] else ""
        return unless_missing(lambda cells: literal(fill(cells), datatype, language))
    prefix, colon, local = template.partition(":")
    if colon and prefix in prefixes:
        return unless_missing(_iri(prefixes[prefix] + local))
    if colon and re.fullmatch(r"[A-Za-z][\w.-]*", prefix) and not local.startswith(("//", " ")) and not is_object:
        raise ValueError(f"unknown prefix {prefix!r}; add it under [prefixes], or write <…> around an IRI")
    if not is_object:
        raise ValueError(f"{template!r} is no IRI; write <…> around it")
    fill = _text(template)
    return unless_missing(lambda cells: _guess(fill(cells)))


def _iri(template: str) -> Fill:
    parts = _HOLE.split(template)
    return lambda cells: iri(
        "".join(quote(cells[part].strip(), safe="-._~:@!$'()*+,;=") if i % 2 else part for i, part in enumerate(parts))
    )


def _expand(name: str, prefixes: Mapping[str, str]) -> str:
    if name.startswith("<") and name.endswith(">"):
        return name[1:-1]
    prefix, colon, local = name.partition(":")
    if not colon or prefix not in prefixes:
        raise ValueError(f"unknown datatype {name!r}; write it as xsd:decimal, or as <iri>")
    return prefixes[prefix] + local


def _guess(text: str) -> str:
    stripped = text.strip()
    for pattern, datatype in ((_INTEGER, "integer"), (_DECIMAL, "decimal"), (_DOUBLE, "double")):
        if pattern.fullmatch(stripped):
            return literal(stripped, XSD + datatype)
    return literal(text)


def csv_events(
    blocks: Iterable[tuple[str, int] | None], mapping: RowMapping, context: Context, tabs: bool
) -> Iterator[Item]:
    """The events of each row; a bad row is reported and left out whole."""
    silences = 0

    def lines() -> Iterator[str]:
        nonlocal silences
        quotes = 0
        for block in blocks:
            if block is not None:
                quotes += block[0].count('"')
                yield from io.StringIO(block[0], newline="")
            elif quotes % 2 == 0:
                silences += 1
                # An empty line is no row to the csv module, so the loop below sees the silence at once
                # (not inside a quoted cell, where it would be text).
                yield "\n"

    reader = csv.reader(lines(), delimiter=mapping.delimiter or ("\t" if tabs else ","), strict=True)
    stream = context.stream
    columns = list(mapping.columns)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            context.report(StreamError(f"this is no CSV: {error}", line=reader.line_num, hint="check the quotes"))
            continue
        line = reader.line_num - silences
        if not cells:
            if silences:
                yield Idle(now())
            continue
        if not columns:
            columns = [cell.strip().lstrip("\ufeff") for cell in cells]
            _check_columns(columns, mapping, line)
            continue
        if len(cells) < len(columns):
            reason = f"a row of {len(cells)} cells where the header has {len(columns)}"
            context.report(StreamError(reason, line=line, text=",".join(cells)))
            continue
        row = dict(zip(columns, cells, strict=False))
        try:
            span = _span(row, mapping, context)
            if mapping.stream:
                context.stream = mapping.stream(row) or stream
            yield from message_events(_rows(row, mapping, context), context, line, span)
        except StreamError as error:
            context.report(error.at("", line, ",".join(cells)))
        finally:
            context.stream = stream


def _check_columns(columns: list[str], mapping: RowMapping, line: int) -> None:
    absent = sorted(mapping.used - set(columns))
    if absent:
        raise StreamError(
            f"the mapping uses the column {absent[0]!r}, which the file does not have",
            line=line,
            hint=f"the columns are {', '.join(columns)}",
        )


def _rows(row: Cells, mapping: RowMapping, context: Context) -> list[Row]:
    rows: list[Row] = []
    graph = mapping.graph(row) if mapping.graph else ""
    for subject, predicate, obj in mapping.triples:
        s, p, o = subject(row), predicate(row), obj(row)
        if s and p and o:
            rows.append((s, p, o, graph))
        else:
            context.counters.missing += 1
    return rows


def _span(row: Cells, mapping: RowMapping, context: Context) -> Span | None:
    if not mapping.times:
        return None
    texts = [fill(row).strip() for fill in mapping.times]
    try:
        if not mapping.time_format:
            return context.times.of_value(texts if len(texts) == 2 else texts[0])
        bounds = [_strptime(text, mapping) for text in texts]
        # The stream's clock is one of dates, whatever the file's own spelling.
        context.times.of_text("1970-01-01")
    except TimeError as error:
        raise StreamError(f"the time cannot be read: {error}", hint="name its form with time_format") from None
    except ValueError as error:
        raise StreamError(f"the time cannot be read: {error}", hint="check time_format") from None
    if bounds[0] > bounds[-1]:
        raise StreamError("the interval ends before it starts")
    return bounds[0], bounds[-1]


def _strptime(text: str, mapping: RowMapping) -> int:
    moment = datetime.strptime(text, mapping.time_format)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=mapping.time_zone or UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
