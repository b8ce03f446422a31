"""Programs on their way to the executors: query text, options and background triples, compiled once per process.

Nothing compiled travels.  A process keeps what it made of a specification, so that its shards share it.  The driver
compiles it as well and compares every field of what comes out with the program it was given, so that what a
specification does not carry is an error and never another program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import msgspec
from etalis_compiler.ast import Document
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, CompiledQuery, compile_documents
from etalis_compiler.rewrites.reorder import AS_WRITTEN, Coupling

from etalis_py.engine.engine import Engine
from etalis_py.knowledge import Knowledge, load
from etalis_py.program import Program
from etalis_py.spark.shipping import Shipped, arrived


class SparkError(ValueError):
    """Something that cannot be run on Spark, or a state that does not belong to what is run."""


@dataclass(frozen=True, slots=True)
class TextSpec:
    """One text of a program, with what held at its end: the texts of a program may differ in prefixes and base."""

    text: str
    source: str
    prefixes: tuple[tuple[str, str], ...]
    base: str


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program as text.

    ``couplings`` has one for each query whose joins are not coupled as they are written, by its name.  ``background``
    is what ``pack`` made of the knowledge, or empty.
    """

    name: str
    texts: tuple[TextSpec, ...]
    policy: str
    background: bytes | Shipped = b""
    couplings: tuple[tuple[str, Coupling], ...] = ()


def spec_of(program: Program, name: str, knowledge: Knowledge | None) -> ProgramSpec:
    """The specification of a compiled program, checked to mean the same."""
    queries = program.compilation.queries
    texts: list[TextSpec] = []
    before: Source | None = None
    for query in queries:
        if query.source is not before:  # two equal texts are two all the same
            texts.append(TextSpec(query.source.text, query.source.name, query.prefixes, query.base))
            before = query.source
    couplings = tuple((q.name, q.coupling) for q in queries if q.coupling != AS_WRITTEN)
    spec = ProgramSpec(name, tuple(texts), program.policy, pack(knowledge), couplings)
    if differs := _differing(queries, _compiled(spec).queries):
        raise SparkError(
            f"the text of the program means something else without the options it was compiled with ({differs}); write "
            "what they say into the queries, as BASE and PREFIX are written"
        )
    return spec


def _differing(given: tuple[CompiledQuery, ...], made: tuple[CompiledQuery, ...]) -> str:
    """What the workers would not have as it was compiled here."""
    if [q.name for q in given] != [q.name for q in made]:
        return f"its queries are {', '.join(q.name for q in given)}, and would be {', '.join(q.name for q in made)}"
    for query, other in zip(given, made, strict=True):
        wrong = [f.name for f in fields(CompiledQuery) if getattr(query, f.name) != getattr(other, f.name)]
        if wrong:
            return f"the {' and the '.join(wrong)} of query {query.name}"
    return ""


def pack(knowledge: Knowledge | None) -> bytes:
    """What is stated in each graph, as bytes; whoever reads them closes the graphs again."""
    if knowledge is None:
        return b""
    if knowledge.programs:
        raise SparkError(
            "the background holds an answer-set program that reads events, and these are in many shards: run it with "
            "the local engine, or leave it out"
        )
    # In order, so that the same background is the same bytes in every run.
    graphs = {name: sorted(knowledge.stated(name)) for name in sorted(("", *knowledge.names()))}
    return msgspec.msgpack.encode([knowledge.entailment, graphs])


def unpack(data: bytes) -> Knowledge | None:
    if not data:
        return None
    entailment, graphs = msgspec.msgpack.decode(data)
    stated = {name: [tuple(triple) for triple in triples] for name, triples in graphs.items()}
    default = stated.pop("", [])
    return load([default], named={name: [triples] for name, triples in stated.items()}, entailment=entailment)


def documents_of(texts: Iterable[TextSpec]) -> list[tuple[Document, Source]]:
    """The texts of a specification, parsed."""
    return [
        (parse(t.text, source=t.source, base=t.base, prefixes=dict(t.prefixes)), Source(t.text, t.source))
        for t in texts
    ]


@lru_cache(maxsize=64)
def _compiled(spec: ProgramSpec) -> Compilation:
    made = compile_documents(documents_of(spec.texts))
    couplings = dict(spec.couplings)
    queries = tuple(replace(q, coupling=couplings.get(q.name, q.coupling)) for q in made.queries)
    return replace(made, queries=queries)


@lru_cache(maxsize=8)
def knowledge_of(data: bytes | Shipped) -> Knowledge | None:
    """The background in a specification, once in each process."""
    return unpack(arrived(data))


def _with_all(query: CompiledQuery) -> CompiledQuery:
    """A query without FROM: what was packed is what it had chosen."""
    dataset = tuple(clause for clause in query.syntax.dataset if clause.kind != "graph")
    return replace(query, syntax=replace(query.syntax, dataset=dataset))


def engine_of(spec: ProgramSpec, queries: Iterable[str], *, journal: bool = False) -> Engine:
    """An engine for some queries of a program."""
    wanted = frozenset(queries)
    compilation = _compiled(spec)
    chosen = Compilation(tuple(_with_all(q) for q in compilation.queries if q.name in wanted))
    return Engine(chosen, policy=spec.policy, background=knowledge_of(spec.background), journal=journal)
