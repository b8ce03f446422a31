"""Reads the snapshots and journals of earlier versions into the plain data of this one.

Engines of rules and engines of windows used to have separate formats, without a checksum.  Their data is converted to
the form of ``Engine.snapshot``; damage that can be detected raises ``SnapshotError``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from etalis_py.kernel.position import NEVER
from etalis_py.kernel.stored import SnapshotError, decoded

# The last byte is the version of the format.
RULES = b"ETALIS-SNAPSHOT\x02"
JOURNAL = b"ETALIS-JOURNAL\x02"
WINDOWS = b"ETALIS-WINDOWS\x02"
SHARD = b"ETALIS-WINDOW-SHARD\x01"

_COUNTED = ("events", "late", "matches", "instants", "inconsistent", "ignored")
_WINDOWS_COUNTED = ("events", "late", "unrouted", "outside", "evaluations", "matches")


def old_snapshot(raw: bytes) -> dict[str, Any] | None:
    """A snapshot of an earlier version; None if the bytes are something else.

    Its ``rules`` are the states of the rule stages in order, ``windows`` is that of all windowed queries and facts.
    """
    with damage_as_error():
        if raw.startswith(RULES):
            return _of_rules(decoded(raw[len(RULES) :]))
        if raw.startswith(SHARD):
            _, finished, inner = decoded(raw[len(SHARD) :])
            data = _of_windows(decoded(inner[len(WINDOWS) :]))
            data["position"]["finished"] = finished
            return data
        if raw.startswith(WINDOWS):
            return _of_windows(decoded(raw[len(WINDOWS) :]))
    return None


def old_journal(raw: bytes) -> dict[str, Any] | None:
    """A journal of an earlier version; None if the bytes are something else."""
    with damage_as_error():
        if raw.startswith(JOURNAL):
            entries, slices, updates, programs, position = decoded(raw[len(JOURNAL) :])
            stages = [{"kind": "rules", "entries": [entries, slices, programs]}]
            return {**_position(position), "updates": updates, "stages": stages}
    return None


def stages_of(data: dict[str, Any], kinds: list[tuple[str, frozenset[str]]]) -> list[dict[str, Any]]:
    """The stages of an old snapshot, for an engine whose stages have these kinds and query names."""
    rules = iter(data["rules"])
    windows = data["windows"]
    stages: list[dict[str, Any]] = []
    with damage_as_error():
        for kind, names in kinds:
            if kind == "rules":
                stages.append({"kind": kind, "state": next(rules)})
                continue
            if windows is None:
                raise SnapshotError("the snapshot holds no windows: restore it into an engine with the same program")
            own = (
                names if len([k for k, _ in kinds if k == "windows"]) > 1 else {*windows["queries"], *windows["facts"]}
            )
            parts = {part: {n: s for n, s in windows[part].items() if n in own} for part in ("queries", "facts")}
            stages.append({"kind": kind, "state": {**windows, **parts}})
        if next(rules, None) is not None or (windows is not None and all(kind == "rules" for kind, _ in kinds)):
            raise SnapshotError("the snapshot belongs to another program: restore it into an engine with the same one")
    return stages


@contextmanager
def damage_as_error() -> Iterator[None]:
    """Treat any error inside the block as damage to the stored bytes: the old formats have no checksum."""
    try:
        yield
    except SnapshotError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration, ArithmeticError, MemoryError) as fault:
        message = (
            f"the stored state is damaged, or of another program ({fault}); start without it, or replay the stream"
        )
        raise SnapshotError(message) from None


def _of_rules(data: dict[str, Any]) -> dict[str, Any]:
    return {**_position(data["position"]), "knowledge": [data["knowledge"]], "rules": [_rules(data)], "windows": None}


def _rules(data: dict[str, Any]) -> dict[str, Any]:
    """The state of rules: goals were rows, with their provenance after the columns."""
    goals = []
    for node, side, rows in data["stores"]:
        why = [row[-1] for row in rows] if data["explain"] else None
        columns = list(map(list, zip(*(row[:-1] if data["explain"] else row for row in rows), strict=True)))
        goals.append([node, side, columns, why])
    kept = ("nodes", "explain", "groups", "closures", "slices", "log", "programs")
    return {"goals": goals, **{name: data[name] for name in kept}}


def _position(old: dict[str, Any]) -> dict[str, Any]:
    """The position: the open instant was stored as triples, now it is events."""
    pending = [[start, old["now"], [[s, p, o]], stream, ""] for s, p, o, start, stream in old["pending"]]
    arrivals = max((n for _, n, _ in old["buffer"]), default=0)
    same = ("answered", "now", "closed", "started", "finished", "newest", "buffer")
    position = {**{name: old[name] for name in same}, "pending": pending, "arrivals": arrivals}
    return {"position": position, "counters": dict(zip(_COUNTED, old["counters"], strict=True))}


def _of_windows(body: list[Any]) -> dict[str, Any]:
    clock, counters, queries, first, instant, buffer, rules, facts, read_at, loaded = body
    now, done, newest, arrivals = clock
    inner = [decoded(raw[len(RULES) :]) for raw in rules]
    # The items of the open instant were in the windows already: they are taken out and added again when it closes.
    pending = [] if first is None else [first, *instant]
    if pending:
        queries = {name: _without(state, now) for name, state in queries.items()}
        facts = {name: [held, _earlier(waiting, now)] for name, (held, waiting) in facts.items()}
    position = {
        "now": now,
        "closed": done,
        "newest": newest,
        "arrivals": arrivals,
        "started": now != NEVER or done != NEVER,
        "finished": False,
        "pending": pending,
        "buffer": buffer,
        "answered": sorted({query for data in inner for query in data["position"]["answered"]}),
    }
    windows = {"meaning": "", "done": done, "queries": queries, "facts": facts, "graphs": [read_at, loaded]}
    return {
        "position": position,
        "counters": dict(zip(_WINDOWS_COUNTED, counters[: len(_WINDOWS_COUNTED)], strict=True)),
        "knowledge": [None, *(data["knowledge"] for data in inner)],
        "rules": [_rules(data) for data in inner],
        "windows": windows,
    }


def _without(query: list[Any], now: int) -> list[Any]:
    """A query without the items of the instant, which are at the end of the state of each window on a stream."""
    windows, *rest = query
    return [{name: _window_without(state, now) for name, state in windows.items()}, *rest]


def _window_without(state: list[Any], now: int) -> list[Any]:
    return state if len(state) == 2 else [*state[:-1], _earlier(state[-1], now)]


def _earlier(items: list[Any], now: int) -> list[Any]:
    return [item for item in items if item[1] < now]
