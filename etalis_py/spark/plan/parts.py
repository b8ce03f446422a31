"""From the compiler's stages to the parts of a Spark job.

A *part* is a set of queries with one routing, computed in one or many shards.  A sharded stage is a part.  The queries
that have to be finished in one shard form a separate part, which computes them, and the rules they depend on, from the
events; so it waits for no other part.  A part that reads what another part derives is on a later *level*.  All parts of
a level, of all programs, are one stateful operator: the part is in the key of the group.

Cost: the queries of the one-shard part recompute the rules they depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2s

from etalis_compiler.partition import routed_leaf
from etalis_compiler.reach import Reach, endless, furthest, reaches
from etalis_compiler.shards import ShardPlan, Stage, shard_plan
from etalis_compiler.stratify import StreamReaders, made_for
from etalis_rules import program as ir
from etalis_rules.clock import has_start
from etalis_rules.lateness import late_nodes
from etalis_rules.operators import event_patterns
from etalis_rules.records import leaves_read

from etalis_py.kernel.owl_streams import HIDDEN
from etalis_py.spark.plan.asp_routing import NO_OFFERS, Offers, Route


@dataclass(frozen=True, slots=True)
class ShardPart:
    """The description of a part that its shards get.

    ``reports`` are the queries whose matches are reported, ``feeds`` those whose derived triples go to later levels,
    ``takes`` those of earlier levels whose derived triples come here.
    ``keys``: matches of these queries belong to the shard of this variable; this shard does not report the others (a
    triple may have come here for another leaf).  ``once``: their timeless rows are reported by shard 0.
    ``order``: see ``order_of``; without it matches do not state their place in the order of the embedded engine.
    ``selects``: the SELECT queries among ``reports``, with their variables.
    ``live``: answer-set programs that read events run in it.
    ``homes``: its shards divide the queries of these families: see ``family_shards``.
    ``standing``: its shards divide the queries that are added while the job runs: see ``query_changes``.
    ``begins``: its shards are slices of time; the first has no beginning and the others have these, in microseconds;
    each also reads the events of ``overlap`` microseconds before it.
    ``measured``: the columns that hold the keys of its shards, if their frequency is watched.
    ``fixed``: a query has EVENT, and events are sent whole by the triples that they state, so none may be withdrawn.
    """

    number: int
    program: int
    shards: int
    queries: tuple[str, ...]
    reports: tuple[str, ...]
    feeds: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    once: tuple[str, ...] = ()
    level: int = 1
    reason: str = ""
    order: tuple[tuple[str, int], ...] = ()
    selects: tuple[tuple[str, tuple[str, ...]], ...] = ()
    live: bool = False
    homes: tuple[tuple[str, int], ...] = ()
    standing: bool = False
    begins: tuple[int, ...] = ()
    overlap: int = 0
    measured: tuple[str, ...] = ()
    fixed: bool = False

    @property
    def divided(self) -> bool:
        """Whether its shards divide queries, and report all their matches."""
        return bool(self.homes) or self.standing

    def span(self, shard: int) -> tuple[int | None, int | None]:
        """The first instant of a slice and that of the next slice; None: from the beginning, or to the end."""
        if not self.begins:
            return None, None
        bounds = (None, *self.begins, None)
        return bounds[shard], bounds[shard + 1]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A rule for the triples that some leaves see: only the shards listed for the term at a position need them."""

    position: str
    leaves: tuple[ir.Leaf, ...]
    shards: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class RoutedPart:
    """A part with its routing: the leaves, each with the position that routes it (empty: to the only shard).

    ``everything``: all triples are wanted, whatever the leaves say.  ``items``: whole events are wanted, each as one
    row.  ``unnamed``: the stream that events without a stream belong to.  ``meanings``: a digest of the rules of each
    query.  ``lookups``: for a part of families, which shards need the triples with a term.  ``reach``: how far back its
    matches reach, which decides whether it can run in slices of time.
    """

    part: ShardPart
    routes: tuple[Route, ...]
    everything: bool = False
    items: bool = False
    unnamed: str = ""
    meanings: tuple[tuple[str, str], ...] = ()
    reach: Reach = field(default_factory=Reach)
    lookups: tuple[Lookup, ...] = ()

    @property
    def uncut(self) -> str:
        """The reason why the part cannot run in slices of time; empty if it can."""
        if self.part.level > 1 or self.part.takes:
            return f"it reads what {', '.join(self.part.takes)} derives in an earlier level"
        return self.reach.reason


@dataclass(slots=True)
class _Draft:
    queries: tuple[str, ...]
    reports: tuple[str, ...]
    shards: int
    reason: str
    stage: Stage | None = None


