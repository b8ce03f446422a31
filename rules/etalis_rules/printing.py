"""Rules as text, in the notation of [EP] §5.

Each node has a block: its definition, which is complete, and below it the event-driven backward-chaining rules that
follow from it.  A streamed triple is written ``triple(s, p, o)`` wherever it is used, as in the paper; the other goals
are ``g1``, ``g2`` …

    g2(X0) := join(seq, e1(X0, X1), e1(X0, X2), [X0])
        triple(X0, :p, X1)[T1,T2] ← assert(goal(triple(X0, :p, X2), triple(X0, :p, X1)[T1,T2], g2(X0))).
        triple(X0, :p, X2)[T3,T4] ← goal(triple(X0, :p, X2), triple(X0, :p, X1)[T1,T2], g2(X0)), T2 < T3, g2(X0)[T1,T4].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from . import program as ir
from .clauses import Clauses
from .definitions import Definitions
from .operators import is_leaf
from .spelling import PREFIXES, Spelling

_SHORTENED = re.compile(r"(?<![\w<])([A-Za-z][A-Za-z0-9_-]*)?:(?=[A-Za-z_])")


def node_names(rules: ir.Rules) -> dict[str, str]:
    """Short names, children before the nodes made from them: ``e1`` for a leaf, ``g1`` for any other node."""
    names: dict[str, str] = {}
    leaves = goals = 0
    for identifier, node in sorted_nodes(rules):
        if is_leaf(node):
            leaves += 1
            names[identifier] = f"e{leaves}"
        else:
            goals += 1
            names[identifier] = f"g{goals}"
    return names


def sorted_nodes(rules: ir.Rules) -> list[tuple[str, ir.Node]]:
    """The nodes, each after those it is made from: query by query, from the left of a pattern to its right."""
    nodes = dict(rules.nodes)
    placed: dict[str, ir.Node] = {}
    roots = [o.source.node for o in rules.outputs if o.source is not None]
    for root in (*roots, *nodes):
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, ready = stack.pop()
            if name in placed:
                continue
            if ready:
                placed[name] = nodes[name]
                continue
            stack.append((name, True))
            stack.extend((below, False) for below in reversed(ir.made_from(nodes[name])))
    return list(placed.items())


def print_rules(rules: ir.Rules, prefixes: Mapping[str, str] = PREFIXES, *, ids: bool = True) -> str:
    """The text of the rules; IRIs are shortened by the prefixes, and the prefixes used are declared.

    ``ids``: with the ids of the nodes, by which programs are compared and state is kept, and with the identities of the
    queries.
    """
    body = "\n".join(_body(rules, Spelling(prefixes), ids))
    used = {name[1] or "" for name in _SHORTENED.finditer(body)}
    declared = [f"prefix {p}: <{namespace}>" for p, namespace in sorted(prefixes.items()) if p in used]
    return "\n".join([f"policy {Spelling({}).text(rules.policy)}", *declared, "", body, ""])


@dataclass(frozen=True, slots=True)
class Blocks:
    """Prints the nodes and queries of a program one by one: the definition, and below it the rules."""

    nodes: Mapping[str, ir.Node]
    names: Mapping[str, str]
    spelling: Spelling

    @property
    def written(self) -> Definitions:
        return Definitions(self.spelling, self.names)

    @property
    def clauses(self) -> Clauses:
        return Clauses(self.nodes, self.names, self.spelling)

    def node(self, identifier: str, ids: bool = True) -> list[str]:
        """The definition of a node and its event-driven rules."""
        node = self.nodes[identifier]
        head = f"{self.names[identifier]}{f' {identifier}' if ids else ''}({self.written.variables(node.head)})"
        definition = f"{head} := {self.written.node(node)}"
        return [definition, *(f"    {line}" for line in self.clauses.node(identifier, node))]

    def output(self, output: ir.Output, ids: bool = True) -> list[str]:
        """The definition of a query and the rules by which it reports."""
        shown = output if ids else replace(output, identity="")
        head = f"query {self.spelling.text(output.query)} := {self.written.output(shown)}"
        return [head, *(f"    {line}" for line in self.clauses.output(output))]


def _body(rules: ir.Rules, spelling: Spelling, ids: bool) -> Iterator[str]:
    names = node_names(rules)
    blocks = Blocks(dict(rules.nodes), names, spelling)
    for identifier in names:
        yield from blocks.node(identifier, ids)
        yield ""
    for output in rules.outputs:
        yield from blocks.output(output, ids)
        yield ""
    order = tuple(name for stratum in rules.strata for name in stratum if name in names)
    if order != tuple(name for name, _ in rules.nodes):
        yield f"order := [[{', '.join(names[name] for name, _ in rules.nodes)}]]"
    strata = (", ".join(names.get(n) or spelling.text(n) for n in stratum) for stratum in rules.strata)
    yield f"strata := [{', '.join(f'[{s}]' for s in strata)}]"
