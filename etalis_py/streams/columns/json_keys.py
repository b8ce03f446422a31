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
import numpy as np
from msgspec import UNSET, UnsetType

from etalis_py.streams.record_keys import cuts, value_of


@dataclass(frozen=True, slots=True)
class Keys:
    """A struct for objects with these keys, the field of each, and the structs for the objects inside."""

    struct: type[msgspec.Struct]
    fields: Mapping[str, str]
    inner: Mapping[str, Keys]

    def strange(self, records: Sequence[Any], odd: Any) -> None:
        """Mark the records that have something else where an object is asked for."""
        for outer, keys in self.inner.items():
            values = list(map(attrgetter(self.fields[outer]), records))
            kinds = {keys.struct, type(None), UnsetType}
            if not set(map(type, values)) <= kinds:
                odd |= np.fromiter((type(one) not in kinds for one in values), bool, len(values))
            nothing = keys.struct()
            keys.strange([one if type(one) is keys.struct else nothing for one in values], odd)

    def values(self, records: Sequence[Any], name: str) -> list[Any]:
        """The value of a key in each record, or of a key inside another one; None where there is none."""
        own = list(map(attrgetter(self.fields[name]), records))
        if "." not in name:
            return own
        absent = set(map(type, own)) <= {UnsetType}
        found = None if absent else [None if value is UNSET else value for value in own]
        for outer, rest in cuts(name):
            inside = self._inside(records, outer, rest)
            if found is None:
                found = inside
                continue
            is_there = zip(found, own, inside, strict=True)
            found = [within if value is None and at is UNSET else value for value, at, within in is_there]
        return found or []

    def _inside(self, records: Sequence[Any], outer: str, rest: str) -> list[Any]:
        """The value of a key inside another one in each record."""
        objects = map(attrgetter(self.fields[outer]), records)
        keys = self.inner.get(outer)
        if keys is None:  # the object is a value as well, so it was decoded whole
            return [value_of(value, rest) if isinstance(value, dict) else None for value in objects]
        nothing = keys.struct()
        return keys.values([value if type(value) is keys.struct else nothing for value in objects], rest)


@lru_cache(maxsize=64)
def keys_of(names: frozenset[str], unset: frozenset[str] = frozenset(), *, closed: bool = False) -> Keys:
    """The structs for the keys that a mapping names; those in ``unset`` have the value UNSET where they are missing.

    If they are ``closed``, an object with another key cannot be decoded.
    """
    within: dict[str, set[str]] = {}
    for name in names:
        for outer, rest in cuts(name):
            within.setdefault(outer, set()).add(rest)
    inner = {outer: keys_of(frozenset(rest), closed=closed) for outer, rest in within.items() if outer not in names}
    fields = {name: f"f{n}" for n, name in enumerate(sorted(names | within.keys()))}
    declared = []
    for name, field in fields.items():
        default = UNSET if "." in name or name in unset else None
        # Whatever else is there has no keys inside.
        kind = inner[name].struct | None | bool | int | float | str | list if name in inner else Any
        declared.append((field, kind, msgspec.field(default=default, name=name)))
    return Keys(msgspec.defstruct("Plain", declared, gc=False, forbid_unknown_fields=closed), fields, inner)


__all__ = ["Keys", "keys_of"]
