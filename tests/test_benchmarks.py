"""The measured workloads, small: the engine finds what the hand-written loop finds, which is what the query means."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD

from benchmarks import check, constant_memory, constructs, cores, record_files, sequences, single_events
from benchmarks import engine as command
from benchmarks.columnar import measure_columns
from benchmarks.construct_queries import CONSTRUCTS
from benchmarks.constructs import measure as measure_construct
from benchmarks.harness import Result, Timing, answers_of, differences, measure
from benchmarks.report import document, print_table, row
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.__main__ import measure as measure_scenario
from benchmarks.scenarios.definition import Scenario
from benchmarks.scenarios.in_sql import QUERIES
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.common import UNIT, price_of, quotes
from benchmarks.workloads.definition import Answer, Bar, Workload
from etalis_py import Engine, compile
from etalis_py.events import Event
from etalis_py.values.functions import AGGREGATES, CASTS, FUNCTIONS

from .oracle import Background, Derived, answers

SMALL = {
    "W1": 1_000,
    "W1r": 1_000,
    "W2": 3_000,
    "W2u": 3_000,
    "W3": 60,
    "W4": 4_000,
    "W4n": 4_000,
    "W5": 500,
    "W5t": 1_000,
    "W6": 1_000,
    "W7": 20_000,
    "W8": 1_000,
    "W9": 10_000,
    "W10": 1_000,
    "W10n": 3_000,
    "W11": 300,
    "W12": 3_000,
    "W13": 3_000,
    "W14": 1_000,
}
every = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)


def of(name: str) -> Workload:
    return next(w for w in WORKLOADS if w.name == name)


def found(workload: Workload, events: list[Event]) -> list[Answer]:
    engine = Engine(compile(workload.query), policy=workload.policy, background=workload.knowledge())
    return answers_of(workload, engine.push_all(events) + engine.close())


def looped(workload: Workload, events: list[Event]) -> list[Answer]:
    feed = workload.loop()
    return feed(events) + feed(())


def meant(workload: Workload, events: list[Event]) -> list[Answer]:
    """By the definitions."""
    rows: list[Answer] = []
    nodes = {o for event in events for _, _, o in event.triples}
    named = {name: {t for t in triples() if t[0] in nodes} for name, triples in workload.background.items()}
    known = Background(named=named)
    for answer in answers(parse(workload.query), events, known, policy=workload.policy).values():
        for a in answer:
            content = tuple(a.triples) if isinstance(a, Derived) else tuple(t for _, t in sorted(a.bindings.items()))
            rows.append((a.start, a.end, content))
    return rows


@every
def test_the_engine_finds_what_the_loop_finds(workload: Workload) -> None:
    events = workload.events(SMALL[workload.name])
    expected = looped(workload, events)
    assert len(expected) > 10
    assert differences(found(workload, events), expected) == ()


@every
def test_the_loop_finds_what_the_query_means(workload: Workload) -> None:
    """Few events, crowded into few ids or companies so that there is something to find.

    Where there is a window of time, they are so far apart that it holds only some of them.
    """
    size, apart = {"W2": (160, 60), "W2u": (48, 90), "W3": (8, 1), "W5": (130, 1), "W5t": (40, 60)}.get(
        workload.name, (60, 1)
    )
    events = [_crowded(e) for e in workload.events(size)]
    events = [e._replace(start=e.start * apart, end=e.end * apart) for e in events]
    expected = meant(workload, events)
    assert expected
    assert differences(looped(workload, events), expected) == ()


def _crowded(event: Event) -> Event:
    """One company; every other event of the pairs a b; two cards."""
    (s, p, o), *others = event.triples
    if others:
        s = f"<urn:x:card{int(s[11:-1]) % 2}>"
        return event._replace(triples=tuple((s, p, o) for _, p, o in event.triples))
    if "company" in s:
        s = "<urn:x:company>"
    if "user" in s:
        s = f"<urn:x:user{int(s[11:-1]) % 2}>"
    if s.startswith("<urn:x:id"):
        number = event.end // UNIT
        s, p = f"<urn:x:id{number // 2 % 3}>", ("<urn:p:a>", "<urn:p:b>")[number % 2]
    return event._replace(triples=((s, p, o),))


@every
def test_the_loop_may_be_fed_in_parts(workload: Workload) -> None:
    events = workload.events(SMALL[workload.name])
    feed = workload.loop()
    middle = len(events) // 2
    assert feed(events[:middle]) + feed(events[middle:]) == workload.loop()(events)


@every
def test_the_data_is_the_same_each_time_and_one_event_a_unit(workload: Workload) -> None:
    events = workload.events(200)
    assert events == workload.events(200) == workload.events(300)[:200]
    assert [e.start for e in events] == [e.end for e in events] == [n * UNIT for n in range(200)]


def test_quotes_move_by_at_most_fifteen_per_cent_within_their_bounds() -> None:
    last = {}
    for company, term in quotes(5_000, 50):
        price = price_of(term)
        before = last.get(company, 100)
        assert 20 <= price <= 500
        assert abs(float(price) / float(before) - 1) < 0.1503, "rounding adds a little"
        last[company] = price
    assert len(last) == 50


@pytest.mark.parametrize("name", ["W10", "W10n", "W11"])
def test_tables_of_records_have_the_answers_of_the_loop(name: str) -> None:
    measured = measure_columns(of(name), SMALL[name], repeat=1)
    assert measured.matches > 10
    assert measured.differences == ()


def test_records_from_file_to_file_have_the_answers_of_the_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_files, "FORMATS", ("csv",))
    assert record_files.main(["--events", "300", "--repeat", "1"]) == 0
    measured = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert measured == [["csv", "W1"], ["csv", "W10"], ["csv", "W10n"]]


def test_w1r_has_twenty_five_matches_an_event() -> None:
    workload = of("W1r")
    assert len(workload.loop()(workload.events(workload.size))) == pytest.approx(500_000, rel=0.03)


def test_w3_derives_every_path() -> None:
    assert len(found(of("W3"), of("W3").events(100))) == 100 * 101 // 2


def test_w6_leaves_its_idle_goals_waiting() -> None:
    workload = of("W6")
    assert workload.idle is not None
    engine = Engine(compile(workload.query), policy=workload.policy)
    engine.push_all(workload.idle(500))
    matches = answers_of(workload, engine.push_all(workload.events(1_000)))
    assert engine.count().goals >= 500
    assert matches == workload.loop()(workload.events(1_000))[: len(matches)]


def test_differences_count_multiplicity() -> None:
    a, b = (1, 2, ("x",)), (1, 2, ("y",))
    assert differences([a, b], [b, a]) == ()
    assert differences([a, a], [a])[0] == "2 matches, expected 1: 1 too many, 0 missing"
    assert differences([a], [a, b])[1:] == (f"missing: {b}",)


@pytest.mark.parametrize(
    ("bar", "good", "bad"),
    [(Bar("events/s", 100), 100, 99), (Bar("seconds", 2.0), 2.0, 2.1), (Bar("times", 1.3), 1.3, 1.4)],
)
def test_a_bar_is_met_at_its_value(bar: Bar, good: float, bad: float) -> None:
    assert bar.met(good)
    assert not bar.met(bad)


def test_the_figure_is_that_of_the_median_run() -> None:
    runs, few = Timing((0.5, 9.0, 1.0), (1, 9, 1)), Timing((0.5, 0.4, 0.6), (1, 1, 1))
    loop = Timing((0.25, 0.25, 0.25), (1, 1, 1))
    rate = Result(of("W1"), 200_000, 0, runs, loop, ())
    assert (rate.figure, rate.ratio, rate.met) == (200_000, 4.0, False)
    assert Result(of("W3"), 1_000, 0, runs, loop, ()).met is True
    assert Result(of("W3"), 999, 0, runs, loop, ()).met is None, "the bar is meant for 1,000 edges"
    assert Result(of("W6"), 200_000, 0, runs, loop, (), few).figure == 2.0


def test_a_wrong_answer_is_said_in_the_table() -> None:
    runs = Timing((1.0,), (1.0,))
    assert "WRONG" in row(Result(of("W1"), 200_000, 0, runs, runs, ("0 matches, expected 1",)))


def test_measuring_prepares_counts_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    result = measure(of("W1"), 400, repeat=2)
    assert (result.events, result.matches, result.differences, result.met) == (400, 200, (), None)
    assert len(result.engine.processor) == len(result.loop.processor) == 2
    print_table([result])
    assert "a(id) SEQ b(id)" in capsys.readouterr().out
    assert document([result], 0, 2)["results"][0]["matches"] == 200


def test_the_command_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "keep_to_one_core", lambda: 0)  # the other tests keep their cores
    file = tmp_path / "new" / "bench.json"
    assert command.main(["--only", "w3,W5t", "--events", "30", "--repeat", "1", "--json", str(file)]) == 0
    assert [r["workload"] for r in json.loads(file.read_text())["results"]] == ["W3", "W5t"]
    assert "other size" in capsys.readouterr().out


def test_the_command_fails_when_an_answer_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "keep_to_one_core", lambda: 0)
    monkeypatch.setattr("benchmarks.harness.differences", lambda found, expected: ("one is missing",))
    assert command.main(["--only", "W1", "--events", "10", "--repeat", "1", "--json", str(tmp_path / "b.json")]) == 1


def test_what_has_become_slower_is_named_after_a_second_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "keep_to_one_core", lambda: 0)
    (tmp_path / "baseline.json").write_text('{"W1 rows": 2.0, "W3 rows": 2.0, "W1 columns": 1.0}')
    found = {"W1": [{"W1 rows": 2.6, "W1 columns": 1.2}] * 2, "W3": [{"W3 rows": 9.0}, {"W3 rows": 2.1}]}
    measured = {name: iter(ratios) for name, ratios in found.items()}
    assert check.main(["--only", "W1,W3"], tmp_path, lambda workload: next(measured[workload.name])) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if "slow" in line] == [
        "W1 rows is 1.30 times as slow as before: 2.6 times the loop's time"
    ]
    assert check.main(["--only", "W1"], tmp_path, lambda workload: {"W1 rows": 2.4}) == 0


def test_ratios_are_kept_with_their_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "keep_to_one_core", lambda: 0)  # the other tests keep their cores
    for ratio in (2.0, 3.0):
        assert check.main(["--only", "W1", "--record"], tmp_path, lambda workload, r=ratio: {"W1 rows": r}) == 0
    assert check.main(["--only", "W1"], tmp_path, lambda workload: {"W1 rows": 3.5}) == 0
    history = [json.loads(line)["ratios"] for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert history == [{"W1 rows": 2.0}, {"W1 rows": 3.0}]


def test_ratios_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "REPEAT", 1)
    ratios = check.ratios_of(replace(of("W1"), size=400))
    assert set(ratios) == {"W1 rows", "W1 columns"}
    assert all(ratio > 0 for ratio in ratios.values())


def test_ratios_are_kept_of_workloads_that_there_are() -> None:
    kept = check.read(check.HERE / "baseline.json")
    assert {"W1", "W9"} <= {name.split()[0] for name in kept} <= {workload.name for workload in check.quick()}


def test_an_unknown_workload_is_named() -> None:
    with pytest.raises(SystemExit, match=r"no workload w99; there are W1, W1r, W2"):
        command.main(["--only", "W99"])


def test_one_event_at_a_time_has_the_answers_of_the_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_events, "keep_to_one_core", lambda: 0)
    assert single_events.main(["--only", "W1,W4", "--events", "150"]) == 0
    assert capsys.readouterr().out.count(" for 99 of 100") == 5


def test_a_benchmark_of_single_events_fails_when_an_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_events, "keep_to_one_core", lambda: 0)
    monkeypatch.setattr(single_events, "differences", lambda found, expected: ("one is missing",))
    assert single_events.main(["--only", "W1", "--events", "10"]) == 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the highest use of memory is read from Linux")
def test_the_memory_of_goals_that_are_found() -> None:
    command = (sys.executable, "-m", "benchmarks.goal_memory", "--goals", "40000", "--form", "columns")
    assert " bytes a goal at most" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


# --- constructs ------------------------------------------------------------------------------------------------


def test_every_function_cast_and_aggregate_is_a_measured_construct() -> None:
    text = " ".join(construct.query for construct in CONSTRUCTS).upper()
    wanted = {*FUNCTIONS, *AGGREGATES, *(iri.replace(XSD, "xsd:").upper() for iri in CASTS)}
    assert {name for name in wanted if f"{name}(" not in text and f"{name} (" not in text} == set()


@pytest.mark.parametrize("name", ["?x + 1 · mixed", "AVG(?x) by key, PT60S · decimal", "SEQ, recent", "DSTREAM"])
def test_a_construct_has_the_same_answers_in_rows_and_in_columns(name: str) -> None:
    construct = next(one for one in CONSTRUCTS if one.name.startswith(name))
    assert measure_construct(construct, 400, 1).matches


def test_the_benchmark_of_constructs_fails_where_events_cost_more_in_longer_streams(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(constructs, "timed", lambda one, program, executor, batches: float(len(batches)))
    constructs.main(["--only", "forms SELECT *", "--growth", "--events", "50"])
    assert capsys.readouterr().out.split()[-2:] == ["0.25", "0.25"]  # one batch in both cases
    quadratic = lambda one, program, executor, batches: float(sum(map(len, batches)) ** 2)  # noqa: E731
    monkeypatch.setattr(constructs, "timed", quadratic)
    with pytest.raises(SystemExit, match="1 constructs cost 2 times"):
        constructs.main(["--only", "forms SELECT *", "--growth", "--events", "50"])


def test_the_benchmark_of_constructs_refuses_other_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    construct = next(one for one in CONSTRUCTS if one.name == "SEQ")
    answers = iter([[("id", 1, 2)], [("id", 1, 3)]])
    monkeypatch.setattr(constructs, "ids", lambda *args: next(answers))
    with pytest.raises(SystemExit, match="SEQ: 1 answers, expected 1"):
        measure_construct(construct, 100, 1)
    monkeypatch.setattr(constructs, "ids", lambda *args: [])
    with pytest.raises(SystemExit, match="0 answers"):
        measure_construct(construct, 100, 1)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_has_the_answers_of_its_plain_program(scenario: Scenario) -> None:
    measured = measure_scenario(scenario, 8_000, 1)
    assert measured.wrong == ()
    assert measured.matches


def test_the_rounds_of_a_long_run_follow_one_another() -> None:
    rounds = constant_memory.later([Event(t * UNIT, t * UNIT, (("<urn:a>", "<urn:p>", "<urn:b>"),)) for t in (0, 3)], 3)
    assert [e.end // UNIT for some in rounds for e in some] == [0, 3, 4, 7, 8, 11]


@pytest.mark.parametrize(("most", "code"), [((1.05, 1 << 23), 0), ((0.0, -(1 << 40)), 1)], ids=["flat", "grows"])
def test_a_long_run_fails_where_memory_grows(
    most: tuple[float, int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constant_memory, "MOST", most)
    assert constant_memory.main(["--only", "W12", "--events", "5000"]) == code


def test_each_scenario_is_in_sql() -> None:
    """``measure_scenario`` compares the answers where DuckDB is installed."""
    assert list(QUERIES) == [scenario.name for scenario in SCENARIOS]


def test_the_benchmark_of_scenarios_says_what_differs() -> None:
    missing = replace(SCENARIOS[0], answers=lambda events: [])
    assert measure_scenario(missing, 100, 1).wrong[0].endswith("expected 0: 92 too many, 0 missing")


@pytest.mark.parametrize("keyed", [False, True], ids=["of all", "by key"])
@pytest.mark.parametrize("either", [False, True], ids=["one type", "either"])
def test_sequences_have_as_many_matches_as_are_counted_without_listing(keyed: bool, either: bool) -> None:
    for experiment in (sequences.Experiment(n, 200 if keyed else 40, True, keyed, either) for n in (3, 4)):
        events, program = list(sequences.events(experiment, 600)), compile(experiment.query)
        expected = sequences.counted(experiment, 600)
        assert expected
        for executor, parts in (("rows", [events]), ("columns", sequences.batches(events))):
            _, matches, _ = sequences.seconds(program, parts, executor)
            assert matches == expected


def test_runs_on_several_cores_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    cores.main(["--events", "2000", "--repeat", "1", "--only", "texts"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" and ", 1)[1] for line in lines[1:3]] == [
        "matches by ?c on all cores",
        "matches by time on all cores",
    ]
    assert lines[-1] == "the same ids in the same order"
