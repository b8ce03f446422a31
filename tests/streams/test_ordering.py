"""A source that lies there whole is put in order of time, in memory or by way of sorted runs."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etalis_py import run
from etalis_py.events import Event
from etalis_py.streams import StreamError, ordering, read_stream, reader, stream
from etalis_py.streams.columns.flat_form import batch_of, events_of
from etalis_py.streams.line_blocks import line_blocks
from etalis_py.streams.sources import OpenedInput
from tests.draws import examples


def made(ends: list[int]) -> list[Event]:
    triples = [("<urn:a>", "<urn:p>", f'"{i}"') for i in range(len(ends) + 1)]
    return [Event(end, end, tuple(triples[i : i + 1 + i % 2]), "", f"<urn:g{i}>") for i, end in enumerate(ends)]


@settings(max_examples=examples(2 / 5))
@given(
    ends=st.lists(st.integers(0, 9), max_size=30),
    size=st.integers(1, 7),
    memory=st.integers(1, 40),
    look=st.integers(1, 40),
    among=st.integers(1, 3),
)
# Sorted runs of several parts: the same time in several of them, and an event that continues in the next part.
@example(ends=[5, 3, 3, 8, 1, 9, 9, 2, 7, 3, 3, 3, 0, 3], size=2, memory=6, look=1, among=1)
@example(ends=[2, 5, 3, 9], size=4, memory=6, look=1, among=1)
def test_events_are_sorted_by_their_ends(ends: list[int], size: int, memory: int, look: int, among: int) -> None:
    events = made(ends)
    lists = [events[i : i + size] for i in range(0, len(events), size)]
    chunks = [batch_of(some) if i % 2 else some for i, some in enumerate(lists)]
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "MEMORY", memory)
        patch.setattr(ordering, "LEAST", 1)
        patch.setattr(ordering, "LOOK", look)
        patch.setattr(ordering, "_PART", 3)
        out = [
            event
            for chunk in ordering.in_order(iter(chunks), lambda: told.append(1), among)
            for event in (chunk if isinstance(chunk, list) else events_of(chunk))
        ]
    assert sorted(out) == sorted(events)
    if told:
        assert [event.end for event in out] == sorted(ends)
    else:
        assert out == events
    if min(look, memory // among) >= len(ends):
        assert bool(told) == (ends != sorted(ends))


def test_many_sources_that_are_merged_share_what_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is looked at before anything comes: of many, that would be the better part of a folder."""
    monkeypatch.setattr(ordering, "MEMORY", 40)
    monkeypatch.setattr(ordering, "LEAST", 2)
    paths = [tmp_path / f"{n}.jsonl" for n in range(20)]
    for path in paths:
        path.write_text("".join(json.dumps({"time": t, "triples": ":a :p 1 ."}) + "\n" for t in range(30)))
    streams = [read_stream(path, in_order=True) for path in paths]
    monkeypatch.setattr(stream, "in_lists", lambda items: ([item] for item in items))
    merged = reader.merge(streams)
    next(merged)
    assert {one.counters.events for one in streams} == {2}


def test_many_sources_that_are_merged_are_read_in_smaller_blocks(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("at,c\n" + "1,x\n" * (1 << 18))
    size, of_one, of_many = 1 << 22, OpenedInput(path), OpenedInput(path)
    whole = [block.lines[0] for block in line_blocks(of_one, size, apart=False)]
    parts = [block.lines[0] for block in line_blocks(of_many, size, apart=False, among=100)]
    assert len(whole) == 1
    assert len(parts) > 3
    assert b"".join(parts) == whole[0]


def test_a_file_newest_first_is_sorted_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "newest.jsonl"
    path.write_text("".join(json.dumps({"time": t, "triples": ":a :p 1 ."}) + "\n" for t in (3, 2, 1)))
    with pytest.warns(UserWarning, match="newest.jsonl: not in order of time, so sorted first"):
        assert [event.end for event in read_stream(path, in_order=True)] == [1_000_000, 2_000_000, 3_000_000]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [event.end for event in read_stream(path)] == [3_000_000, 2_000_000, 1_000_000]


def test_what_stands_before_an_error_is_sorted_too(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"time": 2, "triples": ":a :p 1 ."}\n{"time": 1, "triples": ":a :p 1 ."}\nnonsense\n')
    stream = read_stream(path, in_order=True)
    with pytest.warns(UserWarning, match="not in order"):
        assert [next(stream).end, next(stream).end] == [1_000_000, 2_000_000]
    with pytest.raises(StreamError, match=r"broken\.jsonl:3"):
        next(stream)


def test_a_frame_newest_first_is_sorted() -> None:
    frame = pa.table({"end": [2, 1], "s": ["<urn:a>"] * 2, "p": ["<urn:p>"] * 2, "o": ['"2"', '"1"']})
    with pytest.warns(UserWarning, match="the table: not in order"):
        found = list(run("SELECT ?x ?y { { ?a <urn:p> ?x } SEQ { ?b <urn:p> ?y } }", frame))
    assert [(m["x"], m["y"]) for m in found] == [("1", "2")]


@pytest.mark.parametrize("times", [(1, 2, 3), (3, 2, 1)])
def test_a_file_of_middling_size_is_put_in_order_without_reading_it_by_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...]
) -> None:
    """Nothing comes before the look at its first events is over, and rows take ten times as long as columns."""

    def by_rows(*_: object) -> Iterator[Event]:
        pytest.fail("read row by row")
        yield

    monkeypatch.setattr(reader, "source_items", by_rows)
    monkeypatch.setattr(stream, "LOOKED_AT", 1)
    path = tmp_path / "s.csv"
    path.write_text("at,c\n" + "".join(f"{t},x\n" for t in times))
    mapping = {"subject": ":x", "predicate": ":p", "object": "{c}", "time": "{at}"}
    opened = read_stream(path, mapping=mapping, in_order=lambda text: None)
    assert [item.end for item in opened if isinstance(item, Event)] == [1_000_000, 2_000_000, 3_000_000]
    if times == (1, 2, 3):
        opened = read_stream(path, mapping=mapping, in_order=True)
        assert all(isinstance(chunk, list) for chunk in opened.chunks())


BY_COLUMN = {"time": "{at}", "subject": ":{c}", "rest": True}


def rows(times: tuple[int, ...]) -> str:
    return "at,c,d,e\n" + "".join(f"{t},x,{t % 3},y\n" for t in times)


def test_files_that_are_merged_are_given_as_triples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their records may have other columns."""
    for module in (stream, reader):
        monkeypatch.setattr(module, "LARGE", 1)
    paths = [tmp_path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        path.write_text(rows((1, 2, 3)))
    merged = reader.merge([read_stream(path, mapping=BY_COLUMN) for path in paths])
    items = [event for batch in merged.chunks(as_records=True) for event in events_of(batch)]
    assert [item.end for item in items] == [t * 10**6 for t in (1, 1, 2, 2, 3, 3)]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_packed_is_sorted_as_well(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("s.csv.gz" if packed else "s.csv")
    text = rows((3, 1, 2)).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.warns(UserWarning, match="not in order of time, so sorted first"):
        found = list(run("SELECT ?d { ?s :d ?d }", path, mapping=BY_COLUMN))
    assert [match["d"] for match in found] == [1, 2, 0]
