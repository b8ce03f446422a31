"""On a batch DataFrame: the same match ids as the embedded engine, in any number of shards."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from functools import partial
from typing import Any
from zlib import crc32

import pandas as pd
import pytest
from etalis_compiler.rsp import Strategy
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from etalis_py import Engine, Event, compile, event
from etalis_py.spark import MATCHES, ShardWarning, SparkError, events_from_events, matches, run_on_spark
from etalis_py.spark.output import wire
from tests.oracle import printing
from tests.oracle.strategies import Case
from tests.spark.drawing import DRAWN, is_accepted
from tests.spark.programs import GLOBAL, PROGRAMS, SHARDED, embedded, expected, ids_by_program, stream

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")


@pytest.mark.parametrize("shards", [1, 2, 5, 8])
def test_any_number_of_shards_finds_what_the_embedded_engine_finds(spark: SparkSession, shards: int) -> None:
    events = stream(shards)
    found = matches(PROGRAMS, events_from_events(spark, events), shards=shards)
    assert ids_by_program(found.collect()) == expected(PROGRAMS, events)


def test_matches_have_the_public_columns(spark: SparkSession) -> None:
    """In their order, of their types, whatever the queries select."""
    wanted = spark.createDataFrame([], MATCHES).schema
    events = events_from_events(spark, stream(1))
    assert matches(PROGRAMS, events, shards=2).schema == wanted
    assert matches(SHARDED["seq"], events, shards=1).schema == wanted
    assert matches("CONSTRUCT { ?x <urn:r> ?y } WHERE { ?x <urn:p> ?y }", events, shards=2).schema == wanted


def test_a_match_says_the_same_in_columns_and_whole(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many queries some travel in columns only; their names, bindings and times are those of the others."""
    events = stream(3)
    frame = events_from_events(spark, events)
    in_columns = matches(PROGRAMS, frame, shards=2, ordered=True).collect()
    monkeypatch.setattr(wire, "MOST", 0)
    whole = matches(PROGRAMS, frame, shards=2, ordered=True).collect()
    assert sorted(map(repr, in_columns)) == sorted(map(repr, whole))
    assert ids_by_program(in_columns) == expected(PROGRAMS, events)


def test_what_is_not_read_is_not_made(spark: SparkSession) -> None:
    found = matches(SHARDED["seq"], events_from_events(spark, stream(1)), shards=2)
    plan = found.select("id")._jdf.queryExecution().optimizedPlan().toString()
    assert "map(" in found._jdf.queryExecution().optimizedPlan().toString()
    assert "map(" not in plan


@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    st.lists(DRAWN.filter(is_accepted), min_size=6, max_size=10), st.integers(1, 8), st.randoms(use_true_random=False)
)
def test_drawn_programs(spark: SparkSession, cases: list[Case], shards: int, rng: object) -> None:
    events = [e for case in cases for e in case.events]
    rng.shuffle(events)  # type: ignore[attr-defined]
    programs = {str(n): compile(printing.program(c.program) + "\n", policy=c.policy) for n, c in enumerate(cases)}
    found = matches(programs, events_from_events(spark, events).repartition(3), shards=shards)
    wanted = {str(n): embedded(printing.program(c.program), events, policy=c.policy) for n, c in enumerate(cases)}
    assert ids_by_program(found.collect()) == {name: ids for name, ids in wanted.items() if ids}


def test_background_travels_to_the_shards(spark: SparkSession) -> None:
    text = "SELECT ?x ?w { ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ { ?x <urn:q> ?z }"
    background = [[("<urn:x1>", "<urn:near>", "<urn:w>"), ("<urn:x2>", "<urn:near>", "<urn:v>")]]
    events = stream(5)
    found = matches(text, events_from_events(spark, events), shards=3, background=background, entailment="rdf")
    wanted = embedded(text, events, background=background, entailment="rdf")
    assert wanted
    assert ids_by_program(found.collect()) == {"": wanted}


def test_the_schema_entails_streamed_triples_in_one_shard(spark: SparkSession) -> None:
    text = "SELECT * { ?x <urn:sup> ?y } SEQ { ?x <urn:q> ?z }"
    background = [[("<urn:p>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", "<urn:sup>")]]
    events = stream(6)
    wanted = embedded(text, events, background=background)
    assert wanted
    found = matches(text, events_from_events(spark, events), shards=2, background=background)
    assert ids_by_program(found.collect()) == {"": wanted}


def test_what_only_the_background_answers_is_reported_once(spark: SparkSession) -> None:
    text = "SELECT * { { ?x <urn:p> ?y } UNION { ?x <urn:near> ?y } }"
    background = [[("<urn:x1>", "<urn:near>", "<urn:w>")]]
    for events in (stream(7, 20), []):
        wanted = embedded(text, events, background=background)
        found = matches(text, events_from_events(spark, events), shards=3, background=background)
        assert ids_by_program(found.collect()) == {"": wanted}


