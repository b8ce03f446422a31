"""EVENT on Spark: an event travels whole to the shards of its solutions' keys."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import etalis_py as api
from etalis_py import Event, compile
from etalis_py.events import Retraction
from etalis_py.spark import (
    SparkError,
    events_from_columns,
    events_from_events,
    events_from_rows,
    iri,
    matches,
    run_on_spark,
)
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.windows import WindowOptions
from tests.draws import examples
from tests.oracle import event_strategies, printing
from tests.oracle.strategies import Case
from tests.spark.by_hand import run_by_hand
from tests.spark.drawing import is_accepted
from tests.spark.programs import SECOND, embedded, expected, ids_by_program, write_batches
from tests.spark.test_streaming import THE_END, cut, run

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

PROGRAMS = {
    "record": "SELECT ?s ?t ?h { EVENT { ?s <urn:temp> ?t ; <urn:hum> ?h } }",
    "next": "SELECT ?s ?t ?u { EVENT { ?s <urn:temp> ?t ; <urn:hum> ?h } NEXT EVENT { ?s <urn:temp> ?u } }",
    "policy": "SELECT ?s ?t ?u { EVENT { ?s <urn:temp> ?t } SEQ EVENT { ?s <urn:hum> ?u } } USING POLICY recent",
    "beside a triple": "SELECT ?s ?t { EVENT { ?s <urn:temp> ?t OPTIONAL { ?s <urn:hum> ?h } } "
    "SEQ { ?s <urn:in> ?r } }",
    "by the object": "SELECT ?r ?t { EVENT { ?s <urn:in> ?r ; <urn:temp> ?t } }",
    "graph": "SELECT ?s ?g { EVENT ?g { ?s <urn:temp> ?t } }",
    "counts": "SELECT ?s (COUNT(*) AS ?n) { EVENT { ?s <urn:temp> ?t ; <urn:hum> ?h } } GROUP BY ?s",
    "absence": "SELECT ?s ?t { EVENT { ?s <urn:temp> ?t } SEQ NOT { EVENT { ?s <urn:hum> ?h } } WITHIN 2 s }",
    "hidden": "SELECT (STRLEN(?t) AS ?n) { EVENT { ?s <urn:temp> ?t ; <urn:hum> ?h } }",
    "derived": "CONSTRUCT { ?s <urn:low> ?t ; <urn:high> ?u } "
    "{ EVENT { ?s <urn:temp> ?t } SEQ EVENT { ?s <urn:temp> ?u } } "
    "SELECT ?s ?t ?u { EVENT { ?s <urn:low> ?t ; <urn:high> ?u } }",
    "derived by another key": "CONSTRUCT { ?r <urn:of> ?s ; <urn:at> ?t } "
    "{ { ?s <urn:in> ?r } SEQ { ?s <urn:temp> ?t } } "
    "SELECT ?r ?s ?t { EVENT { ?r <urn:of> ?s ; <urn:at> ?t } SEQ { ?x <urn:in> ?r } }",
    "window": "SELECT ?s (MAX(?t) AS ?most) FROM NAMED WINDOW <urn:w> ON <urn:st> [RANGE 5 s] "
    "{ WINDOW <urn:w> { EVENT { ?s <urn:temp> ?t ; <urn:hum> ?h } } } GROUP BY ?s",
    "family": "\n".join(f'SELECT ?s ?h {{ EVENT {{ ?s <urn:temp> "{n}" ; <urn:hum> ?h }} }}' for n in range(3)),
    "window of items": "SELECT ?s ?t FROM NAMED WINDOW <urn:w> ON <urn:st> [RANGE 5 s] "
    "{ WINDOW <urn:w> { EVENT { ?s <urn:temp> ?t } } }",
    "no event": "SELECT ?s ?t ?h { ?s <urn:temp> ?t } SEQ { ?s <urn:hum> ?h }",
}


def readings(seed: int, size: int = 40) -> list[Event]:
    """Records of a few sensors: several of one instant, some about two sensors, some equal, some named."""
    rng = random.Random(seed)
    found: list[Event] = []
    for _ in range(size):
        end = rng.randrange(60, 80) * SECOND
        names = [f"<urn:s{rng.randrange(4)}>" for _ in range(rng.choice((1, 1, 1, 2)))]
        cells = [("<urn:temp>", f'"{rng.randrange(3)}"'), ("<urn:hum>", f'"{rng.randrange(3)}"')]
        cells.append(("<urn:in>", f"<urn:r{rng.randrange(2)}>"))
        triples = tuple((name, *cell) for name in names for cell in cells if rng.randrange(4))
        found.append(Event(end - rng.choice((0, 0, SECOND)), end, triples, "", rng.choice(("", "", "<urn:g>"))))
        if not rng.randrange(6):
            found.append(found[-1])
    return sorted((event for event in found if event.triples), key=lambda event: event.end)


def test_an_event_goes_to_the_shards_of_its_keys() -> None:
    """As far as the key is selected; what rules of other shards derive is read in one shard."""
    shards = {
        name: [routed.part.shards for routed in plan(text, 4, None, "rdfs", None)[1]] for name, text in PROGRAMS.items()
    }
    assert shards == {name: [4] for name in PROGRAMS} | {
        "hidden": [1],
        "derived by another key": [4, 1],
        "window": [1],
        "window of items": [1],
    }


def test_a_table_of_events_has_the_ids_of_the_embedded_engine(spark: SparkSession) -> None:
    for shards in (1, 3):
        events = readings(shards)
        found = matches(PROGRAMS, events_from_events(spark, events).repartition(3), shards=shards)
        assert ids_by_program(found.collect()) == expected(PROGRAMS, events)
    assert len(expected(PROGRAMS, events)) == len(PROGRAMS)


def test_so_has_a_stream_that_restarts(spark: SparkSession, tmp_path: Path) -> None:
    events = readings(5)
    pieces = cut(events, 4, 5)
    write_batches(tmp_path / "in", pieces[:2])
    run(spark, tmp_path, PROGRAMS, shards=3)
    write_batches(tmp_path / "in", [*pieces[2:], [THE_END[0]._replace(start=90 * SECOND, end=90 * SECOND)]], first=2)
    assert ids_by_program(run(spark, tmp_path, PROGRAMS, shards=3)) == expected(PROGRAMS, events)


def test_what_is_withdrawn_is_corrected_in_one_shard(spark: SparkSession, tmp_path: Path) -> None:
    """A withdrawal need not show the key: here only a triple that no query reads, which makes two events equal."""
    one, more = ("<urn:s>", "<urn:temp>", '"1"'), ("<urn:x>", "<urn:note>", '"n"')
    events = [Event(61 * SECOND, 61 * SECOND, (one,)), Event(61 * SECOND, 61 * SECOND, (one, more))]
    gone = Retraction(61 * SECOND, 61 * SECOND, (more,))
    text = "SELECT ?s ?t { EVENT { ?s <urn:temp> ?t } }"
    assert len(embedded(text, events)) == 2
    frame = events_from_events(spark, [*events, gone])
    with pytest.raises(
        Exception, match=r"q1 has EVENT, whose events are sent by what they state: give matches\(…, revise="
    ):
        matches(text, frame, shards=2).collect()
    wanted = {"": embedded(text, events[:1])}
    assert ids_by_program(matches(text, frame, shards=2, revise=SECOND).collect()) == wanted
    assert [routed.part.shards for routed in plan(text, 2, None, "rdfs", None, WindowOptions(corrected=True))[1]] == [1]
    write_batches(tmp_path / "in", [events, [gone], THE_END])
    found = run_on_spark(text, [*events, gone], spark=spark, shards=2, revise=SECOND)
    assert [match.id for match in found.matches] == wanted[""]


ROWS = [(1, "m1", 20, 7.5), (2, "m1", 21, None), (2, "m2", 30, 1.0), (3, "m 3", None, 2.0)]
RECORDS = {
    "rows": "SELECT ?m ?t ?h { EVENT { ?m :temp ?t ; :hum ?h } }",
    "next": "SELECT ?m ?t ?u { EVENT { ?m :temp ?t } NEXT EVENT { ?m :temp ?u } }",
}


@pytest.mark.parametrize("subject", ["machine", None])
def test_rows_of_a_table_are_the_events_of_run(spark: SparkSession, subject: str | None) -> None:
    schema = "at long, machine string, temp int, hum double"
    rows = spark.createDataFrame(ROWS, schema)
    events = events_from_rows(rows, time="at", subject=subject)
    table = pa.Table.from_pylist([dict(zip(("at", "machine", "temp", "hum"), row, strict=True)) for row in ROWS])
    wanted = {
        name: sorted(m.id for m in api.run(text, table, time="at", subject=subject)) for name, text in RECORDS.items()
    }
    assert ids_by_program(matches(RECORDS, events, shards=3).collect()) == {n: ids for n, ids in wanted.items() if ids}
    assert len(wanted["rows"]) == 2


def test_a_mapping_says_what_the_columns_of_a_table_mean(spark: SparkSession) -> None:
    rows = spark.createDataFrame(ROWS, "at long, machine string, temp int, hum double")
    mapping = {"time": "{at}", "triple": [{"subject": "<urn:{machine}>", "predicate": "<urn:t>", "object": "{temp}"}]}
    [first, *_] = events_from_rows(rows, mapping=mapping, stream="urn:st").orderBy("end").collect()
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    assert (first.end, first.stream) == (SECOND, "<urn:st>")
    assert [tuple(t) for t in first.triples] == [("<urn:m1>", "<urn:t>", f'"20"^^<{integer}>')]
    with pytest.raises(SparkError, match="name the columns with the time and with what a row is about"):
        events_from_rows(rows, time="at")
    with pytest.raises(SparkError, match="there is no column 'machin' for the subject"):
        events_from_rows(rows, time="at", subject="machin")


def in_columns(rows: DataFrame) -> DataFrame:
    """One triple of each row of a change feed."""
    subject, predicate = iri("machine", "http://example.org/"), F.lit("<http://example.org/temp>")
    return events_from_columns(rows, s=subject, p=predicate, o="temp", time="at", time_unit="s", changes="_change_type")


FEED = "at long, machine string, temp int, _change_type string, _commit_version long, _commit_timestamp timestamp"


def test_the_change_feed_of_a_table_withdraws_what_it_had_stated(spark: SparkSession) -> None:
    """The second version deletes one row, corrects one, and touches one that stays as it was."""
    feed = [
        (60, "m0", 1, "insert", 1),
        (61, "m1", 2, "insert", 1),
        (62, "m2", 3, "insert", 1),
        (63, "m3", 4, "insert", 1),
    ]
    feed += [(60, "m0", 1, "delete", 2), (61, "m1", 2, "update_preimage", 2), (61, "m1", 9, "update_postimage", 2)]
    feed += [(62, "m2", 3, "UPDATE_BEFORE", 2), (62, "m2", 3, "UPDATE_AFTER", 2)]
    rows = spark.createDataFrame([(*row, None) for row in feed], FEED)
    events = events_from_rows(rows, time="at", subject="machine", changes="_change_type")
    columns = in_columns(rows)
    table = pa.table({"at": [61, 62, 63], "machine": ["m1", "m2", "m3"], "temp": [9, 3, 4]})
    text = "SELECT ?m ?t { ?m :temp ?t }"
    wanted = sorted(match.id for match in api.run(text, table, time="at", subject="machine"))
    for each in (events, columns):
        assert ids_by_program(matches(text, each, shards=2).collect()) == {"": wanted}
    moved = rows.replace("delete", "moved", "_change_type")
    for wrong in (events_from_rows(moved, time="at", subject="machine", changes="_change_type"), in_columns(moved)):
        with pytest.raises(Exception, match="the column _change_type holds 'moved', which is none of delete"):
            wrong.collect()
    with pytest.raises(SparkError, match=r"there is no column '_change' among at, machine, .*, which changes= names"):
        events_from_rows(rows, time="at", subject="machine", changes="_change")


def test_the_change_feed_of_triples_as_a_stream_takes_matches_back(spark: SparkSession, tmp_path: Path) -> None:
    """In columns; one batch for each version of the table, and two to let time pass."""
    versions = [
        [(60 + n, f"m{n % 2}", n, "insert", 1) for n in range(8)],
        [(90, "m9", 0, "insert", 2)],
        [(62, "m0", 2, "delete", 3), (63, "m1", 3, "update_preimage", 3), (63, "m1", 9, "update_postimage", 3)],
        [(95, "m9", 0, "insert", 4)],
    ]
    for number, version in enumerate(versions):
        some = spark.createDataFrame([(*row, None) for row in version], FEED).coalesce(1)
        some.write.parquet(str(tmp_path / f"in/n={number}"))
    rows = spark.readStream.schema(f"{FEED}, n int").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    text = "SELECT ?m ?t ?u { { ?m :temp ?t } NEXT { ?m :temp ?u } }"
    found = matches(text, in_columns(rows), shards=2, lateness="5 seconds", revise="1 hour")
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    written = spark.read.schema(found.schema).parquet(str(tmp_path / "out")).collect()
    stands = Counter[str]()
    for row in written:
        assert row.kind == "match", row
        stands[row.id] += -1 if row.retracted else 1
    left = [(60 + n, f"m{n % 2}", 9 if n == 3 else n) for n in range(8) if n != 2]
    table = pa.Table.from_pylist([dict(zip(("at", "machine", "temp"), row, strict=True)) for row in left])
    wanted = sorted(match.id for match in api.run(text, table, time="at", subject="machine"))
    assert sorted(stands.elements()) == wanted
    assert any(row.retracted for row in written)


def test_rows_with_the_same_number_are_one_event(spark: SparkSession) -> None:
    text, schema = PROGRAMS["record"], "end long, s string, p string, o string, event long"
    cells = [(1, "<urn:s>", "<urn:temp>", '"1"', 1), (1, "<urn:s>", "<urn:hum>", '"2"', 1)]
    cells += [(1, "<urn:s>", "<urn:temp>", '"3"', 2), (1, "<urn:s>", "<urn:hum>", '"4"', 2)]
    rows = spark.createDataFrame(cells, schema)
    events = [Event(1, 1, tuple((s, p, o) for _, s, p, o, _ in cells[n : n + 2])) for n in (0, 2)]
    for shards in (1, 3):
        assert ids_by_program(matches(text, rows, shards=shards).collect()) == {"": embedded(text, events)}
    with pytest.warns(
        UserWarning, match="q1 asks in EVENT for several triples, and each row of s, p and o is an event"
    ):
        assert matches(text, rows.drop("event"), shards=2).collect() == []


def test_rows_without_a_number_are_not_one_event(spark: SparkSession) -> None:
    """``run`` refuses such a table, too: nothing says that the two rows belong together."""
    cells = [(1, "<urn:s>", "<urn:temp>", '"1"', None), (1, "<urn:s>", "<urn:hum>", '"2"', None)]
    rows = spark.createDataFrame(cells, "end long, s string, p string, o string, event long")
    with pytest.raises(Exception, match=r"a row has no value in the column event, .*: number every row's event"):
        matches(PROGRAMS["record"], rows, shards=2).collect()


DRAWN = st.one_of(
    event_strategies.of_events(),
    event_strategies.of_events_among_all(),
    event_strategies.of_events_under_policies(),
    event_strategies.of_events_aggregated(),
    event_strategies.of_derived_events(),
)


@settings(max_examples=examples(1))
@given(DRAWN, st.integers(1, 8))
def test_any_program_with_event(case: Case, shards: int) -> None:
    assume(is_accepted(case))
    text = printing.program(case.program) + "\n"
    wanted = embedded(text, case.events, policy=case.policy)
    assert run_by_hand(compile(text, policy=case.policy), case.events, shards) == wanted


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.lists(DRAWN.filter(is_accepted), min_size=6, max_size=8), st.integers(2, 8), st.integers(0, 1_000_000))
def test_drawn_programs_in_a_batch_and_in_a_stream(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, cases: list[Case], shards: int, seed: int
) -> None:
    events = sorted((e for case in cases for e in case.events), key=lambda e: e.end)
    # The watermark begins at 1970: what ends there is over before the first batch.
    events = [e._replace(start=e.start + 60 * SECOND, end=e.end + 60 * SECOND) for e in events]
    programs = {str(n): compile(printing.program(c.program) + "\n", policy=c.policy) for n, c in enumerate(cases)}
    wanted = {str(n): embedded(printing.program(c.program), events, policy=c.policy) for n, c in enumerate(cases)}
    wanted = {name: ids for name, ids in wanted.items() if ids}
    batch = matches(programs, events_from_events(spark, events).repartition(3), shards=shards)
    assert ids_by_program(batch.collect()) == wanted
    folder, pieces = tmp_path_factory.mktemp("drawn"), cut(events, 3, seed)
    write_batches(folder / "in", pieces[:2])
    run(spark, folder, programs, shards=shards)
    write_batches(folder / "in", [*pieces[2:], [THE_END[0]._replace(start=90 * SECOND, end=90 * SECOND)]], first=2)
    assert ids_by_program(run(spark, folder, programs, shards=shards)) == wanted
