"""Which rules run in columns and which in rows, when some rules of a program have no columnar form.

Queries that share goals, or feed each other, belong together: such a component runs in columns if everything in it
has that form, else in rows.  A component in rows gets the events and what earlier components derive; what it derives
goes on to later ones.  So a query that runs in rows forces only those that share its state to do the same.

Components in rows that nothing in columns lies between form one part, which goes through the events once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from etalis_compiler.families import NAME
from etalis_compiler.stratify import made_for, output_id, strong_components
from etalis_rules import operators
from etalis_rules import program as ir
from etalis_rules.operators import event_patterns, leaves, looks_back
from etalis_rules.records import table_columns_of

from etalis_py.executors.columns.costs import by_kernel_while, by_value, row_by_row
from etalis_py.executors.columns.network import Network, RowSection, network
from etalis_py.executors.columns.supported_rules import PAST, taking_late, unsupported_node
from etalis_py.kernel.owl_streams import is_of_schema


@dataclass(frozen=True, slots=True)
class Division:
    """The split of a program between the two executors.

    ``reasons`` has for each query the reason why it must run in rows, or None if it runs in columns; ``parts`` are the
    sections in rows in the order of evaluation.  For a query in columns, ``by_row`` names the work that is still done
    row by row, ``by_value`` the work that is done once per distinct value, and ``conditions`` what must hold of values
    for kernels to aggregate them.
    """

    reasons: Mapping[str, str | None]
    parts: tuple[RowSection, ...]
    by_row: Mapping[str, str] = field(default_factory=dict)
    by_value: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = field(init=False)
    """The reason why nothing runs in columns; None if some query does."""

    def __post_init__(self) -> None:
        reasons = self.reasons.values()
        object.__setattr__(self, "reason", None if None in reasons else next(iter(reasons), None))

    @property
    def is_whole(self) -> bool:
        """Whether everything runs in columns."""
        return not any(self.reasons.values())


def all_in_rows(rules: ir.Rules, reason: str) -> Division:
    """Everything runs in rows, for one reason."""
    return Division({output.query: reason for output in rules.outputs} or {"": reason}, ())


def divide(rules: ir.Rules, knowledge: Any = None) -> Division:
    """Divide these rules, which run over this background."""
    if getattr(knowledge, "programs", ()):
        return all_in_rows(rules, "an answer-set program reads events")
    if any(map(is_of_schema, rules.outputs)) and event_patterns(node for _, node in rules.nodes):
        return all_in_rows(rules, "an EVENT reads what OWL derives from several triples")
    net = network(rules)
    own = _own_reasons(net)
    if not any(own.values()):
        return Division(own, (), *_costs(net, own))
    components = _components(net)
    reasons = dict(own)
    slow = []
    for component in components:
        queries = [net.outputs[name][1].query for name in component]
        first = next((query for query in queries if own[query] is not None), None)
        if first is not None:
            slow.append(component)
            reasons |= {q: f"it shares goals with {first}, or both feed each other" for q in queries if own[q] is None}
    return Division(reasons, tuple(_parts(components, slow, net)), *_costs(net, reasons))


def keeps_goals_only(rules: ir.Rules) -> bool:
    """Whether these rules, in columns, keep nothing but goals: columns can only write the journal of goals."""
    return all(operators.keeps_goals_only(node) for _, node in rules.nodes) and not network(rules).loops


def reads_only_records(rules: ir.Rules) -> bool:
    """Whether these rules read nothing but columns of single events, so that a table of records is taken as it is."""
    nodes = [node for _, node in rules.nodes]
    records = list(map(table_columns_of, event_patterns(nodes)))
    plain = None not in records and not leaves(nodes)
    derives = any(targets for fed in network(rules).fed.values() for _, targets in fed)
    return plain and not derives and not looks_back(rules)


# --- why in rows ---


def _own_reasons(net: Network) -> dict[str, str | None]:
    """For each query the reason why it has no columnar form by itself, or None."""
    past = _above_late_leaves(net.nodes)
    of_nodes = {name: unsupported_node(node) or (PAST if name in past else None) for name, node in net.nodes.items()}
    reasons: dict[str, str | None] = {}
    for name, (_, output) in net.outputs.items():
        parts = (of_nodes[node] for node in made_for([output], net.nodes))
        reasons[output.query] = next((reason for reason in parts if reason is not None), _recursion(net, name))
    return reasons


def _above_late_leaves(nodes: Mapping[str, ir.Node]) -> set[str]:
    """The nodes to which what rules derive of the past comes, and that take solutions in order of their ends only."""
    reached = {name for name, node in nodes.items() if isinstance(node, ir.Leaf) and node.late}
    found: set[str] = set()
    for name, node in nodes.items():  # what a node is made from stands before it
        if any(ref.node in reached for ref in ir.refs(node)):
            reached.add(name)
            if not (operators.keeps_goals_only(node) or isinstance(node, ir.Group)):
                found.add(name)
    return found


def _recursion(net: Network, name: str) -> str | None:
    queries = net.recursive.get(name)
    return None if queries is None else f"the rules {', '.join(queries)} are recursive"


def _costs(net: Network, reasons: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """For queries in columns: the work done row by row, that done once per distinct value, and on which conditions."""
    late = taking_late(net.nodes)
    by_row: dict[str, str] = {}
    by_values: dict[str, str] = {}
    conditions: dict[str, str] = {}
    for _, output in net.outputs.values():
        if reasons[output.query] is not None:
            continue
        names = made_for([output], net.nodes)
        rows = [what for name in names if (what := row_by_row(net.nodes[name], name in late)) is not None]
        sliced = output.order or output.limit is not None or output.offset
        if sliced and output.source is not None and NAME in output.source.columns:
            rows.append("ORDER BY or LIMIT of each of several queries")
        values = [what for name in names for what in by_value(net.nodes[name])]
        needs = [need for name in names if (need := by_kernel_while(net.nodes[name])) is not None]
        for wanted, whats, joint in ((by_row, rows, "; "), (by_values, values, ", "), (conditions, needs, " and ")):
            if whats:
                wanted[output.query] = joint.join(dict.fromkeys(whats))
    return by_row, by_values, conditions


def node_forms(rules: ir.Rules, division: Division) -> dict[str, list[tuple[str, str]]]:
    """For each way in which large batches are evaluated, the nodes that are, each with what of it is or why.

    Empty if all nodes are the same.
    """
    nodes, late = dict(rules.nodes), taking_late(dict(rules.nodes))
    fast = frozenset(made_for((o for o in rules.outputs if division.reasons.get(o.query) is None), nodes))
    forms: dict[str, list[tuple[str, str]]] = {
        form: [] for form in ("kernels", "distinct values", "row by row", "rows")
    }
    for name, node in nodes.items():
        if name not in fast:
            forms["rows"].append((name, unsupported_node(node) or ""))
            continue
        values, slow = ", ".join(by_value(node)), row_by_row(node, name in late)
        if values:
            forms["distinct values"].append((name, values))
        if slow is not None:
            forms["row by row"].append((name, slow))
        if not values and slow is None:
            forms["kernels"].append((name, ""))
    told = any(what for some in forms.values() for _, what in some)
    return {form: some for form, some in forms.items() if some} if told else {}


# --- what belongs together ---


def _components(net: Network) -> list[list[str]]:
    """The outputs that share state or feed each other, in an order in which they can be evaluated."""
    state = {name: _state_of(net, name) for name in net.outputs}
    shared: dict[str, str] = {}
    successors: dict[str, list[str]] = {name: [] for name in net.outputs}
    for name, kept in state.items():
        for node in sorted(kept):
            other = shared.setdefault(node, name)
            successors[name].append(other)  # edges in both directions put the two into one strong component
            successors[other].append(name)
    for name, others in _feeding(net).items():
        successors[name].extend(others)
    return strong_components(list(successors), successors)


def _state_of(net: Network, name: str) -> set[str]:
    """The nodes of an output that keep something from one instant to the next."""
    _, output = net.outputs[name]
    kept = {node for node in made_for([output], net.nodes) if operators.keeps_state(net.nodes[node])}
    # What is known late only passes from columns to columns, or from rows to rows.
    late = {n for n, node in net.nodes.items() if isinstance(node, ir.Leaf | ir.Record) and node.late}
    fed = {target for _, targets in net.fed.get(name, ()) for target in targets}
    return kept | (late & (fed | {*made_for([output], net.nodes)}))


def _feeding(net: Network) -> dict[str, list[str]]:
    """The outputs that see what each output derives."""
    readers: dict[str, list[str]] = {}
    for name, (_, output) in net.outputs.items():
        for node in made_for([output], net.nodes):
            readers.setdefault(node, []).append(name)
    return {
        name: list(dict.fromkeys(reader for _, leaves in templates for leaf in leaves for reader in readers[leaf]))
        for name, templates in net.fed.items()
    }


# --- parts ---


def _parts(components: list[list[str]], slow: list[list[str]], net: Network) -> Iterator[RowSection]:
    """Merge the components in rows into parts.

    A component's level counts how often the data on its way there changes between rows and columns.  Components in rows
    with the same level have nothing in columns between them, so they form one part.
    """
    members = {name: number for number, component in enumerate(components) for name in component}
    in_rows = {members[component[0]] for component in slow}
    feeding = _feeding(net)
    levels = [0] * len(components)  # even for columns, odd for rows
    for number, component in enumerate(components):
        if (levels[number] % 2 == 1) != (number in in_rows):
            levels[number] += 1
        for name in component:
            for reader in feeding.get(name, ()):
                levels[members[reader]] = max(levels[members[reader]], levels[number])
    for level in sorted({levels[number] for number in in_rows}):
        outputs = [name for number in sorted(in_rows) if levels[number] == level for name in components[number]]
        yield _part(f"rows {level // 2 + 1}", outputs, net)


def _part(name: str, outputs: list[str], net: Network) -> RowSection:
    nodes = made_for((net.outputs[output][1] for output in outputs), net.nodes)
    return RowSection(name, frozenset(nodes), frozenset(outputs))


def rules_of_part(rules: ir.Rules, part: RowSection) -> ir.Rules:
    """The rules of a part in rows."""
    outputs = tuple(output for output in rules.outputs if output_id(output.query) in part.outputs)
    nodes = tuple((name, node) for name, node in rules.nodes if name in part.nodes)
    there = part.nodes | part.outputs
    strata = (tuple(name for name in stratum if name in there) for stratum in rules.strata)
    return ir.Rules(nodes, outputs, tuple(stratum for stratum in strata if stratum), rules.policy)
