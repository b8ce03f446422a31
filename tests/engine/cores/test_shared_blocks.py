"""Blocks of a file that other processes read: the same events, errors and counters as without them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import etalis_py.streams.columns.delimited
import etalis_py.streams.columns.json_lines
import etalis_py.streams.columns.nquads
import etalis_py.streams.reader
import etalis_py.streams.stream
from etalis_py import Engine, LimitExceeded, Limits, compile, run
from etalis_py.engine.cores import choosing, takers
from etalis_py.engine.cores.choosing import driver_on_cores, engine_on_cores, sharing
from etalis_py.engine.cores.crew import WorkerFailed
from etalis_py.engine.driver import Driver
from etalis_py.numba_cache import ready
from etalis_py.streams import Stream, StreamError, read_stream
from etalis_py.streams.columns.shared_blocks import SharedBlocks
from etalis_py.streams.dead_letters import DeadLetters
from tests.processes import comes

XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://example.org/"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
QUERY = "SELECT ?c ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }"
MAPPING = {"subject": ":{c}", "predicate": ":price", "object": "{x}", "time": "{t}"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every file is large, and every block small; after the test no process is left."""
    for module in (etalis_py.streams.stream, etalis_py.streams.reader):
        monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(etalis_py.streams.stream, "SHARED", 1)
    columns = etalis_py.streams.columns
    for module in (columns.json_lines, columns.delimited, columns.nquads):
        monkeypatch.setattr(module, "BLOCK", 1 << 9)
    before = children()
    yield
    assert comes(lambda: children() <= before), "no process is left, nor what remains of one"


def json_lines(count: int) -> list[str]:
    return [json.dumps({"time": n, "triples": f":c{n % 7} :price {n * 31 % 17} ."}) for n in range(count)]


def plain_json(count: int) -> list[str]:
    return [json.dumps({"t": n, "c": f"c{n % 7}", "x": n * 31 % 17}) for n in range(count)]


def csv(count: int) -> list[str]:
    return ["t,c,x", *(f"{n},c{n % 7},{n * 31 % 17}" for n in range(count))]


def quads(count: int) -> list[str]:
    return [line for n in range(count) for line in (price(n, f"<urn:g{n}>"), time(n, f"<urn:g{n}>"))]


def quads_timed_first(count: int) -> list[str]:
    more = (f"<urn:a> <urn:b> <urn:c{n}> <urn:g{n}> ." for n in range(count))
    return [line for n, other in enumerate(more) for line in (time(n, f"<urn:g{n}>"), price(n, f"<urn:g{n}>"), other)]


def quads_timed_inside(count: int) -> list[str]:
    inside = (time(n, f"_:g{n}")[:-2] + f" _:g{n} ." for n in range(count))
    return [line for n, other in enumerate(inside) for line in (price(n, f"_:g{n}"), other, "# a comment")]


def price(n: int, graph: str) -> str:
    return f'<{EX}c{n % 7}> <{EX}price> "{n * 31 % 17}"^^<{XSD}integer> {graph} .'


def time(n: int, graph: str) -> str:
    return f'{graph} {TIME} "{n}"^^<{XSD}integer> .'


FORMS: dict[str, tuple[Callable[[int], list[str]], str, dict[str, Any]]] = {
    "json lines": (json_lines, "s.jsonl", {}),
    "plain json": (plain_json, "s.jsonl", {"mapping": MAPPING}),
    "csv": (csv, "s.csv", {"mapping": MAPPING}),
    "quads": (quads, "s.nq", {"now": lambda: 1000}),
    "quads, timed first": (quads_timed_first, "s.nq", {"now": lambda: 1000}),
    "quads, timed inside": (quads_timed_inside, "s.nq", {"now": lambda: 1000}),
}


def opened(form: str, folder: Path, change: Callable[[list[str]], object], **more: Any) -> Stream:
    lines, name, options = FORMS[form]
    text = lines(400)
    change(text)
    (folder / name).write_text("".join(line + "\n" for line in text))
    return read_stream(folder / name, **options, **more)


def told(driver: Driver, stream: Stream) -> Any:
    """The matches, the counters of the stream, and the error."""
    found, error = [], ""
    try:
        for step in driver.steps():
            found += [match.id for match in step.matches]
    except StreamError as failure:
        error = str(failure)
    return found, stream.counters, error


