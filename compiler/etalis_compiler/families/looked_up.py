"""Look-ups in the background that name a constant in which a family's queries differ.

Queries that differ in a constant of a background triple can share one rule: the constant becomes a column, joined with
the relation of parameters.  If an event provides the rest of the triple, the look-up finds the constants for which the
triple holds, and with them the queries; if the query is known already, the column holds its constant.  A constant in
any other place, such as below an operator or in an expression evaluated inside the look-up, cannot become a column, as
the column would not be visible there.

    { ?c :price ?x . ?c :inSector :s12 }
    leaf(~c, ~x) → background: ~c :inSector ~$0 → parameters: ~$0 = place 1; $
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op
from etalis_rules.traversal import walk

_OF_THE_GROUP = alg.INTERVAL | alg.VOLATILE
"""Functions that read the interval of the solution, or are drawn anew for it."""


def plain_steps(step: ir.Background, markers: Collection[str]) -> tuple[ir.Step, ...] | None:
    """Split a look-up into look-ups of plain triples and conditions; None if a marker stands anywhere else."""
    match step.pattern:
        case alg.BGP(triples, _, graph):
            others = (graph, *(triple.predicate for triple in triples))
            return None if any(isinstance(n, alg.Const) and n.term in markers for n in others) else (step,)
        case alg.Filter(child, conditions):
            below = plain_steps(ir.Background(child, step.binds), markers)
            alone = all(_reads_only(condition, alg.scope(child)) for condition in conditions)
            return None if below is None or not alone else (*below, *map(ir.Condition, conditions))
        case alg.Join(Op.AND, left, right):
            own = tuple(name for name in step.binds if name in alg.scope(left))
            rest = tuple(name for name in step.binds if name not in own)
            parts = [plain_steps(ir.Background(p, b), markers) for p, b in ((left, own), (right, rest))]
            return None if None in parts else tuple(s for part in parts for s in part or ())
    return None


def _reads_only(condition: alg.Expr, names: frozenset[str]) -> bool:
    """Whether a condition reads only these variables, and nothing of the solution but its terms."""
    if alg.has_exists(condition) or alg.operators(condition) & _OF_THE_GROUP:
        return False
    return alg.variables(condition) <= names


def is_reached(step: ir.Background, known: Iterable[str], markers: Collection[str]) -> bool:
    """Whether each triple with a marker has a variable that is known by then."""
    assert isinstance(step.pattern, alg.BGP)
    names = set(known)
    triples = [(t, alg.node_variables(t.subject, t.predicate, t.object)) for t in step.pattern.triples]
    while more := [own for _, own in triples if own & names and not own <= names]:
        names.update(*more)
    return all(own & names for triple, own in triples if _has_marker(triple, markers))


def _has_marker(triple: alg.Triple, markers: Collection[str]) -> bool:
    return any(isinstance(node, alg.Const) and node.term in markers for node in walk(triple))


def stacked(node: ir.Map, below: ir.Map) -> ir.Map:
    """A Map and the Map below it merged into one, with the steps of both."""
    names = dict(zip(below.head, node.child.columns, strict=True))
    inner = {*below.child.columns, *(name for step in below.steps for name in bound_by(step))}
    names |= {name: f".{i}{name}" for i, name in enumerate(sorted(inner - names.keys()))}
    own = alg.rename(below, names)
    return replace(node, child=own.child, steps=(*own.steps, *node.steps))


def bound_by(step: ir.Step) -> tuple[str, ...]:
    """The variables that a step binds."""
    match step:
        case ir.Assign(variable, _):
            return (variable,)
        case ir.Background(_, binds):
            return binds
    return ()
