"""Several streams in time order, and sources that are still growing."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import queue
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import run
from etalis_py.events import Event
from etalis_py.streams import (
    Clock,
    Follow,
    Idle,
    Patience,
    Punctuation,
    Stream,
    StreamError,
    documents,
    elements,
    merge,
    merging,
    read_stream,
)
from etalis_py.streams.sources import with_ticks
from etalis_py.streams.timing import GENERATED_AT_TIME, Arrival, TimeReader, Timing
from tests.processes import PATIENCE

from .conftest import brief


def line(time: int, subject: str = "a") -> str:
    return f'{{"time": {time}, "triples": "<urn:{subject}> <urn:p> {time} ."}}\n'


def opened(text: str, name: str = "", **options) -> Stream:
    return read_stream(io.BytesIO(text.encode()), name=name, format="jsonl", time_unit="us", **options)


def fixed(*items) -> Stream:
    return Stream(iter(items), name="", source="", contexts=[], close=lambda: None)


def event(end: int, subject: str) -> Event:
    return Event(end, end, ((f"<urn:{subject}>", "<urn:p>", "<urn:o>"),))


@given(st.lists(st.lists(st.integers(0, 9)), max_size=4))
def test_a_merge_is_a_stable_sort(ends: list[list[int]]) -> None:
    events = [[event(end, f"s{index}") for end in sorted(one)] for index, one in enumerate(ends)]
    merged = list(merge([fixed(*one) for one in events]))
    assert merged == sorted((e for one in events for e in one), key=lambda e: e.end)


def test_named_streams_keep_their_names_counters_and_clock() -> None:
    merged = merge([opened(line(1) + line(4), "urn:s"), opened(line(2), "urn:t")])
    assert [(e.end, e.stream) for e in merged] == [(1, "<urn:s>"), (2, "<urn:t>"), (4, "<urn:s>")]
    assert merged.counters.events == 3
    assert merged.clock == Clock("integer", "us")


def test_files_of_a_pattern_are_merged_by_time(tmp_path: Path) -> None:
    for name, text in (("a", line(1) + line(3)), ("b", line(2) + line(4))):
        (tmp_path / f"{name}.jsonl").write_text(text)
    assert [e.end for e in read_stream(str(tmp_path / "*.jsonl"), time_unit="us")] == [1, 2, 3, 4]


def test_a_punctuation_waits_for_the_others() -> None:
    merged = merge([fixed(event(1, "a"), Punctuation(2), event(5, "a")), fixed(event(2, "b"), event(3, "b"))])
    assert [getattr(item, "end", item) for item in merged] == [1, 2, Punctuation(2), 3, 5]


class Fed:
    """A live stream of what the test says, when it says it."""

    def __init__(self, idle: float) -> None:
        self._said: queue.Queue[Event | Punctuation | None] = queue.Queue()
        patience = Patience(idle)
        ticking = with_ticks(iter(self._said.get, None), patience)
        items = (Idle(0) if item is None else item for item in ticking)
        self.stream = Stream(items, name="", source="", contexts=[], close=lambda: None, patience=(patience,))

    def say(self, *items: Event | Punctuation) -> None:
        for item in items:
            self._said.put(item)

    def end(self) -> None:
        self._said.put(None)


def test_a_silent_stream_holds_nobody_up_and_hides_punctuation() -> None:
    """A hundred events of the one do not wait for a hundred silences of the other."""
    silent, other = Fed(0.3), Fed(30.0)
    merged = merge([silent.stream, other.stream])
    other.say(*(event(n, "b") for n in range(100)), Punctuation(99), event(100, "b"))
    began = time.monotonic()
    assert [next(merged).end for _ in range(101)] == list(range(101))
    assert 0.29 < time.monotonic() - began < 100 * 0.3
    merged.close()


def test_an_event_waits_for_an_earlier_one_until_its_stream_is_silent() -> None:
    one, other = Fed(0.3), Fed(0.3)
    merged = merge([one.stream, other.stream])
    one.say(event(5, "a"))
    other.say(event(3, "b"))
    began = time.monotonic()
    assert [next(merged).end for _ in range(2)] == [3, 5]
    assert time.monotonic() - began > 0.29
    merged.close()


def test_a_merge_that_is_drained_gives_what_has_arrived_and_ends() -> None:
    """Also what a stream holds back itself, here another merge; nothing is taken that comes later."""
    over = threading.Event()

    def saying(*ends: int) -> tuple[Stream, threading.Event]:
        """A stream that is never silent, and whether all but the last of its events have been taken."""
        taken = threading.Event()

        def items() -> Iterator[Event]:
            yield from (event(end, "a") for end in ends[:-1])
            taken.set()
            over.wait(PATIENCE)
            yield event(ends[-1], "a")

        patience = (Patience(PATIENCE),)
        return Stream(items(), name="", source="", contexts=[], close=lambda: None, patience=patience), taken

    (one, one_taken), (other, other_taken), (third, _) = saying(1, 5, 7, 8), saying(2, 6, 9), saying(0, 10)
    merged = merge([one, merge([other, third])])
    assert next(merged).end == 0
    assert one_taken.wait(PATIENCE)
    assert other_taken.wait(PATIENCE)
    merged.drain()
    assert [item.end for item in merged] == [1, 2, 5, 6, 7]
    over.set()


def test_what_arrived_before_an_error_of_another_live_stream_is_given_before_it() -> None:
    def failing() -> Iterator[Event]:
        yield event(5, "a")
        broken.wait()
        raise StreamError("gone")

    broken = threading.Event()
    patience = Patience(30.0)
    one = Stream(
        with_ticks(failing(), patience), name="", source="", contexts=[], close=lambda: None, patience=(patience,)
    )
    other = Fed(30.0)
    merged = merge([one, other.stream])
    other.say(event(4, "b"), event(9, "b"))
    assert [next(merged).end for _ in range(2)] == [4, 5]  # 9 waits for what else the other may have
    broken.set()
    assert next(merged).end == 9
    with pytest.raises(StreamError, match="gone"):
        list(merged)


def test_silence_is_that_of_all_streams() -> None:
    """The one is silent long before the other, and never is while the other speaks."""
    one, other = Fed(0.05), Fed(2.0)
    merged = merge([one.stream, other.stream])
    one.say(event(1, "a"))

    def speak() -> None:
        for n in range(5):
            other.say(event(2 + n, "b"))
            time.sleep(0.1)

    thread = threading.Thread(target=speak)
    thread.start()
    assert [item.end for item in until_idle(merged)] == [1, 2, 3, 4, 5, 6]
    thread.join()
    one.say(event(9, "a"))
    # Where this process has waited for its turn, a silence may have been noticed before.
    found = next(filter(None, ([item.end for item in until_idle(merged)] for _ in range(20))), None)
    assert found == [9]
    merged.close()


def test_time_passes_once_all_streams_are_silent() -> None:
    """An order of the one stream falls due by the clock, after the other has said its last."""
    absent = "SELECT ?o { ?o <urn:p> ?x } SEQ NOT { ?o <urn:q> ?y } WITHIN 400 ms"
    one, other = Fed(0.2), Fed(0.3)
    merged = merge([one.stream, other.stream])
    one.say(event(1_000_000, "a"))
    other.say(event(1_000_000, "b"))
    matches = run(absent, merged)
    began = time.monotonic()
    assert [next(matches).end for _ in range(2)] == ["1970-01-01T00:00:01.4Z"] * 2
    assert time.monotonic() - began > 0.39
    merged.close()


def test_a_merge_of_live_streams_ends_with_the_last_of_them() -> None:
    one, other = Fed(0.05), Fed(0.05)
    merged = merge([one.stream, other.stream])
    one.say(event(2, "a"))
    other.say(event(1, "b"))
    one.end()
    other.end()
    assert [item.end for item in merged if not isinstance(item, Idle)] == [1, 2]


def test_what_cannot_be_read_in_one_live_stream_ends_the_merge() -> None:
    def broken() -> Iterator[Event]:
        yield event(1, "a")
        raise StreamError("the connection was lost", source="tcp://h:1")

    one = Stream(broken(), name="", source="", contexts=[], close=lambda: None, patience=(Patience(0.05),))
    other = Fed(0.05)
    merged = merge([one, other.stream])
    with pytest.raises(StreamError, match="tcp://h:1: the connection was lost"):
        list(merged)
    merged.close()


def test_a_stream_far_ahead_of_a_live_one_is_not_read_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_WAITING", 10)
    taken: list[int] = []

    def endless() -> Iterator[Event]:
        for n in itertools.count():
            taken.append(n)
            yield event(n, "a")

    one = Stream(endless(), name="", source="", contexts=[], close=lambda: None, patience=(Patience(1.0),))
    other = Fed(30.0)
    merged = merge([one, other.stream])
    other.say(event(5, "b"))
    assert [next(merged).end for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    time.sleep(0.05)
    assert len(taken) <= 18
    merged.close()


def test_an_error_in_one_of_several_names_its_source(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line(1))
    (tmp_path / "b.jsonl").write_text("oops\n")
    with pytest.raises(StreamError) as caught:
        list(read_stream(str(tmp_path / "*.jsonl")))
    assert caught.value.source == str(tmp_path / "b.jsonl")


def until_idle(items: Iterator) -> list:
    found = []
    for item in items:
        if isinstance(item, Idle):
            return found
        found.append(item)
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("format", "parts"),
    [
        ("jsonl", [line(1), line(2)]),
        ("nq", [f'<urn:a> <urn:p> <urn:b> <urn:g{n}> .\n<urn:g{n}> <urn:t> "{n}" .\n' for n in (1, 2)]),
        ("trig", [f"<urn:g{n}> {{ <urn:a> <urn:p> <urn:b> }}\n<urn:g{n}> <urn:t> {n} .\n" for n in (1, 2)]),
        ("nt", ["<urn:a> <urn:p> <urn:b1> .\n", "<urn:a> <urn:p> <urn:b2> .\n"]),
    ],
)
def test_a_growing_file_is_followed_until_it_is_stopped(tmp_path: Path, format: str, parts: list[str]) -> None:
    path = tmp_path / f"live.{format}"
    path.write_text(parts[0])
    follow = Follow(poll=0.01)
    with read_stream(path, follow=follow, idle=0.1, time_predicate=None if format == "nt" else "urn:t") as live:
        first = until_idle(live)
        with path.open("a") as file:
            file.write(parts[1])
        second = until_idle(live)
        follow.stop()
        rest = [item for item in live if not isinstance(item, Idle)]
    assert len(first) == len(second) == 1
    assert rest == []
    assert first[0].triples != second[0].triples or first[0].end < second[0].end


def test_silence_counts_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "live"
    path.write_text("")
    with read_stream(path, follow=Follow(poll=0.01), idle=0.05) as live:
        assert until_idle(live) == []
        path.write_text(line(1))
        assert len(until_idle(live) or until_idle(live)) == 1


def test_half_a_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    path.write_text(line(1)[:20])
    follow = Follow(poll=0.01)
    with read_stream(path, follow=follow, idle=0.1) as live:
        assert until_idle(live) == []
        with path.open("a") as file:
            file.write(line(1)[20:])
        assert len(until_idle(live)) == 1


def test_a_followed_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    path.write_text(line(1) + line(2))
    with read_stream(path, follow=Follow(poll=0.01), idle=0.1) as live:
        until_idle(live)
        path.write_text("")
        with pytest.raises(StreamError, match="became shorter"):
            until_idle(live)


def test_a_followed_file_that_is_replaced_is_an_error(tmp_path: Path) -> None:
    """Logs are rotated in two steps; between them, and until the next one is there, the file is read on."""
    path = tmp_path / "live.jsonl"
    path.write_text(line(1))
    with read_stream(path, follow=Follow(poll=0.01), idle=0.1) as live:
        assert len(until_idle(live)) == 1
        older = path.rename(tmp_path / "live.jsonl.1")
        with older.open("a") as file:
            file.write(line(2))
        assert len(until_idle(live)) == 1
        path.write_text(line(3))
        with pytest.raises(StreamError, match=r"another file took its place .* start again to read that one"):
            until_idle(live)


def test_a_pipe_gives_what_is_there_at_once() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "wb", buffering=0) as writer:
        writer.write(line(1).encode())
        live = read_stream(reader, format="jsonl", idle=2 * PATIENCE, time_unit="us")
        begin = time.monotonic()
        assert next(live).end == 1
        assert time.monotonic() - begin < PATIENCE
        live.close()
        writer.write(line(2).encode())


def test_without_idle_no_thread_is_started() -> None:
    before = threading.active_count()
    assert len(list(opened(line(1)))) == 1
    assert threading.active_count() == before


def test_rows_of_a_growing_table(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_text('id,text\n1,"an open\n')
    mapping = {"subject": "<urn:{id}>", "predicate": "<urn:p>", "object": '"{text}"'}
    follow = Follow(poll=0.01)
    with read_stream(path, mapping=mapping, follow=follow, idle=0.05, now=lambda: 7) as live:
        timer = threading.Timer(0.3, lambda: path.open("a").write('cell"\n2,x\n'))
        timer.start()
        found = [next(live), next(live)]
        timer.join()
    assert brief(found) == ["[7,7] 1 p an open\\ncell", "[8,8] 2 p x"]


def test_standard_input_of_a_process() -> None:
    program = "from etalis_py.streams import read_stream\nfor e in read_stream('-'): print(e.graph, flush=True)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=gzip.compress(b"<urn:a> <urn:p> <urn:b> <urn:g> .\n"),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert run.stdout == b"<urn:g>\n"


class Endless:
    """N-Quads without an end, made as they are read."""

    def __init__(self) -> None:
        self.read_so_far = 0

    def read(self, size: int = -1) -> bytes:
        first, self.read_so_far = self.read_so_far, self.read_so_far + 100
        lines = (
            f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{n}" .\n<urn:a> <urn:p> _:b <urn:g{n}> .\n'
            for n in range(first, first + 100)
        )
        return "".join(lines).encode()


def test_an_endless_stream_is_read_as_it_comes_in_constant_memory(monkeypatch) -> None:
    monkeypatch.setattr(documents, "REMEMBERED", 500)
    source = Endless()
    with read_stream(source, format="nq") as live:
        next(live)
        assert source.read_so_far < 500
        for _ in range(2000):
            next(live)
        tracemalloc.start()
        for _ in range(2000):
            next(live)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < 500_000


def test_silence_completes_a_timed_element_first_and_any_other_later() -> None:
    context = context_for_tests()
    quads = [("<urn:a>", "<urn:p>", "<urn:b>", "<urn:g>", 1, ""), None, None]
    found = list(documents.document_events(quads, context))
    assert [type(item).__name__ for item in found] == ["Idle", "Event", "Idle"]
    timed = [quads[0], ("<urn:g>", GENERATED_AT_TIME, '"5"', "", 2, ""), None]
    found = list(documents.document_events(timed, context))
    assert [type(item).__name__ for item in found] == ["Event", "Idle"]


def context_for_tests() -> elements.StreamContext:
    return elements.StreamContext("", Timing(), TimeReader(), Arrival(lambda: 7), elements.Counters(), pytest.fail)
