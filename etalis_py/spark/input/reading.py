"""Reads text and files in Spark's workers, and makes Arrow batches of the events, with the columns of EVENTS.

The driver sends the workers a ``SourceOptions``, which has only plain options that it has checked.  The readers are
those of ``etalis_py.streams``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import iri

from etalis_py.engine.tie_order import refuse_other_ties
from etalis_py.events import Event, Retraction
from etalis_py.events.statement_lines import parse_line, reason_of, split_lines
from etalis_py.numba_cache import ready
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import ARROW_EVENTS, ARROW_TRIPLE
from etalis_py.streams import Clock, read_stream
from etalis_py.streams.csv_mapping import read_mapping
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.sources import FORMATS

AT_ONCE = 50_000
STATEMENTS = "end long, s string, p string, o string, graph string"
OPTIONS = (
    "format",
    "stream",
    "time_predicate",
    "start_predicate",
    "end_predicate",
    "time_unit",
    "at",
    "times",
    "messages",
    "mapping",
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The arguments of ``read_stream`` with which bytes are read; without a format, name or first bytes decide."""

    format: str
    stream: str
    options: dict[str, Any]


def reading(format: str, stream: str, options: Mapping[str, Any]) -> SourceOptions:
    """The options as given, checked; a mapping file is read here, so that the workers need not have it."""
    if format and format not in FORMATS:
        raise SparkError(f"events of format {format!r} cannot be read: choose one of {', '.join(FORMATS)}")
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise SparkError(f"there is no option {unknown[0]!r} for reading events; known are {', '.join(OPTIONS)}")
    checked = dict(options)
    mapping = checked.get("mapping")
    if mapping is None and format == "csv":
        raise SparkError("CSV needs mapping=…, a TOML file or a dictionary that says what its columns mean")
    try:
        Clock("integer", checked.get("time_unit", "s"))
        if isinstance(mapping, (str, Path)):
            checked["mapping"] = tomllib.loads(Path(mapping).read_text(encoding="utf-8"))
        if mapping is not None:
            refuse_other_ties(
                {read_mapping(checked["mapping"]).ties}, None, "Spark has the events of a time in many engines"
            )
    except (OSError, ValueError) as error:
        raise SparkError(f"the events cannot be read so: {error}") from None
    return SourceOptions(format, term_of_stream(stream), checked)


def described(how: SourceOptions) -> dict[str, str]:
    """The options as text, by which a restart recognizes that they are others; a mapping as a digest.

    The format is not among them: the same events may come in another one.
    """
    given = {"stream": how.stream, "time_unit": "s", **how.options}
    texts = {name: str(value) for name, value in given.items() if value not in ("", None)}
    if "mapping" in texts:
        mapping = json.dumps(how.options["mapping"], sort_keys=True, default=str)
        texts["mapping"] = blake2b(mapping.encode(), digest_size=16).hexdigest()
    return texts


def term_of_stream(stream: str) -> str:
    """The term of a stream that is named by its IRI, with or without angle brackets."""
    return stream if not stream or stream.startswith("<") else iri(stream)


def messages_of(how: SourceOptions) -> Messages:
    """A reader of rows that are messages or documents."""
    return Messages(ReadOptions(format=how.format, name=how.stream, **how.options))


def source_events(how: SourceOptions, source: str | IO[bytes]) -> Iterator[Event]:
    """The events of a file."""
    with read_stream(source, format=how.format, name=how.stream, **how.options) as items:
        yield from (item for item in items if isinstance(item, Event))


def record_batches(
    events: Iterable[tuple[Event, int | None]], schema: pa.Schema = ARROW_EVENTS
) -> Iterator[pa.RecordBatch]:
    """Events, each with its arrival number, as Arrow with the columns of EVENTS (or some of them)."""
    iterator = iter(events)
    while some := list(islice(iterator, AT_ONCE)):
        chunk, arrived = zip(*some, strict=True)
        columns = {
            "start": pa.array([e.start for e in chunk], pa.int64()),
            "end": pa.array([e.end for e in chunk], pa.int64()),
            "stream": pa.array([e.stream for e in chunk], pa.string()),
            "graph": pa.array([e.graph for e in chunk], pa.string()),
            "triples": _triples(chunk),
            "retract": pa.array([isinstance(e, Retraction) for e in chunk], pa.bool_()),
            "arrived": pa.array(arrived, pa.int64()),
        }
        columns["time"] = columns["end"].cast(pa.timestamp("us", tz="UTC"))
        arrays = [columns[field.name].cast(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def statement_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of an N-Quads statement and its time, as the columns STATEMENTS; rows without a statement are left out."""
    for batch in batches:
        terms, times = _terms(batch.column(0)), batch.column(1)
        there = pc.not_equal(terms[0], "")
        if there.false_count:
            terms, times = [column.filter(there) for column in terms], times.filter(there)
        yield pa.RecordBatch.from_arrays([times, *terms], names=["end", "s", "p", "o", "graph"])


def _terms(texts: pa.Array) -> list[pa.Array]:
    """Subject, predicate, object and graph of each text; empty for a blank line or a comment.

    They are read in bulk if the loops for that are compiled; statements that these do not handle are read one by one.
    """
    if texts.null_count:
        raise SparkError("a row has no text: leave out rows whose column is null")
    if not ready():
        return _columns_of(_quads(texts.to_pylist()))
    from etalis_py.streams.columns.statements import usual_statements  # loads the compiled loops

    terms, others = usual_statements(texts)
    if not others.any():
        return terms
    chosen = pa.array(others)
    more = _columns_of(_quads(texts.filter(chosen).to_pylist()))
    return [pc.replace_with_mask(column, chosen, other) for column, other in zip(terms, more, strict=True)]


def _columns_of(quads: list[tuple[str, ...]]) -> list[pa.Array]:
    fields = list(zip(*quads, strict=False))[:4] if quads else [()] * 4
    return [pa.array(field, pa.string()) for field in fields]


def _quads(texts: list[str]) -> list[tuple[str, ...]]:
    """For each text: subject, predicate, object and graph; empty for a blank line or a comment."""
    text = "\n".join(texts)
    quads: list[tuple[str, ...]] = list(split_lines(text)) if texts else []
    if text.endswith("\n"):
        quads.append(("",) * 6)  # for an empty text after the last line break
    if len(quads) != len(texts):
        several = next(text for text in texts if text and "\n" in text)
        raise SparkError(f"a row holds several lines, give each statement a row of its own: {several}")
    for n, (*_, line) in enumerate(quads):
        if line and not line.isspace() and not line.lstrip().startswith("#"):
            try:
                quads[n] = parse_line(line)
            except (SyntaxError, ValueError) as error:
                raise SparkError(
                    f"this line is not an N-Quads statement ({reason_of(error)}), correct it or leave it out: {line}"
                ) from None
    return quads


def _triples(chunk: Sequence[Event]) -> pa.ListArray:
    triples = [triple for event in chunk for triple in event.triples]
    terms = [pa.array([triple[i] for triple in triples], pa.string()) for i in range(3)]
    offsets = np.zeros(len(chunk) + 1, dtype=np.int32)
    np.cumsum([len(event.triples) for event in chunk], out=offsets[1:])
    flat = pa.StructArray.from_arrays(terms, fields=list(ARROW_TRIPLE))
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


__all__ = [
    "OPTIONS",
    "STATEMENTS",
    "SourceOptions",
    "described",
    "messages_of",
    "reading",
    "record_batches",
    "source_events",
    "statement_batches",
    "term_of_stream",
]
