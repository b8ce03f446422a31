"""Shard analysis: which queries can run in many shards, by which key, and in how many stages.

A *stage* is one keyed operator.  Its leaves are routed by a position of the triple, so that everything that belongs to
one solution meets in one shard (``partition``).  A CONSTRUCT and the queries that read its triples share a stage if the
derived triple has the key at the position that routes it; otherwise the derived events are routed again, to a later
stage.  Queries that look at all solutions together (aggregates without GROUP BY, ORDER BY, LIMIT, ASK) are computed in
one shard from the events, with the rules they depend on.  Triples that answer-set programs offer in the shard of their
key (``Offered``) are seen there by leaves routed by this key.

>>> from etalis_compiler.pipeline import compile_sources, rules_of
>>> from etalis_compiler.diagnostics import Source
>>> text = "SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }"
>>> shard_plan(rules_of(compile_sources([Source(text)]))).queries[0].key
'?c'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import cast

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.leaf_tests import may_overlap
from etalis_rules.operators import keeps_state, reads_stream
from etalis_rules.printing import node_names

from .partition import MOST, Partition, Partitioner, Routes, merge_routes, routed_leaf
from .stratify import StreamReaders, feeds, strong_components


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline.

    ``routes`` give for each leaf the position (``subject``, ``predicate`` or ``object``) whose term decides the shard;
    a stage of one shard has none.  ``queries`` are evaluated here, ``reports`` are those that also report here.
    ``after`` are the stages it reads from.  ``tagged``: a triple may go to two shards for two leaves, or an event whole
    to the shards of all its keys, so a shard has to distinguish its own matches from others.
    """

    number: int
    sharded: bool
    queries: tuple[str, ...]
    reports: tuple[str, ...]
    nodes: tuple[str, ...]
    routes: tuple[tuple[str, str], ...] = ()
    after: tuple[int, ...] = ()
    tagged: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """The triples that programs outside the rules read and offer in the shards, by a key.

    ``templates`` are those of the triples that they offer, each with the positions that hold the key; ``reads`` are
    leaves for the triples that they read, each with the position that routes them.  ``reason`` is for a query that sees
    the offered triples and cannot be routed by the key.
    """

    templates: tuple[tuple[ir.Template, frozenset[str]], ...] = ()
    reads: tuple[tuple[ir.Leaf, str], ...] = ()
    reason: str = ""


NOTHING_OFFERED = Offered()


@dataclass(frozen=True, slots=True)
class QueryShards:
    """The sharding of one query: by ``key`` in ``stage``; ``reported`` is the stage that reports its matches.

    ``key`` is empty if it runs in one shard, and ``reason`` says why.  A CONSTRUCT without a visible key derives its
    triples, which are a set, in many shards for the rules that read them, and is computed once more where it is
    reported: then ``reason`` says why.  ``once``: only one shard may report its timeless rows.
    """

    query: str
    key: str
    stage: int
    reported: int
    reason: str = ""
    once: bool = False


@dataclass(frozen=True, slots=True)
class ShardPlan:
    stages: tuple[Stage, ...]
    queries: tuple[QueryShards, ...]

    def of(self, query: str) -> QueryShards:
        return next(q for q in self.queries if q.query == query)


