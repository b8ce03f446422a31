"""``run(…, checkpoint=…)``: the keeper of a run, from what was given in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from etalis_py.connectors.contracts import Sink, check_contract
from etalis_py.durable.folder import Folder
from etalis_py.durable.identity import digest, file_digest
from etalis_py.durable.keeper import EVERY, Keeper, Parts
from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.streams import Stream

_MEANING = ("policy", "entailment", "lateness", "revise", "eager", "explain", "duplicates", "start", "stream", "ties")


class Lasting(TypedDict, total=False):
    """The keywords of ``run`` for a run that goes on in another process."""

    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    sink: Sink | None


def reading_of(mapping: Any, time: str, subject: str | None) -> dict[str, str]:
    """How rows become events, as text."""
    made = ""
    if isinstance(mapping, str | os.PathLike):
        made = file_digest(os.fspath(mapping))
    elif mapping is not None:
        made = digest(json.dumps(mapping, sort_keys=True, default=str))
    return {"the content of mapping": made, "time": time, "subject": str(subject)}


def texts_of(program: Program) -> list[dict[str, str]]:
    """The texts of a program in an identity, whole, so that a difference can be shown."""
    return [{"name": text.name, "digest": digest(text.text), "text": text.text} for _, text in program.documents]


def sources_of(stream: Stream | Iterable[Any]) -> list[dict[str, Any]]:
    """What is read, in an identity; of objects that are no stream of ours, the kind."""
    if isinstance(stream, Stream):
        return [leaf.origin.identity | {"stream": leaf.name} for leaf in stream.leaves if leaf.origin is not None]
    return [{"kind": "given", "name": type(stream).__name__, "format": "", "stream": ""}]


def counts_of(engine: Engine) -> Callable[[], dict[str, int]]:
    """The figures about a run that stand in its checkpoints for people."""

    def counts() -> dict[str, int]:
        counters = engine.counters
        return {"events": counters.events, "matches": counters.matches, "late": counters.late,
                "goals": engine.count().goals}  # fmt: skip

    return counts


def kept(
    engine: Engine,
    program: Program,
    stream: Stream | Iterable[Any],
    lasting: Lasting,
    options: Mapping[str, Any],
    reading: Mapping[str, str],
) -> Keeper:
    """The keeper of a run, which has begun; ``options`` and the ``reading`` of rows must be the same the next time."""
    sink = lasting.get("sink")
    if sink is not None:
        check_contract(sink, Sink)
    identity = {
        "program": texts_of(program),
        "options": {name: options[name] for name in ("until", *_MEANING) if name in options},
        "reading": reading,
        "sources": sources_of(stream),
        "sink": "the caller" if sink is None else getattr(sink, "name", type(sink).__name__),
    }
    parts = Parts(engine, stream, sink, identity, None, counts_of(engine))
    keeper = Keeper(Folder(lasting["checkpoint"] or ""), parts, every=lasting.get("checkpoint_every", EVERY))
    try:
        keeper.begin()
    except BaseException:
        keeper.close()
        raise
    return keeper
