"""CSRBench's recomputed answers: every t0, both policies, and the oracle that finds the t0 again.

Its windows are [from, to) on a clock of milliseconds: (from − 1 ms, to − 1 ms] here.  Its content-change runs leave out
the very first evaluation, at which there is nothing to compare with.  The window-close run of q5 for t0 = 5000 begins
with the window that opens at 1000: the t0 of a run is when its first window opens.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine, Program, compile
from etalis_py.events import Event, event
from etalis_py.executors.windows.executor import Evaluation
from etalis_py.testing.judge_recorded import Recorded, which_t0, with_t0

HERE = Path(__file__).parents[2].parent / "shared" / "conformance" / "csrbench"
MS = 1000
IRI = "http://localhost:12345/CSRBenchDataStream/datastream#1"
FILES = sorted(p.stem for p in (HERE / "recomputed").glob("*.json"))
pytestmark = pytest.mark.skipif(not FILES, reason=f"the CSRBench material is not at {HERE}")


@cache
def stream() -> list[Event]:
    items = []
    for number, path in enumerate(sorted((HERE / "stream").glob("data_*.ttl"))):
        (_, _, triples, _, _) = event(path.read_text(encoding="utf-8").rstrip().removesuffix("."), 0)
        items.append(Event(number * 1000 * MS, number * 1000 * MS, triples, f"<{IRI}>"))
    return items


@cache
def recomputed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "recomputed" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def query(record: dict[str, Any], run: dict[str, Any]) -> Program:
    text = (HERE / "queries" / record["query"]).read_text(encoding="utf-8")
    window = f"[RANGE {record['size_ms']} ms SLIDE {record['slide_ms']} ms]"
    report = "REPORT ON NON-EMPTY CONTENT AND " + (
        "WINDOW CLOSE" if run["policy"].startswith("window-close") else "CONTENT CHANGE"
    )
    head, body = text.split("SELECT ?sensor ?obs WHERE", 1)
    text = f"{head} SELECT {run['r2s'].upper()} ?sensor ?obs FROM STREAM <{IRI}> {window} {report} WHERE {body}"
    return compile(text)


def cases() -> list[Any]:
    found = []
    for name in FILES:
        for run in recomputed(name)["runs"]:
            identity = f"{name}-{run['r2s']}-{run['t0']}"
            found.append(pytest.param(name, run, id=identity))
    return found


def rows(bindings: list[dict[str, str]]) -> list[tuple[str, str]]:
    return sorted((f"<{b['sensor']}>", f"<{b['obs']}>") for b in bindings)


def opens(run: dict[str, Any]) -> int:
    """When the first window opens, in microseconds."""
    first = run["t0"] if run["r2s"] == "istream" else min(e["from"] for e in run["evaluations"])
    return (first - 1) * MS


def heard(program: Program) -> list[Evaluation]:
    answers: list[Evaluation] = []
    engine = Engine(program, listen=answers.append)
    engine.push_all(stream())
    engine.close()
    return answers


@pytest.mark.parametrize(("name", "run"), cases())
def test_recomputed_answers(name: str, run: dict[str, Any]) -> None:
    record = recomputed(name)
    answers = heard(with_t0(query(record, run), [opens(run)]))
    found = {
        (a.opening // MS + 1, a.time // MS): sorted((m.bindings["sensor"], m.bindings["obs"]) for m in a.matches)
        for a in answers
    }
    if run["r2s"] == "istream":
        # an item at t is seen at t; CSRBench's clock looks at the end of its second
        expected = {(e["from"], e["to"] - 1000): rows(e["bindings"]) for e in run["evaluations"]}
        first = min(found, key=lambda bounds: bounds[1])
        assert first not in expected
        assert found.pop(first) == []
    else:
        expected = {(e["from"], e["to"] - 1): rows(e["bindings"]) for e in run["evaluations"]}
    assert found == expected


def recorded(run: dict[str, Any], timed: bool = True) -> list[Recorded]:
    return [
        Recorded(
            tuple({"sensor": f"<{b['sensor']}>", "obs": f"<{b['obs']}>"} for b in e["bindings"]),
            (e["to"] - 1) * MS if timed else None,
        )
        for e in run["evaluations"]
    ]


@pytest.mark.parametrize("t0", [0, 1, 2])
def test_the_oracle_finds_t0(t0: int) -> None:
    record = recomputed("q2-aligned")
    run = record["runs"][t0]
    assert run["t0"] == t0 * 1000
    found = which_t0(query(record, run), stream(), recorded(run), registered=-MS)
    assert found == [((t0 * 1000 - 1) * MS,)]


def test_the_oracle_does_not_need_times() -> None:
    """Of the three t0 two give the same answers from the end of the start-up on, in the same order."""
    record = recomputed("q2-aligned")
    run = record["runs"][1]
    found = which_t0(query(record, run), stream(), recorded(run, timed=False), registered=-MS)
    assert ((1000 - 1) * MS,) in found


def test_the_oracle_refuses_what_no_t0_explains() -> None:
    record = recomputed("q2-aligned")
    run = record["runs"][0]
    wrong = recorded(run)
    missing = next(i for i, r in enumerate(wrong) if r.rows)
    wrong[missing] = Recorded(wrong[missing].rows[1:], wrong[missing].time)
    assert which_t0(query(record, run), stream(), wrong, registered=-MS) == []
