"""Windowed programs on Spark: their specifications for the executors, and the parts that compute them.

A query that can be divided by a key (``etalis_compiler.rsp.sharding``) is a part of many shards; each takes the triples
of its keys and has its own windows.  Queries that feed one another are one part.  A query that cannot be divided is a
part of one shard, which takes whole items, with their graphs and with the triples that came together.  EP-SPARQL
queries of the program become parts as usual, unless they and windows may feed one another: then all of it runs in one
shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import CompiledQuery, compile_documents
from etalis_compiler.printer import to_text
from etalis_compiler.reach import endless
from etalis_compiler.rsp import Strategy, WindowPlan
from etalis_compiler.rsp.sharding import WindowShards, divide, networks, waits_for_items
from etalis_compiler.rsp.slicing import reach_of
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.engine.stage_plans import reporting_plans, without_use
from etalis_py.kernel.options import Options
from etalis_py.knowledge import Knowledge
from etalis_py.spark.errors import SparkError
from etalis_py.spark.plan.parts import RoutedPart, ShardPart, parts_of, selects_of
from etalis_py.spark.plan.replan_after_update import entails_elsewhere
from etalis_py.spark.plan.spec import ProgramSpec, Reports, fingerprint, meaning, spec_of, with_updates
from etalis_py.values.limits import LIMITS, Limits


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """The settings of windowed queries beside their text; see ``Engine``.  ``updates``: the background changes.

    ``corrected``: the stream may withdraw events.
    """

    report: Mapping[str, Iterable[Strategy]] | None = None
    duplicates: bool = False
    updates: bool = False
    corrected: bool = False

    def of(self, program: Program) -> Reports:
        """The report policies for this program."""
        given = self.report or {}
        chosen = [(p.name, given.get(p.name, given.get(""))) for p in program.plans]
        return tuple((name, tuple(report)) for name, report in chosen if report is not None)


def check_window_options(programs: Collection[Program], asked: WindowOptions, entailment: str) -> str:
    """Refuse options that no engine takes; returns what to tell of those that have no effect on any of the programs."""
    options = Options(report=asked.report, duplicates=asked.duplicates, entailment=entailment)
    reporting_plans([plan for program in programs for plan in program.plans], options.report)
    told = {without_use(program, options) for program in programs}
    return "" if "" in told or not told else told.pop()


def plan_windows(
    program: Program,
    name: str,
    knowledge: Knowledge | None,
    policy: str,
    options: WindowOptions,
    *,
    number: int,
    first: int,
    shards: int,
    limits: Limits = LIMITS,
) -> tuple[list[ProgramSpec], list[RoutedPart]]:
    """The specifications of a windowed program (numbers begin with ``number``) and its parts (with ``first``)."""
    report = dict(options.of(program))
    program = replace(program, policy=policy)
    engine = Engine(
        program,
        background=knowledge,
        report=report,
        duplicates=options.duplicates,
        changes=options.updates,
        limits=limits,
    )
    # The conclusions from the background alone are now in the engine's knowledge, and travel with it.
    known = engine.knowledge if knowledge is not None or len(engine.knowledge.default) else None
    spec = spec_of(program, name, known, options.of(program), duplicates=options.duplicates)
    spec = with_updates(spec, engine, shards) if options.updates else spec
    specs = [spec]
    together = _together(program)
    if together:
        whole = replace(_whole(program.queries, (), shards, together), reach=endless(together))
        parts = [_placed(whole, number, first, program, spec)]
        return specs, _ordered(parts, engine)
    drafts = [
        replace(_part_of_network(group, known, options.duplicates, shards), reach=reach_of(group))
        for group in networks(engine.plans)
    ]
    parts = [_placed(draft, number, first + n, program, spec) for n, draft in enumerate(drafts)]
    if program.compilation.queries:
        rules = Engine(Program(program.compilation, policy), background=known, changes=options.updates, limits=limits)
        alone = spec_of(_rules_alone(program, policy), name, known)
        specs.append(with_updates(alone, rules, shards) if options.updates else alone)
        parts += parts_of(rules.rules, number + 1, first + len(parts), shards, corrected=options.corrected)
    return specs, _ordered(parts, engine)


def _ordered(parts: Iterable[RoutedPart], engine: Engine) -> list[RoutedPart]:
    """The parts, with the order in which the queries of the whole program report."""
    order = tuple((output.query, rank) for rank, output in enumerate(engine.outputs))
    return [
        replace(
            routed,
            part=replace(routed.part, order=order, selects=selects_of(routed.part.reports, engine.outputs)),
        )
        for routed in parts
    ]


# --- parts -----------------------------------------------------------------------------------------------------


def _together(program: Program) -> str:
    """The reason why windows and EP-SPARQL queries of a program cannot be computed apart; empty if they can."""
    rules = program.compilation.queries
    if program.facts:
        return "facts hold over all streams"
    if not rules:
        return ""
    derived = {q.syntax.register.name for q in rules if q.syntax.register is not None}
    if any(p.feeds or p.streams & derived for p in program.plans):
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
        idle = not all(map(waits_for_items, group))  # then events of other streams let time pass as well
        return _whole(names, () if idle else tuple(sorted(streams)), shards, divided.reason)
    reason = "by " + ", ".join(f"?{key} of {query}" for query, key in divided.keys) if shards > 1 else ONE
    return RoutedPart(ShardPart(0, 0, shards, names, names, keys=divided.keys, reason=reason), divided.routes)


ONE = "one shard was asked for"


def _divided(group: tuple[WindowPlan, ...], known: Knowledge | None, duplicates: bool) -> WindowShards:
    """The division of a network of queries by keys, given the options beside the text."""
    if duplicates:
        return WindowShards(group, reason="how often a triple is stated depends on whole items")
    if entails_elsewhere(known):
        return WindowShards(group, reason="the schema entails triples of other keys")
    return divide(group, stored=known is not None)


def _whole(queries: tuple[str, ...], streams: tuple[str, ...], shards: int, why: str) -> RoutedPart:
    """A part of one shard that takes whole items of some streams, or (without ``streams``) of all."""
    anything = (alg.Var("s"), alg.Var("p"), alg.Var("o"))
    routes = tuple((ir.Leaf((), *anything, stream), "") for stream in streams)
    part = ShardPart(0, 0, 1, queries, queries, reason=f"one shard: {why}" if shards > 1 else ONE)
    return RoutedPart(part, routes, everything=not streams, items=True)


def _placed(draft: RoutedPart, number: int, part: int, program: Program, spec: ProgramSpec) -> RoutedPart:
    """The part with its place in the job and the meanings of its queries."""
    queries = draft.part.queries
    means = fingerprint(spec, queries)
    return replace(
        draft,
        part=replace(draft.part, number=part, program=number),
        unnamed=program.unnamed,
        meanings=tuple((query, means) for query in queries),
    )


def _rules_alone(program: Program, policy: str) -> Program:
    """The EP-SPARQL queries of a program as separate texts."""
    queries = program.compilation.queries
    alone = Program(compile_documents(map(_apart, queries)), policy)
    if meaning(alone)[2] != meaning(program)[2]:
        raise SparkError("the EP-SPARQL queries mean something else when they stand alone; run them as another program")
    return alone


def _apart(query: CompiledQuery) -> tuple[ast.Document, Source]:
    """A query as a text of its own; it keeps its identity, as it was not registered in its own text."""
    text = Source(to_text(query.syntax), query.source.name)
    document = parse(text.text, source=text.name)
    return replace(document, queries=(replace(document.queries[0], identity=query.identity),)), text
