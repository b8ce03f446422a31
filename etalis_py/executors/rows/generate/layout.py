"""The layout of solutions at each node.

A solution is a flat tuple: ``(end, start, column…, value…[, provenance])``.  The columns are the node's head, as
terms; so solutions of a node sort by end, start and terms, which is the canonical order.  The values are the decoded
forms of columns that some rule above compares or calculates with: they are decoded once, at the leaf, and carried
along.  With explanations on, the last item is the provenance of the solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import certain_columns, conditions, operands, passes_values, steps

# Functions that read their arguments as terms: decoding for them would be wasted work.
_TERM_FUNCTIONS = frozenset(
    {"BOUND", "SAMETERM", "STR", "DATATYPE", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "COALESCE", "IF", "LANG"}
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a node's columns and decoded values in its solution tuples."""

    head: tuple[str, ...]
    values: tuple[str, ...]
    certain: frozenset[str] = frozenset()
    """The columns that are bound in every solution, so that their values are too."""

    def column(self, name: str) -> int:
        return 2 + self.head.index(name)

    def value(self, name: str) -> int:
        return 2 + len(self.head) + self.values.index(name)

    @property
    def width(self) -> int:
        """The number of items that are stored: times and columns."""
        return 2 + len(self.head)


def value_variables(e: alg.Expr) -> frozenset[str]:
    """The variables whose values, not only terms, an expression reads."""
    match e:
        case alg.Var(name):
            return frozenset((name,))
        case alg.Apply(op, args) if op not in _TERM_FUNCTIONS:
            return frozenset().union(*map(value_variables, args)) if args else frozenset()
    return frozenset()


def _of_steps(done: Iterable[ir.Step]) -> frozenset[str]:
    variables: frozenset[str] = frozenset()
    for step in done:
        if isinstance(step, ir.Condition) or (isinstance(step, ir.Assign) and not isinstance(step.expression, alg.Var)):
            variables |= value_variables(step.expression)
        elif isinstance(step, ir.Lasting):
            variables |= {step.parameter}
    return variables


def own_values(node: ir.Node) -> frozenset[str]:
    """The variables whose values the rules of this node read."""
    return _of_steps(steps(node)).union(*map(value_variables, (*conditions(node), *operands(node))))


def layouts(nodes: Mapping[str, ir.Node]) -> dict[str, Layout]:
    """The layout of every node: its head, and the values that the nodes above it read or carry on."""
    wanted: dict[str, set[str]] = {name: set() for name in nodes}
    for name in _parents_first(nodes):
        node = nodes[name]
        carried = wanted[name] if passes_values(node) else set()
        reads = own_values(node) | carried
        for ref in ir.refs(node):
            child = nodes[ref.node]
            for column, variable in zip(child.head, ref.columns, strict=True):
                if variable in reads:
                    wanted[ref.node].add(column)
    bound = _certain_columns(nodes)
    return {name: Layout(node.head, tuple(sorted(wanted[name])), bound[name]) for name, node in nodes.items()}


def _certain_columns(nodes: Mapping[str, ir.Node]) -> dict[str, frozenset[str]]:
    """For every node, the columns that no solution leaves unbound."""
    columns: dict[str, frozenset[str]] = {}
    for name in reversed(_parents_first(nodes)):
        node = nodes[name]
        columns[name] = certain_columns(node, lambda ref: _renamed(columns[ref.node], nodes[ref.node], ref))
    return columns


def _renamed(columns: frozenset[str], node: ir.Node, ref: ir.Ref) -> frozenset[str]:
    """These columns of a node, by the names that a rule which reads the node gives them."""
    return frozenset(name for column, name in zip(node.head, ref.columns, strict=True) if column in columns)


def _parents_first(nodes: Mapping[str, ir.Node]) -> list[str]:
    """Every node before the nodes it is made from."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        stack = [(name, False)]
        while stack:
            here, done = stack.pop()
            if done:
                order.append(here)
            elif here not in seen:
                seen.add(here)
                stack.append((here, True))
                stack.extend((ref.node, False) for ref in ir.refs(nodes[here]))

    for name in nodes:
        visit(name)
    return order[::-1]
