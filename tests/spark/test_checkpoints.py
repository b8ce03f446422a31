"""A checkpoint described, and moved to other numbers of shards in the middle of a stream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from etalis_py import Engine, Event, compile, event, run
from etalis_py.cli.commands import parser
from etalis_py.cli.spark import reading_of
from etalis_py.events import Retraction
from etalis_py.spark import SparkError, events_from_events, matches, run_on_spark, stream_runs
from etalis_py.spark.plan.options import JobSettings
from etalis_py.spark.state.checkpoint_tools import describe, move, same_matches
from etalis_py.spark.state.run_folder import (
    JOB,
    META,
    Continued,
    go_on,
    read_state,
    refuse_other_files,
    same_horizon,
    same_reading,
    write_state,
)
from etalis_py.spark.stream_runs import write_events
from tests.spark.programs import SHARDED, embedded, stream, write_batches

PROGRAM = SHARDED["seq"]


def test_a_stream_goes_from_two_to_five_to_three_shards(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(62)
    asked = JobSettings()
    two, five, three = (tmp_path / name for name in ("two", "five", "three"))
    found = run_on_spark(PROGRAM, events[:20], spark=spark, shards=2, checkpoint=two).matches
    made = move(spark, two, five, 5, PROGRAM, asked)
    assert (made.job.shards, made.events, made.matches, len(made.shards)) == (5, 20, len(found), 5)
    engine = Engine(compile(PROGRAM))
    engine.push_all(events[:20])
    engine.advance(events[19].end - 1)
    assert sum(s.goals or 0 for s in made.shards) == engine.counters.kept().goals > 0
    assert made.position == events[19].end
    found += run_on_spark(PROGRAM, events[20:40], spark=spark, shards=5, checkpoint=five).matches
    made = move(spark, five, three, 3, PROGRAM, asked)
    found += run_on_spark(PROGRAM, events[40:], spark=spark, shards=3, checkpoint=three).matches
    last = events[-1].end
    assert sorted(m.id for m in found) == embedded(PROGRAM, [e for e in events if e.end < last])
    lines = list(made.lines())
    assert lines[0].endswith(", 3 shards in 2 partitions")
    assert lines[1] == "  program: q1; policy unrestricted"
    assert lines[2] == f"  position: 2 calls, 40 events, over before {events[39].end // 1_000_000} s"
    assert re.fullmatch(r"  matches that stand: \d+; bytes in all: [\d,]+", lines[3])
    assert [line.split(":")[0] for line in lines[4:]] == [f"  level 1, part 0, shard {n}" for n in range(3)]
    with pytest.raises(SparkError, match=r"in 3 shards have other matches: 0 are missing and \d+ more; give"):
        same_matches(spark, two, three, 3)
    with pytest.raises(SparkError, match="five is there already: give a folder that is not"):
        move(spark, two, five, 3, PROGRAM, asked)


@pytest.mark.parametrize("name", ["a[1]{2}", r"a*\b", "a %20ä"])
def test_the_name_of_a_folder_is_no_pattern(spark: SparkSession, tmp_path: Path, name: str) -> None:
    events = stream(62)
    for other in ("a12", r"ac\b"):  # what the patterns would find
        write_batches(tmp_path / other / "events", [[event(":z <urn:p> :z ; <urn:q> :z .", 3)]])
    folder = tmp_path / name
    found = run_on_spark(PROGRAM, events[:30], spark=spark, shards=1, checkpoint=folder).matches
    found += run_on_spark(PROGRAM, events[30:], spark=spark, shards=1, checkpoint=folder).matches
    assert sorted(m.id for m in found) == embedded(PROGRAM, [e for e in events if e.end < events[-1].end])
    assert describe(spark, folder).matches == len(found)


def test_a_relative_folder_is_below_the_one_where_the_program_is_now(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    events = [event(f":x <urn:{name}> :y .", time) for time, name in enumerate("pqp")]
    assert len(run_on_spark(PROGRAM, events, spark=spark, shards=1, checkpoint="run").matches) == 1
    assert describe(spark, "run").events == 3
    assert (tmp_path / "run" / "state" / "commits").is_dir()


def test_what_is_no_checkpoint_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="is not a checkpoint of etalis run"):
        describe(spark, tmp_path)


def test_a_file_in_place_of_the_folder_of_a_run_is_told(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_text("")
    with pytest.raises(SparkError, match=r"^checkpoint='.*run' is a file, and a run keeps a folder: give a name that"):
        run_on_spark(PROGRAM, [], spark=spark, checkpoint=file)


def test_a_folder_with_other_files_is_no_place_for_a_run(tmp_path: Path) -> None:
    """Before its events are read, so without a session; what a killed first call left behind is no other file."""
    kept, events = tmp_path / "kept", [event(":x :a 1 .", 1)]
    list(run(ASKED, events, checkpoint=kept))
    name = min(path.name for path in kept.iterdir())
    with pytest.raises(SparkError, match=rf"kept has other files in it, as {re.escape(name)}: name an empty or a new"):
        run_on_spark(ASKED, events, checkpoint=kept)
    (tmp_path / "begun" / "events").mkdir(parents=True)
    (tmp_path / "begun" / "events.part").touch()
    refuse_other_files(tmp_path / "begun")
    refuse_other_files(tmp_path / "new")


@pytest.mark.parametrize("given", ["", 5])
def test_a_checkpoint_is_the_name_of_a_folder(given: Any) -> None:
    with pytest.raises(SparkError, match=rf"^checkpoint={given!r}: name a folder, or one to be made$"):
        run_on_spark(ASKED, [], checkpoint=given)


def test_a_session_and_an_address_are_two_sessions(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=r"^master='local' starts a session, and spark= is one already: give one"):
        run_on_spark(ASKED, [], spark=spark, master="local")
    with pytest.raises(SparkError, match=r"^master=5: give an address of Spark as a text, such as 'local\[2\]'$"):
        run_on_spark(ASKED, [], master=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["metrics", "ordered"])
def test_what_is_neither_true_nor_false_is_refused(spark: SparkSession, name: str) -> None:
    events, options = events_from_events(spark, [event(":x :a 1 .", 1)]), {name: "no"}
    with pytest.raises(SparkError, match=f"^{name}='no': it is True or False$"):
        matches(ASKED, events, **options)  # type: ignore[arg-type]


def test_the_command_line_says_how_rows_are_read(tmp_path: Path) -> None:
    """The folder of a run has it; one that was made before, or by events without rows, has none."""
    mapping = tmp_path / "m.toml"
    mapping.write_text('time = "{at}"')

    def reading(*options: str) -> dict[str, str]:
        return reading_of(parser().parse_args(["run", "q.rq", "-s", "a.csv", *options, "--engine", "spark"]))

    by_machine, by_mapping = reading("--time", "at", "--subject", "machine"), reading("-m", str(mapping))
    assert reading("--time-unit", "s") == {}
    assert by_machine == {"time": "at", "subject": "machine", "time_unit": "s"}
    write_state(tmp_path, Continued(2, reading=by_machine))
    state = read_state(tmp_path)
    assert state == Continued(2, reading=by_machine)
    for same in ({}, by_machine):
        same_reading(tmp_path, state, same)
    for other, reason in (
        (reading("--time", "at", "--subject", "site"), "with subject='machine', and are read with subject='site' now"),
        (by_mapping, "without a mapping, and are read with a mapping now; its rows were read with subject='machine'"),
    ):
        with pytest.raises(
            SparkError, match=re.escape(f"does not belong to these events: its rows were read {reason}")
        ):
            same_reading(tmp_path, state, other)
    (tmp_path / META).write_text('{"shards": 2, "told": 3}')
    old = read_state(tmp_path)
    assert old == Continued(2, 3)
    same_reading(tmp_path, old, by_machine)


def test_a_run_goes_on_with_the_horizon_of_before(tmp_path: Path) -> None:
    """Otherwise it says so before it takes the events; an older folder does not say how far it reached."""
    for before, now, told in (
        (20_000_000, "5 s", "made with revise=20 s, and is run with revise=5 s now"),
        (5_000_000, "20 s", "made with revise=5 s, and is run with revise=20 s now"),
        (5_000_000, 0, "made with revise=5 s, and is run without revise now"),
        (0, 1, "made without revise, and is run with revise=0.000001 s now"),
    ):
        write_state(tmp_path, Continued(2, revise=before))
        with pytest.raises(
            SparkError, match=re.escape(f"{tmp_path} does not belong to this run: it was {told}; go on")
        ):
            run_on_spark(PROGRAM, stream(1), checkpoint=tmp_path, revise=now)
    assert not (tmp_path / "events").exists()
    same_horizon(tmp_path, Continued(2), 7)
    same_horizon(tmp_path, Continued(2, revise=7), 7)


@pytest.mark.parametrize("lateness", [None, "2 s"])
@pytest.mark.parametrize("taken", [False, True])
def test_what_a_failed_call_has_taken_may_be_given_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lateness: str | None, taken: bool
) -> None:
    """As the documentation says to do; it is not late, and whatever is late stays so.

    ``taken``: the call failed with all of its work done, else before Spark had begun.
    """
    events = [event(f":x{n % 3} :temp {n} .", n) for n in range(30)]
    too_late = event(":x1 :temp 99 .", 1)
    calls = [events[:10], [*events[10:15], too_late, *events[15:20]], events[20:]]
    asked = "SELECT ?x ?v ?w { { ?x :temp ?v } NEXT { ?x :temp ?w } }"
    found, late = list[str](), list[Event]()

    def call(given: list[Event]) -> None:
        result = run_on_spark(asked, given, spark=spark, checkpoint=tmp_path, lateness=lateness)
        found.extend(m.id for m in result.matches)
        late.extend(result.late)

    def cut(*args: object, **options: object) -> object:
        if taken:
            go_on(*args, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    call(calls[0])
    with monkeypatch.context() as patch:
        patch.setattr(stream_runs, "go_on", cut)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                call(calls[1])
    call(calls[1])
    call(calls[2])
    over = event(":x :y 1 .", 29 - (2 if lateness else 0)).end
    wanted = [m.id for m in run(asked, events) if m.end_us is not None and m.end_us < over]
    assert sorted(found) == sorted(wanted)
    assert [e.end for e in late] == [too_late.end]
    state = read_state(tmp_path)
    assert state is not None
    assert state.confirmed == 5


@pytest.mark.parametrize("taken", [False, True])
def test_corrections_that_a_failed_call_has_taken_may_be_given_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """What it withdrew is not said to have never been, and what the time has passed since is not late."""
    events = [event(f":x :temp {n} .", n) for n in range(12)]
    back = Retraction(*events[3])
    calls = [events[:4], [back, *events[4:10]], events[10:]]
    asked = "SELECT ?v ?w { { ?x :temp ?v } NEXT { ?x :temp ?w } }"
    state, late = dict[str, bool](), list[Event]()

    def call(given: list[Event]) -> None:
        result = run_on_spark(asked, given, spark=spark, shards=1, checkpoint=tmp_path, revise="2 s")
        state.update((m.id, not m.retracted) for m in result.matches)
        late.extend(result.late)

    def cut(*args: object, **options: object) -> object:
        if taken:
            go_on(*args, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    call(calls[0])
    with monkeypatch.context() as patch:
        patch.setattr(stream_runs, "go_on", cut)
        with pytest.raises(KeyboardInterrupt):
            call(calls[1])
    call(calls[1])
    call(calls[2])
    last = events[-1].end
    wanted = [m.id for m in run(asked, [*events[:3], *events[4:]]) if m.end_us is not None and m.end_us < last]
    assert sorted(name for name, holds in state.items() if holds) == sorted(wanted)
    assert late == []


def test_a_call_that_states_again_what_a_failed_one_withdrew_is_new(tmp_path: Path) -> None:
    stated, other = event(":x :a 1 .", 1), event(":x :a 2 .", 2)
    back = Retraction(*stated)
    file = tmp_path / "000000.parquet"
    write_events(file, [stated, back])
    for given, new in (
        ([stated, back, other], [other]),
        ([other, stated, back], [other]),
        ([stated, other], [stated, other]),
        ([back, stated, other], [back, stated, other]),
        ([], []),
    ):
        assert list(stream_runs.without_all_taken(given, [file])) == new
    assert list(stream_runs.without_all_taken([stated], [])) == [stated]


ASKED = "SELECT ?x ?w { { ?x :a ?v } SEQ { ?x :b ?w } }"
OTHER = ASKED.replace(":b", ":c")


def test_another_program_is_refused_before_its_events_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    """Also if no shard gets anything to do, so that none would notice."""
    run_on_spark(ASKED, [event(":x :a 1 .", 1)], spark=spark, checkpoint=tmp_path)
    with pytest.raises(SparkError, match=r"^the checkpoint .* does not belong to this program: q1 has become another"):
        run_on_spark(OTHER, [event(":x :nothing 2 .", 2)], spark=spark, checkpoint=tmp_path)
    assert len(list((tmp_path / "events").glob("*.parquet"))) == 1
    result = run_on_spark(ASKED, [event(":x :b 2 .", 2), event(":x :b 3 .", 3)], spark=spark, checkpoint=tmp_path)
    assert [m.end_us for m in result.matches] == [event(":x :b 2 .", 2).end]


def test_what_a_shard_refuses_is_told_without_the_account_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """As of a folder that an older version has made, which does not say what its last call ran."""
    run_on_spark(ASKED, [event(":x :a 1 .", 1)], spark=spark, checkpoint=tmp_path)
    (tmp_path / JOB).unlink()
    with pytest.raises(SparkError, match=r"^the checkpoint does not belong to this program: q1 has .*") as caught:
        run_on_spark(OTHER, [event(":x :c 2 .", 2)], spark=spark, checkpoint=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_damaged_account_of_the_last_call_is_told(spark: SparkSession, tmp_path: Path) -> None:
    run_on_spark(ASKED, [event(":x :a 1 .", 1)], spark=spark, checkpoint=tmp_path)
    (tmp_path / JOB).write_bytes(b"\xc1")
    with pytest.raises(SparkError, match=r"job.msgpack is damaged .*: delete it"):
        run_on_spark(ASKED, [event(":x :b 2 .", 2)], spark=spark, checkpoint=tmp_path)
