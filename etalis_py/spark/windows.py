"""Windowed programs on Spark: what travels to the executors, and the parts that they are computed in.

A query that can be divided by a key (``etalis_compiler.rsp.sharding``) is a part of many shards; each takes the triples
of its keys, and its windows slide inside.  Queries that feed one another are one part.  What cannot be divided is a
part of one shard, which takes whole items: their graphs, and which triples came together.  EP-SPARQL queries of the
program are parts as everywhere, unless windows and they may feed one another: then all of it runs in one shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, compile_sources
from etalis_compiler.printer import to_text
from etalis_compiler.rsp import Strategy, WindowPlan
from etalis_compiler.rsp.sharding import WindowShards, divide, networks, waits_for_items
from etalis_compiler.windowed import is_windowed
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.engine import Engine
from etalis_py.knowledge import Knowledge
from etalis_py.program import Program, source_of
from etalis_py.spark.parts import Part, RoutedPart, parts_of, selects_of
from etalis_py.spark.shipping import Shipped
from etalis_py.spark.spec import ProgramSpec, SparkError, TextSpec, documents_of, knowledge_of, pack, spec_of
from etalis_py.windows.engine import WindowEngine
from etalis_py.windows.program import WindowProgram, windows_of

Reports = tuple[tuple[str, tuple[Strategy, ...]], ...]


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A windowed program as text.  ``report`` replaces the report policies of queries; ``duplicates``: see the engine.

    ``background`` is what ``pack`` made of the knowledge, or empty.
    """

    name: str
    texts: tuple[TextSpec, ...]
    preset: str = ""
    report: Reports = ()
    duplicates: bool = False
    policy: str = "unrestricted"
    background: bytes | Shipped = b""


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """What may be asked of windowed queries beside their text; see ``WindowEngine``."""

    report: Mapping[str, Iterable[Strategy]] | None = None
    duplicates: bool = False

    def of(self, program: WindowProgram) -> Reports:
        """The report policies that this program is given."""
        given = self.report or {}
        found = [(p.name, given.get(p.name, given.get(""))) for p in program.plans]
        return tuple((name, tuple(report)) for name, report in found if report is not None)


def has_windows(given: str | Path) -> bool:
    """Whether a text or file holds a windowed query."""
    source = source_of(given)
    return any(map(is_windowed, parse(source.text, source=source.name).queries))


def plan_windows(
    program: WindowProgram,
    name: str,
    knowledge: Knowledge | None,
    policy: str,
    options: WindowOptions,
    *,
    number: int,
    first: int,
    shards: int,
) -> tuple[list[ProgramSpec | WindowSpec], list[RoutedPart]]:
    """The specifications of a windowed program (numbers begin with ``number``) and its parts (with ``first``)."""
    report = dict(options.of(program))
    engine = WindowEngine(program, background=knowledge, report=report, duplicates=options.duplicates, policy=policy)
    # What rules derive from the background alone is in the engine's knowledge now, and travels with it.
    known = engine.knowledge if knowledge is not None or len(engine.knowledge.default) else None
    plans = tuple(query.plan for query in engine.queries)
    spec = _spec(program, name, known, policy, options)
    specs: list[ProgramSpec | WindowSpec] = [spec]
    together = _together(program)
    if together:
        parts = [_placed(_whole(program.queries, (), shards, together), number, first, program, spec)]
        return specs, _ordered(parts, engine)
    drafts = [_part_of_network(group, known, options.duplicates, shards) for group in networks(plans)]
    parts = [_placed(draft, number, first + n, program, spec) for n, draft in enumerate(drafts)]
    if program.rules is not None:
        specs.append(spec_of(_rules_alone(program.rules, policy), name, known))
        rules = Engine(program.rules, policy=policy, background=known).rules
        parts += parts_of(rules, number + 1, first + len(parts), shards)
    return specs, _ordered(parts, engine)


def _ordered(parts: Iterable[RoutedPart], engine: WindowEngine) -> list[RoutedPart]:
    """The parts with the order in which the queries of the whole program report."""
    order = tuple((output.query, rank) for rank, output in enumerate(engine.outputs))
    return [
        replace(
            routed,
            part=replace(routed.part, order=order, selects=selects_of(routed.part.reports, engine.outputs)),
        )
        for routed in parts
    ]


# --- parts -----------------------------------------------------------------------------------------------------


def _together(program: WindowProgram) -> str:
    """Why the windows and the EP-SPARQL queries of a program cannot be computed apart; empty where they can."""
    rules = () if program.rules is None else program.rules.compilation.queries
    if program.facts:
        return "facts hold over all streams"
    if not rules:
        return ""
    made = {q.syntax.register.name for q in rules if q.syntax.register is not None}
    if any(p.feeds or p.streams & made for p in program.plans):
        return "windows and EP-SPARQL queries of the program may feed one another"
    asked = (part for q in rules for part in alg.subpatterns(alg.SubSelect(q.algebra)))
    if program.unnamed and any(getattr(part, "stream", "") == program.unnamed for part in asked):
        return f"an EP-SPARQL query reads {program.unnamed}, to which events belong that name no stream"
    return ""