def test_a_match_has_its_columns(spark: SparkSession) -> None:
    events = [event(":a :p 1", 1), event(":a :q 2", 2)]
    text = "PREFIX : <http://example.org/> SELECT ?x ?z { ?x :p ?y } SEQ { ?x :q ?z }"
    [row] = matches(text, events_from_events(spark, events), shards=2).collect()
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    assert row["bindings"] == {"x": "<http://example.org/a>", "z": f'"2"^^{integer}'}
    assert (row["kind"], row["query"], row["start"], row["end"]) == ("match", "q1", 1_000_000, 2_000_000)
    assert [row["id"]] == embedded(text, events)


def test_what_runs_in_one_shard_is_said(spark: SparkSession) -> None:
    frame = events_from_events(spark, [])
    with pytest.warns(ShardWarning, match="q1: one shard: ASK answers once for all shards"):
        matches(GLOBAL["ask"], frame, shards=2)


def test_constants_reach_the_parquet_reader(spark: SparkSession, tmp_path: object) -> None:
    flat = events_from_events(spark, stream(1)).select(
        "start",
        "end",
        "stream",
        F.col("triples")[0]["s"].alias("s"),
        F.col("triples")[0]["p"].alias("p"),
        F.col("triples")[0]["o"].alias("o"),
    )
    flat.write.parquet(f"{tmp_path}/flat")
    file = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/flat")  # which only Spark can
    plans = {
        shards: matches(SHARDED["seq"], file, shards=shards)._jdf.queryExecution().executedPlan().toString()
        for shards in (2, 5)
    }
    # With those rows of which a null keeps one from knowing, and those whose predicate is a plain string.
    either = r"Or\(EqualTo\(p,<urn:[pq]>\),EqualTo\(p,<urn:[pq]>\)\)"
    nulls = r"Or\(Or\(IsNull\(s\),IsNull\(p\)\),IsNull\(o\)\)"
    assert re.search(rf"PushedFilters: \[Or\(Or\({either},{nulls}\),Or\(LessTh", plans[5])
    # Two shards read the file themselves, the first one the dead letters, too; Spark shows the beginning only.
    either = r"Or\(EqualTo\(p,<urn:[pq]>"
    pushed = re.findall(r"PushedFilters: \[.*", plans[2])
    assert len(pushed) == 2
    assert re.match(
        rf"PushedFilters: \[Or\({either}\),EqualTo\(p,<urn:[pq]>\)\),Or\(Or\(Or\(Or\(IsNull\(s\)", pushed[0]
    )
    assert re.match(rf"PushedFilters: \[(?:IsNotNull\(\w+\), |StringStartsWith\(p,<\), )*{either}", pushed[1])


def test_events_of_another_shape_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match="no column end, only id"):
        matches(SHARDED["seq"], spark.range(3))
    with pytest.raises(SparkError, match="number of shards is 0"):
        matches(SHARDED["seq"], events_from_events(spark, []), shards=0)
    for slices in (1.5, 0, 1025):  # with more, two parts would share numbers of shards
        with pytest.raises(SparkError, match=f"number of slices is {slices}: choose 1 to 1024, where 1 cuts nothing"):
            matches(SHARDED["seq"], events_from_events(spark, []), slices=slices)  # type: ignore[arg-type]


WINDOW = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x <urn:p> ?y } }"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (SHARDED["seq"], {"entailment": "owl"}, "'owl' is not an entailment regime"),
        (WINDOW, {"entailment": "owl"}, "'owl' is not an entailment regime"),
        (WINDOW, {"report": "WC"}, "report='WC': give the report policy of each windowed query by its name"),
        (WINDOW, {"report": {"q2": []}}, "report policies are given for q2; the queries with windows are q1"),
    ],
)
def test_options_that_no_engine_takes_are_refused(
    spark: SparkSession, text: str, options: dict[str, Any], expected: str
) -> None:
    events = events_from_events(spark, stream(1))
    for begin in (partial(Engine, text), partial(matches, text, events), partial(matches, {"a": text}, events)):
        with pytest.raises((TypeError, ValueError)) as error:
            begin(**options)
        assert str(error.value).startswith(expected)


def test_options_of_windows_are_told_where_there_are_none(spark: SparkSession) -> None:
    events, without = events_from_events(spark, stream(1)), SHARDED["seq"]
    with pytest.warns(UserWarning, match=r"^duplicates only has an effect on queries with windows, and the program"):
        matches({"a": without, "b": SHARDED["within"]}, events, duplicates=True)
    with warnings.catch_warnings(action="error"):
        matches({"a": without, "b": WINDOW}, events, report={"q1": [Strategy("WC")]}, shards=1)


