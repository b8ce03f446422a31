"""How the events of a program are shared out among processes: by a key, or by time; or why they cannot be.

>>> from etalis_py import Engine
>>> way_of(Engine("SELECT ?c { ?c :p ?x } SEQ { ?c :q ?y }"))
ByKey(keys=('?c',), position='subject', positions={})
>>> way_of(Engine("SELECT ?c { { ?c :p ?x } SEQ { ?d :q ?y } } WITHIN 10 SECONDS"))
ByTime(back=10000000)
>>> way_of(Engine("SELECT ?c { { ?c :p ?x } SEQ { ?d :q ?y } }")).partition(",")[0]
'in e1 SEQ e2 no variable is shared'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from etalis_compiler.partition import routed_leaf
from etalis_compiler.reach import furthest, reaches
from etalis_compiler.shards import ShardPlan, shard_plan
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import event_patterns

from etalis_py.engine.query_families import GatheredQueries
from etalis_py.kernel.owl_streams import HIDDEN

if TYPE_CHECKING:
    from etalis_py.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class ByKey:
    """A triple belongs to the share of the term at a position: that of its predicate in ``positions``, or else
    ``position``.  ``keys`` are the variables that hold these terms.
    """

    keys: tuple[str, ...]
    position: str = "subject"
    positions: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"by {', '.join(self.keys)}"


@dataclass(frozen=True, slots=True)
class ByTime:
    """Each share answers for some stretches of time, and also takes the events of ``back`` microseconds before each."""

    back: int

    def __str__(self) -> str:
        return "by time"


Way = ByKey | ByTime


def way_of(engine: Engine) -> Way | str:
    """The way to share out the events of an engine's programs; a text says why there is none."""
    rules = engine.rules
    if engine.has_windows:
        return "windowed queries run on one core"
    if any(isinstance(program.compilation, GatheredQueries) for program in engine.programs.values()):
        return "queries that differ only in constants are evaluated together"
    if any(output.query.startswith(HIDDEN) for output in rules.outputs):
        return "the OWL rules of the background derive triples for any query"
    if getattr(engine.knowledge, "programs", ()):
        return "an answer-set program reads the events"
    keyed = _by_key(rules)
    if isinstance(keyed, ByKey):
        return keyed
    reach = furthest(reaches(rules), [output.query for output in rules.outputs])
    return ByTime(reach.back) if reach.bounded else f"{keyed}; nor can it be cut by time: {reach.reason}"


def _by_key(rules: ir.Rules) -> ByKey | str:
    if not rules.outputs:
        return "no query reads the events"
    plan = shard_plan(rules)
    if reason := _obstacle(rules, plan):
        return reason
    nodes = dict(rules.nodes)
    positions: dict[str, str] = {}
    for stage in plan.stages:
        for name, position in stage.routes:
            leaf, place = routed_leaf(nodes[name], position)
            predicate = alg.constant_of(leaf.predicate)
            if positions.setdefault(predicate, place) != place:
                return f"triples of {predicate or 'any predicate'} have the key in two places"
    anywhere = positions.pop("", None)
    if anywhere is not None and any(place != anywhere for place in positions.values()):
        return "triples of any predicate have the key in two places"
    keys = tuple(dict.fromkeys(plan.of(output.query).key for output in rules.outputs))
    places = set(positions.values())
    if anywhere is not None or len(places) == 1:
        return ByKey(keys, anywhere or places.pop())
    return ByKey(keys, positions=positions)


def _obstacle(rules: ir.Rules, plan: ShardPlan) -> str:
    """Why not every query can be evaluated in shards whose triples are where they belong from the beginning."""
    for query in plan.queries:
        stage = plan.stages[query.reported - 1]
        if query.reason or not stage.sharded:
            return query.reason or stage.reason
    if any(stage.after for stage in plan.stages):
        return "a rule derives triples for a query with another key"
    if any(stage.tagged for stage in plan.stages):
        return "a triple may belong to two keys"
    if event_patterns(node for _, node in rules.nodes):
        return "EVENT reads whole events, whose triples may belong to several keys"
    return ""