def _part_of_network(
    group: tuple[WindowPlan, ...], known: Knowledge | None, duplicates: bool, shards: int
) -> RoutedPart:
    names = tuple(p.name for p in group)
    divided = _divided(group, known, duplicates)
    if divided.reason:
        streams = {s for p in group for s in p.streams} - {p.feeds for p in group}
        idle = not all(map(waits_for_items, group))  # then events of other streams let time pass, too
        return _whole(names, () if idle else tuple(sorted(streams)), shards, divided.reason)
    reason = "by " + ", ".join(f"?{key} of {query}" for query, key in divided.keys) if shards > 1 else ONE
    return RoutedPart(Part(0, 0, shards, names, names, keys=divided.keys, reason=reason), divided.routes)


ONE = "one shard was asked for"


def _divided(group: tuple[WindowPlan, ...], known: Knowledge | None, duplicates: bool) -> WindowShards:
    """How a network of queries is divided, with what the text alone does not tell."""
    if duplicates:
        return WindowShards(group, reason="how often a triple is stated depends on whole items")
    if known is not None and known.entailment != "rdf" and (known.schema.specimens or known.schema.classes.forward):
        return WindowShards(group, reason="the schema entails triples of other keys")
    return divide(group, stored=known is not None)


def _whole(queries: tuple[str, ...], streams: tuple[str, ...], shards: int, why: str) -> RoutedPart:
    """A part of one shard that takes whole items: of some streams, or (without ``streams``) all."""
    anything = (alg.Var("s"), alg.Var("p"), alg.Var("o"))
    routes = tuple((ir.Leaf((), *anything, stream), "") for stream in streams)
    part = Part(0, 0, 1, queries, queries, reason=f"one shard: {why}" if shards > 1 else ONE)
    return RoutedPart(part, routes, everything=not streams, items=True)


def _placed(draft: RoutedPart, number: int, part: int, program: WindowProgram, spec: WindowSpec) -> RoutedPart:
    """The part in its job, with what its queries mean."""
    queries = draft.part.queries
    means = fingerprint(spec, queries)
    return replace(
        draft,
        part=replace(draft.part, number=part, program=number),
        unnamed=program.unnamed,
        meanings=tuple((query, means) for query in queries),
    )


# --- what travels ----------------------------------------------------------------------------------------------


def _spec(
    program: WindowProgram, name: str, known: Knowledge | None, policy: str, options: WindowOptions
) -> WindowSpec:
    texts = tuple(
        TextSpec(source.text, source.name, document.prefixes, document.base) for document, source in program.documents
    )
    spec = WindowSpec(name, texts, program.preset, options.of(program), options.duplicates, policy, pack(known))
    there = _compiled(spec)
    if _means(there) != _means(program):
        raise SparkError(
            "the text of the program means something else without the options it was compiled with; write its BASE "
            "and PREFIX into the queries"
        )
    return spec


def _means(program: WindowProgram) -> tuple[Any, ...]:
    """What a program means, to compare."""
    rules = [] if program.rules is None else _meaning(program.rules.compilation)
    return program.plans, program.facts, rules


def _meaning(compilation: Compilation) -> list[Any]:
    return [(q.name, q.algebra, q.template) for q in compilation.queries]


def _rules_alone(rules: Program, policy: str) -> Program:
    """The EP-SPARQL queries of a program as texts of their own."""
    texts = [Source(to_text(q.syntax), q.source.name) for q in rules.compilation.queries]
    compilation = compile_sources(texts)
    if _meaning(compilation) != _meaning(rules.compilation):
        raise SparkError("the EP-SPARQL queries mean something else when they stand alone; run them as another program")
    return Program(compilation, policy)


@lru_cache(maxsize=64)
def _compiled(spec: WindowSpec) -> WindowProgram:
    return windows_of(documents_of(spec.texts), spec.preset)


def _part_of(spec: WindowSpec, queries: Iterable[str]) -> WindowProgram:
    """Some of the windowed queries, or the whole program: see ``_together``."""
    wanted = frozenset(queries)
    whole = _compiled(spec)
    if wanted >= set(whole.queries):
        return whole
    return replace(whole, plans=tuple(p for p in whole.plans if p.name in wanted), rules=None)


def window_engine_of(spec: WindowSpec, queries: Iterable[str]) -> WindowEngine:
    """An engine for some queries of a windowed program."""
    program = _part_of(spec, queries)
    names = {p.name for p in program.plans}
    return WindowEngine(
        program,
        background=knowledge_of(spec.background),
        report={query: report for query, report in spec.report if query in names},
        duplicates=spec.duplicates,
        policy=spec.policy,
        stream=_compiled(spec).unnamed,
    )


def fingerprint(spec: WindowSpec, queries: Iterable[str]) -> str:
    """A name for what the queries mean: state belongs to queries of the same name only."""
    program = _part_of(spec, queries)
    reports = [(query, report) for query, report in spec.report if query in program.queries]
    means = (*_means(program), reports, spec.duplicates, spec.policy)
    return blake2b(repr(means).encode(), digest_size=16).hexdigest()
