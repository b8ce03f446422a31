"""Long flat chains, ``{ A } SEQ { B } SEQ …`` and ``?a || ?b || …``, as trees of little depth.

They are read from the left, so each step lies one deeper than the one before; what comes after the parser may be
recursive.  Where a chain reaches the limit of depth, stretches of it are put into groups, and stretches of those.
That changes no answer: SEQ is associative because the hull of two parts in order begins with the first and ends with
the second, and UNION, AND, ``||`` and ``&&`` are associative by their definitions.  Shorter chains stay as they are
written.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from ..ast import Binary, Combined, Group, Operator, Span, children

STEPS = 32
"""The steps of a stretch."""
_ASSOCIATIVE = frozenset({Operator.SEQ, Operator.AND, Operator.UNION, "||", "&&"})


Step = tuple[Any, int]
"""An operand, or a stretch of them, with its depth."""


class LongChains:
    """Regroups the chains of one text.

    A chain reaches the limit again and again while it is read.  Its stretches are kept, so that each of its steps is
    looked at once: stretches begin at the left, so more steps change only the last one of each size.
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, list[list[Step]]]] = {}
        """Each regrouped chain by its id, with the steps, the stretches, the stretches of stretches, … that are not in
        a larger stretch yet."""

    def shallower(self, node: Any) -> Step | None:
        """A chain in stretches, with its depth; None for what is no chain, or too short."""
        if not isinstance(node, (Combined, Binary)) or node.operator not in _ASSOCIATIVE:
            return None
        rows, steps = self._read(node)
        if not rows and len(steps) <= STEPS:
            return None
        rows = rows or [[]]
        for step in steps:
            _append(node, rows, (step, _depth(step)))
        made, depth = _whole(node, rows)
        if isinstance(made, Group):
            made, depth = made.elements[0], depth - 1
        self._rows[id(made)] = made, rows
        return made, depth

    def _read(self, node: Combined | Binary) -> tuple[list[list[Step]], list[Any]]:
        """The stretches with which a chain begins, if it was regrouped before, and its other operands in order.

        Groups that hold just a part of it are part of it.
        """
        steps: list[Any] = []
        stack: list[Any] = [node]
        while stack:
            here = stack.pop()
            inner = here.elements[0] if isinstance(here, Group) and len(here.elements) == 1 else here
            if type(inner) is not type(node) or inner.operator != node.operator:
                steps.append(here)
            elif not stack and id(inner) in self._rows:
                return self._rows.pop(id(inner))[1], steps[::-1]
            else:
                stack += (inner.left, inner.right)
        return [], steps[::-1]


def _append(like: Combined | Binary, rows: list[list[Step]], step: Step) -> None:
    """Add a step; a row that is full becomes a stretch of the next one."""
    for row in rows:
        row.append(step)
        if len(row) < STEPS:
            return
        step = _joined(like, row)
        row.clear()
    rows.append([step])


def _whole(like: Combined | Binary, rows: list[list[Step]]) -> Step:
    """All steps of a chain: each row ends with what is left over of the smaller stretches."""
    last: list[Step] = []
    for row in rows:
        here = [*row, *last]
        last = [_joined(like, here)] if here else []
    return last[0]


def _joined(like: Combined | Binary, steps: list[Step]) -> Step:
    """These steps as an operand of a chain like this one."""

    def join(left: Step, right: Step) -> Step:
        span = Span(left[0].span.start, right[0].span.end)
        made = type(like)(like.operator, left[0], right[0], span=span)  # type: ignore[arg-type]
        return made, 1 + max(left[1], right[1])

    made, depth = reduce(join, steps)
    if isinstance(made, Combined) and len(steps) > 1:
        return Group((made,), span=made.span), depth + 1
    return made, depth


def _depth(node: Any) -> int:
    """How deep the nodes lie inside one another."""
    deepest = 0
    stack = [(node, 1)]
    while stack:
        here, depth = stack.pop()
        deepest = max(deepest, depth)
        below = depth if isinstance(here, tuple) else depth + 1
        stack += [(part, below) for part in children(here) if isinstance(part, tuple) or hasattr(part, "span")]
    return deepest


__all__ = ["LongChains"]
