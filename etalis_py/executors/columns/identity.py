"""Finds the positions of the input whose terms need no look-up in the dictionary: copying a term costs less.

A term must be looked up if rules join, compare or count it by identity: equal terms then have one id.  Terms that are
only shown, or only read as values, each get an id of their own (``Terms.append``).  Where no rule reads a position at
all, its terms serve only to tell apart the occurrences of one instant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.leaf_tests import Among, Same, tests_of
from etalis_rules.operators import compared, steps
from etalis_rules.records import needed_leaves, table_columns_of

from etalis_py.executors.columns.costs import asked_once
from etalis_py.executors.columns.network import Network
from etalis_py.executors.columns.supported_rules import has_one_open_run, steps_by_pairs

SUBJECT, OBJECT = 0, 2


def unidentified(net: Network) -> frozenset[int]:
    """The positions of occurrences (SUBJECT, OBJECT) whose terms need no look-up."""
    if any(targets for fed in net.fed.values() for _, targets in fed):
        return frozenset()  # derived terms are compared with incoming ones
    compared = compared_columns(net)
    loose = {SUBJECT, OBJECT}
    for name, node in net.nodes.items():
        if isinstance(node, ir.Record):
            loose.discard(SUBJECT)  # the triples of one subject belong together
            if not _free_objects(node, compared[name]):
                loose.discard(OBJECT)
        if isinstance(node, ir.Leaf):
            for place, position in ((SUBJECT, node.subject), (OBJECT, node.object)):
                if node.entailed or not _free(position, node, compared[name]):
                    loose.discard(place)
    return frozenset(loose)


def unread(net: Network, loose: Collection[int]) -> frozenset[int]:
    """The positions among ``loose`` that no rule reads."""
    leaves = [node for node in net.nodes.values() if isinstance(node, ir.Leaf)]
    read = {SUBJECT: any(_is_read(leaf.subject, leaf.head) for leaf in leaves)}
    read[OBJECT] = any(_is_read(leaf.object, leaf.head) for leaf in leaves)
    return frozenset(place for place in loose if not read[place])


def predicates_of(nodes: Mapping[str, ir.Node]) -> frozenset[str] | None:
    """The predicates that the leaves ask for; None if one may match any other, or its consequences."""
    found: set[str] = set()
    for leaf in nodes.values():
        if isinstance(leaf, ir.Leaf):
            asked = [t for t in tests_of(leaf) if isinstance(t, Among) and t.place == "predicate" and not t.negated]
            if leaf.entailed or not asked:
                return None
            found.update(*(test.terms for test in asked))
    return frozenset(found)


def _is_read(position: ir.Position, head: Collection[str]) -> bool:
    return not isinstance(position, ir.Any) and not (isinstance(position, alg.Var) and position.name not in head)


def _free(position: ir.Position, leaf: ir.Leaf, compared: set[str]) -> bool:
    match position:
        case ir.Any():
            return True
        case alg.Var(name):
            once = [leaf.subject, leaf.predicate, leaf.object].count(position) == 1
            return once and name not in compared
    return False


def _free_objects(node: ir.Record, compared: set[str]) -> bool:
    """Whether the objects of its columns are distinct variables that nothing compares."""
    pattern = table_columns_of(node)
    if pattern is None or pattern.optional:  # it is evaluated over spellings, for the events that pass these tests
        leaves = (leaf for needed in needed_leaves(node) for leaf in needed)
        tests = (test for leaf in leaves for test in tests_of(leaf))
        return not any(isinstance(test, Among | Same) and test.place == "object" for test in tests)
    if pattern.tests:
        return False
    subject, columns = pattern.subject, pattern.columns
    names = [subject, *(node.graph.name for _ in (0,) if isinstance(node.graph, alg.Var))]
    for _, term in columns:
        if isinstance(term, alg.Const) or term.name in names or term.name in compared:
            return False
        names.append(term.name)
    return True


def compared_columns(net: Network) -> dict[str, set[str]]:
    """For each node the columns of its head that some rule above it compares by identity."""
    compared: dict[str, set[str]] = {name: set() for name in net.nodes}
    for _, output in net.outputs.values():
        if output.source is not None and output.distinct:
            _mark(compared, net, output.source, output.variables)
    for name in reversed(net.order):
        node = net.nodes.get(name)
        if node is not None:
            wanted = _wanted(node, compared[name])
            for ref in ir.refs(node):
                _mark(compared, net, ref, wanted)
    return compared


def _mark(compared: dict[str, set[str]], net: Network, ref: ir.Ref, names: Iterable[str]) -> None:
    """Note that these variables of a rule are compared, for the columns of the node from which it has them."""
    wanted = frozenset(names)
    head = net.nodes[ref.node].head
    compared[ref.node].update(column for column, name in zip(head, ref.columns, strict=True) if name in wanted)


def _wanted(node: ir.Node, above: set[str]) -> set[str]:
    """The variables of a rule's body whose terms must be distinguished, given those of its head."""
    wanted = above | compared(node)
    if steps_by_pairs(node) or has_one_open_run(node):
        return wanted | _told_apart_in_runs(node.condition, node.aggregates)
    if isinstance(node, ir.Group):
        return wanted.union(*map(_told_apart, node.aggregates))
    return wanted | _sources(steps(node), wanted)


def _told_apart(call: alg.AggregateCall) -> set[str]:
    """The variables of an aggregate whose terms are compared, or whose operand is evaluated once per distinct term."""
    if call.operand is None or (isinstance(call.operand, alg.Var) and call.name in ("COUNT", "SUM", "AVG")):
        return set() if call.operand is None or not call.distinct else set(alg.variables(call.operand))
    return set(alg.variables(call.operand))


def _told_apart_in_runs(condition: Iterable[alg.Expr], aggregates: Iterable[alg.AggregateCall]) -> set[str]:
    """The variables that the condition reads once per distinct term, and those whose extremes are asked for."""
    asked = (part for e in condition for part in asked_once(alg.elements_named(e)))
    names = {name.removeprefix("PREVIOUS ") for part in asked for name in alg.variables(part)}
    return names.union(*(_told_apart(call) for call in aggregates if not call.takes_element))


def _sources(done: tuple[ir.Step, ...], wanted: set[str]) -> set[str]:
    """The variables that steps copy into wanted ones, match against parameters, or look up in the background.

    The last two would find the right answer with any ids, as they go by spelling.  But they do their work once per
    distinct id; without a look-up in the dictionary they would repeat it for every occurrence of a term.
    """
    copied: set[str] = set()
    for step in reversed(done):
        match step:
            case ir.Assign(variable, alg.Var(name)):
                copied |= {name} if variable in wanted | copied else set()
            case ir.Assign(expression=e) | ir.Condition(e):
                copied |= {name for part in asked_once(e) for name in alg.variables(part)}
            case ir.Parameters(equal=equal):
                copied |= {name for name, _ in equal}
            case ir.Background(pattern):
                copied |= alg.scope(pattern)
    return copied
