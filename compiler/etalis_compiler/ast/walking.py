"""Traversal of a tree of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def _child_names(kind: type) -> tuple[str, ...]:
    """The fields of a node class that are part of a node's content."""
    return tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else ()


def children(node: Any) -> list[Any]:
    """The values directly below a node or in a tuple, in order."""
    if isinstance(node, tuple):
        return list(node)
    return [getattr(node, name) for name in _child_names(node.__class__)]


def walk(node: Any) -> Iterator[Any]:
    """The node and everything below it that may have parts, parents first; names, numbers and flags are left out."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        parts = here if here.__class__ is tuple else [getattr(here, name) for name in _child_names(here.__class__)]
        stack += [part for part in reversed(parts) if part.__class__ not in _PLAIN]


_PLAIN = frozenset({str, int, bool, type(None)})
