"""Snapshots and journals: what an engine remembers, as MessagePack with a header.

Only times and columns are written; what is decoded from them is made again on reading.  A snapshot names the nodes it
belongs to, so it can be read by an engine whose programs have these nodes, and refused with what differs otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from etalis_rules import program as ir

from etalis_py.engine.state import Because, Store, rebuilt
from etalis_py.events import Event

if TYPE_CHECKING:
    from etalis_py.engine.engine import Engine

MAGIC = b"ETALIS-SNAPSHOT\x02"
JOURNAL = b"ETALIS-JOURNAL\x02"


class SnapshotError(ValueError):
    """Bytes that are no snapshot, or one of another program."""


def write_snapshot(engine: Engine) -> bytes:
    """The state of an engine between two calls."""
    state = engine.state
    stores = []
    for (node, side), store in state.stores.items():
        width = store.layout.width
        goals = [_stored(x, width, engine.explain) for bucket in store.buckets.values() for x in bucket]
        stores.append([node, side, goals])
    data = {
        "nodes": sorted(state.nodes),
        "explain": engine.explain,
        "stores": stores,
        "groups": {name: group.snapshot() for name, group in state.groups.items()},
        "closures": {name: closure.snapshot() for name, closure in state.closures.items()},
        "slices": {name: sliced.passed for name, sliced in state.slices.items()},
        "log": [] if state.log is None else [list(x) for x in state.log.match(None, None, None, None)],
        "knowledge": None if engine.knowledge is None else engine.knowledge.snapshot(),
        "programs": engine.answer_sets.snapshot(),
        "position": _position(engine),
    }
    return MAGIC + msgspec.msgpack.encode(data)


def read_snapshot(engine: Engine, raw: bytes) -> None:
    """Put an engine into the state of a snapshot."""
    if raw[: len(MAGIC)] != MAGIC:
        raise SnapshotError("these bytes are no snapshot of this version; start without it, or replay the stream")
    data = _decoded(raw[len(MAGIC) :])
    _go_to_version(engine, data["knowledge"])
    state = engine.state
    if data["nodes"] != sorted(state.nodes):
        missing = len(set(data["nodes"]) ^ set(state.nodes))
        raise SnapshotError(
            f"the snapshot belongs to other rules ({missing} goals differ); restore it into an engine with the same "
            "programs, policy and background vocabulary"
        )
    if data["explain"] != engine.explain:
        raise SnapshotError("the snapshot was made with another setting of explain; use the same one")
    for (node, side), store in state.stores.items():
        store.clear()
        found = next((goals for n, s, goals in data["stores"] if (n, s) == (node, side)), [])
        fill(store, found, engine.explain)
    for name, group in state.groups.items():
        layout = state.layouts[group.node.child.node]
        if name in data["groups"]:
            group.restore(data["groups"][name], lambda x, layout=layout: rebuilt(layout, x))  # type: ignore[misc]
        else:
            group.clear()
    for name, closure in state.closures.items():
        closure.restore(data["closures"].get(name, []))
    for name, sliced in state.slices.items():
        sliced.passed = data["slices"].get(name, 0)
    state.log = None
    for s, p, o, start, end in data["log"]:
        state.history.add(start, end, ((s, p, o),))
    engine.answer_sets.restore(data["programs"])
    _go_to(engine, data["position"])
    state.journal.clear()
    engine.updates.clear()


def write_journal(engine: Engine) -> bytes:
    """Asserts and retracts since the last journal, what operators took in and the background learned, and where it is.

    Its size is that of what happened: updates of the background are told as they were given.
    """
    state = engine.state
    if not engine.journaling:
        raise ValueError("this engine keeps no journal: make it with Engine(…, journal=True)")
    keys = {store.number: (key, store.layout.width) for key, store in state.stores.items()}
    entries: list[list[Any]] = []
    for entry in state.journal:
        if isinstance(entry[0], int):
            number = entry[0] if entry[0] >= 0 else -entry[0] - 1
            if number not in keys:  # an update made other rules, and this node went with the old ones
                continue
            (node, side), width = keys[number]
            entries.append(["+" if entry[0] >= 0 else "-", node, side, _stored(entry[1], width, engine.explain)])
        elif entry[0]:
            if entry[0] not in state.nodes:
                continue
            width = state.layouts[ir.refs(state.nodes[entry[0]])[0].node].width
            entries.append(["o", entry[0], entry[1], [_stored(x, width, engine.explain) for x in entry[2]]])
        else:
            entries.append(["h", entry[1], entry[2]])
    state.journal.clear()
    slices = {name: sliced.passed for name, sliced in state.slices.items()}
    data = [entries, slices, engine.updates, engine.answer_sets.journal(), _position(engine)]
    raw = JOURNAL + msgspec.msgpack.encode(data)
    engine.updates.clear()
    return raw


def forget_journal(engine: Engine) -> None:
    """As if ``write_journal`` had been called, for whoever writes a snapshot instead."""
    engine.state.journal.clear()
    engine.updates.clear()
    engine.answer_sets.journal()


def read_journal(engine: Engine, raw: bytes) -> None:
    """Repeat what a journal says."""
    if raw[: len(JOURNAL)] != JOURNAL:
        raise SnapshotError("these bytes are no journal of this version; start from a snapshot, or replay the stream")
    entries, slices, updates, programs, position = _decoded(raw[len(JOURNAL) :])
    _learn(engine, updates)
    state = engine.state
    for entry in entries:
        match entry:
            case ["+", node, side, stored]:
                store = state.stores[(node, side)]
                store.add(store.rebuild(_solution(stored, store.layout.width, engine.explain)))
            case ["-", node, side, stored]:
                store = state.stores[(node, side)]
                store.remove(_solution(stored, store.layout.width, engine.explain))
            case ["o", name, t, rows]:
                layout = state.layouts[ir.refs(state.nodes[name])[0].node]
                solutions = [rebuilt(layout, _solution(x, layout.width, engine.explain)) for x in rows]
                engine._runtime.operator(name, state.nodes[name])(t, solutions)
            case ["h", t, occurrences]:
                for s, p, o, start, stream in occurrences:
                    state.history.add(start, t, ((s, p, o),), stream)
    for name, passed in slices.items():
        if name in state.slices:
            state.slices[name].passed = passed
    engine.answer_sets.apply(programs)
    _go_to(engine, position)
    state.journal.clear()
    engine.updates.clear()


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(raw)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the stored state is damaged ({error}); start without it, or replay the stream") from None


def _position(engine: Engine) -> dict[str, Any]:
    """Where an engine stands in its stream."""
    c = engine.counters
    return {
        "answered": sorted(engine._answered),
        "now": engine._now,
        "closed": engine.closed_at,
        "started": engine._started,
        "finished": engine.finished,
        "newest": engine._newest,
        "pending": [list(x) for x in engine._pending],
        "buffer": [[end, n, list(event)] for end, n, event in sorted(engine._buffer, key=lambda b: b[:2])],
        "counters": [c.events, c.late, c.matches, c.instants, c.inconsistent, c.ignored],
    }


def _go_to_version(engine: Engine, knowledge: dict[str, Any] | None) -> None:
    """Go to a version of the background; another vocabulary or schema makes other rules."""
    if knowledge is None:
        return
    if engine.knowledge is None:
        raise _no_background()
    if engine.knowledge.snapshot() != knowledge:
        engine.knowledge.restore(knowledge)
        engine.answer_sets.renew()
        engine._load()


def _learn(engine: Engine, updates: list[Any]) -> None:
    """Repeat updates of the background; where engines share it, it may have them already."""
    before = None if engine.knowledge is None else engine.knowledge.version
    if before is not None and updates and updates[0][0] <= before:
        engine.answer_sets.renew()
        engine._load()
    for version, graph, add, remove in updates:
        if engine.knowledge is None:
            raise _no_background()
        if version > engine.knowledge.version + 1:
            raise SnapshotError(
                f"the journal goes on from version {version - 1} of the background, this engine has version "
                f"{engine.knowledge.version}: apply the journals in order, after the snapshot they follow"
            )
        if version > engine.knowledge.version:
            engine.learn(graph, [tuple(t) for t in add], [tuple(t) for t in remove])


def _no_background() -> SnapshotError:
    return SnapshotError("the stored state belongs to an engine with background knowledge; give this one the same")


def _go_to(engine: Engine, position: dict[str, Any]) -> None:
    engine._answered = set(position["answered"])
    engine._now, engine.closed_at = position["now"], position["closed"]
    engine._started, engine.finished = position["started"], position["finished"]
    engine._newest = position["newest"]
    engine._pending = [tuple(x) for x in position["pending"]]
    engine._buffer = [(end, n, _event(raw)) for end, n, raw in position["buffer"]]
    c = engine.counters
    c.events, c.late, c.matches, c.instants, c.inconsistent, c.ignored = position["counters"]


def fill(store: Store, goals: Iterable[list[Any]], explain: bool) -> None:
    """Goals as they were stored, in their order."""
    width = store.layout.width
    for raw in goals:
        store.add(store.rebuild(_solution(raw, width, explain)))


def _solution(raw: list[Any], width: int, explain: bool) -> tuple[Any, ...]:
    columns = tuple(raw[:width])
    return (*columns, _provenance(raw[width])) if explain else columns


def _stored(x: tuple[Any, ...], width: int, explain: bool) -> list[Any]:
    return [*x[:width], _plain(x[-1])] if explain else list(x[:width])


def _plain(provenance: Because) -> list[Any]:
    """Provenance as plain data: ``[rule, parts]``."""
    parts = [_plain(p) if isinstance(p, Because) else list(p) if isinstance(p, tuple) else p for p in provenance.parts]
    return [provenance.rule, parts]


def _provenance(plain: list[Any]) -> Because:
    rule, parts = plain
    if rule == "event":
        return Because(rule, tuple(parts))
    if rule == "background":
        return Because(rule, tuple(tuple(pair) for pair in parts))
    return Because(rule, tuple(_provenance(p) for p in parts))


def _event(raw: list[Any]) -> Event:
    start, end, triples, stream, graph = raw
    return Event(start, end, tuple(tuple(t) for t in triples), stream, graph)
