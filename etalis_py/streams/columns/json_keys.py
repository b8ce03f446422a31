"""The keys of JSON objects that a mapping uses: objects are decoded into structs of these keys, read as columns.

Every other key is skipped without a Python object, also inside an object that has some: for ``{sensor.id}`` the object
``sensor`` becomes a struct with ``id``.  ``sensor.id`` is a key inside ``sensor`` unless it is a key itself.

>>> keys = keys_of(frozenset({"sensor.id", "price"}))
>>> decode = msgspec.json.Decoder(keys.struct).decode
>>> records = [decode(b'{"sensor": {"id": "a", "x": 1}, "price": 7}'), decode(b'{"sensor.id": "b", "sensor": 1}')]
>>> keys.values(records, "sensor.id"), keys.values(records, "price")
(['a', 'b'], [7, None])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from etalis_py.streams.jsonl import value_of


@dataclass(frozen=True, slots=True)
class Keys:
    """A struct for objects with these keys, the field of each, and the structs for the objects inside."""

    struct: type[msgspec.Struct]
    fields: Mapping[str, str]
    inner: Mapping[str, Keys]

    def values(self, records: Sequence[Any], name: str) -> list[Any]:
        """The value of a key in each record, or of a key inside another one; None where there is none."""
        own = list(map(attrgetter(self.fields[name]), records))
        if "." not in name:
            return own
        outer, _, rest = name.partition(".")
        objects = map(attrgetter(self.fields[outer]), records)
        keys = self.inner.get(outer)
        if keys is None:  # the object is a value as well, so it was decoded whole
            inside = [value_of(value, rest) if isinstance(value, dict) else None for value in objects]
        else:
            nothing = keys.struct()
            inside = keys.values([value if type(value) is keys.struct else nothing for value in objects], rest)
        if set(map(type, own)) <= {UnsetType}:
            return inside
        return [within if value is UNSET else value for value, within in zip(own, inside, strict=True)]


@lru_cache(maxsize=64)
def keys_of(names: frozenset[str], unset: frozenset[str] = frozenset()) -> Keys:
    """The structs for the keys that a mapping names; those in ``unset`` have the value UNSET where they are missing."""
    within: dict[str, set[str]] = {}
    for name in names:
        outer, dot, rest = name.partition(".")
        if dot:
            within.setdefault(outer, set()).add(rest)
    inner = {outer: keys_of(frozenset(rest)) for outer, rest in within.items() if outer not in names}
    fields = {name: f"f{n}" for n, name in enumerate(sorted(names | within.keys()))}
    declared = []
    for name, field in fields.items():
        default = UNSET if "." in name or name in unset else None
        # Whatever else is there has no keys inside.
        kind = inner[name].struct | None | bool | int | float | str | list if name in inner else Any
        declared.append((field, kind, msgspec.field(default=default, name=name)))
    return Keys(msgspec.defstruct("Plain", declared, gc=False), fields, inner)


__all__ = ["Keys", "keys_of"]