def parts_of(
    rules: ir.Rules, program: int, first: int, shards: int, offers: Offers = NO_OFFERS, *, corrected: bool = False
) -> list[RoutedPart]:
    """The parts of a program; numbers begin with ``first``.

    ``offers``: what answer-set programs read and offer.  Queries that may see an offer run where the programs run: in
    one shard, or in the shards of their keys.  ``corrected``: the stream may withdraw some triples of an event, which
    need not show its key, so EVENT runs in one shard.
    """
    plan = shard_plan(rules, offers.keyed)
    outputs = {o.query: o for o in rules.outputs}
    nodes = dict(rules.nodes)
    feeders = feeders_of(rules)
    late = late_nodes(nodes)
    seeing = {o.query for o in rules.outputs if offers.reach(nodes[n] for n in made_for([o], nodes))}
    live = set() if offers.by_key else set(seeing)  # the queries that need one shard, and those that run with them
    drafts: list[_Draft] = []
    alone: list[str] = []
    reasons: dict[str, None] = {}
    derives: dict[str, int] = {}  # query → the draft that hands its derived triples on
    # The engine itself adds the rules of the schema (owl:inverseOf and the like): all of them in one shard.
    ruled = any(query.startswith(HIDDEN) for query in outputs)
    for stage in plan.stages if shards > 1 and not ruled else ():
        computed = _computed(stage, outputs)
        live |= (together := _led_to(live.intersection(computed), computed, feeders))
        queries = tuple(q for q in computed if q not in together)
        makers = {m for q in queries for m in feeders[q] if m not in queries}
        if any((source := outputs[m].source) is not None and source.node in late for m in makers):
            # Its triples end before the instant in which they become known: another operator would get them too late.
            continue
        if not stage.sharded or not queries or not _tellable(stage, plan, queries):
            continue
        if corrected and event_patterns(nodes[n] for q in queries for n in made_for([outputs[q]], nodes)):
            continue
        if seeing.intersection(queries) and any(
            offers.may_read(t, outputs[m].stream) for m in makers for t in outputs[m].template
        ):
            # A program must not take a derived triple for an event, and in another operator the two look alike.
            continue
        reports = tuple(q for q in queries if plan.of(q).reported == stage.number)
        for query in queries:
            derives[query] = len(drafts)
        keys = dict.fromkeys(plan.of(query).key for query in queries)
        reason = stage.reason if queries == computed else f"sharded by {'; '.join(keys)}"
        drafts.append(_Draft(queries, reports, shards, reason, stage))
    reported = {q for d in drafts for q in d.reports}
    for query in outputs:
        if query not in reported and not query.startswith(HIDDEN):
            alone.append(query)
            why = (
                offers.reason
                if query in live
                else plan.of(query).reason or _unsharded(made_for([outputs[query]], nodes), nodes)
            )
            reasons["the OWL rules of the background" if ruled else why] = None
    if alone:
        for query in alone:
            derives.setdefault(query, len(drafts))
        reason = "one shard was asked for" if shards == 1 else "one shard: " + "; ".join(reasons)
        drafts.append(_Draft(_withfeeders_of(alone, feeders), tuple(alone), 1, reason))
    drafts, derives = _useful(drafts, derives, feeders)
    parts = _numbered(drafts, derives, feeders, plan, rules, nodes, program, first, corrected)
    return [_with_offers(routed, offers) if seeing.intersection(routed.part.queries) else routed for routed in parts]


def _unsharded(names: Iterable[str], nodes: Mapping[str, ir.Node]) -> str:
    """The reason why a query that has a key runs in one shard nevertheless."""
    if event_patterns(nodes[name] for name in names):
        return "EVENT reads whole events, which may be corrected"
    return "the key is not among what it selects"


def _with_offers(routed: RoutedPart, offers: Offers) -> RoutedPart:
    """A part in which answer-set programs run, extended by what they read."""
    read = offers.keyed.reads if routed.part.shards > 1 else offers.routes
    return replace(
        routed, part=replace(routed.part, live=True), routes=(*routed.routes, *read), reach=endless(offers.past)
    )


def _computed(stage: Stage, outputs: Mapping[str, ir.Output]) -> tuple[str, ...]:
    """The queries whose solutions are complete in this stage."""
    computed = []
    for query in stage.queries:
        source = outputs[query].source
        if source is not None and source.node in stage.nodes:
            computed.append(query)
    return tuple(computed)


def _led_to(some: Iterable[str], among: Iterable[str], feeders: Mapping[str, set[str]]) -> set[str]:
    """Some queries, and the queries among ``among`` that read, directly or indirectly, triples that these derive."""
    every = set(some)
    while further := {q for q in among if q not in every and feeders[q] & every}:
        every |= further
    return every


def _tellable(stage: Stage, plan: ShardPlan, queries: Iterable[str]) -> bool:
    """Whether a shard can tell from the key of a match that this shard, and no other, should report it.

    A triple may be sent to two shards, for two leaves of a query; then both shards can find the same match.
    """
    return not stage.tagged or all(
        plan.of(q).key.startswith("?") and plan.of(q).reported == stage.number for q in queries
    )


