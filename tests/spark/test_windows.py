"""Windowed programs on Spark find what the embedded engine of windows finds: the same match ids."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from etalis_compiler.rsp import Strategy
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from etalis_py import Engine, Event, compile
from etalis_py.knowledge import load
from etalis_py.spark import ShardWarning, events_from_events, matches, run_on_spark
from tests.spark import programs as ep
from tests.spark import test_page as page
from tests.spark.programs import ids_by_program, write_batches
from tests.spark.test_streaming import THE_END, cut, killer, run
from tests.spark.windowed import BODY, EX, KEYED, PROGRAMS, SECOND, S, W, embedded, stream, windowed_queries

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

DIVIDED = ("average", "t0", "new since the start", "network", "two streams", "periodic")
UNDIVIDED = ("count", "empty ones too", "new", "consumed", "items by name")
SOME = {name: PROGRAMS[name] for name in (*DIVIDED, *UNDIVIDED)}


def expected(programs: Mapping[str, Any], events: Sequence[Event]) -> dict[str, list[str]]:
    found = {name: embedded(text, events) for name, text in programs.items()}
    return {name: ids for name, ids in found.items() if ids}


# --- batch -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_any_number_of_shards_finds_what_the_embedded_engine_finds(spark: SparkSession, shards: int) -> None:
    programs, events = PROGRAMS if shards == 3 else SOME, stream(shards, 80)
    frame = events_from_events(spark, random.Random(shards).sample(events, len(events))).repartition(3)
    assert ids_by_program(matches(programs, frame, shards=shards).collect()) == expected(programs, events)


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.lists(windowed_queries(), min_size=8, max_size=8), st.integers(1, 8), st.integers(0, 10_000))
def test_drawn_queries(spark: SparkSession, queries: list[str], shards: int, seed: int) -> None:
    programs, events = {str(n): text for n, text in enumerate(queries)}, stream(seed, 50)
    found = matches(programs, events_from_events(spark, events), shards=shards)
    assert ids_by_program(found.collect()) == expected(programs, events)


def test_windows_stand_beside_ep_sparql_programs(spark: SparkSession) -> None:
    """In one job, on several levels: an event goes whole to windows and triple by triple to rules."""
    events = [e._replace(triples=tuple((s, "<urn:p>", o) for s, _, o in e.triples)) for e in stream(4)]
    events += ep.stream(4)
    events.sort(key=lambda e: e.end)
    windowed = {name: SOME[name].replace(":p ", "<urn:p> ") for name in ("average", "count")}
    rules = {name: ep.PROGRAMS[name] for name in ("seq", "tagged", "two levels", "total")}
    found = ids_by_program(matches({**windowed, **rules}, events_from_events(spark, events), shards=3).collect())
    assert found == {**expected(windowed, events), **ep.expected(rules, events)}


MIXED = f"""
SELECT ?x (COUNT(*) AS ?n) {W} {BODY} GROUP BY ?x
SELECT ?x ?z WHERE {{ ?x :p ?y }} SEQ {{ ?x :q ?z }}
"""
FED = f"""
REGISTER STREAM :s AS CONSTRUCT {{ ?x :p ?z }} WHERE {{ ?x :p ?y }} SEQ {{ ?x :q ?z }}
SELECT ?x (COUNT(*) AS ?n) {W} {BODY} GROUP BY ?x
"""


@pytest.mark.parametrize(("text", "said"), [(MIXED, []), (FED, ["may feed one another"])])
def test_a_program_of_windows_and_rules(spark: SparkSession, text: str, said: list[str]) -> None:
    events = stream(9)
    with pytest.warns(ShardWarning) if said else pytest.MonkeyPatch.context() as heard:
        found = matches(text, events_from_events(spark, events), shards=3).collect()
    assert all(any(s in str(w.message) for w in heard) for s in said)
    wanted = embedded(text, events)
    assert {m.split("/")[0] for m in wanted}
    assert ids_by_program(found) == {"": wanted}


def test_events_that_name_no_stream_belong_to_the_only_one(spark: SparkSession) -> None:
    events = [e._replace(stream="") if n % 2 else e for n, e in enumerate(stream(5))]
    programs = {name: PROGRAMS[name] for name in ("average", "count", "two streams")}
    found = matches(programs, events_from_events(spark, events), shards=3).collect()
    assert ids_by_program(found) == expected(programs, events)


def test_flat_events_are_items_of_one_triple(spark: SparkSession) -> None:
    events = [e._replace(triples=e.triples[:1]) for e in stream(6)]
    flat = events_from_events(spark, events).select("start", "end", "stream", "graph", F.explode("triples").alias("t"))
    programs = {name: PROGRAMS[name] for name in ("average", "count", "items by name")}
    found = matches(programs, flat.select("start", "end", "stream", "graph", "t.s", "t.p", "t.o"), shards=2).collect()
    assert ids_by_program(found) == expected(programs, events)


def test_background_travels_to_the_shards(spark: SparkSession) -> None:
    near = f"<{EX}near>"
    background = load([[(f"<{EX}x{n}>", near, f"<{EX}y{n}>") for n in range(3)]], entailment="rdf")
    programs = {
        "joined": f"SELECT ?x ?w {W} {{ WINDOW :w {{ ?x :p ?y }} ?x :near ?w }}",
        "together": "SELECT ?x ?w FROM WINDOW :w ON :s [RANGE PT6S SLIDE PT3S] { ?x :p ?y . ?x :near ?w }",
    }
    events = stream(7)
    found = matches(programs, events_from_events(spark, events), shards=3, background=background).collect()
    wanted = {name: embedded(text, events, background=background) for name, text in programs.items()}
    assert all(wanted.values())
    assert ids_by_program(found) == wanted


def test_a_schema_has_all_of_it_run_in_one_shard(spark: SparkSession) -> None:
    schema = [[(f"<{EX}p>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", f"<{EX}above>")]]
    text = f"SELECT ?x ?y {W} {{ WINDOW :w {{ ?x :above ?y }} }}"
    events = stream(8)
    with pytest.warns(ShardWarning, match="the schema entails triples of other keys"):
        found = matches(text, events_from_events(spark, events), shards=3, background=schema).collect()
    wanted = embedded(text, events, background=schema)
    assert wanted
    assert ids_by_program(found) == {"": wanted}


def test_what_the_text_cannot_say_is_an_option(spark: SparkSession) -> None:
    text = (
        "SELECT ?x ?y ?z FROM NAMED WINDOW :w ON :s [RANGE PT2S] FROM NAMED WINDOW :v ON :s [RANGE PT6S] "
        "{ WINDOW :w { ?x :p ?y } WINDOW :v { ?x :q ?z } }"
    )
    options: dict[str, Any] = {"report": {"": [Strategy("WC", f"<{EX}v>")]}, "duplicates": True}
    program, events = compile(text, preset="sparqlstream"), stream(10)
    wanted = embedded(program, events, **options)
    assert wanted != embedded(program, events)
    found = matches(program, events_from_events(spark, events), shards=3, **options).collect()
    assert ids_by_program(found) == {"": wanted}


def test_run_on_spark_takes_windowed_programs(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(11)
    program = compile(KEYED["average"])
    found = run_on_spark(program, events, spark=spark, shards=2).matches
    assert sorted(m.id for m in found) == embedded(program, events)


def test_the_example_of_the_page_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    page.run(spark, page.snippet("windows.py", page.DOCS / "spark-shards.md"))
    shown = [[cell.strip() for cell in line.split("|")[1:4]] for line in capsys.readouterr().out.splitlines()[3:6]]
    one, two = (f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in (1, 2))
    assert shown == [
        [one, "0", "10000000"],
        [two, "0", "10000000"],
        [one, "5000000", "15000000"],
    ]


def test_metrics_count_what_the_windows_keep(spark: SparkSession) -> None:
    found = matches(KEYED["everything so far"], events_from_events(spark, stream(12)), shards=2, metrics=True)
    kept = [json.loads(row["detail"])["items"] for row in found.where("kind = 'metric'").collect()]
    assert sum(kept) == sum(p == f"<{EX}p>" for e in set(stream(12)) if e.stream == S for _, p, _ in e.triples)


# --- streams ---------------------------------------------------------------------------------------------------


def test_any_cut_finds_what_the_embedded_engine_finds(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(21)
    write_batches(tmp_path / "in", [*cut(events, 4, 21), THE_END])
    assert ids_by_program(run(spark, tmp_path, SOME, shards=3)) == expected(SOME, events)


def item(second: int, node: str = "x", stream: str = S) -> Event:
    return Event(second * SECOND, second * SECOND, ((f"<{EX}{node}>", f"<{EX}p>", '"1"'),), stream)


def test_what_is_later_than_the_lateness_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [[item(1), item(20)], [item(40)], [item(2)], THE_END])
    programs = {"keyed": KEYED["average"], "whole": PROGRAMS["count"]}
    rows = run(spark, tmp_path, programs, lateness=SECOND)
    late = [(r["program"], r["end"], r["stream"], r["detail"]) for r in rows if r["kind"] == "dead_letter"]
    said = "came after its instant was over"
    assert sorted(late) == [("keyed", 2 * SECOND, S, said), ("whole", 2 * SECOND, S, said)]
    wanted = expected(programs, [item(1), item(20), item(40)])
    assert ids_by_program([r for r in rows if r["kind"] == "match"]) == wanted


def test_windows_close_by_the_watermark_without_further_events(spark: SparkSession, tmp_path: Path) -> None:
    """Keys that fall silent are reported when the others let time pass, each window at its own time."""
    names = [f"n{n}" for n in range(8)]
    first, later, last = [item(1, name) for name in names], [item(30, names[0])], [item(31, names[0])]
    write_batches(tmp_path / "in", [first, later, last])
    programs = {"keyed": KEYED["sliding"], "total": PROGRAMS["total"], "empty": PROGRAMS["empty ones too"]}
    wanted = {}
    for name, text in programs.items():
        engine = Engine(text)
        found = [*engine.push_all([*first, *later]), *engine.advance(31 * SECOND - 1)]
        wanted[name] = sorted(m.id for m in found)
    assert all(wanted.values())
    assert ids_by_program(run(spark, tmp_path, programs, shards=4)) == wanted


def test_a_run_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(41)
    batches = [*cut(events, 3, 41), THE_END]
    write_batches(tmp_path / "in", batches[:2])
    run(spark, tmp_path, SOME)
    write_batches(tmp_path / "in", batches[2:], first=2)
    assert ids_by_program(run(spark, tmp_path, SOME)) == expected(SOME, events)


def test_another_query_of_the_same_name_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(42)
    write_batches(tmp_path / "in", [events[:30]])
    run(spark, tmp_path, {"": KEYED["sliding"]})
    write_batches(tmp_path / "in", [events[30:]], first=1)
    with pytest.raises(Exception, match="does not belong to this program"):
        run(spark, tmp_path, {"": KEYED["sliding"].replace("PT6S", "PT9S")})


def test_a_killed_worker_loses_nothing_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Nor does any order of arrival within the lateness."""
    events, rng = stream(31), random.Random(31)
    late = sorted(events, key=lambda e: e.end + rng.randrange(5 * SECOND))
    assert late != events
    write_batches(tmp_path / "in", [*cut(late, 4, 31), THE_END])
    marker = tmp_path / "killed"
    rows = run(spark, tmp_path, SOME, lateness=5 * SECOND, then=killer(marker, 3))
    assert marker.exists()
    assert ids_by_program(rows) == expected(SOME, events)


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.lists(windowed_queries(), min_size=6, max_size=6), st.integers(2, 5), st.integers(0, 10_000))
def test_drawn_queries_in_one_stream(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, queries: list[str], shards: int, seed: int
) -> None:
    programs, events = {str(n): text for n, text in enumerate(queries)}, stream(seed, 50)
    rng = random.Random(seed)
    late = sorted(events, key=lambda e: e.end + rng.randrange(3 * SECOND))
    folder = tmp_path_factory.mktemp("drawn")
    write_batches(folder / "in", [*cut(late, 3, seed), THE_END])
    rows = run(spark, folder, programs, shards=shards, lateness=3 * SECOND)
    assert ids_by_program(rows) == expected(programs, events)
