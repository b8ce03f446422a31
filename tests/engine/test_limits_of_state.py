"""Whatever an engine remembers counts for the limits on goals and on bytes, in rows and in columns."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, event
from etalis_py.engine import stage_plans
from etalis_py.executors.rows.run.closure import PathClosure
from etalis_py.executors.rows.run.executor import RowExecutor
from etalis_py.executors.rows.run.sizes import measured_bytes
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import Counters

ROOT = Path(__file__).parents[2]
PREFIX = "PREFIX : <http://example.org/> "
REMEMBERING = {
    "goals": "SELECT * { ?a :p ?x } SEQ { ?a :never ?y }",
    "groups": "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?x } GROUP BY ?a",
    "groups of extremes": "SELECT ?a (MAX(?x) AS ?n) { ?a :p ?x } GROUP BY ?a",
    "solutions in a window of time": "SELECT (COUNT(*) AS ?n) { ?a :p ?x } WITHIN 100000 s",
    "groups over a window of time": "SELECT ?a (MAX(?x) AS ?n) { ?a :p ?x } WITHIN 100000 s GROUP BY ?a",
    "ranked groups": "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?x } GROUP BY ?a ORDER BY DESC(?n) LIMIT 3",
    "runs": "SELECT * { { ?a :p ?x } REPEAT 3 BY ?a AS (COUNT(*) AS ?n) }",
    "longest runs": "SELECT * { { ?a :p ?x } REPEAT 3 OR MORE BY ?a LONGEST AS (COUNT(*) AS ?n) }",
    "paths": "SELECT * { ?a :p+ ?x }",
    "the times of THROTTLE": "SELECT * { ?a :p ?x } THROTTLE 100000 s BY ?a",
}
TEXTS = "SELECT (GROUP_CONCAT(?a) AS ?n) { ?a :p ?x } HAVING (COUNT(*) > 1000000)"
VALUES = "SELECT (COUNT(DISTINCT ?a) AS ?n) { ?a :p ?x }"
both = pytest.mark.parametrize("executor", ["rows", "columns"])


def each_of_its_own(count: int) -> list[Event]:
    return [event(f":key{t} :p {t} .", t) for t in range(1, count + 1)]


@both
@pytest.mark.parametrize("name", REMEMBERING)
def test_what_is_remembered_counts_as_goals(name: str, executor: Literal["rows", "columns"]) -> None:
    """In one batch, which is smaller than the number of events between two sweeps."""
    engine = Engine(PREFIX + REMEMBERING[name], executor=executor, limits=Limits(goals=100))
    with pytest.raises(LimitExceeded, match=r"1[01]\d goals are open, the limit is 100;.*Limits\(goals="):
        engine.push_all(each_of_its_own(3_000))


@both
@pytest.mark.parametrize("name", [*REMEMBERING, "texts", "distinct values"])
def test_what_is_remembered_has_a_size(name: str, executor: Literal["rows", "columns"]) -> None:
    query = {**REMEMBERING, "texts": TEXTS, "distinct values": VALUES}[name]
    engine = Engine(PREFIX + query, executor=executor, limits=Limits(bytes=60_000))
    with pytest.raises(LimitExceeded, match=r"take about \d+ bytes, the limit is 60000.*Limits\(bytes="):
        engine.push_all(each_of_its_own(6_000))


def rows_made(patch: pytest.MonkeyPatch) -> list[RowExecutor]:
    """A list of the executors of rows that are made from now on."""
    made: list[RowExecutor] = []

    class Seen(RowExecutor):
        def __init__(self, options: Options, counters: Counters) -> None:
            super().__init__(options, counters)
            made.append(self)

    patch.setattr(stage_plans, "RowExecutor", Seen)
    return made


def show_ratios() -> None:
    """Print for each query how its estimate compares with what was allocated, which may be called once in a process."""
    made, ratios = rows_made(pytest.MonkeyPatch()), {}
    for name, query in {**REMEMBERING, "texts": TEXTS, "distinct values": VALUES}.items():
        engine = Engine(PREFIX + query, executor="rows")
        engine.push(event(":key0 :p 0", 0))
        gc.collect()
        tracemalloc.start()
        for t in range(1, 4_000):
            engine.push(event(f":key{t} :p {t} .", t))
        gc.collect()
        ratios[name] = made[-1].state.estimated_bytes() / tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    print(json.dumps(ratios))


@pytest.fixture(scope="module")
def ratios() -> dict[str, float]:
    """Of a process in which nothing else happens: the threads of a parallel run allocate memory meanwhile."""
    script = f"from {__name__} import show_ratios; show_ratios()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", [*REMEMBERING, "texts", "distinct values"])
def test_an_estimate_is_right_within_a_factor_of_two(name: str, ratios: dict[str, float]) -> None:
    assert 0.5 < ratios[name] < 2


def test_runs_that_grow_out_of_one_another_are_measured_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the many runs that end in one element names the one that is longer."""
    query = "SELECT ?n { { ?a :p ?x } REPEAT 1 OR MORE BY ?a WHERE (SUM(?x) < 1000000) MAXIMAL AS (COUNT(*) AS ?n) }"
    sizes, made = [], rows_made(monkeypatch)
    for count in (80, 800):
        engine = Engine(PREFIX + query, executor="rows")
        engine.push_all([event(f":a :p {t % 3}", t) for t in range(count)])
        (operator,) = made[-1].state.runs.values()
        sizes.append(measured_bytes(operator))
        assert [match["n"] for match in engine.close()] == [count]
    assert 8 < sizes[1] / sizes[0] < 12


