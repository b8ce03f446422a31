"""The pipeline on Spark: DataFrames of events in, DataFrames of matches out, with the same rules in shards.

The compiler decides which term of a triple sends it to a shard, for each triple pattern (``etalis_compiler.shards``).
The JVM filters and routes the triples accordingly (``input.catalyst_filters``).  Each group of rows is one shard, which
runs the same engine as the embedded mode (``shard``).  This package may import everything of the run time; only the
command line imports it.

>>> from etalis_py.spark import matches, session                            # doctest: +SKIP
>>> spark = session(shards=4)                                                # doctest: +SKIP
>>> matches("SELECT ?c { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y }", spark.read.parquet("events"))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from etalis_py.spark.errors import SparkError, short_errors
    from etalis_py.spark.input.column_terms import iri, literal, term
    from etalis_py.spark.input.datasource import EventSource
    from etalis_py.spark.input.schema import EVENTS, FLAT_EVENTS, MATCHES
    from etalis_py.spark.input.sources import (
        end_of_stream,
        events_from_columns,
        events_from_events,
        events_from_files,
        events_from_jsonl,
        events_from_kafka,
        events_from_messages,
        events_from_nquads,
        events_from_rate,
        events_from_socket,
        events_from_source,
    )
    from etalis_py.spark.input.wide_rows import events_from_rows
    from etalis_py.spark.output.sinks import to_kafka
    from etalis_py.spark.pipeline import ShardWarning, matches
    from etalis_py.spark.sessions import session
    from etalis_py.spark.stream_runs import SparkMatch, SparkResult, run_on_spark
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "etalis_py.spark.input.column_terms": ("iri", "literal", "term"),
            "etalis_py.spark.input.datasource": ("EventSource",),
            "etalis_py.spark.errors": ("SparkError", "short_errors"),
            "etalis_py.spark.pipeline": ("ShardWarning", "matches"),
            "etalis_py.spark.stream_runs": ("SparkMatch", "SparkResult", "run_on_spark"),
            "etalis_py.spark.input.schema": ("EVENTS", "FLAT_EVENTS", "MATCHES"),
            "etalis_py.spark.sessions": ("session",),
            "etalis_py.spark.input.wide_rows": ("events_from_rows",),
            "etalis_py.spark.output.sinks": ("to_kafka",),
            "etalis_py.spark.input.sources": (
                "end_of_stream",
                "events_from_columns",
                "events_from_events",
                "events_from_files",
                "events_from_jsonl",
                "events_from_kafka",
                "events_from_messages",
                "events_from_nquads",
                "events_from_rate",
                "events_from_socket",
                "events_from_source",
            ),
        },
        extra="spark",
    )

__all__ = [
    "EVENTS",
    "FLAT_EVENTS",
    "MATCHES",
    "EventSource",
    "ShardWarning",
    "SparkError",
    "SparkMatch",
    "SparkResult",
    "end_of_stream",
    "events_from_columns",
    "events_from_events",
    "events_from_files",
    "events_from_jsonl",
    "events_from_kafka",
    "events_from_messages",
    "events_from_nquads",
    "events_from_rate",
    "events_from_rows",
    "events_from_socket",
    "events_from_source",
    "iri",
    "literal",
    "matches",
    "run_on_spark",
    "session",
    "short_errors",
    "term",
    "to_kafka",
]
