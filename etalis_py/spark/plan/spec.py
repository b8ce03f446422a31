"""Specifications: programs as they travel to executors, as query text, options and background triples.

Nothing compiled travels.  A process compiles a specification once and keeps the result, so that its shards share it.
The driver compiles the specification as well and compares every field of the result with the program it was given.  So
if a specification cannot express something, that is an error, and executors never run a different program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.families import wording_of
from etalis_compiler.families.gathering import CompileOptions
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, CompiledQuery, QueryNames, compile_documents
from etalis_compiler.rewrites.reorder import AS_WRITTEN, JoinOrder
from etalis_compiler.rsp import Strategy

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program, program_of
from etalis_py.engine.query_families import GatheredQueries, Member, QueryFamily, member
from etalis_py.kernel.dataset import whole
from etalis_py.knowledge import Knowledge, load
from etalis_py.knowledge.graph_selection import ChosenKnowledge
from etalis_py.spark.errors import SparkError
from etalis_py.spark.shard.ship_background import Shipped, arrived
from etalis_py.values.limits import LIMITS, Limits

if TYPE_CHECKING:
    from etalis_py.knowledge.asp_interface import AspProgram

AspText = tuple[str, str]
"""The name and the text of an answer-set program."""

Own = Callable[[Member], bool]
"""A test whether a query of a family belongs to this engine."""
NO_OWN: Mapping[str, Own] = MappingProxyType({})

Reports = tuple[tuple[str, tuple[Strategy, ...]], ...]
"""The report policies of windowed queries, by name."""


@dataclass(frozen=True, slots=True)
class TextSpec:
    """One text of a program, with the prefixes and base at its end: the texts of a program may differ in them.

    ``identities``: those of its queries, which may depend on the other texts of the program and on where it came from.
    """

    text: str
    source: str
    prefixes: tuple[tuple[str, str], ...]
    base: str
    identities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """A family of queries: one of its texts, and the name, constants, place and identity of each query, packed."""

    text: str
    members: bytes


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program as text.

    ``couplings`` has, by name, one for each query whose joins are not coupled as written.  ``background`` is the packed
    knowledge (``pack``), or empty; ``live`` are its answer-set programs that read events, ``limits`` what they may
    cost.  ``windowed``: some query has windows; ``preset``, ``report`` and ``duplicates`` are the options for these.
    ``families`` are those of its queries that differ only in constants; ``places`` then has the name and the place in
    the program of each of the others.  ``updates``: the background changes while it runs, in ``shards`` shards;
    ``static`` are then the answer-set programs that are solved again.  ``engine_limits`` are those of each engine.
    """

    name: str
    texts: tuple[TextSpec, ...]
    policy: str
    background: bytes | Shipped = b""
    couplings: tuple[tuple[str, JoinOrder], ...] = ()
    windowed: bool = False
    preset: str = ""
    report: Reports = ()
    duplicates: bool = False
    live: tuple[AspText, ...] = ()
    limits: Limits = LIMITS
    families: tuple[FamilySpec, ...] = ()
    places: tuple[tuple[str, int], ...] = ()
    updates: bool = False
    shards: int = 1
    static: tuple[AspText, ...] = ()
    engine_limits: Limits = LIMITS


def with_updates(spec: ProgramSpec, engine: Engine, shards: int) -> ProgramSpec:
    """The specification if the background changes while the program runs: with all of the background as stated."""
    try:
        engine.check_change()
    except ValueError as error:
        raise SparkError(str(error)) from None
    known = engine.knowledge
    if isinstance(known, ChosenKnowledge) and known.own:
        raise SparkError(
            "the program derives triples from the background that its FROM chooses, and the background changes while "
            "it runs, which does not go together on Spark: state these triples in a graph, or run it with the local "
            "engine"
        )
    base = whole(known)
    assert base is not None, "what is to change is there"
    static = tuple((program.source, program.text) for program in base.static)
    return replace(spec, updates=True, shards=shards, background=pack(base, offers=False), static=static)