@both
@pytest.mark.parametrize(("limits", "said"), [
    (Limits(goals=50_000), r"5\d{4} goals are open"),
    (Limits(bytes=20_000_000), r"take about [23]\d{7} bytes, the limit is 20000000"),
    (Limits(derivations=5_000), "more than 5000 solutions of query q1 in one instant"),
], ids=["goals", "bytes", "derivations"])  # fmt: skip
def test_paths_over_a_cycle_stop_at_a_limit(
    limits: Limits, said: str, executor: Literal["rows", "columns"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn adds paths with other beginnings; a new one meets edges only, so the limit comes before much work."""
    work = 0
    add = PathClosure._add

    def counted(closure: PathClosure, pair: tuple[Any, ...], solutions: list[Any]) -> bool:
        nonlocal work
        work += 1
        return add(closure, pair, solutions)

    monkeypatch.setattr(PathClosure, "_add", counted)
    turns = [event(f":a{t % 50} :next :a{(t + 1) % 50}", t) for t in range(1_500)]
    engine = Engine(PREFIX + "SELECT * { ?a :next+ ?b }", executor=executor, limits=limits)
    with pytest.raises(LimitExceeded, match=said):
        engine.push_all(turns)
    assert work < 1_000_000


WINDOWS = {
    "rows": "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT10000S STEP PT10000S] WHERE { WINDOW :w { ?a :p ?x } }",
    "groups": "SELECT ?a (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT10000S STEP PT1000S] "
    "WHERE { WINDOW :w { ?a :p ?x } } GROUP BY ?a",
    "joins": "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT10000S STEP PT1000S] "
    "WHERE { WINDOW :w { ?a :p ?x . ?a :q ?y } }",
    "counted": "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE TRIPLES 10000] WHERE { WINDOW :w { ?a :p ?x } }",
}


def posted(count: int) -> list[Event]:
    return [event(f":key{t} :p {t} .", t, stream="<http://example.org/s>") for t in range(1, count + 1)]


@both
@pytest.mark.parametrize(("limits", "said"), [
    (Limits(goals=2_000), r"windows keep \d+ items, the limit is 2000; .*Limits\(goals="),
    (Limits(bytes=200_000), r"items in windows take about \d+ bytes, the limit is 200000; .*Limits\(bytes="),
], ids=["goals", "bytes"])  # fmt: skip
@pytest.mark.parametrize("name", WINDOWS)
def test_items_in_windows_count(name: str, limits: Limits, said: str, executor: Literal["rows", "columns"]) -> None:
    engine = Engine(PREFIX + WINDOWS[name], executor=executor, limits=limits)
    with pytest.raises(LimitExceeded, match=said):
        engine.push_all(posted(6_000))


@both
def test_items_that_have_left_their_windows_do_not_count(executor: Literal["rows", "columns"]) -> None:
    short = WINDOWS["groups"].replace("PT10000S", "PT20S").replace("PT1000S", "PT10S")
    engine = Engine(PREFIX + short, executor=executor, limits=Limits(goals=100, bytes=200_000))
    matches = [
        match for some in range(3) for match in engine.push_all(posted(6_000)[2_000 * some : 2_000 * (some + 1)])
    ]
    assert len(matches) > 10_000


def test_the_query_whose_windows_keep_most_is_named() -> None:
    long, short = WINDOWS["rows"], WINDOWS["joins"].replace("PT10000S", "PT20S").replace("PT1000S", "PT10S")
    engine = Engine(
        [f"REGISTER QUERY :short AS {PREFIX}{short}", f"REGISTER QUERY :long AS {PREFIX}{long}"],
        limits=Limits(goals=1_000),
    )
    with pytest.raises(LimitExceeded, match=r"limit is 1000, and query \S*long\S* has the most; make the windows"):
        engine.push_all(posted(6_000))


@both
@pytest.mark.parametrize("pattern", ["?a :p ?x", "?a :p ?x . ?b :p ?y FILTER (?x + ?y < 0)"])
def test_steps_over_a_window(pattern: str, executor: Literal["rows", "columns"]) -> None:
    """An evaluation looks at a thousand triples, or at half a million pairs of them; each has steps of its own."""
    query = f"SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT1000S STEP PT1000S] WHERE {{ WINDOW :w {{ {pattern} }} }}"
    with pytest.raises(LimitExceeded, match=r"took more than 900 steps.*Limits\(steps="):
        Engine(PREFIX + query, executor=executor, limits=Limits(steps=900)).push_all(posted(3_000))
    short = query.replace("PT1000S", "PT10S")
    Engine(PREFIX + short, executor=executor, limits=Limits(steps=900)).push_all(posted(3_000))
