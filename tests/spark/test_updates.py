"""Updates of the background: every shard of every level takes them at their time; the ids are the embedded engine's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from etalis_rules.terms import RDF_TYPE
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from etalis_py import Engine, Event, compile, event, run
from etalis_py.knowledge import load
from etalis_py.spark import EVENTS, SparkError, events_from_events, matches, run_on_spark
from etalis_py.spark.input.schema import UPDATE
from etalis_py.spark.input.update_rows import UPDATES, write_updates
from etalis_py.spark.output.answers import single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.options import JobSettings, RunOptions
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.shard_classes import shard_kind
from etalis_py.spark.plan.windows import WindowOptions
from etalis_py.spark.shard.shard import Plain, Shard
from etalis_py.spark.state.checkpoint_tools import move
from etalis_py.streams import StreamError
from etalis_py.streams.updates import TimedUpdate
from tests.draws import examples
from tests.spark.by_hand import routed
from tests.spark.programs import SECOND, ids_by_program, stream, write_batches
from tests.spark.test_streaming import THE_END

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

NEAR = "<urn:near>"
PROGRAMS = {
    "joined": "SELECT * { ?x <urn:p> ?y . ?x <urn:near> ?w }",
    "in sequence": "SELECT ?x ?w { ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ { ?x <urn:q> ?z }",
    "absent": "SELECT ?x ?y { ?x <urn:p> ?y FILTER NOT EXISTS { GRAPH <urn:g> { ?x <urn:near> ?w } } }",
    "optional": "SELECT * { ?x <urn:p> ?y OPTIONAL { ?x <urn:near> ?w } } WITHIN PT1S",
    "two levels": "CONSTRUCT { ?z <urn:d> ?x } { ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y . ?x <urn:near> ?w }",
    "deadline": "SELECT * { { ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ NOT { ?x <urn:q> ?z } WITHIN PT2S }",
    "in all": "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y . ?x <urn:near> ?w }",
    "typed": f"SELECT ?x {{ ?x {RDF_TYPE} <urn:Kind> . ?x <urn:near> ?w }}",
    "timeless": "SELECT ?x ?w { ?x <urn:near> ?w }",
    "window": "SELECT ?x ?w FROM NAMED WINDOW :v ON :s [RANGE PT6S SLIDE PT3S] "
    "WHERE { WINDOW :v { ?x <urn:p> ?y } ?x <urn:near> ?w }",
}
Triples = tuple[tuple[str, str, str], ...]
START: Triples = (("<urn:x1>", NEAR, "<urn:a>"),)


def update(time: int, add: str = "", remove: str = "", graph: str = "") -> TimedUpdate:
    """Texts of ``subject object`` pairs that are near."""

    def triples(pairs: str) -> tuple[tuple[str, str, str], ...]:
        words = pairs.split()
        return tuple((f"<urn:{s}>", NEAR, f"<urn:{o}>") for s, o in zip(words[::2], words[1::2], strict=True))

    return TimedUpdate(time * SECOND, triples(add), triples(remove), graph, "u.jsonl", 1)


UPDATES_HERE = [
    update(0, "x4 a"),
    update(5, "x2 b x3 b"),
    update(5, remove="x3 b"),
    update(9, "x0 a", "x1 a"),
    update(9, "x0 a", graph="<urn:g>"),
    update(12, "x3 c", "x2 b"),
    update(20, "x1 c", graph="<urn:g>"),
    update(28, "x2 a x3 a"),
]


def local(text: str, events: Iterable[Event], updates: Sequence[TimedUpdate], background: Triples = START) -> list[str]:
    """The ids of the embedded engine, driven as the command line drives it."""
    engine = Engine(compile(text + "\n"), background=load([list(background)], cache=False), changes=True)
    found, pending = [], list(updates)
    for one in sorted(events, key=lambda e: e.end):
        while pending and pending[0].time < one.end:
            found += apply(engine, pending.pop(0))
        found += engine.push(one)
    for later in pending:
        found += apply(engine, later)
    return sorted(m.id for m in [*found, *engine.close()])


def apply(engine: Engine, change: TimedUpdate) -> Any:
    found = engine.advance(change.time)
    engine.update(change.graph, change.add, change.remove)
    return found


def row(change: TimedUpdate, number: int) -> Plain:
    """An update as a shard gets it."""
    texts = [" ".join(f"{s} {p} {o} ." for s, p, o in triples) for triples in (change.add, change.remove)]
    return (number, change.time + 1, ((change.graph, UPDATE, json.dumps(texts)),), "", "")


def shards_of(text: str, shards: int, background: Triples) -> Iterator[tuple[RoutedPart, int, Any]]:
    """Every shard of a program, level by level, and a function that makes it."""
    known = load([list(background)], cache=False)
    specs, parts = plan(text, shards, known, "rdfs", None, WindowOptions(updates=True))
    for part in sorted(parts, key=lambda p: p.part.level):
        spec = specs[part.part.program]

        def make(number: int, spec: Any = spec, part: RoutedPart = part) -> Shard:
            return shard_kind(spec, part.part)(spec, part.part, number, journal=True)

        for number in range(part.part.shards):
            yield part, number, make


def in_steps(
    text: str,
    events: Sequence[Event],
    updates: Sequence[TimedUpdate],
    *,
    cuts: Sequence[int],
    shards: int,
    stored: bool,
    background: Triples = START,
) -> list[str]:
    """The ids, every shard alone: it is cut at these times, and rebuilt from its state at each."""
    rows: list[Any] = []
    derived: list[Event] = []
    for part, number, make in shards_of(text, shards, background):
        shard = make(number)
        journals: list[bytes] = []
        mine = routed([*events, *derived], part, number)
        shard.wait([row(change, n) for n, change in enumerate(updates)])
        before = -1
        for cut in [*(cut * SECOND for cut in cuts), 100 * SECOND]:
            shard.wait([e for e in mine if before <= e.end < cut])
            before = cut
            made = single(shard.close_before(cut))
            again = make(number)
            again.waiting = shard.waiting
            if stored:
                again.engine.restore(shard.engine.snapshot(), fitted=bool(cut // SECOND % 2))
            else:
                journals.append(shard.engine.take_journal())
                for journal in journals:
                    again.engine.apply_journal(journal)
            shard = again
            rows += [r for r in made if r[0] != "event"]
            derived += [Event(r[7], r[8], r[5], r[9] or "") for r in made if r[0] == "event"]
        made = single(shard.finish())
        rows += [r for r in made if r[0] != "event"]
        derived += [Event(r[7], r[8], r[5], r[9] or "") for r in made if r[0] == "event"]
    assert all(r[0] == "match" for r in rows), rows
    return sorted(r[3] for r in rows)


KIND = [Event(t * SECOND, t * SECOND, ((f"<urn:x{n}>", RDF_TYPE, "<urn:Kind>"),)) for t, n in ((3, 1), (8, 2), (21, 3))]


def some_events(seed: int) -> list[Event]:
    return sorted([*stream(seed), *KIND], key=lambda e: e.end)


pairs = st.sampled_from(("x0 a", "x1 a", "x1 b", "x2 b", "x3 a"))
drawn = st.lists(
    st.builds(update, st.integers(0, 31), pairs | st.just(""), pairs | st.just(""), st.sampled_from(("", "<urn:g>"))),
    max_size=6,
).map(lambda some: sorted(some, key=lambda u: u.time))


@settings(max_examples=examples(1 / 2))
@given(
    st.sampled_from(sorted(PROGRAMS)),
    st.integers(0, 99),
    drawn,
    st.lists(st.integers(1, 32), max_size=3).map(sorted),
    st.sampled_from((1, 3)),
    st.booleans(),
    st.sampled_from((START, ())),
)
def test_shards_in_steps_answer_what_one_engine_answers(
    name: str, seed: int, updates: list[TimedUpdate], cuts: list[int], shards: int, stored: bool, start: Triples
) -> None:
    """Also where a pattern becomes one that the background may answer only while the stream runs."""
    text, events = PROGRAMS[name], some_events(seed)
    found = in_steps(text, events, updates, cuts=cuts, shards=shards, stored=stored, background=start)
    assert found == local(text, events, updates, start)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fixed_updates_matter(name: str) -> None:
    """What these tests compare differs from what the first version of the background answers."""
    text, events = PROGRAMS[name], some_events(4)
    assert in_steps(text, events, UPDATES_HERE, cuts=[7, 13], shards=3, stored=True) == local(
        text, events, UPDATES_HERE
    )
    assert local(text, events, UPDATES_HERE) != local(text, events, [])


# --- on Spark --------------------------------------------------------------------------------------------------------


def frame(spark: SparkSession, folder: Path, updates: Sequence[TimedUpdate]) -> DataFrame:
    write_updates(folder / "updates.parquet", updates)
    return spark.read.schema(UPDATES).parquet(str(folder / "updates.parquet"))


def expected(programs: dict[str, str], events: Sequence[Event], updates: Sequence[TimedUpdate]) -> dict[str, list[str]]:
    found = {name: local(text, events, updates) for name, text in programs.items()}
    return {name: ids for name, ids in found.items() if ids}


def test_a_batch_with_a_table_of_updates(spark: SparkSession, tmp_path: Path) -> None:
    events = some_events(7)
    updates = frame(spark, tmp_path, UPDATES_HERE)
    for shards in (1, 3):
        found = matches(PROGRAMS, events_from_events(spark, events), background=START, updates=updates, shards=shards)
        assert ids_by_program(found.collect()) == expected(PROGRAMS, events, UPDATES_HERE)


def test_names_of_columns_are_those_that_spark_takes_for_the_same(spark: SparkSession) -> None:
    ticks = events_from_events(spark, [event(f":acme :price {n}", n) for n in (1, 3, 5)])
    rows = [(2 * SECOND, ":acme a :Firm .", None), (4 * SECOND, None, ":acme a :Firm .")]
    updates = spark.createDataFrame(rows, "end long, Add string, remove string")
    found = matches("SELECT ?x WHERE { ?c :price ?x . ?c a :Firm }", ticks, updates=updates).collect()
    assert [row["end"] for row in found if row["kind"] == "match"] == [3 * SECOND]
    queries = spark.createDataFrame(
        [("one", "SELECT ?x { ?c :price ?x }", 2 * SECOND)], "name string, Text string, End long"
    )
    found = matches({}, ticks, queries=queries).collect()
    assert sorted(row["end"] for row in found if row["kind"] == "match") == [3 * SECOND, 5 * SECOND]


def test_a_stream_with_a_stream_of_updates_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Uneven batches, updates that come in time, a restart after each."""
    events, rng = some_events(11), random.Random(3)
    times = sorted(rng.sample(range(2, 29), 3))
    cuts = [0, *(t * SECOND for t in times), 100 * SECOND]
    rows: list[Row] = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        some = [e for e in events if first <= e.end < last]
        write_batches(tmp_path / "in", [some, *([THE_END] if last == cuts[-1] else [])], first=2 * number)
        (tmp_path / "updates").mkdir(exist_ok=True)
        coming = [u for u in UPDATES_HERE if first <= u.time < last]
        write_updates(tmp_path / "updates" / f"{number}.parquet", coming, first=number << 40)
        rows = run_with_updates(spark, tmp_path, PROGRAMS)
    assert ids_by_program(rows) == expected(PROGRAMS, events, UPDATES_HERE)


