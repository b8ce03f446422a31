"""Taking a pattern apart and rebuilding it: paths to its nodes, and changes at one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
    result = alg.with_children(pattern, children)
    if isinstance(result, alg.SubSelect) and shown:
        select = result.select
        return alg.SubSelect(replace(select, variables=(*select.variables, *shown)))
    return result


def columns(pattern: alg.Pattern) -> tuple[alg.Record, ...]:
    """The columns of a record one by one: an EVENT for each triple pattern; nothing for any other pattern."""
    match pattern:
        case alg.Record(alg.BGP(triples)):
            return tuple(replace(pattern, pattern=alg.BGP((triple,))) for triple in triples)
    return ()


def is_opaque(pattern: alg.Pattern) -> bool:
    """Whether the node is more than the solutions below it one by one: a sub-SELECT that groups, counts or limits."""
    if not isinstance(pattern, alg.SubSelect):
        return False
    s = pattern.select
    return s.grouped or s.limit is not None or bool(s.offset) or s.window is not None
