"""Rules as a network of operators, evaluated node by node over a whole batch.

A node may be evaluated for all instants of a batch at once when everything it reads is complete for the batch.  So
the order is that of all dependencies, the delayed ones included: the left of a SEQ is an earlier instant's, but of
the same batch.  Rules that feed themselves have no such order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from etalis_compiler.stratify import feeds, late_nodes, output_id, strong_components
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.values.functions import find_function

JOINS = frozenset(("and", "seq", "equals", "meets", "overlaps", "starts", "during", "finishes", "par", "next"))
"""The joins that have a columnar form (``joins.RELATIONS``, which loads the kernels)."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A rule that feeds its own leaf through one join, and maybe a map without steps: all that depends on itself."""

    leaf: str
    join: str
    map: str
    output: str
    template: ir.Template


@dataclass(frozen=True, slots=True)
class Network:
    """The nodes and outputs in the order of evaluation.

    ``order`` has node ids and ids of outputs; ``fed`` the leaves that each CONSTRUCT's template feeds, by the id of its
    output; ``recursive`` what depends on itself, but for the parts of ``loops``, found by all their names.
    """

    nodes: dict[str, ir.Node]
    outputs: dict[str, tuple[int, ir.Output]]
    fed: dict[str, tuple[tuple[ir.Template, tuple[str, ...]], ...]]
    order: tuple[str, ...]
    recursive: frozenset[str]
    loops: dict[str, Loop]


def network(rules: ir.Rules) -> Network:
    """The network of some rules."""
    nodes = dict(rules.nodes)
    outputs = {output_id(output.query): (i, output) for i, output in enumerate(rules.outputs)}
    leaves = {name: node for name, node in nodes.items() if isinstance(node, ir.Leaf)}
    fed = {
        name: tuple(
            (template, tuple(leaf for leaf, node in leaves.items() if feeds(template, output.stream, node)))
            for template in output.template
        )
        for name, (_, output) in outputs.items()
        if output.form == "construct" and output.source is not None
    }
    successors: dict[str, list[str]] = {name: [] for name in (*nodes, *outputs)}
    for name, node in nodes.items():
        for source in ir.made_from(node):
            successors[source].append(name)
    for name, (_, output) in outputs.items():
        if output.source is not None:
            successors[output.source.node].append(name)
        for _, targets in fed.get(name, ()):
            successors[name].extend(targets)
    components = strong_components(list(successors), successors)
    recursive: set[str] = set()
    loops: dict[str, Loop] = {}
    for component in components:
        if len(component) > 1 or component[0] in successors[component[0]]:
            loop = _loop(component, nodes, outputs, fed)
            if loop is None:
                recursive.update(component)
            else:
                loops.update(dict.fromkeys(component, loop))
    order = tuple(name for component in components for name in component)
    return Network(nodes, outputs, fed, order, frozenset(recursive), loops)


def _loop(
    component: list[str],
    nodes: dict[str, ir.Node],
    outputs: dict[str, tuple[int, ir.Output]],
    fed: dict[str, tuple[tuple[ir.Template, tuple[str, ...]], ...]],
) -> Loop | None:
    """The one rule that a component consists of, where it has the form of a loop."""
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
    if output.order or output.limit is not None or output.offset or output.distinct or len(templates) != 1:
        return None
    if isinstance(map_, ir.Map) and (map_.steps or map_.child.node != names[ir.Join]):
        return None
    if not (isinstance(leaf, ir.Leaf) and isinstance(join, ir.Join) and _is_plain(leaf) and _is_simple(join)):
        return None
    assert output.source is not None
    bound = output.source.columns
    if any(isinstance(e, alg.Var) and e.name not in bound for e in (templates[0].subject, templates[0].object)):
        return None
    if templates[0].predicate != leaf.predicate or names.get(ir.Map, "") in ir.made_from(join):
        return None
    return Loop(names[ir.Leaf], names[ir.Join], names.get(ir.Map, ""), names[type(None)], templates[0])


def _is_plain(leaf: ir.Leaf) -> bool:
    """Is the predicate a constant, and are subject and object constants or variables that differ and are read?"""
    ends = (leaf.subject, leaf.object)
    plain = isinstance(leaf.predicate, alg.Const) and all(
        isinstance(e, alg.Const) or (isinstance(e, alg.Var) and e.name in leaf.head) for e in ends
    )
    return plain and not leaf.entailed and leaf.subject != leaf.object


def _is_simple(join: ir.Join) -> bool:
    """Is it an AND or a SEQ that keeps every pair with the same key?"""
    bounded = isinstance(join.bound, ir.Longest) or (join.bound is not None and bool(join.bound.months))
    return join.op in ("and", "seq") and not (join.policy or join.steps or bounded or _open(join))