def spec_of(
    program: Program, name: str, knowledge: Knowledge | None, report: Reports = (), *, duplicates: bool = False
) -> ProgramSpec:
    """The specification of a compiled program, verified to mean the same."""
    if program.windowed:
        return _windowed_spec(program, name, knowledge, report, duplicates)
    families, places = _families_of(program.compilation)
    queries = _alone(program.compilation)
    texts: list[TextSpec] = []
    for _, each in groupby(queries, key=lambda query: id(query.source)):  # two equal texts still count as two
        query, *others = each
        identities = (query.identity, *(other.identity for other in others))
        texts.append(TextSpec(query.source.text, query.source.name, query.prefixes, query.base, identities))
    couplings = tuple((q.name, q.coupling) for q in queries if q.coupling != AS_WRITTEN)
    spec = ProgramSpec(name, tuple(texts), program.policy, pack(knowledge), couplings)
    spec = replace(spec, families=families, places=places)
    if knowledge is not None:
        live = tuple((program.source, program.text) for program in knowledge.programs)
        spec = replace(spec, live=live, limits=knowledge.limits)
    if differs := _differing(queries, _alone(compiled(spec).compilation)):
        raise SparkError(
            f"the text of the program means something else without the options it was compiled with ({differs}); write "
            "what they say into the queries, as BASE and PREFIX are written"
        )
    return spec


def _alone(compilation: Compilation) -> tuple[CompiledQuery, ...]:
    """The queries that are compiled by themselves."""
    return compilation.rest if isinstance(compilation, GatheredQueries) else compilation.queries


def _families_of(
    compilation: Compilation,
) -> tuple[tuple[FamilySpec, ...], tuple[tuple[str, int], ...]]:
    """The families of a program, and the places of its other queries."""
    if not isinstance(compilation, GatheredQueries):
        return (), ()
    families = []
    for group in compilation.groups:
        wording, count = group.template.wording, len(group.template.places) + 2
        rows = msgspec.msgpack.encode([(*row[:count], row[-1]) for row in group.members])
        families.append(FamilySpec(wording.written(wording.constants), rows))
    places = zip((query.name for query in compilation.rest), compilation.places, strict=True)
    return tuple(families), tuple(places)


def _group_of(family: FamilySpec, policy: str) -> QueryFamily:
    """The family from its specification."""
    text = Source(family.text)
    wording = wording_of(text)
    template = None if wording is None else CompileOptions("", {}, AS_WRITTEN, policy).template(text, wording)
    assert template is not None, "the driver has made a family of this text"
    rows: list[Member] = [
        member(name, constants, place, template.is_numeric, identity)
        for name, *constants, place, identity in msgspec.msgpack.decode(family.members)
    ]
    return QueryFamily(template, tuple(rows), policy)


def _windowed_spec(
    program: Program, name: str, knowledge: Knowledge | None, report: Reports, duplicates: bool
) -> ProgramSpec:
    names = QueryNames()
    texts = tuple(
        TextSpec(
            source.text,
            source.name,
            document.prefixes,
            document.base,
            tuple(names.take(query, source, len(document.queries))[1] for query in document.queries),
        )
        for document, source in program.documents
    )
    if knowledge is not None and knowledge.programs:
        raise SparkError(
            "the background holds an answer-set program that reads events, and the program has windows, which do not "
            "run together on Spark: run it with the local engine, or leave one of the two out"
        )
    spec = ProgramSpec(
        name, texts, program.policy, pack(knowledge), (), True, program.preset, report, duplicates=duplicates
    )
    if meaning(compiled(spec)) != meaning(program):
        raise SparkError(
            "the text of the program means something else without the options it was compiled with; write its BASE "
            "and PREFIX into the queries"
        )
    return spec