CHANGES: dict[str, Callable[[list[str]], object]] = {
    "usual": lambda lines: None,
    "a bad line": lambda lines: lines.insert(301, "{"),
    "the first line is bad": lambda lines: lines.insert(1, '"'),
    "blank lines": lambda lines: lines.__setitem__(slice(50, 50), ["", ""]),
    "a long line": lambda lines: lines.__setitem__(200, lines[200] + " " * 3000),
    "out of order": lambda lines: lines.append(lines.pop(5)),
    "empty": list.clear,
    "a quoted break": lambda lines: lines.__setitem__(150, '150,"c1\n",3'),
    "quoted breaks": lambda lines: lines.__setitem__(
        slice(40, None), [f'{n},"c{n % 7}\n\n\n",{n * 31 % 17}' for n in range(39, 400)]
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.filterwarnings("ignore:.*not in order of time")
def test_files_are_read_as_by_one_process(form: str, change: str, on_error: str, tmp_path: Path) -> None:
    if not ready():
        pytest.skip("kernels are not compiled yet")
    program = compile(QUERY, policy="recent")
    stream = opened(form, tmp_path, CHANGES[change], on_error=on_error)
    expected = told(Driver(Engine(program), stream), stream)
    for cores in (2, 3) if form == "csv" else (2,):
        stream = opened(form, tmp_path, CHANGES[change], on_error=on_error)
        engine = Engine(program)
        shared = sharing(engine, stream, cores)
        in_a_thread = form == "csv" and cores == 2 and change != "empty"
        assert (bool(shared.readers), shared.ahead) == (change != "empty" and not in_a_thread, in_a_thread)
        assert told(driver_on_cores(shared, engine, stream), stream) == expected
    assert change != "usual" or len(expected[0]) > 50


@pytest.mark.parametrize("form", FORMS)
def test_reading_and_matching_together(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "in_kernels", lambda engine: False)
    monkeypatch.setattr(takers, "GROUP", 50)
    for text in (QUERY, "SELECT ?x ?y { { { ?c :price ?x } SEQ { ?d :price ?y } FILTER (?y < ?x) } WITHIN 3 SECONDS }"):
        stream = opened(form, tmp_path, lambda lines: None)
        expected = told(Driver(Engine(text), stream), stream)
        stream = opened(form, tmp_path, lambda lines: None)
        engine = Engine(text)
        shared = sharing(engine, stream, 3)
        assert shared.readers
        assert shared.way
        engine = engine_on_cores(engine, shared, 3, compile(text))
        assert told(driver_on_cores(shared, engine, stream), stream) == expected


@pytest.mark.parametrize("matching", [False, True])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_dead_letters_and_warnings_are_those_of_one_process(
    form: str, matching: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that reads for others counts lines from the beginning of its block, and is not the one that tells."""
    monkeypatch.setattr(choosing, "in_kernels", lambda engine: not matching)
    monkeypatch.setattr(takers, "GROUP", 50)
    file = tmp_path / f"prices.{'csv' if form == 'csv' else 'jsonl'}"
    if form == "csv":
        lines = csv(400)
        lines[200], lines[300], lines[350] = "200,c1", "soon,c1,5", f"{lines[350]},7"
    else:
        lines = plain_json(400)
        lines[200], lines[300] = "nonsense", '{"t": "soon", "c": "c1", "x": 5}'
        lines[350] = lines[350].replace("}", ', "l": [1]}')
    file.write_text("\n".join(lines) + "\n")

    def letters(cores: int) -> tuple[str, tuple[str, ...]]:
        path = tmp_path / f"{cores}.jsonl"
        with DeadLetters(path) as dead:
            mapping = {"subject": ":{c}", "time": "{t}", "rest": True}
            stream = read_stream(file, mapping=mapping, on_error="skip", dead_letters=dead)
            engine = Engine(QUERY.replace(":price", ":x"))
            driver = Driver(engine, stream)
            if cores > 1:
                shared = sharing(engine, stream, cores)
                assert shared.is_any
                engine = engine_on_cores(engine, shared, cores, compile(QUERY.replace(":price", ":x")))
                driver = driver_on_cores(shared, engine, stream)
            list(driver.steps())
            return path.read_text(), stream.warnings

    expected = letters(1)
    assert len(expected[0].splitlines()) == 2
    assert len(expected[1]) == 1
    assert letters(2) == letters(3) == expected


def killed(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_reader_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedBlocks, "_read", killed)
    stream = opened("csv", tmp_path, lambda lines: None)
    engine = Engine(QUERY)
    driver = driver_on_cores(sharing(engine, stream, 3), engine, stream)
    with pytest.raises(WorkerFailed, match=r"was ended by SIGKILL, perhaps for lack of memory: run it again"):
        list(driver.steps())


def test_a_reader_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedBlocks, "_read", None)
    stream = opened("csv", tmp_path, lambda lines: None)
    engine = Engine(QUERY)
    with pytest.raises(WorkerFailed, match="has ended with code 1") as failure:
        list(driver_on_cores(sharing(engine, stream, 3), engine, stream).steps())
    assert "TypeError: 'NoneType' object is not callable" in str(failure.value.__cause__)


@pytest.mark.parametrize("fatal", [True, False])
def test_a_process_that_dies_or_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: bool) -> None:
    take = takers.KeyTaker._take

    def dying(self: takers.KeyTaker, events: Any) -> Any:
        if not self._first:
            killed() if fatal else [][0]
        return take(self, events)

    monkeypatch.setattr(takers.KeyTaker, "_take", dying)
    program = compile(QUERY)
    events = list(opened("json lines", tmp_path, lambda lines: None))
    engine = Engine(program, executor="rows")
    shared = sharing(engine, events, 2)
    driver = driver_on_cores(shared, engine_on_cores(engine, shared, 2, program), events, batch=10)
    with pytest.raises(WorkerFailed, match="was ended by SIGKILL" if fatal else "IndexError: ") as failure:
        list(driver.steps())
    assert fatal or "in dying" in str(failure.value.__cause__)


def test_a_limit_is_shared_and_its_error_comes_with_its_cause(tmp_path: Path) -> None:
    limits = Limits(goals=40)
    stream = opened("json lines", tmp_path, lambda lines: None)
    with pytest.raises(LimitExceeded):
        list(run(QUERY, stream, cores=2, executor="rows", limits=limits))


def test_a_run_that_is_left_ends_its_processes(tmp_path: Path) -> None:
    before = children()
    matches = run(QUERY, opened("json lines", tmp_path, lambda lines: None), cores=2, executor="rows")
    next(matches)
    forked = children() - before
    assert forked
    matches.close()
    assert comes(lambda: not forked & children())


def test_one_core_if_the_input_does_not_allow_more() -> None:
    with pytest.warns(UserWarning, match="this run reads on one core"):
        assert not list(run(QUERY, iter(()), cores=2))
    with pytest.raises(TypeError, match="1 or more, not 0"):
        run(QUERY, [], cores=0)


def children() -> set[int]:
    """The processes that this one has begun and that run."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
