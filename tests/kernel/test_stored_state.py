"""Snapshots and journals: the same matches go on from them, old formats are read, damage is one clear error."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse

from etalis_py import Engine, Event, Program, event
from etalis_py.engine.program import program_of
from etalis_py.kernel import stored
from etalis_py.kernel.stored import SnapshotError

with gzip.open(Path(__file__).with_name("old_state.json.gz")) as file:
    OLD = json.load(file)
EVENTS = [Event(start, end, tuple(map(tuple, triples)), s, g) for start, end, triples, s, g in OLD["events"]]

CASES = OLD["cases"]
NAMES = [" ".join([case["name"], *case["options"]]) for case in CASES]


def engine_of(case: dict[str, Any], **more: Any) -> Engine:
    background = {"background": []} if case["kind"] == "rules" else {}
    return Engine(by_place(case["text"]), journal=True, **background, **case["options"], **more)


def by_place(text: str) -> Program:
    """The program with the ids of old versions, which counted queries by their places."""
    document = parse(text)
    places = enumerate(document.queries, 1)
    queries = tuple(query if query.register else replace(query, identity=f"q{n}") for n, query in places)
    return program_of([(replace(document, queries=queries), Source(text))])


def ids(engine: Engine, events: list[Event]) -> list[str]:
    return [match.id for match in [*engine.push_all(events), *engine.close()]]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_old_state_goes_on_with_the_same_matches(case: dict[str, Any]) -> None:
    rest = EVENTS[case["half"] :]
    engine = engine_of(case)
    engine.restore(b64decode(case["snapshot"]))
    assert ids(engine, rest) == case["after"]
    if "journal" in case:
        engine = engine_of(case)
        engine.restore(b64decode(case["start"]))
        engine.apply_journal(b64decode(case["journal"]))
        assert ids(engine, rest) == case["after"]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_snapshot_and_journals_are_the_whole_state(case: dict[str, Any]) -> None:
    half = case["half"]
    engine, other = engine_of(case), engine_of(case)
    engine.push_all(EVENTS[:5])
    other.restore(engine.snapshot())
    engine.forget_journal()
    for first in range(5, half, 3):
        engine.push_all(EVENTS[first : min(first + 3, half)])
        other.apply_journal(engine.take_journal())
    rest = EVENTS[half:]
    assert ids(other, rest) == ids(engine, rest) == case["after"]


@pytest.mark.parametrize("case", CASES[::7], ids=NAMES[::7])
@pytest.mark.parametrize("kind", ["snapshot", "journal"])
def test_damage_is_an_error_and_nothing_else(case: dict[str, Any], kind: str) -> None:
    engine = engine_of(case)
    engine.push_all(EVENTS[: case["half"]])
    data = engine.snapshot() if kind == "snapshot" else engine.take_journal()
    read: Callable[[Engine, bytes], None] = Engine.restore if kind == "snapshot" else Engine.apply_journal
    other = engine_of(case)
    choose = random.Random(1)
    for bit in choose.sample(range(8 * len(data)), min(400, 8 * len(data))):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError):
            read(other, bytes(damaged))
    for length in (0, 5, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(SnapshotError):
            read(other, data[:length])
    read(other, data)


@pytest.mark.parametrize("case", CASES[::5], ids=NAMES[::5])
def test_damage_to_an_old_snapshot_is_our_error_or_is_not_seen(case: dict[str, Any]) -> None:
    """The old formats had no checksum, so a flipped bit in a term cannot be told."""
    data = b64decode(case["snapshot"])
    choose = random.Random(2)
    for bit in choose.sample(range(8 * len(data)), 150):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with suppress(SnapshotError):
            engine_of(case).restore(bytes(damaged))


@pytest.mark.parametrize("case", CASES[::5], ids=NAMES[::5])
def test_state_of_the_version_before_is_read(case: dict[str, Any]) -> None:
    """It was the same, without tables."""
    engine, other = engine_of(case), engine_of(case)
    engine.push_all(EVENTS[: case["half"]])
    data = engine.snapshot()
    head, body = stored.BEFORE + stored.SNAPSHOT, data[len(stored.MAGIC) + 1 + 16 :]
    other.restore(head + blake2b(body, digest_size=16, key=head).digest() + body)
    assert ids(other, EVENTS[case["half"] :]) == case["after"]


def test_a_journal_is_no_snapshot() -> None:
    engine = Engine("SELECT ?x { ?c :p ?x }", journal=True)
    engine.push(event(":c :p 1", 1))
    with pytest.raises(SnapshotError, match="no snapshot"):
        engine.restore(engine.take_journal())
    with pytest.raises(SnapshotError, match="no journal"):
        engine.apply_journal(engine.snapshot())


def test_state_of_another_program_is_refused() -> None:
    rules = Engine("SELECT ?x { ?c :p ?x }")
    windows = Engine("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }")
    longer = Engine("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT9S] { WINDOW :w { ?x :p ?y } }")
    for one, other in ((rules, windows), (windows, rules), (windows, longer)):
        with pytest.raises(SnapshotError, match="restore it into"):
            one.restore(other.snapshot())