def meaning(program: Program) -> tuple[Any, ...]:
    """The parts of a compiled program that determine its answers, for comparison."""
    rules = [(query.name, query.algebra, query.template) for query in program.compilation.queries]
    return program.plans, program.facts, rules


def _differing(given: tuple[CompiledQuery, ...], compiled: tuple[CompiledQuery, ...]) -> str:
    """The names of the fields that the workers would compile differently."""
    if [q.name for q in given] != [q.name for q in compiled]:
        return f"its queries are {', '.join(q.name for q in given)}, and would be {', '.join(q.name for q in compiled)}"
    for query, other in zip(given, compiled, strict=True):
        wrong = [f.name for f in fields(CompiledQuery) if getattr(query, f.name) != getattr(other, f.name)]
        if wrong:
            return f"the {' and the '.join(wrong)} of query {query.name}"
    return ""


def pack(knowledge: Knowledge | None, *, offers: bool = True) -> bytes:
    """The stated triples of each graph (with ``offers`` also the offered ones) as bytes.

    Entailed triples are left out, so the reader has to close the graphs again.
    """
    if knowledge is None:
        return b""
    # In order, so that the same background gives the same bytes in every run.
    names = sorted(("", *knowledge.names()))
    graphs = {name: sorted(knowledge.stated(name)) if offers else knowledge.said(name) for name in names}
    return msgspec.msgpack.encode([knowledge.entailment, graphs])


def unpack(data: bytes, live: Iterable[AspText] = (), limits: Limits = LIMITS) -> Knowledge | None:
    """The background from ``pack``, with the answer-set programs of these texts."""
    if not data:
        return None
    entailment, graphs = msgspec.msgpack.decode(data)
    stated = {name: [tuple(triple) for triple in triples] for name, triples in graphs.items()}
    default = stated.pop("", [])
    named = {name: [triples] for name, triples in stated.items()}
    return load([default], named=named, entailment=entailment, limits=limits, programs=_programs(live))


def _programs(texts: Iterable[AspText]) -> Iterable[AspProgram]:
    for source, text in texts:
        from etalis_py.knowledge.asp_interface import parse_program  # clingo takes a while to load

        yield parse_program(text, source)


def documents_of(texts: Iterable[TextSpec]) -> list[tuple[ast.Document, Source]]:
    """The texts of a specification, parsed."""
    documents = []
    for t in texts:
        document = parse(t.text, source=t.source, base=t.base, prefixes=dict(t.prefixes))
        identified = zip(document.queries, t.identities, strict=True)
        queries = tuple(replace(query, identity=identity) for query, identity in identified)
        documents.append((replace(document, queries=queries), Source(t.text, t.source)))
    return documents


@lru_cache(maxsize=64)
def compiled(spec: ProgramSpec) -> Program:
    """The program of a specification, compiled once in each process."""
    documents = documents_of(spec.texts)
    if spec.windowed:
        return program_of(documents, policy=spec.policy, preset=spec.preset)
    if spec.families:
        documents = _as_named(documents, [name for name, _ in spec.places])
    compilation = compile_documents(documents)
    couplings = dict(spec.couplings)
    queries = tuple(replace(q, coupling=couplings.get(q.name, q.coupling)) for q in compilation.queries)
    if not spec.families:
        return Program(replace(compilation, queries=queries), spec.policy)
    groups = [_group_of(family, spec.policy) for family in spec.families]
    return Program(GatheredQueries(queries, [place for _, place in spec.places], groups), spec.policy)


def _as_named(
    documents: Iterable[tuple[ast.Document, Source]], names: Iterable[str]
) -> list[tuple[ast.Document, Source]]:
    """The documents, with their queries named as in the whole program."""
    following = iter(names)
    named = []
    for document, source in documents:
        registers = [ast.Register("QUERY", next(following), span=query.span) for query in document.queries]
        queries = zip(document.queries, registers, strict=True)
        own = tuple(query if query.register else replace(query, register=new) for query, new in queries)
        named.append((replace(document, queries=own), source))
    return named


