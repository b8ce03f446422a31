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


def shallower(node: Any) -> tuple[Any, int] | None:
    """A chain in stretches, with its depth; None for what is no chain, or too short."""
    if not isinstance(node, (Combined, Binary)) or node.operator not in _ASSOCIATIVE:
        return None
    steps = _steps(node)
    if len(steps) <= STEPS:
        return None
    while len(steps) > STEPS:
        steps = [_joined(node, steps[first : first + STEPS]) for first in range(0, len(steps), STEPS)]
    made = _joined(node, steps)
    made = made if not isinstance(made, Group) else made.elements[0]
    return made, _depth(made)


def _steps(node: Combined | Binary) -> list[Any]:
    """The operands of a chain, in order; groups that hold just a part of it are part of it."""
    steps: list[Any] = []
    stack: list[Any] = [node]
    while stack:
        here = stack.pop()
        inner = here.elements[0] if isinstance(here, Group) and len(here.elements) == 1 else here
        if type(inner) is type(node) and inner.operator == node.operator:
            stack += (inner.left, inner.right)
        else:
            steps.append(here)
    return steps[::-1]


def _joined(like: Combined | Binary, steps: list[Any]) -> Any:
    """These steps as an operand of a chain like this one."""

    def join(left: Any, right: Any) -> Any:
        return type(like)(like.operator, left, right, span=Span(left.span.start, right.span.end))  # type: ignore[arg-type]

    made = reduce(join, steps)
    return Group((made,), span=made.span) if isinstance(made, Combined) and len(steps) > 1 else made


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


__all__ = ["shallower"]
