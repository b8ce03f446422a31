"""Taking a pattern apart and rebuilding it: paths to its nodes, and changes at one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, cast

from etalis_rules import algebra as alg

Path = tuple[int, ...]
"""The way from the root of a pattern to one of its nodes: the number of the child at every step."""

Change = Callable[[alg.Pattern], alg.Pattern]

PATTERNS = alg.Pattern.__args__


def with_children(pattern: alg.Pattern, children: Sequence[alg.Pattern]) -> alg.Pattern:
    """The node with other children, in the order of ``alg.children``."""
    if isinstance(pattern, alg.SubSelect):
        return alg.SubSelect(replace(pattern.select, pattern=children[0]))
    if isinstance(pattern, alg.Outer):
        optional, mandatory = children if pattern.optional_first else reversed(children)
        return replace(pattern, mandatory=mandatory, optional=optional)
    rest = iter(children)
    parts: dict[str, Any] = {}
    for field in fields(pattern):
        part = getattr(pattern, field.name)
        if isinstance(part, PATTERNS):
            parts[field.name] = next(rest)
    return cast(alg.Pattern, replace(pattern, **parts)) if parts else pattern


def changed(pattern: alg.Pattern, path: Path, change: Change, shown: tuple[str, ...] = ()) -> alg.Pattern:
    """The pattern with one node changed; sub-SELECTs on the way pass the ``shown`` variables on."""
    if not path:
        return change(pattern)
    children = list(alg.children(pattern))
    children[path[0]] = changed(children[path[0]], path[1:], change, shown)
    result = with_children(pattern, children)
    if isinstance(result, alg.SubSelect) and shown:
        select = result.select
        return alg.SubSelect(replace(select, variables=(*select.variables, *shown)))
    return result


def is_opaque(pattern: alg.Pattern) -> bool:
    """Whether the node is more than the solutions below it one by one: a sub-SELECT that groups, counts or limits."""
    if not isinstance(pattern, alg.SubSelect):
        return False
    s = pattern.select
    return s.grouped or s.limit is not None or bool(s.offset) or s.window is not None
