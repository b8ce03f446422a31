"""Snapshots: what an engine remembers, as MessagePack with a header.

Only times and columns are written; what is decoded from them is made again on reading.  A snapshot names the nodes it
belongs to, so it can be read by an engine whose programs have these nodes, and refused with what differs otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from etalis_py.engine.state import Because, Store, rebuilt

if TYPE_CHECKING:
    from etalis_py.engine.engine import Engine

MAGIC = b"ETALIS-SNAPSHOT\x01"


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
        "answered": sorted(engine._answered),
        "now": engine._now,
        "closed": engine.closed_at,
        "started": engine._started,
        "finished": engine.finished,
        "newest": engine._newest,
        "pending": [list(x) for x in engine._pending],
        "buffer": [[end, n, list(event)] for end, n, event in sorted(engine._buffer, key=lambda b: b[:2])],
        "counters": [engine.counters.events, engine.counters.late, engine.counters.matches, engine.counters.instants],
    }
    return MAGIC + msgspec.msgpack.encode(data)


def read_snapshot(engine: Engine, raw: bytes) -> None:
    """Put an engine into the state of a snapshot."""
    from etalis_py.events import Event

    if raw[: len(MAGIC)] != MAGIC:
        raise SnapshotError("these bytes are no snapshot of this version; start without it, or replay the stream")
    try:
        data = msgspec.msgpack.decode(raw[len(MAGIC) :])
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the snapshot is damaged ({error}); start without it, or replay the stream") from None
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
        store.buckets.clear()
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
    engine._answered = set(data["answered"])
    engine._now, engine.closed_at = data["now"], data["closed"]
    engine._started, engine.finished = data["started"], data["finished"]
    engine._newest = data["newest"]
    engine._pending = [tuple(x) for x in data["pending"]]
    engine._buffer = [(end, n, _event(Event, raw_event)) for end, n, raw_event in data["buffer"]]
    c = engine.counters
    c.events, c.late, c.matches, c.instants = data["counters"]


def fill(store: Store, goals: Iterable[list[Any]], explain: bool) -> None:
    """Goals as they were stored, in their order."""
    width = store.layout.width
    for raw in goals:
        x: tuple[Any, ...] = tuple(raw[:width])
        if explain:
            x = (*x, _provenance(raw[width]))
        store.add(store.rebuild(x))


def _stored(x: tuple[Any, ...], width: int, explain: bool) -> list[Any]:
    return [*x[:width], _plain(x[-1])] if explain else list(x[:width])


def _plain(provenance: Any) -> Any:
    """Provenance as lists: ``[rule, parts]`` for a rule, a tagged list for an event or knowledge."""
    if isinstance(provenance, Because):
        return ["rule", provenance.rule, [_plain(p) for p in provenance.parts]]
    return [list(item) if isinstance(item, tuple) else item for item in provenance]


def _provenance(plain: Any) -> Any:
    if plain[0] == "rule":
        return Because(plain[1], tuple(_provenance(p) for p in plain[2]))
    if plain[0] == "background":
        return ("background", tuple(tuple(item) for item in plain[1]))
    return tuple(plain)


def _event(make: Any, raw: list[Any]) -> Any:
    start, end, triples, stream, graph = raw
    return make(start, end, tuple(tuple(t) for t in triples), stream, graph)