@dataclass(frozen=True, slots=True)
class _Option:
    """One way to shard a query: by ``variable``, if the key is visible in the solution."""

    routes: Routes
    variable: str = ""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The options for a query, or the reason why there are none.  ``tail``: why only one shard reports it."""

    options: tuple[_Option, ...]
    tail: str = ""
    reason: str = ""


@dataclass(slots=True)
class _Draft:
    """A stage under construction."""

    number: int
    sharded: bool
    queries: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    nodes: dict[str, None] = field(default_factory=dict)
    routes: Routes = ()
    after: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)


def shard_plan(rules: ir.Rules, offered: Offered = NOTHING_OFFERED) -> ShardPlan:
    """The stages of a program."""
    return _Planner(rules, offered).plan()


class _Planner:
    def __init__(self, rules: ir.Rules, offered: Offered):
        self.rules = rules
        self.offered = offered
        self.nodes = dict(rules.nodes)
        self.names = node_names(rules)
        self.outputs = {o.query: o for o in rules.outputs}
        self.partitioner = Partitioner(self.nodes, self.names)
        self.reads = {o.query: self._below(o.source.node) if o.source else {} for o in rules.outputs}
        self.fed = self._fed()
        self.fed_leaves = self._fed_by_reader()
        self.makers: dict[str, list[str]] = {}  # query → those that derive triples for it
        for maker, readers in self.fed_leaves.items():
            for reader in readers:
                self.makers.setdefault(reader, []).append(maker)
        self.bound = self._bound()
        self.drafts: list[_Draft] = []
        self.evaluated: dict[str, int] = {}  # query → the stage that evaluates its pattern
        self.derives: dict[str, int] = {}  # query → the stage that derives its triples
        self.keys: dict[str, str] = {}  # query → its key as a variable of the query
        self.results: dict[str, QueryShards] = {}

    def plan(self) -> ShardPlan:
        names = list(self.outputs)
        places = {name: place for place, name in enumerate(names)}
        successors = {q: sorted(self.fed_leaves[q], key=places.__getitem__) for q in names}
        for component in strong_components(names, successors):
            recursive = len(component) > 1 or component[0] in successors[component[0]]
            self._place(sorted(component, key=places.__getitem__), recursive)
        stages = tuple(map(self._finished, self.drafts))
        return ShardPlan(stages, tuple(self.results[q] for q in names))

    # --- facts about the program ---

    def _below(self, root: str) -> dict[str, None]:
        """The nodes from ``root`` down."""
        reached: dict[str, None] = {}
        stack = [root]
        while stack:
            name = stack.pop()
            if name not in reached:
                reached[name] = None
                stack.extend(ir.made_from(self.nodes[name]))
        return reached

    def _fed(self) -> dict[str, list[tuple[ir.Template, str]]]:
        """For each CONSTRUCT the leaves and EVENTs that may see its triples, each with the template of the triple."""
        readers = StreamReaders(self.nodes)
        return {
            output.query: [
                (template, leaf)
                for template in (output.template if output.form == "construct" else ())
                for leaf in readers.seeing(template, output.stream)
            ]
            for output in self.rules.outputs
        }

    def _bound(self) -> dict[str, frozenset[str]]:
        """The leaves that may see an offered triple, each with the positions that may route it."""
        bound: dict[str, frozenset[str]] = {}
        for name, node in self.nodes.items():
            for template, positions in self.offered.templates if isinstance(node, ir.Leaf) else ():
                if feeds(template, "", cast(ir.Leaf, node)):
                    bound[name] = bound.get(name, positions) & positions
        return bound

    def _fed_by_reader(self) -> dict[str, dict[str, list[tuple[ir.Template, str]]]]:
        """For each query and each that reads its triples: the leaves that see them, as in ``fed``."""
        readers: dict[str, list[str]] = {}
        for query, nodes in self.reads.items():
            for name in nodes:
                readers.setdefault(name, []).append(query)
        found: dict[str, dict[str, list[tuple[ir.Template, str]]]] = {}
        for maker, fed in self.fed.items():
            leaves = found[maker] = {}
            for template, leaf in fed:
                for reader in readers.get(leaf, ()):
                    leaves.setdefault(reader, []).append((template, leaf))
        return found

    def _fed_leaves(self, maker: str, reader: str) -> Sequence[tuple[ir.Template, str]]:
        """The leaves of ``reader`` that see a derived triple of ``maker``, with the template of that triple."""
        return self.fed_leaves[maker].get(reader, ())

    # --- the options for one query ---

    def _choice(self, query: str) -> _Choice:
        output = self.outputs[query]
        if output.source is None:
            return _Choice((), reason="no pattern of it can match an event of the stream")
        root = output.source.node
        if output.form == "describe":
            return _Choice((), reason="DESCRIBE collects what the whole stream says of a resource")
        partition = self.partitioner.of(root)
        if not partition.partitions:
            return _Choice((), reason=f"{partition.reason} ({self.names[partition.node]})")
        if any(reads_stream(node) and node.late for node in map(self.nodes.__getitem__, self.reads[query])):
            return _Choice((), reason="a rule of one shard derives what it reads, some of it after its end")
        if output.form == "ask":
            return _Choice((), reason="ASK answers once for all shards")
        if output.order or output.limit is not None or output.offset:
            return _Choice((), reason="ORDER BY, LIMIT and OFFSET count the matches of all shards")
        possible = [p for p in partition.partitions if all(at in self.bound.get(leaf, (at,)) for leaf, at in p.routes)]
        if not possible:
            return _Choice((), reason=self.offered.reason)
        names = dict(zip(self.nodes[root].head, output.source.columns, strict=True))
        options = tuple(_Option(p.routes, names.get(p.column, "")) for p in possible)
        visible = tuple(o for o in options if o.variable in output.variables)
        if visible:
            return _Choice(visible)
        if output.distinct:
            return _Choice((), reason="DISTINCT compares matches of several shards, as no shard key is selected")
        hidden = "no shard key is selected, so equal matches of several shards have to be told apart"
        if self._events_of(query):
            return _Choice((), reason="no shard key is selected, by which a shard tells the matches of its own events")
        if output.form == "construct" and self._is_read(query) and self._works(root):
            return _Choice(options, hidden)
        return _Choice((), reason=hidden)

    def _is_read(self, maker: str) -> bool:
        """Whether another query reads the triples that a rule derives."""
        return any(reader != maker for reader in self.fed_leaves[maker])

    def _works(self, root: str) -> bool:
        """Whether sharding is of any use, which it only is if some goal keeps state."""
        below = (self.nodes[n] for n in self._below(root))
        return any(keeps_state(node) and not isinstance(node, ir.Slice) for node in below)

    # --- stages ---

    def _place(self, queries: list[str], recursive: bool) -> None:
        """Put queries that depend on one another into the first stage that has room for them, else into a new one.

        Options for which no triple goes to two shards come first: a shard then need not tell its own matches from those
        of others (``tagged``).
        """
        choices = {q: self._choice(q) for q in queries}
        stuck = next((q for q in queries if not choices[q].options), "")
        if stuck:
            reason = choices[stuck].reason
            if recursive and len(queries) > 1:
                reason = f"it depends on {stuck} and {stuck} on it, where {reason}"
            self._in_one_shard(queries, reason)
            return
        best: tuple[_Option, ...] | None = None
        for tagged in (False, True):
            for options in islice(product(*(choices[q].options for q in queries)), MOST * MOST):
                routes = self._together(queries, options)
                if routes is None:
                    continue
                draft = self._room_for(queries, options, routes)
                if draft is not None and (tagged or not self._overlap(merge_routes(draft.routes, routes) or ())):
                    self._in_stage(draft, queries, options, choices)
                    return
                if best is None and (tagged or not self._overlap(routes)):
                    best = options
        if best is None:
            self._in_one_shard(queries, "the triples that these rules derive do not carry a common shard key")
            return
        if any(self._event_makers(queries)):
            self._in_one_shard(queries, "EVENT reads whole what a rule of another stage derives")
            return
        draft = _Draft(len(self.drafts) + 1, True)
        self.drafts.append(draft)
        self._in_stage(draft, queries, best, choices)

    def _together(self, queries: list[str], options: tuple[_Option, ...]) -> Routes | None:
        """The routes of mutually dependent queries, if every derived triple stays in its shard."""
        routes = merge_routes(*(option.routes for option in options))
        if routes is None:
            return None
        places = dict(routes)
        for maker, option in zip(queries, options, strict=True):
            for reader in filter(self.fed_leaves[maker].__contains__, queries):
                if not self._stays(maker, option.variable, reader, places):
                    return None
        return routes

    def _stays(self, maker: str, key: str, reader: str, routes: Mapping[str, str]) -> bool:
        """Whether the triples that ``maker`` derives belong, for ``reader``, to the shard they are derived in."""
        for template, leaf in self._fed_leaves(maker, reader):
            position = routes.get(leaf)
            if position is None or not key:
                return False
            router, place = routed_leaf(self.nodes[leaf], position)
            # The other triples of a derived event come with the one that is routed.
            seen = router is self.nodes[leaf] or feeds(template, self.outputs[maker].stream, router)
            if seen and getattr(template, place) != alg.Var(key):
                return False
        return True

    def _events_of(self, query: str) -> list[str]:
        """The EVENTs of a query."""
        return [name for name in self.reads[query] if isinstance(self.nodes[name], ir.Record)]

    def _event_makers(self, queries: list[str]) -> Iterator[str]:
        """The other queries whose derived events an EVENT of these may read."""
        events = {name for query in queries for name in self._events_of(query)}
        for maker in self._feeders(queries) if events else ():
            if any(leaf in events for _, leaf in self.fed[maker]):
                yield maker

    def _feeders(self, queries: list[str]) -> Iterator[str]:
        """The other queries, placed already, that derive triples for these."""
        for maker in dict.fromkeys(maker for query in queries for maker in self.makers.get(query, ())):
            if maker in self.derives and maker not in queries:
                yield maker

    def _room_for(self, queries: list[str], options: tuple[_Option, ...], routes: Routes) -> _Draft | None:
        """The first stage in which these queries can run too."""
        feeders = list(self._feeders(queries))
        for draft in self.drafts:
            both = merge_routes(draft.routes, routes)
            if not draft.sharded or both is None:
                continue
            here = [m for m in feeders if self.derives[m] == draft.number]
            if any(self.derives[m] > draft.number for m in feeders):
                continue
            if any(self.derives[m] != draft.number for m in self._event_makers(queries)):
                continue
            places = dict(both)
            if all(self._stays(m, self.keys.get(m, ""), q, places) for m in here for q in queries):
                return draft
        return None

    def _in_stage(
        self, draft: _Draft, queries: list[str], options: tuple[_Option, ...], choices: Mapping[str, _Choice]
    ) -> None:
        draft.after |= {self.derives[m] for m in self._feeders(queries)} - {draft.number}
        for query, option in zip(queries, options, strict=True):
            choice, output = choices[query], self.outputs[query]
            draft.routes = merge_routes(draft.routes, option.routes) or ()
            draft.queries.append(query)
            draft.nodes |= self.reads[query]
            self.evaluated[query] = self.derives[query] = draft.number
            self.keys[query] = option.variable
            reported = draft
            if choice.tail:
                reported = self._one_shard(1, choice.tail)
                reported.queries.append(query)
                reported.nodes |= self.reads[query]
            reported.reports.append(query)
            key = "?" + option.variable if option.variable else self._positions(option.routes)
            once = output.timeless is not None and reported.sharded
            self.results[query] = QueryShards(query, key, draft.number, reported.number, choice.tail, once)

    def _in_one_shard(self, queries: list[str], reason: str) -> None:
        feeders = {self.derives[m] for m in self._feeders(queries)}
        draft = self._one_shard(max(feeders, default=1), reason)
        draft.after |= feeders - {draft.number}
        for query in queries:
            draft.queries.append(query)
            draft.reports.append(query)
            draft.nodes |= self.reads[query]
            self.evaluated[query] = self.derives[query] = draft.number
            self.results[query] = QueryShards(query, "", draft.number, draft.number, reason)

    def _one_shard(self, earliest: int, reason: str) -> _Draft:
        draft = next((d for d in self.drafts if not d.sharded and d.number >= earliest), None)
        if draft is None:
            draft = _Draft(len(self.drafts) + 1, False)
            self.drafts.append(draft)
        if reason not in draft.reasons:
            draft.reasons.append(reason)
        return draft

    def _positions(self, routes: Routes) -> str:
        return ", ".join(f"the {position} of {self.names[leaf]}" for leaf, position in routes)

    def _overlap(self, routes: Routes, others: tuple[tuple[ir.Leaf, str], ...] = ()) -> bool:
        """Whether one triple may match two leaves that are routed by different positions."""
        if not others and len({position for _, position in routes}) < 2:
            return False  # as in most programs, and soon told
        leaves = [*(routed_leaf(self.nodes[name], position) for name, position in routes), *others]
        if len({position for _, position in leaves}) < 2:
            return False
        by_predicate: dict[str, list[tuple[ir.Leaf, str]]] = {}
        for leaf, position in leaves:
            predicate = leaf.predicate.term if isinstance(leaf.predicate, alg.Const) else ""
            by_predicate.setdefault(predicate, []).append((leaf, position))
        anything = by_predicate.get("", [])
        return any(
            here != there and may_overlap(a, b)
            for predicate, leaves in by_predicate.items()
            for i, (a, here) in enumerate(leaves)
            for b, there in (*leaves[i + 1 :], *(anything if predicate else ()))
        )

    def _finished(self, draft: _Draft) -> Stage:
        if draft.sharded:
            keys = dict.fromkeys(self.results[q].key for q in draft.queries)
            reason = f"sharded by {'; '.join(keys)}"
        else:
            reason = "one shard: " + "; ".join(draft.reasons)
        reads = () if self.bound.keys().isdisjoint(draft.nodes) else self.offered.reads
        return Stage(
            number=draft.number,
            sharded=draft.sharded,
            queries=tuple(q for q in self.outputs if q in draft.queries),
            reports=tuple(q for q in self.outputs if q in draft.reports),
            nodes=tuple(n for n, _ in self.rules.nodes if n in draft.nodes),
            routes=draft.routes,
            after=tuple(sorted(draft.after)),
            tagged=draft.sharded and (any(map(self._events_of, draft.queries)) or self._overlap(draft.routes, reads)),
            reason=reason,
        )


__all__ = ["NOTHING_OFFERED", "Offered", "Partition", "QueryShards", "ShardPlan", "Stage", "shard_plan"]
