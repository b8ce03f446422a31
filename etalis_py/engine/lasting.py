"""``run(…, checkpoint=…)``: the keeper of a run, from what was given in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from etalis_py.connectors.contracts import Sink
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


def kept(
    engine: Engine,
    program: Program,
    stream: Stream | Iterable[Any],
    lasting: Lasting,
    options: Mapping[str, Any],
    reading: Mapping[str, str],
) -> Keeper:
    """The keeper of a run, which has begun; ``options`` and the ``reading`` of rows must be the same the next time."""
    texts = [{"name": text.name, "digest": digest(text.text), "text": text.text} for _, text in program.documents]
    sources: list[dict[str, Any]] = [{"kind": "given", "name": type(stream).__name__, "format": "", "stream": ""}]
    if isinstance(stream, Stream):
        sources = [leaf.origin.identity | {"stream": leaf.name} for leaf in stream.leaves if leaf.origin is not None]
    sink = lasting.get("sink")
    identity = {
        "program": texts,
        "options": {name: options[name] for name in ("until", *_MEANING) if name in options},
        "reading": reading,
        "sources": sources,
        "sink": "the caller" if sink is None else getattr(sink, "name", type(sink).__name__),
    }

    def counts() -> dict[str, Any]:
        counters = engine.counters
        return {"events": counters.events, "matches": counters.matches, "late": counters.late,
                "goals": engine.count().goals}  # fmt: skip

    folder = Folder(lasting["checkpoint"] or "")
    keeper = Keeper(folder, Parts(engine, stream, sink, identity, None, counts),
                    every=lasting.get("checkpoint_every", EVERY))  # fmt: skip
    try:
        keeper.begin()
    except BaseException:
        keeper.close()
        raise
    return keeper
