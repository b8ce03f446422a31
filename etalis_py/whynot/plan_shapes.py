"""Taking a pattern apart and rebuilding it: paths to its nodes, and changes at one of them."""

from __future__ import annotations

from collections.abc import Callable

from etalis_rules import algebra as alg

Path = tuple[int, ...]
"""The way from the root of a pattern to one of its nodes: the number of the child at every step."""

Change = Callable[[alg.Pattern], alg.Pattern]


def changed(pattern: alg.Pattern, path: Path, change: Change, shown: tuple[str, ...] = ()) -> alg.Pattern:
    """The pattern with one node changed; sub-SELECTs on the way pass the ``shown`` variables on."""
    if not path:
        return change(pattern)
    children = list(alg.children(pattern))
    children[path[0]] = changed(children[path[0]], path[1:], change, shown)
    return alg.showing(alg.with_children(pattern, children), shown)