def knowledge_of(spec: ProgramSpec, *, live: bool = True) -> Knowledge | None:
    """The background in a specification, once in each process; ``live``: with the programs that read events."""
    return _shared(spec.background, spec.static + spec.live * live, spec.limits)


def changing_knowledge(spec: ProgramSpec, *, live: bool = True) -> Knowledge | None:
    """The background in a specification; if it changes while the program runs, a separate copy for one engine."""
    if not spec.updates:
        return knowledge_of(spec, live=live)
    return unpack(arrived(spec.background), spec.static + spec.live * live, spec.limits)


@lru_cache(maxsize=8)
def _shared(data: bytes | Shipped, programs: tuple[AspText, ...], limits: Limits) -> Knowledge | None:
    return unpack(arrived(data), programs, limits)


def _with_all(query: CompiledQuery) -> CompiledQuery:
    """The query without FROM: the packed background is what FROM chose."""
    dataset = tuple(clause for clause in query.syntax.dataset if clause.kind != "graph")
    return replace(query, syntax=replace(query.syntax, dataset=dataset))


def _part_of(spec: ProgramSpec, queries: Iterable[str], own: Mapping[str, Own]) -> Program:
    """Some of the queries: rules, or windows that run apart from the rules, or the whole program."""
    wanted = frozenset(queries)
    program = compiled(spec)
    if own and isinstance(program.compilation, GatheredQueries):
        groups = [
            replace(group, members=tuple(filter(own[group.name], group.members)))
            for group in program.compilation.groups
        ]
        return Program(GatheredQueries((), (), groups), spec.policy)
    if isinstance(program.compilation, GatheredQueries):
        chosen = tuple(query for query in program.compilation.rest if query.name in wanted)
        return Program(Compilation(chosen), spec.policy)
    if not spec.windowed:
        every = program.compilation.queries
        chosen = tuple(q if spec.updates else _with_all(q) for q in every if q.name in wanted)
        return Program(Compilation(chosen), spec.policy)
    if wanted >= set(program.queries):
        return program
    plans = tuple(plan for plan in program.plans if plan.name in wanted)
    return replace(program, plans=plans, compilation=Compilation(()))


def engine_of(
    spec: ProgramSpec,
    queries: Iterable[str],
    *,
    live: bool = False,
    share: tuple[int, int] = (0, 1),
    journal: bool = False,
    revise: int = 0,
    own: Mapping[str, Own] = NO_OWN,
    kind: type[Engine] = Engine,
) -> Engine:
    """An engine for some queries of a program; ``live``: with the answer-set programs that read events.

    ``share``: the shard whose keys these programs are solved for, and the number of shards.  ``own`` says for each
    family, if families run, which of its queries belong to this engine.  ``kind``: the class of engines.
    """
    program = _part_of(spec, queries, own)
    names = {plan.name for plan in program.plans}
    knowledge = changing_knowledge(spec, live=live)
    return kind(
        program,
        background=knowledge if knowledge is None else knowledge.with_keys_of(share),
        changes=spec.updates,
        journal=journal,
        revise=revise,
        report={query: report for query, report in spec.report if query in names} if program.windowed else None,
        duplicates=spec.duplicates,
        stream=compiled(spec).unnamed if program.windowed else None,
        limits=spec.engine_limits,
    )


def fingerprint(spec: ProgramSpec, queries: Iterable[str]) -> str:
    """A fingerprint of the meaning of windowed queries: state belongs only to queries with the same one."""
    program = _part_of(spec, queries, NO_OWN)
    reports = [(query, report) for query, report in spec.report if query in program.queries]
    means = (*meaning(program), reports, spec.duplicates, spec.policy)
    return blake2b(repr(means).encode(), digest_size=16).hexdigest()