def test_what_matches_cannot_take_is_said(spark: SparkSession) -> None:
    events, text = events_from_events(spark, stream(1)), SHARDED["seq"]
    with pytest.raises(TypeError, match=r"^matches has no option 'latness'; did you mean 'lateness'\?$"):
        matches(text, events, latness="5 s")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^run_on_spark has no option 'shard'; did you mean 'shards'\?$"):
        run_on_spark(text, [], spark=spark, shard=2)  # type: ignore[call-arg]
    with pytest.raises(
        SparkError, match=r"^list cannot run on Spark: .*; compile\(\[…\]\) makes one program of several"
    ):
        matches([text, text], events)  # type: ignore[arg-type]
    with pytest.raises(SparkError, match=r"^events is a pandas\.DataFrame, .*: spark\.createDataFrame\(…\) makes one"):
        matches(text, pd.DataFrame({"s": ["a"]}))
    wrong: list[tuple[str, dict[str, Any]]] = [
        (r"^updates is a builtins\.str, and matches needs a DataFrame of Spark: spark\.crea.* one$", {"updates": "u"}),
        (r"^queries is a builtins\.dict, and matches needs a DataFrame of Spark", {"queries": {"a": text}}),
        (r"^observe='': give the name under which Spark shows the counts, or an Observation$", {"observe": ""}),
        (r"^observe=5: give the name", {"observe": 5}),
        (r"^typed= names variables without their question marks: 'x' for \?x$", {"typed": {"?x": "int"}}),
    ]
    for told, option in wrong:
        with pytest.raises(SparkError, match=told):
            matches(text, events, **option)
    with pytest.raises(SparkError, match=r"^a program is named 1 \(int\), but names are texts"):
        matches({1: text}, events)  # type: ignore[dict-item]
    with pytest.raises(SparkError, match=r"^spark='local\[2\]' is no session: .*master= takes an address of Spark$"):
        run_on_spark(text, [], spark="local[2]")  # type: ignore[arg-type]


def test_a_frame_of_pandas_on_spark_is_told_from_one_of_spark() -> None:
    class DataFrame:
        def to_spark(self) -> None: ...

    with pytest.raises(SparkError, match=r"^events is a DataFrame of pandas on Spark, .*: its to_spark\(\) makes one$"):
        matches(SHARDED["seq"], DataFrame())  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["ticks.csv", pd.DataFrame({"at": [1]}), [{"at": 1}], 5], ids=type)
def test_what_is_no_event_object_is_refused(spark: SparkSession, what: Any) -> None:
    advice = r"takes Event objects: read_stream\(…\) of etalis_py\.streams reads them"
    with pytest.raises(SparkError, match=f"is no event, and run_on_spark {advice}"):
        run_on_spark(SHARDED["seq"], what, spark=spark)
    with pytest.raises(SparkError, match=f"is no event, and events_from_events {advice}"):
        events_from_events(spark, what)


def test_run_on_spark_gives_matches_as_sinks_take_them(spark: SparkSession) -> None:
    events = [event(":a :p 1", 1), event(":a :q 2", 2)]
    text = "PREFIX : <http://example.org/> SELECT ?x { ?x :p ?y } SEQ { ?x :q ?z }"
    result = run_on_spark(text, events, spark=spark, shards=2)
    assert [m.to_dict() for m in result.matches] == [
        {
            "query": "q1",
            "id": embedded(text, events)[0],
            "bindings": {"x": {"type": "uri", "value": "http://example.org/a"}},
            "start": 1,
            "end": 2,
        }
    ]
    assert result.late == []


def test_metrics_say_what_a_shard_holds(spark: SparkSession) -> None:
    rows = matches(SHARDED["seq"], events_from_events(spark, stream(1)), shards=2, metrics=True).collect()
    assert sorted(row["shard"] for row in rows if row["kind"] == "metric") == [0, 1]


def test_a_hot_key_is_work_for_its_own_shard_only(spark: SparkSession) -> None:
    """What a shard takes in is what belongs to its keys: the others do not see the hot one at all."""
    keys, hot, shards = [f"<urn:k{n}>" for n in range(40)], "<urn:hot>", 8
    cold = [(n + 1, n + 1, key, "<urn:p>", "<urn:b>") for n, key in enumerate(keys)]
    busy = [(n, n, hot, "<urn:q>", f"<urn:b{n}>") for n in range(1, 3_001)]
    frame = spark.createDataFrame([*cold, *busy], "start long, end long, s string, p string, o string")
    rows = matches(SHARDED["seq"], frame, shards=shards, metrics=True).collect()
    taken = {row["shard"]: json.loads(row["detail"])["events"] for row in rows if row["kind"] == "metric"}
    own = Counter(crc32(key.encode()) % shards for key in keys)
    home = crc32(hot.encode()) % shards
    assert taken == {n: own[n] + (3_000 if n == home else 0) for n in range(shards)}
    assert min(own[n] for n in range(shards)) > 0


def test_spark_counts_what_it_is_asked_to(spark: SparkSession) -> None:
    counted, events = Observation("etalis"), stream(1)
    found = matches(SHARDED["seq"], events_from_events(spark, events), shards=2, metrics=True, observe=counted)
    found.collect()
    assert counted.get["matches"] == len(embedded(SHARDED["seq"], events))
    assert counted.get["late"] == 0
    assert counted.get["goals"] > 0


def test_an_event_with_an_end_before_its_start_stops_the_run(spark: SparkSession) -> None:
    frame = events_from_events(spark, [Event(5, 3, (("<urn:a>", "<urn:p>", "<urn:b>"),))])
    with pytest.raises(Exception, match="swap the two"):
        matches(SHARDED["seq"], frame, shards=1).collect()
