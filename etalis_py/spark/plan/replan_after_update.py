"""Checks that the parts of a job, planned for the first version of the background, still fit another version.

Which events a shard gets is fixed when the job is planned.  Added or removed facts do not change the routing: a pattern
that the background may answer from now on still sees the same events.  A schema may change it: a new sub-property,
domain or range makes a pattern see other events, perhaps by another key.  So the parts are planned again whenever an
update gives other rules.  If the new plan would route any event differently, the job stops and says why: routing cannot
change while it runs.  A pattern that asks for one type gets all of them, so that classes may become subclasses of
others without a change of routing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from etalis_compiler.reach import endless
from etalis_rules import algebra as alg
from etalis_rules import leaf_tests
from etalis_rules import program as ir
from etalis_rules.records import leaves_read
from etalis_rules.terms import RDF_TYPE

from etalis_py.engine.engine import Engine
from etalis_py.engine.rule_plans import RulePlan
from etalis_py.engine.stage_plans import with_policy
from etalis_py.kernel.dataset import whole
from etalis_py.knowledge import Knowledge
from etalis_py.spark.errors import SparkError
from etalis_py.spark.plan.asp_routing import offers_of
from etalis_py.spark.plan.parts import RoutedPart, ShardPart, parts_of
from etalis_py.spark.plan.spec import ProgramSpec, compiled, knowledge_of

UNCUT = "the background changes while the batch runs"


def prepared(routed: RoutedPart, entailment: str) -> RoutedPart:
    """The part, changed so that its background may be updated.

    Timeless answers may differ between versions, so a single shard reports them.
    """
    part = replace(routed.part, once=routed.part.queries) if routed.part.shards > 1 else routed.part
    routes = routed.routes
    if entailment != "rdf":
        routes = tuple(dict.fromkeys((_any_type(leaf), position) for leaf, position in routes))
    return replace(routed, part=part, routes=routes, reach=endless(UNCUT))


def check_routes(spec: ProgramSpec, part: ShardPart, engine: Engine) -> None:
    """Refuse a version of the background with which a shard of the part should have been sent other events."""
    if part.standing:
        return
    if spec.windowed:
        fits = part.shards == 1 or not entails_elsewhere(engine.knowledge)
    else:
        planned = _planned(spec)
        same_role = next(routed for routed in planned if _role(routed.part) == _role(part))
        asked = {_asks(leaf) for leaf in leaves_read(node for _, node in engine.rules.nodes)}
        fits = asked <= {_asks(leaf) for leaf, _ in same_role.routes} or _same(planned, _parts(spec, engine.knowledge))
    if not fits:
        raise SparkError(
            f"an update of the background changes the schema so that {', '.join(part.queries)} would have to be sent "
            "other events, or by another key, than when the job was planned: state the schema in the background that "
            "the job starts with and begin anew, or run it with the local engine"
        )


def entails_elsewhere(known: Knowledge | None) -> bool:
    """Whether a streamed triple may entail one with another key."""
    if known is None or known.entailment == "rdf":
        return False
    return bool(known.schema.specimens or known.schema.classes.forward)


@lru_cache(maxsize=64)
def _planned(spec: ProgramSpec) -> tuple[RoutedPart, ...]:
    """The parts as planned for the initial background of the job."""
    known = knowledge_of(spec)
    assert known is not None, "what is to change is there"
    return tuple(_parts(spec, known))


def _parts(spec: ProgramSpec, knowledge: Knowledge) -> list[RoutedPart]:
    """The parts of a program as planned for a version of its background."""
    program = compiled(spec)
    rules = RulePlan(whole(knowledge), changes=True)
    rules.choose(program.compilation.queries)
    rules.plan(with_policy(program.compilation.queries, program.policy), started=True)
    return parts_of(rules.rules, 0, 0, spec.shards, offers_of(knowledge_of(spec)))


def _same(planned: tuple[RoutedPart, ...], now: list[RoutedPart]) -> bool:
    """Whether the current parts get all that they need in the places that were planned."""
    return len(planned) == len(now) and all(map(_covers, planned, now))


def _role(part: ShardPart) -> tuple[object, ...]:
    return part.queries, part.reports, part.feeds, part.takes, part.keys, part.shards, part.level, part.live


def _covers(planned: RoutedPart, now: RoutedPart) -> bool:
    part = now.part
    if _role(planned.part) != _role(part):
        return False
    if now.everything and not planned.everything:
        return False
    sent = [(_any_type(leaf), place) for leaf, place in planned.routes]
    return planned.everything or all(
        any(leaf_tests.implies(leaf, wide) and (part.shards == 1 or by == place) for wide, by in sent)
        for leaf, place in now.routes
    )


def _asks(leaf: ir.Leaf) -> tuple[object, ...]:
    """The tests of a leaf, without the names of its variables, so that equal ones can be recognized."""
    return leaf_tests.tests_of(leaf), leaf.entailed


def _any_type(leaf: ir.Leaf) -> ir.Leaf:
    """The leaf, asking for any type if it asks for one."""
    typed = RDF_TYPE in (leaf_tests.terms_of(leaf.predicate) or ())
    return replace(leaf, object=ir.Any()) if typed and not alg.variable_of(leaf.object) else leaf


__all__ = ["check_routes", "entails_elsewhere", "prepared"]