def run_with_updates(spark: SparkSession, folder: Path, programs: dict[str, str], **options: Any) -> list[Row]:
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    updates = spark.readStream.schema(UPDATES).parquet(str(folder / "updates"))
    found = matches(programs, events, **{"shards": 3, "background": START, "updates": updates, **options})
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.option("path", str(folder / "out")).trigger(availableNow=True).start().awaitTermination()
    return spark.read.schema(found.schema).parquet(str(folder / "out")).collect()


def test_a_run_goes_on_and_moves_to_other_shards_with_its_updates(spark: SparkSession, tmp_path: Path) -> None:
    program, events = PROGRAMS["in sequence"], some_events(19)
    middle = next(n for n, e in enumerate(events) if e.end > 10 * SECOND)
    first = [u for u in UPDATES_HERE if u.time <= 10 * SECOND]
    two, three = tmp_path / "two", tmp_path / "three"

    def call(some: Sequence[Event], updates: Sequence[TimedUpdate] | None, folder: Path) -> list[str]:
        options: RunOptions = {"background": START, "updates": updates, "checkpoint": folder}
        return [m.id for m in run_on_spark(program, some, spark=spark, **options).matches]

    found = call(events[:middle], first, two)
    with pytest.raises(SparkError, match="was made with updates of the background: give them again"):
        call(events[middle:], None, two)
    moved = move(spark, two, three, 3, program, JobSettings(background=START))
    assert (moved.job.shards, moved.matches) == (3, len(found))
    found += call(events[middle:], UPDATES_HERE[len(first) :], three)
    last = events[-1].end
    in_time = [u for u in UPDATES_HERE if u.time < last]
    assert sorted(found) == local(program, [e for e in events if e.end < last], in_time)
    call(events[:5], None, tmp_path / "without")
    with pytest.raises(SparkError, match="was made without updates of the background: go on without them"):
        call(events[5:], [], tmp_path / "without")


