"""Matches for Spark's Kafka sink: a key and a value for each, and a separate topic for dead letters.

Spark's Kafka sink is at-least-once: after a failure it may write a batch again.  The key of a match is its id, the same
each time, so a compacted topic, or a reader that remembers keys, has each match once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.events import Event, Retraction
from etalis_py.spark.errors import SparkError
from etalis_py.spark.stream_runs import SparkMatch
from etalis_py.streams import Clock
from etalis_py.streams.dead_letters import late_record

_RECORDS = "key string, value string, topic string"
_ARROW_RECORDS = pa.schema([("key", pa.string()), ("value", pa.string()), ("topic", pa.string())])
_SECONDS = Clock("integer")


def to_kafka(matches: DataFrame, *, topic: str = "", dead_letters: str = "", clock: Clock = _SECONDS) -> DataFrame:
    """The result of ``matches`` as rows for ``writeStream.format("kafka")`` (or ``write``): ``key`` and ``value``.

    The value of a match is the JSON object that ``etalis run`` prints (with ``program``, if there are several by name),
    its times as ``clock`` spells them; matches of a CONSTRUCT query can be read again as a stream.  The key is the id.

    ``topic``: written to each row; otherwise name it in the options of the sink.  ``dead_letters``: another topic, for
    events that came too late, as in a file of dead letters; their key is a hash, the same for the same event.
    """
    if dead_letters and not topic:
        raise SparkError("dead_letters= names a second topic: name the first one too, with topic=")
    wanted = F.col("kind").isin("match", "dead_letter") if dead_letters else F.col("kind") == "match"
    names = {"match": topic, "dead_letter": dead_letters}

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            records = [(*(_match if r["kind"] == "match" else _dead_letter)(r, clock), names[r["kind"]]) for r in rows]
            columns = list(zip(*records, strict=True)) or [(), (), ()]
            yield pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], schema=_ARROW_RECORDS)

    records = matches.where(wanted).mapInArrow(write, _RECORDS)
    return records if topic else records.drop("topic")


def _match(row: dict[str, Any], clock: Clock) -> tuple[str, str]:
    triples = None if row["triples"] is None else _triples(row)
    start, end = row["start"], row["end"]
    match = SparkMatch(
        row["query"],
        row["id"],
        dict(row["bindings"] or ()),
        triples,
        row["boolean"],
        start,
        end,
        clock.render,
        bool(row["retracted"]),
    )
    record = match.to_dict()
    if not row["program"]:
        return row["id"], _json(record)
    return f"{row['program']}/{row['id']}", _json({"program": row["program"], **record})


def _dead_letter(row: dict[str, Any], _: Clock) -> tuple[str, str]:
    start, end, triples, stream = row["start"], row["end"], _triples(row), row["stream"] or ""
    if start is None or end is None or any(term is None for triple in triples for term in triple):
        # Something is missing, so it cannot be read again; what is there is shown.
        value = _json({"reason": row["detail"], "start": start, "end": end, "triples": triples, "stream": stream})
    else:
        kind = Retraction if row["retracted"] else Event
        value = _json(late_record(kind(start, end, triples, stream), row["detail"]))
    return blake2b(value.encode(), digest_size=16).hexdigest(), value


def _triples(row: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((t["s"], t["p"], t["o"]) for t in row["triples"] or ())


def _json(record: dict[str, Any]) -> str:
    return msgspec.json.encode(record).decode()


__all__ = ["to_kafka"]
