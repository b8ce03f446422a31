"""Divides the queries of a family among the shards on Spark.

Every query of a family is in one shard, its home, which is chosen by the constant in most of its triple patterns, or by
its name if they have none.  So alerts about one company are in one shard, and the events of that company go there.  A
triple goes to the shards with queries that have its term as a constant; a broadcast table lists these shards
(``catalyst_filters``), however many queries there are.  Triples for a pattern without a constant go to all shards.  The
matches of one query of a family do not depend on the other queries, so these need not be in the same shard.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2s
from zlib import crc32

from etalis_compiler.reach import endless
from etalis_compiler.stratify import made_for
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import has_start
from etalis_rules.operators import event_patterns, is_leaf, passes_on, steps
from etalis_rules.steps import equal_parameter

from etalis_py.engine.program import Program
from etalis_py.engine.query_families import GatheredQueries, Member, QueryFamily
from etalis_py.spark.plan.parts import Lookup, RoutedPart, ShardPart, feeders_of, meaning_of, parts_of
from etalis_py.spark.plan.spec import Own, ProgramSpec, compiled, spec_of

POSITIONS = ("subject", "object")


def are_apart(rules: ir.Rules, families: Iterable[str]) -> bool:
    """Whether no family derives what a query reads, or reads what a query derives."""
    feeders, names = feeders_of(rules), set(families)
    return all(not makers & names and not (makers and reader in names) for reader, makers in feeders.items())


def with_families(
    program: Program, name: str, number: int, first: int, shards: int
) -> tuple[ProgramSpec, list[RoutedPart]] | None:
    """The specification of a program with families, and its parts; None if its queries have to run one by one.

    They have to if families feed other queries or are fed by them, if one has EVENT or START, or if the texts do not
    determine the whole program.
    """
    assert isinstance(program.compilation, GatheredQueries)
    compilation = program.compilation.run_by(program.policy)
    rules = compilation.rules(program.policy)
    if rules is None or not compilation.groups or not all(group.plain for group in compilation.groups):
        return None
    if any(output.form == "construct" and output.timeless is not None for output in rules.outputs):
        return None
    if event_patterns(node for _, node in rules.nodes) or has_start(node for _, node in rules.nodes):
        return None
    if not are_apart(rules, [group.name for group in compilation.groups]):
        return None
    spec = spec_of(replace(program, compilation=compilation), name, None)
    return spec, _parts(compilation, rules, number, first, shards)


def _parts(compilation: GatheredQueries, rules: ir.Rules, program: int, first: int, shards: int) -> list[RoutedPart]:
    """The parts of a program with families: those of the other queries, then one for all families."""
    families = {group.name for group in compilation.groups}
    others = replace(rules, outputs=tuple(output for output in rules.outputs if output.query not in families))
    parts = parts_of(others, program, first, shards) if others.outputs else []
    places = dict(zip((query.name for query in compilation.rest), compilation.places, strict=True))
    order = tuple((query, places[query]) for query in places)
    parts = [replace(routed, part=replace(routed.part, order=order)) for routed in parts]
    return [*parts, _divided(compilation.groups, rules, ShardPart(first + len(parts), program, shards, (), ()))]


def _divided(groups: Iterable[QueryFamily], rules: ir.Rules, part: ShardPart) -> RoutedPart:
    """The part of the families."""
    nodes, outputs = dict(rules.nodes), {output.query: output for output in rules.outputs}
    homes: dict[str, int] = {}
    meanings: dict[str, str] = {}
    everywhere: dict[ir.Leaf, None] = {}
    leaves: defaultdict[str, dict[ir.Leaf, None]] = defaultdict(dict)
    shards_of: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for group in groups:
        output = outputs[group.name]
        here = [nodes[name] for name in made_for([output], nodes)]
        chosen = list(_by_constants(here, nodes))
        used = Counter(place for _, _, place in chosen)
        home = homes[group.name] = used.most_common(1)[0][0] if used else 0
        for leaf, position, place in chosen:
            leaves[position][leaf] = None
            for row in group.members:
                shards_of[position][row[place]].add(home_of(row, home, part.shards))
        everywhere |= dict.fromkeys(_without_constants(output, here, nodes))
        meaning = meaning_of(output)
        for row in group.members:
            constants = row[1 : 1 + len(group.template.places)]
            meanings[row[0]] = blake2s(repr((meaning, constants)).encode(), digest_size=8).hexdigest()
    lookups = tuple(
        Lookup(position, tuple(leaves[position]), {term: frozenset(own) for term, own in shards_of[position].items()})
        for position in POSITIONS
        if position in leaves
    )
    routes = [(leaf, lookup.position) for lookup in lookups for leaf in lookup.leaves]
    routes += [(leaf, "") for leaf in everywhere]
    names = tuple(homes)
    reason = "the queries of its families are divided among the shards"
    part = replace(
        part, queries=names, reports=names, homes=tuple(homes.items()), reason=reason, order=tuple(homes.items())
    )
    reach = endless("the queries of families are divided among the shards")
    return RoutedPart(part, tuple(routes), meanings=tuple(meanings.items()), reach=reach, lookups=lookups)


def home_of(row: Member, place: int, shards: int) -> int:
    """The shard of a query whose home is that of the constant at a place of its row, or of its name."""
    return crc32(row[place].encode()) % shards


def own_of(part: ShardPart, shard: int) -> Mapping[str, Own]:
    """For each family of a part, the test whether a query of it is in this shard."""

    def own(home: int) -> Own:
        return lambda row: home_of(row, home, part.shards) == shard

    return {family: own(home) for family, home in part.homes}


def order_in(spec: ProgramSpec, part: ShardPart) -> tuple[tuple[str, int], ...]:
    """The queries that a part reports, each with its rank in an instant; empty if no order was asked for."""
    if not (part.homes and part.order):
        return part.order
    compilation = compiled(spec).compilation
    assert isinstance(compilation, GatheredQueries)
    return tuple((row[0], row[1 + len(group.template.places)]) for group in compilation.groups for row in group.members)


def _by_constants(here: Iterable[ir.Node], nodes: Mapping[str, ir.Node]) -> Iterator[tuple[ir.Leaf, str, int]]:
    """Leaves whose triples are looked up by a constant, with its position and its place in the family's rows."""
    for node in here:
        if (found := _looked_up(node, nodes)) is not None:
            leaf, column, place = found
            yield leaf, next(p for p in POSITIONS if getattr(leaf, p) == alg.Var(column)), place


def _without_constants(output: ir.Output, here: Iterable[ir.Node], nodes: Mapping[str, ir.Node]) -> Iterator[ir.Leaf]:
    """Leaves whose triples may concern any query of the family, as no constant tells which."""
    refs = [ref.node for node in here if _looked_up(node, nodes) is None for ref in ir.refs(node)]
    for name in refs if output.source is None else (*refs, output.source.node):
        node = nodes[name]
        if is_leaf(node):
            yield node


def _looked_up(node: ir.Node, nodes: Mapping[str, ir.Node]) -> tuple[ir.Leaf, str, int] | None:
    """The leaf of which a node takes what equals a constant of the query, its column, and the constant's place."""
    equal = equal_parameter(steps(node)) if passes_on(node) else None
    if equal is None:
        return None
    (child,) = ir.refs(node)
    leaf = nodes[child.node]
    return (leaf, leaf.head[child.columns.index(equal[0])], equal[1]) if is_leaf(leaf) else None