def test_a_run_takes_updates_as_run_does(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "updates.jsonl"
    lines = [{"time": 2, "add": ":acme a :Firm ."}, {"time": 4, "remove": ":acme a :Firm ."}]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    text, ticks = "SELECT ?x { ?c :price ?x . ?c a :Firm }", [event(f":acme :price {n}", n) for n in (1, 3, 5)]
    wanted = [m.id for m in run(text, ticks, updates=lines)]
    for updates in (lines, str(file), file):
        assert [m.id for m in run_on_spark(text, ticks, spark=spark, updates=updates).matches] == wanted
    assert len(wanted) == 1
    with pytest.raises(StreamError, match="there is no such file"):
        run_on_spark(text, ticks, spark=spark, updates="nowhere.jsonl")


def test_an_overdue_update_holds_from_the_watermark_on_everywhere(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"<urn:x{n}>" for n in range(5)]

    def at(time: int, some: Iterable[str] = names) -> list[Event]:
        return [Event(time * SECOND, time * SECOND, ((name, "<urn:p>", "<urn:y>"),)) for name in some]

    (tmp_path / "updates").mkdir()
    everything = " ".join(f"x{n} a" for n in range(5))
    write_batches(tmp_path / "in", [at(1), at(10), at(12, names[:1])])
    write_updates(tmp_path / "updates" / "0.parquet", [])
    program = {"": "SELECT ?x { ?x <urn:p> ?y . ?x <urn:near> ?w }"}
    run_with_updates(spark, tmp_path, program, background=())
    write_updates(tmp_path / "updates" / "1.parquet", [update(0, everything)], first=1 << 40)
    write_batches(tmp_path / "in", [at(12), THE_END], first=3)
    rows = run_with_updates(spark, tmp_path, program, background=(), metrics=True)
    found = sorted((r["bindings"]["x"], r["end"]) for r in rows if r["kind"] == "match")
    assert found == sorted([(names[0], 12 * SECOND), *((name, 12 * SECOND) for name in names)])[1:]
    assert any('"overdue_updates":1' in r["detail"] for r in rows if r["kind"] == "metric")


def test_an_update_that_cannot_be_made_is_a_dead_letter(spark: SparkSession) -> None:
    rows = [
        (2 * SECOND, "x", None, None),
        (3 * SECOND, None, "_:b <urn:near> 1 .", "<urn:g>"),
        (4 * SECOND, "<urn:x0> <urn:near> 1 .", "", ""),
    ]
    updates = spark.createDataFrame(rows, "end long, add string, remove string, graph string")
    events = [event(f"<urn:x0> <urn:p> {n}", n) for n in range(1, 8)]
    found = matches(PROGRAMS["joined"], events_from_events(spark, events), updates=updates, shards=3).collect()
    dead = {r["end"] // SECOND: r["detail"] for r in found if r["kind"] == "dead_letter"}
    assert set(dead) == {2, 3}
    assert dead[2].startswith("this update of the background is left out: this is not Turtle")
    assert dead[3].endswith("a blank node cannot be named again by a later update\n  use an IRI")
    assert sorted(r["end"] for r in found if r["kind"] == "match") == [n * SECOND for n in (5, 6, 7)]


def test_queries_that_come_see_the_updates(spark: SparkSession, tmp_path: Path) -> None:
    queries = spark.createDataFrame([("one", PROGRAMS["joined"], None)], "name string, text string, end long")
    events, updates = some_events(5), frame(spark, tmp_path, UPDATES_HERE)
    found = matches({}, events_from_events(spark, events), queries=queries, updates=updates, background=START, shards=2)
    ids = sorted(r["id"] for r in found.collect())
    named = local(f"REGISTER QUERY one AS {PROGRAMS['joined']}", events, UPDATES_HERE)
    assert ids == named


# --- what is refused -------------------------------------------------------------------------------------------------

SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SUB_PROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
RANGE = "<http://www.w3.org/2000/01/rdf-schema#range>"


def schema(time: int, *triples: tuple[str, str, str]) -> TimedUpdate:
    return TimedUpdate(time * SECOND, triples, (), "", "u.jsonl", 1)


def test_a_class_may_come_under_another_one() -> None:
    """The types of all things are sent, so the shards have what the new schema makes of them."""
    events = [Event(t * SECOND, t * SECOND, ((f"<urn:x{t}>", RDF_TYPE, "<urn:New>"),)) for t in range(1, 9)]
    updates = [schema(4, ("<urn:New>", SUB_CLASS, "<urn:Kind>"))]
    text = f"SELECT ?x {{ ?x {RDF_TYPE} <urn:Kind> }}"
    found = in_steps(text, events, updates, cuts=[3, 6], shards=3, stored=True)
    assert found == local(text, events, updates)
    assert len(found) == 4


@pytest.mark.parametrize(
    "update_",
    [schema(4, ("<urn:new>", SUB_PROPERTY, "<urn:p>")), schema(4, ("<urn:new>", RANGE, "<urn:Kind>"))],
    ids=["sub-property", "range"],
)
def test_a_schema_by_which_other_events_are_wanted_is_refused(update_: TimedUpdate) -> None:
    text = f"SELECT ?x {{ ?x <urn:p> ?y . ?x {RDF_TYPE} <urn:Kind> }}"
    with pytest.raises(SparkError, match="changes the schema so that q1 would have to be sent other events"):
        in_steps(text, some_events(2), [update_], cuts=[9], shards=3, stored=True)
    other = schema(4, ("<urn:new>", SUB_PROPERTY, "<urn:other>"))
    assert in_steps(text, some_events(2), [other], cuts=[9], shards=3, stored=True) == local(
        text, some_events(2), [other]
    )


def test_what_is_no_table_of_updates_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = events_from_events(spark, some_events(1)[:2])
    text = PROGRAMS["joined"]
    with pytest.raises(SparkError, match="wanted is: end, add string"):
        matches(text, events, updates=spark.createDataFrame([("a", 1)], "add string, graph long"))
    updates = frame(spark, tmp_path, UPDATES_HERE)
    with pytest.raises(SparkError, match="must both be streams, or neither"):
        matches(text, spark.readStream.schema(EVENTS).parquet(str(tmp_path)), updates=updates, shards=2)
    with pytest.raises(SparkError, match="leave out revise, or the updates"):
        matches(text, events, updates=updates, revise=1)


def test_a_checkpoint_keeps_the_background_that_was_updated() -> None:
    from etalis_py.spark.plan.checkpoint_match import differences, identity_of

    def job(updates: bool, background: Triples) -> Any:
        known = load([list(background)], cache=False)
        specs, parts = plan(PROGRAMS["joined"], 2, known, "rdfs", None, WindowOptions(updates=updates))
        return identity_of(specs, parts, 2, 2, {})

    same, without = job(True, START), job(False, START)
    assert differences(same, job(True, START)) == differences(without, same) == []
    assert differences(same, without) == [
        "updates had changed its background: give updates again, though there be none"
    ]
    [why] = differences(same, job(True, (*START, ("<urn:b>", NEAR, "<urn:c>"))))
    assert why.startswith("updates had changed its background, which is now another one")
