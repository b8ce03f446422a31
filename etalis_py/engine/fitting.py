"""State for an engine whose programs have changed since it was written.

What belongs to goals that the engine does not have is left out; goals that only the engine has begin empty, as those of
a program that is added to a running engine do.  The background is the engine's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from etalis_py.engine.snapshots import JOURNAL, MAGIC, SnapshotError

if TYPE_CHECKING:
    from etalis_py.engine.engine import Engine


def fitted_snapshot(engine: Engine, raw: bytes) -> bytes:
    """The snapshot with what this engine can go on with, to be restored by it."""
    data = _read(raw, MAGIC)
    data |= {"nodes": sorted(engine.state.nodes), "knowledge": None, "position": _fitted(engine, data["position"])}
    return MAGIC + msgspec.msgpack.encode(data)


def fitted_journal(engine: Engine, raw: bytes) -> bytes:
    """The same for a journal."""
    entries, slices, _, *more, position = _read(raw, JOURNAL)
    kept = [entry for entry in entries if _is_known(engine, entry)]
    return JOURNAL + msgspec.msgpack.encode([kept, slices, [], *more, _fitted(engine, position)])


def _read(raw: bytes, magic: bytes) -> Any:
    if raw[: len(magic)] != magic:
        raise SnapshotError("these bytes are no state of this version; start without it, or replay the stream")
    try:
        return msgspec.msgpack.decode(raw[len(magic) :])
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the stored state is damaged ({error}); replay the stream") from None


def _is_known(engine: Engine, entry: list[Any]) -> bool:
    match entry:
        case ["o", node, *_]:
            return node in engine.state.nodes
        case ["+" | "-", node, side, _]:
            return (node, side) in engine.state.stores
    return True


def _fitted(engine: Engine, position: dict[str, Any]) -> dict[str, Any]:
    running = {output.query for output in engine.rules.outputs}
    return {**position, "answered": [query for query in position["answered"] if query in running]}