def feeders_of(rules: ir.Rules) -> dict[str, set[str]]:
    """For each query, the CONSTRUCT rules whose triples one of its leaves, or of its EVENTs, may read."""
    nodes = dict(rules.nodes)
    readers = StreamReaders(nodes)
    makers: dict[str, set[str]] = {}
    for maker in rules.outputs:
        for name in readers.fed_by(maker):
            makers.setdefault(name, set()).add(maker.query)
    return {
        reader.query: {maker for name in made_for([reader], nodes) for maker in makers.get(name, ())}
        for reader in rules.outputs
    }


def _useful(
    drafts: list[_Draft], derives: Mapping[str, int], feeders: Mapping[str, set[str]]
) -> tuple[list[_Draft], dict[str, int]]:
    """The drafts without those that report nothing and whose derived triples no other one takes."""
    kept = set(range(len(drafts)))
    while True:
        taken = {derives[m] for n in kept for q in drafts[n].queries for m in feeders[q] if m not in drafts[n].queries}
        useful = {n for n in kept if drafts[n].reports or n in taken}
        if useful == kept:
            break
        kept = useful
    numbers = {old: new for new, old in enumerate(sorted(kept))}
    return [drafts[n] for n in sorted(kept)], {q: numbers[n] for q, n in derives.items() if n in kept}


def _withfeeders_of(queries: Iterable[str], feeders: Mapping[str, set[str]]) -> tuple[str, ...]:
    every: dict[str, None] = {}
    stack = list(queries)
    while stack:
        query = stack.pop()
        if query not in every:
            every[query] = None
            stack.extend(sorted(feeders[query]))
    return tuple(q for q in feeders if q in every)


def _numbered(
    drafts: list[_Draft],
    derives: Mapping[str, int],
    feeders: Mapping[str, set[str]],
    plan: ShardPlan,
    rules: ir.Rules,
    nodes: Mapping[str, ir.Node],
    program: int,
    first: int,
    corrected: bool,
) -> list[RoutedPart]:
    outputs = {o.query: o for o in rules.outputs}
    gives: list[set[str]] = [set() for _ in drafts]
    takes: list[set[str]] = [set() for _ in drafts]
    after: list[set[int]] = [set() for _ in drafts]
    for number, draft in enumerate(drafts):
        for query in draft.queries:
            for maker in feeders[query]:
                if maker not in draft.queries:
                    gives[derives[maker]].add(maker)
                    takes[number].add(maker)
                    after[number].add(derives[maker])
    levels: dict[int, int] = {}

    def level(number: int) -> int:
        if number not in levels:
            levels[number] = 1 + max((level(n) for n in after[number]), default=0)
        return levels[number]

    result = []
    order = order_of(rules)
    reached = reaches(rules)
    for number, draft in enumerate(drafts):
        sharded = draft.stage is not None and draft.shards > 1
        part = ShardPart(first + number, program, draft.shards, draft.queries, draft.reports, level=level(number))
        tagged = draft.stage is not None and draft.stage.tagged
        part = replace(
            part,
            feeds=tuple(sorted(gives[number])),
            takes=tuple(sorted(takes[number])),
            keys=tuple((q, plan.of(q).key[1:]) for q in draft.queries) if tagged else (),
            once=tuple(q for q in draft.queries if sharded and outputs[q].timeless is not None),
            reason=draft.reason,
            order=order,
            selects=selects_of(draft.reports, rules.outputs),
        )
        meanings = tuple((q, meaning_of(outputs[q])) for q in draft.queries)
        reach = furthest(reached, [*draft.reports, *part.feeds])
        names = dict.fromkeys(n for q in draft.queries for n in made_for([outputs[q]], nodes))
        whole = bool(event_patterns(nodes[n] for n in names))
        part = replace(part, fixed=whole and not corrected)
        if sharded and draft.stage is not None:
            routes = tuple(routed_leaf(nodes[n], position) for n, position in draft.stage.routes if n in names)
            result.append(RoutedPart(part, routes, items=whole, meanings=meanings, reach=reach))
            continue
        everything = any(outputs[q].form == "describe" for q in draft.queries) or (whole and corrected)
        everything |= has_start(nodes[n] for n in names)  # any event may be the first
        routes = tuple((leaf, "") for leaf in leaves_read(nodes[n] for n in names))
        result.append(RoutedPart(part, routes, everything, whole, meanings=meanings, reach=reach))
    return result


def order_of(rules: ir.Rules) -> tuple[tuple[str, int], ...]:
    """The queries of the program, each with its rank in an instant: that of the program."""
    return tuple((output.query, rank) for rank, output in enumerate(rules.outputs))


def selects_of(reports: Iterable[str], outputs: Iterable[ir.Output]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The SELECT queries that a part reports, with their variables."""
    reported = set(reports)
    return tuple((o.query, o.variables) for o in outputs if o.form == "select" and o.query in reported)


def meaning_of(output: ir.Output) -> str:
    """A digest of a query: of its nodes, whose ids are digests of their own, and of how it reports."""
    return blake2s(repr(output).encode(), digest_size=16).hexdigest()


__all__ = ["Lookup", "RoutedPart", "ShardPart", "feeders_of", "meaning_of", "order_of", "parts_of"]
