"""About how much memory the state of an operator takes, judging by a sample.

Of a large collection a few items are measured that lie evenly in it, and of each of these fewer.  So a measurement
takes some hundred microseconds at most, however much there is.  An object that the sample reaches twice counts once; a
term that several solutions have in common mostly counts for each of them.  Where the items of a collection name others
of it, their class says so (``LINKS``): to follow them would measure all items, one in the other.

>>> one = measured_bytes([1000]) - measured_bytes([])
>>> one == measured_bytes([1001, 1002]) - measured_bytes([1000])
True
>>> measured_bytes([(n, "x" * 100) for n in range(1000, 2000)]) // 1000 in range(200, 300)
True
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from itertools import islice
from sys import getsizeof
from typing import Any

_SAMPLES = (32, 8, 4)
"""How many items of a collection are measured, by how deep it lies; farther down, as many as last."""
_RECORD = 64
"""A list or tuple of so many items may be the fields of one thing, such as a group, so all of them are measured."""
_SMALL = range(-5, 257)  # there is one object of each of these integers
_COUNTED = ("etalis_py.values.", "etalis_py.executors.rows.run.")
"""Where the classes are whose objects are state; others, such as rules and the background, are not measured here."""


def measured_bytes(x: Any) -> int:
    """About how much memory an object takes with all that it holds."""
    return _bytes(x, 0, set())


def _bytes(x: Any, depth: int, seen: set[int]) -> int:
    kind = x.__class__
    if kind is str or kind is int:
        return 0 if kind is int and x in _SMALL else getsizeof(x)
    if x is None or kind in (bool, type) or id(x) in seen:
        return 0
    seen.add(id(x))
    if isinstance(x, dict):
        return getsizeof(x) + _of_items(x, depth, seen) + _of_items(x.values(), depth, seen)
    if isinstance(x, list | tuple | deque | set | frozenset):
        return getsizeof(x) + _of_items(x, depth, seen)
    return getsizeof(x) + sum(_bytes(value, depth, seen) for value in _fields(x))


def _of_items(items: Collection[Any], depth: int, seen: set[int]) -> int:
    count = len(items)
    if not count:
        return 0
    most = _RECORD if isinstance(items, list | tuple) else 0
    step = 1 if count <= most else -(-count // _SAMPLES[min(depth, len(_SAMPLES) - 1)])
    sizes = [_bytes(item, depth + 1, seen) for item in islice(items, 0, None, step)]
    return sum(sizes) * count // len(sizes)


def _fields(x: Any) -> Iterator[Any]:
    """The attributes of an object that is state."""
    if callable(x) or not x.__class__.__module__.startswith(_COUNTED):
        return
    yield from getattr(x, "__dict__", {}).values()
    for kind in x.__class__.__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name in kind.__dict__.get("LINKS", ()):
                yield [None] * len(getattr(x, name))
            elif hasattr(x, name):
                yield getattr(x, name)
