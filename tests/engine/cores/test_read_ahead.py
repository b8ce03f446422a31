"""Tables and Parquet: a thread reads ahead, and finds, counts and tells what one core does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import etalis_py.streams.columns.files
import etalis_py.streams.columns.frames
import etalis_py.streams.reader
import etalis_py.streams.stream
from etalis_py import Engine, compile, run
from etalis_py.engine.cores import driver
from etalis_py.engine.cores.choosing import driver_on_cores, sharing
from etalis_py.engine.driver import Driver
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.sources import read_ahead
from tests.processes import comes

QUERY = "SELECT ?c ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }"
MAPPING = {"subject": ":{c}", "predicate": ":price", "object": "{x}", "time": "{t}"}
ROWS = 400


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source is large, and every batch small."""
    for module in (etalis_py.streams.stream, etalis_py.streams.reader):
        monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(etalis_py.streams.stream, "SHARED", 1)
    for module in (etalis_py.streams.columns.frames, etalis_py.streams.columns.files):
        monkeypatch.setattr(module, "ROWS", 50)


def table(**changed: Any) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "t": list(range(ROWS)),
        "c": [f"c{n % 7}" for n in range(ROWS)],
        "x": [n * 31 % 17 for n in range(ROWS)],
    }
    for name, (place, value) in changed.items():
        columns[name][place] = value
    return pa.table(columns)


def as_parquet(folder: Path, rows: pa.Table) -> Path:
    parquet.write_table(rows, folder / "s.parquet")
    return folder / "s.parquet"


GIVEN: dict[str, Callable[[Path, pa.Table], Any]] = {
    "Parquet": as_parquet,
    "a table": lambda folder, rows: rows,
    "a frame": lambda folder, rows: rows.to_pandas(),
}
CHANGES: dict[str, dict[str, Any]] = {
    "usual": {},
    "a time before the others": {"t": (310, 5)},
    "no time": {"t": (310, None)},
}


def told(given: Any, cores: int, **options: Any) -> Any:
    """The matches, the error, the counters, and what is told of the stream."""
    found, error = [], ""
    with read_stream(given, mapping=MAPPING, **options) as stream:
        engine = Engine(compile(QUERY, policy="recent"))
        shared = sharing(engine, stream, cores, given)
        assert shared.ahead
        taking = driver_on_cores(shared, engine, stream) if cores > 1 else Driver(engine, stream)
        try:
            for step in taking.steps():
                found += [match.id for match in step.matches]
        except StreamError as failure:
            error = str(failure)
        return found, error, stream.counters, stream.warnings, stream.clock


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.filterwarnings("ignore:.*not in order of time")
def test_what_is_read_ahead_is_what_one_core_reads(name: str, change: str, on_error: str, tmp_path: Path) -> None:
    given = GIVEN[name](tmp_path, table(**CHANGES[change]))
    expected = told(given, 1, on_error=on_error)
    assert told(given, 2, on_error=on_error) == expected
    assert len(expected[0]) > 50
    assert bool(expected[1]) == (change == "no time" and on_error == "stop")


def test_the_line_says_so(tmp_path: Path) -> None:
    given = as_parquet(tmp_path, table())
    with read_stream(given, mapping=MAPPING) as stream:
        shared = sharing(Engine(compile(QUERY)), stream, 2, given)
    assert str(shared).startswith("this run reads ahead on another core and matches on one core (in compiled loops")


def test_a_run_by_name_reads_ahead(tmp_path: Path) -> None:
    given = as_parquet(tmp_path, table())
    ids = [[match.id for match in run(QUERY, given, mapping=MAPPING, cores=cores)] for cores in (1, 2)]
    assert ids[0] == ids[1] != []


def test_threads_take_turns_as_before_when_the_runs_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs side by side, the one that ends first does not end it for the other."""
    monkeypatch.setattr(driver, "_turns", driver._Turns())  # whatever another test has not ended yet
    given, before = as_parquet(tmp_path, table()), 0.005
    sys.setswitchinterval(before)
    one, other = (run(QUERY, given, mapping=MAPPING, cores=2) for _ in range(2))
    next(one)
    next(other)
    assert sys.getswitchinterval() < before
    list(one)
    assert sys.getswitchinterval() < before
    other.close()
    assert sys.getswitchinterval() == before


def test_at_most_two_items_are_read_ahead_of_the_one_that_is_used() -> None:
    made = []

    def items() -> Iterator[int]:
        for n in range(10):
            made.append(n)
            yield n

    taken = read_ahead(items())
    assert next(taken) == 0
    assert comes(lambda: len(made) == 4)  # two wait, and the fourth has no place yet
    assert list(taken) == list(range(1, 10))


def test_who_stops_early_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    taken = read_ahead(iter(range(10)))
    next(taken)
    taken.close()  # type: ignore[attr-defined]
    assert comes(lambda: set(threading.enumerate()) <= before)


def test_an_error_comes_after_what_was_read_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise StreamError("no more")

    taken = read_ahead(items())
    assert next(taken) == 1
    with pytest.raises(StreamError, match="no more"):
        next(taken)
