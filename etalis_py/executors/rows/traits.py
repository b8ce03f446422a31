"""What the rules of a node may do to the solutions that they are given."""

from __future__ import annotations

from etalis_rules import program as ir


def remembers(rules: ir.Rules) -> bool:
    """Whether any rule looks back at single occurrences."""
    nodes = (node for _, node in rules.nodes)
    return any(isinstance(n, ir.Recall) or (isinstance(n, (ir.Outer, ir.Group)) and n.leaves) for n in nodes) or any(
        o.form == "describe" or o.late is not None for o in rules.outputs
    )


def computes(node: ir.Node) -> bool:
    """Whether the block may make terms longer than those it is given."""
    if isinstance(node, ir.Map):
        return any(isinstance(step, ir.Assign) for step in node.steps)
    return isinstance(node, ir.Group)


def multiplies(node: ir.Node) -> bool:
    """Whether the block may make more solutions than it is given."""
    if isinstance(node, ir.Map):
        return any(isinstance(step, ir.Background | ir.Parameters) for step in node.steps)
    if isinstance(node, ir.Absence):
        return node.right is not None and not node.policy
    alone = isinstance(node, (ir.Union, ir.Group, ir.Slice, ir.Recall))  # a group has a row for each of its keys
    return not alone and not (isinstance(node, ir.Join) and node.policy)
