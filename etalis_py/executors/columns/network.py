"""Rules as a network of operators, evaluated node by node over a whole batch.

A node can be evaluated for all instants of a batch at once when everything it reads is complete for the batch.  So the
order follows all dependencies, including delayed ones: the left of a SEQ belongs to an earlier instant, but perhaps to
the same batch.  Rules that feed themselves have no such order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from etalis_compiler.families import NAME
from etalis_compiler.stratify import StreamReaders, made_for, output_id, strong_components
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.lateness import late_nodes
from etalis_rules.relations import Op

from etalis_py.executors.columns.supported_rules import is_open
from etalis_py.kernel.templates import fresh_nodes_of

Fed = Mapping[str, tuple[tuple[ir.Template, tuple[str, ...]], ...]]


@dataclass(frozen=True, slots=True)
class Loop:
    """A recursion of one rule: its output feeds its own leaf through one join and, perhaps, a map without steps.

    ``reader`` and ``joined`` are the nodes of ``leaf`` and ``join``.
    """

    leaf: str
    join: str
    map: str
    output: str
    template: ir.Template
    reader: ir.Leaf
    joined: ir.Join


@dataclass(frozen=True, slots=True)
class RecursiveRules:
    """A recursion of rules that keep nothing between instants: their nodes, in the order of one round, and outputs."""

    nodes: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowSection:
    """Rules that run in rows between the others, once everything they read is complete for the batch.

    ``name`` stands for them in the order; ``nodes`` and ``outputs`` are their ids.
    """

    name: str
    nodes: frozenset[str]
    outputs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Network:
    """The nodes and outputs in the order of evaluation.

    ``order`` has node ids, ids of outputs, and names of parts in rows.  ``fed`` has, by the id of a CONSTRUCT's output,
    each template with the leaves, EVENTs and parts in rows that its triples feed.  A recursion in one of two special
    forms is in ``loops`` or ``rounds``, by the name of each node and output in it.  Any other recursion has no columnar
    form: ``recursive`` has its queries, by the same names.
    """

    nodes: dict[str, ir.Node]
    outputs: dict[str, tuple[int, ir.Output]]
    fed: Fed
    order: tuple[str, ...]
    recursive: Mapping[str, tuple[str, ...]]
    loops: Mapping[str, Loop]
    rounds: Mapping[str, RecursiveRules]
    parts: Mapping[str, RowSection]


def network(rules: ir.Rules, parts: Sequence[RowSection] = ()) -> Network:
    """The network of these rules; those in ``parts`` run in rows and appear in it as one name for each part."""
    every = dict(rules.nodes)
    all_outputs = {output_id(output.query): (i, output) for i, output in enumerate(rules.outputs)}
    in_rows = {name: part.name for part in parts for name in part.outputs}
    outputs = {name: numbered for name, numbered in all_outputs.items() if name not in in_rows}
    nodes = every
    if parts:
        made = frozenset(made_for((output for _, output in outputs.values()), every))
        nodes = {name: node for name, node in every.items() if name in made}
    fed = _fed(all_outputs, nodes, every, parts)
    successors: dict[str, list[str]] = {name: [] for name in (*nodes, *outputs, *(part.name for part in parts))}
    for name, node in nodes.items():
        for source in ir.made_from(node):
            successors[source].append(name)
    for name, (_, output) in outputs.items():
        if output.source is not None:
            successors[output.source.node].append(name)
    for name, templates in fed.items():
        for _, targets in templates:
            successors[in_rows.get(name, name)].extend(targets)
    components = strong_components(list(successors), successors)
    recursive: dict[str, tuple[str, ...]] = {}
    loops: dict[str, Loop] = {}
    rounds: dict[str, RecursiveRules] = {}
    for component in components:
        if len(component) > 1 or component[0] in successors[component[0]]:
            loop = _loop(component, nodes, outputs, fed)
            again = _rounds(component, nodes, outputs) if loop is None else None
            if again is not None:
                rounds.update(dict.fromkeys(component, again))
            elif loop is None:
                queries = sorted(outputs[name][1].query for name in component if name in outputs)
                recursive.update(dict.fromkeys(component, tuple(queries)))
            else:
                loops.update(dict.fromkeys(component, loop))
    order = tuple(name for component in components for name in component)
    return Network(nodes, outputs, fed, order, recursive, loops, rounds, {part.name: part for part in parts})


def _fed(
    outputs: Mapping[str, tuple[int, ir.Output]],
    nodes: Mapping[str, ir.Node],
    every: Mapping[str, ir.Node],
    parts: Sequence[RowSection],
) -> Fed:
    """The targets of each template: leaves and EVENTs among ``nodes``, and parts in rows other than its own."""
    fed = {}
    readers = StreamReaders(every)
    for name, (_, output) in outputs.items():
        if output.form != "construct" or output.source is None:
            continue
        others = [part for part in parts if name not in part.outputs]
        templates = []
        for template in output.template:
            seeing = readers.seeing(template, output.stream)
            in_rows = (part.name for part in others if not part.nodes.isdisjoint(seeing))
            templates.append((template, (*(leaf for leaf in seeing if leaf in nodes), *in_rows)))
        fed[name] = tuple(templates)
    return fed


def _loop(
    component: list[str],
    nodes: dict[str, ir.Node],
    outputs: dict[str, tuple[int, ir.Output]],
    fed: Fed,
) -> Loop | None:
    """The recursion of a component as a ``Loop``; None if it has several rules, or another form."""
    names: dict[type, str] = {type(nodes.get(name)): name for name in component}
    if len(names) != len(component) or not {ir.Leaf, ir.Join, type(None)} <= names.keys() <= {
        ir.Leaf,
        ir.Join,
        ir.Map,
        type(None),
    }:
        return None
    leaf, join, map_ = nodes[names[ir.Leaf]], nodes[names[ir.Join]], nodes.get(names.get(ir.Map, ""))
    output = outputs[names[type(None)]][1]
    templates = [template for template, targets in fed[names[type(None)]] if names[ir.Leaf] in targets]
    if _arranges(output) or len(templates) != 1:
        return None
    if isinstance(map_, ir.Map) and (map_.steps or map_.at_end or map_.child.node != names[ir.Join]):
        return None
    if not (isinstance(leaf, ir.Leaf) and isinstance(join, ir.Join) and _is_plain(leaf) and _is_simple(join)):
        return None
    if names[ir.Join] in late_nodes(nodes):
        return None
    assert output.source is not None
    bound = output.source.columns
    if any(isinstance(e, alg.Var) and e.name not in bound for e in (templates[0].subject, templates[0].object)):
        return None
    if templates[0].predicate != leaf.predicate or names.get(ir.Map, "") in ir.made_from(join):
        return None
    return Loop(names[ir.Leaf], names[ir.Join], names.get(ir.Map, ""), names[type(None)], templates[0], leaf, join)


def _rounds(
    component: Collection[str], nodes: Mapping[str, ir.Node], outputs: Mapping[str, tuple[int, ir.Output]]
) -> RecursiveRules | None:
    """The recursion of a component; None if a rule in it keeps something, makes nodes or arranges its solutions."""
    inner = {name: node for name, node in nodes.items() if name in component}
    own = [name for name in component if name in outputs]
    if not all(isinstance(node, ir.Leaf | ir.Map | ir.Union) for node in inner.values()):
        return None
    if any(makes_nodes(outputs[name][1]) or _arranges(outputs[name][1]) for name in own):
        return None
    if late_nodes(nodes).intersection(component) or any(NAME in node.head for node in inner.values()):
        return None
    return RecursiveRules(tuple(inner), tuple(own))


def _arranges(output: ir.Output) -> bool:
    """Whether an output orders, cuts or deduplicates its solutions, instead of only showing them."""
    return bool(output.order or output.limit is not None or output.offset or output.distinct)


def makes_nodes(output: ir.Output) -> bool:
    """Whether the template makes blank nodes."""
    columns = () if output.source is None else output.source.columns
    return fresh_nodes_of(output, columns) is not None


def _is_plain(leaf: ir.Leaf) -> bool:
    """Whether the predicate is a constant, and subject and object are constants or distinct variables that are read."""
    ends = (leaf.subject, leaf.object)
    plain = isinstance(leaf.predicate, alg.Const) and all(
        isinstance(e, alg.Const) or (isinstance(e, alg.Var) and e.name in leaf.head) for e in ends
    )
    return plain and not leaf.entailed and leaf.subject != leaf.object


def _is_simple(join: ir.Join) -> bool:
    """Whether this is an AND or a SEQ that takes every pair with the same key, within a fixed length of time if any."""
    bounded = isinstance(join.bound, ir.Longest) or (join.bound is not None and bool(join.bound.months))
    bounded = bounded or join.deadline is not None
    return join.op in (Op.AND, Op.SEQ) and not (join.policy or join.steps or bounded or is_open(join))
