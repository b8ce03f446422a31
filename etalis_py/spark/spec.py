"""Programs on their way to the executors: query text, options and background triples, compiled once per process.

Nothing compiled travels.  A process keeps what it made of a specification, so that its shards share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import Compilation, compile_sources

from etalis_py.engine.engine import Engine
from etalis_py.knowledge import Knowledge, load
from etalis_py.program import Program


class SparkError(ValueError):
    """Something that cannot be run on Spark, or a state that does not belong to what is run."""


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program as text.  ``background`` is what ``pack`` made of the knowledge, or empty."""

    name: str
    texts: tuple[tuple[str, str], ...]
    prefixes: tuple[tuple[str, str], ...]
    policy: str
    background: bytes = b""


def spec_of(program: Program, name: str, knowledge: Knowledge | None) -> ProgramSpec:
    """The specification of a compiled program, checked to mean the same."""
    compilation = program.compilation
    texts = tuple(dict.fromkeys((q.source.text, q.source.name) for q in compilation.queries))
    prefixes: dict[str, str] = {}
    for query in compilation.queries:
        for prefix, iri in query.prefixes:
            prefixes.setdefault(prefix, iri)
    spec = ProgramSpec(name, texts, tuple(prefixes.items()), program.policy, pack(knowledge))
    if _meaning(compilation) != _meaning(_compiled(spec)):
        raise SparkError(
            "the text of the program means something else without the options it was compiled with; write its BASE "
            "and PREFIX into the queries"
        )
    return spec


def _meaning(compilation: Compilation) -> list[Any]:
    return [(q.name, q.algebra, q.template) for q in compilation.queries]


def pack(knowledge: Knowledge | None) -> bytes:
    """What is stated in each graph, as bytes; whoever reads them closes the graphs again."""
    if knowledge is None:
        return b""
    if knowledge.programs:
        raise SparkError(
            "the background holds an answer-set program that reads events, and these are in many shards: run it with "
            "the local engine, or leave it out"
        )
    graphs = {name: list(knowledge.stated(name)) for name in ("", *knowledge.names())}
    return msgspec.msgpack.encode([knowledge.entailment, graphs])


def unpack(data: bytes) -> Knowledge | None:
    if not data:
        return None
    entailment, graphs = msgspec.msgpack.decode(data)
    stated = {name: [tuple(triple) for triple in triples] for name, triples in graphs.items()}
    default = stated.pop("", [])
    return load([default], named={name: [triples] for name, triples in stated.items()}, entailment=entailment)


@lru_cache(maxsize=64)
def _compiled(spec: ProgramSpec) -> Compilation:
    sources = [Source(text, name) for text, name in spec.texts]
    return compile_sources(sources, prefixes=dict(spec.prefixes))


@lru_cache(maxsize=8)
def _knowledge(data: bytes) -> Knowledge | None:
    return unpack(data)


def engine_of(spec: ProgramSpec, queries: Iterable[str], *, journal: bool = False) -> Engine:
    """An engine for some queries of a program."""
    wanted = frozenset(queries)
    compilation = _compiled(spec)
    chosen = Compilation(tuple(q for q in compilation.queries if q.name in wanted))
    return Engine(chosen, policy=spec.policy, background=_knowledge(spec.background), journal=journal)