def unsupported(rules: ir.Rules, knowledge: Any = None) -> str | None:
    """Why these rules cannot be run in columns, over this background; None when they can."""
    if getattr(knowledge, "programs", ()):
        return "an answer-set program reads events"
    net = network(rules)
    if net.recursive:
        queries = sorted(name.removeprefix("out:") for name in net.recursive if name in net.outputs)
        return f"the rules {', '.join(queries)} are recursive"
    late = late_nodes(net.nodes)
    for name, node in net.nodes.items():
        reason = _unsupported_node(node, late, name)
        if reason is not None:
            return reason
    for name, (_, output) in net.outputs.items():
        reason = _unsupported_output(output, any(targets for _, targets in net.fed.get(name, ())))
        if reason is not None:
            return f"query {output.query}: {reason}"
    return None


def _unsupported_node(node: ir.Node, late: frozenset[str], name: str) -> str | None:
    match node:
        case ir.Leaf():
            return None
        case ir.Map(steps=steps):
            return _unsupported_steps(steps)
        case ir.Union():
            return None
        case ir.Join(op=op) if op not in JOINS:
            return f"there is no columnar form of {op.upper()} yet"
        case ir.Join(op="next", policy=policy) if policy or _open(node):
            return "there is no columnar form of a NEXT that consumes, or whose sides may leave a variable unbound, yet"
        case ir.Join(op="par", policy=policy) if policy:
            return "there is no columnar form of a PAR that consumes yet"
        case ir.Join(steps=steps):
            if name in late:
                return "a join reads what an aggregate reports, which may have ended before"
            return _unsupported_picking(node) or _unsupported_steps(steps)
        case ir.Absence():
            return _unsupported_picking(node) or _unsupported_steps(node.steps)
        case ir.Outer():
            if name in late:
                return "an optional part reads what an aggregate reports, which may have ended before"
            return _unsupported_steps((*node.condition, *node.steps))
        case ir.Group(leaves=leaves):
            if leaves:
                return "EXISTS looks back at single occurrences"
            expressions = (*node.having, *(e for _, e in node.extends), *(k.expression for k in node.order))
            operands = (call.operand for call in node.aggregates if call.operand is not None)
            return _unsupported_expressions((*expressions, *operands))
        case ir.Slice(order=order):
            return _unsupported_expressions(key.expression for key in order)
        case ir.Run():
            if any(map(alg.has_exists, node.condition)):
                return "EXISTS looks back at single occurrences"
            return None
        case ir.Closure():
            return None
    return f"there is no columnar form of {type(node).__name__} yet"


def _unsupported_picking(node: ir.Join | ir.Absence) -> str | None:
    """Why one of the candidates cannot be taken in columns, where a policy does that."""
    if node.policy and any(isinstance(step, ir.Background) for step in node.steps):
        return "a consuming join looks into the background"
    if node.policy and any(isinstance(step, ir.Parameters) for step in node.steps):
        return "a consuming join is divided among queries that differ in constants only"
    return None


def _open(node: ir.Join) -> bool:
    """May a variable of both sides be unbound in one?"""
    return not set(node.left.columns) & set(node.right.columns) <= set(node.certain)


def _unsupported_steps(steps: Iterable[ir.Step]) -> str | None:
    steps = tuple(steps)
    return _unsupported_expressions(s.expression for s in steps if isinstance(s, (ir.Condition, ir.Assign)))


def _unsupported_expressions(expressions: Iterable[alg.Expr]) -> str | None:
    return next((reason for reason in map(unsupported_expression, expressions) if reason is not None), None)


def unsupported_expression(e: alg.Expr) -> str | None:
    """Why an expression cannot be evaluated apart from its solution's history and identity."""
    for part in alg.subexpressions(e):
        if isinstance(part, alg.Exists):
            return "EXISTS looks back at single occurrences"
        if isinstance(part, alg.Apply) and _is_volatile(part):
            return f"{part.op} is seeded by its solution"
    return None


def _is_volatile(e: alg.Apply) -> bool:
    if not e.op[:1].isalpha() or e.op in ("IN", "BOUND", "neg", "pos"):
        return False
    try:
        return find_function(e.op, 1 if e.op in ("IRI", "URI") else len(e.args)).volatile
    except LookupError:
        return False


def _unsupported_output(output: ir.Output, feeding: bool) -> str | None:
    if output.form == "describe" or output.late is not None:
        return "it looks back at single occurrences"
    if feeding and _makes_nodes(output):
        return "it makes blank nodes that other rules read"
    return None


def _makes_nodes(output: ir.Output) -> bool:
    columns = () if output.source is None else output.source.columns
    positions: list[Any] = [p for t in output.template for p in (t.subject, t.predicate, t.object)]
    return any(isinstance(p, alg.Var) and p.name.startswith("_:") and p.name not in columns for p in positions)
