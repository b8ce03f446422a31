"""The keys of plain objects by their names: ``sensor.id`` is a key inside ``sensor``, ``items[].sku`` one in each
element of the list ``items``.

A mapping with ``rest`` names some of the keys, and every other is a property of its name.  It grows: an object may
have a key that no object before it had.

>>> [*named_values({"sensor": {"id": "a"}, "price": 7, "tags": ["x"]})]
[('sensor.id', 'a'), ('price', 7), ('tags', ['x'])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_mapping import RowMapping
from etalis_py.streams.elements import StreamContext

MOST = 500
"""The number of keys by which a mapping may grow: more of them are no names, but values."""

RETRACT_KEYS = ("retract", "retracted")
TIME_KEYS = ("time", "start", "end")


def value_of(record: Any, name: str) -> Any:
    """The value of a key, or of a key inside an object: ``sensor.id``."""
    if name in record or "." not in name:
        return record.get(name)
    for outer, inner in cuts(name):
        within = record.get(outer)
        if isinstance(within, Mapping) and (value := value_of(within, inner)) is not None:
            return value
    return None


def cuts(name: str) -> Iterator[tuple[str, str]]:
    """The ways to see a name as a key inside an object; a key may have dots of its own.

    >>> [*cuts("a.b.c")]
    [('a', 'b.c'), ('a.b', 'c')]
    """
    at = name.find(".")
    while at >= 0:
        yield name[:at], name[at + 1 :]
        at = name.find(".", at + 1)


def named_values(record: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an object that are no objects, with their names; an empty object is a value."""
    for key, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from named_values(value, f"{before}{key}.")
        elif isinstance(key, str):
            yield before + key, value


def elements_of(record: dict[str, Any], names: Iterable[str], *, without: bool = False) -> list[dict[str, Any]]:
    """A record for each element of the list that these names reach into, as ``items[].sku``; otherwise the record.

    If the list is empty, or not there, no record is made, or with ``without`` one that has nothing of an element.

    >>> elements_of({"order": 7, "items": [{"sku": "a"}, {"sku": "b"}]}, ("items[].sku",))[1]["items[].sku"]
    'b'
    """
    inside = [name for name in names if "[]" in name]
    if not inside:
        return [record]
    lists = {name.partition("[]")[0] for name in inside}
    if len(lists) > 1 or any(name.count("[]") > 1 for name in inside):
        raise StreamError(
            f"the mapping reaches into several lists: {', '.join(sorted(inside))}",
            hint="a mapping makes a record of each element of one list: give each list a mapping of its own",
        )
    path = lists.pop()
    elements = value_of(record, path)
    if not isinstance(elements, list | None):
        raise StreamError(
            f"{path!r} is no list", hint=f"without [] it is {{{path}}}, or a key inside it {{{path}.key}}"
        )
    keys = {name: name.partition("[]")[2].removeprefix(".") for name in inside}
    if not elements:
        return [record | dict.fromkeys(inside)] if without else []
    return [record | {name: _within(element, key) for name, key in keys.items()} for element in elements]


def _within(element: Any, key: str) -> Any:
    """An element of a list, or what it has under a key."""
    if not key:
        return element
    return value_of(element, key) if isinstance(element, dict) else None


class Growing:
    """A mapping that takes the rest, with whatever the records so far have.

    A list is no value.  It is left out and told, unless the mapping reaches into it.
    """

    def __init__(self, mapping: RowMapping) -> None:
        self.now = mapping
        self._most = len(mapping.used) + MOST
        self._lists = {name.partition("[]")[0] for name in mapping.used if "[]" in name}
        aside = {"punctuate", "triples", *RETRACT_KEYS, *(() if mapping.times else TIME_KEYS), *self._lists}
        self._known = mapping.used | aside

    def take(self, record: Mapping[str, Any]) -> RowMapping:
        """The mapping for this record, and for those after it; one that has its triples needs none."""
        if "punctuate" in record or ("triples" in record and "triples" not in self.now.used):
            return self.now
        if self._lists or not record.keys() <= self._known or any(isinstance(one, Mapping) for one in record.values()):
            new = {name for name, _ in _with_elements(record, self._lists)} - self._known
            if len(self.now.used) + len(new) > self._most:
                raise StreamError(
                    f"these records have more than {MOST} keys that the first do not have",
                    hint="keys that are values, such as the names of users, should be values of one key",
                )
            self.now = self.now.with_columns(sorted(new))
            self._known |= new
        return self.now

    def own(self, values: Mapping[str, Any], context: StreamContext) -> dict[str, Any]:
        """The values of the keys of a record that has been taken, without those that are none of their own."""
        return {name: None if self.is_apart(name, value, context) else value for name, value in values.items()}

    def is_apart(self, name: str, value: Any, context: StreamContext) -> bool:
        """Whether this is no value of its own: an object has names for what is inside, and a list is told."""
        if isinstance(value, list):
            context.lists.add(name)
            return True
        return isinstance(value, dict) and all(one in self._known for one, _ in named_values(value, f"{name}."))


def _with_elements(record: Mapping[str, Any], lists: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The values of a record, also those in the elements of these lists."""
    yield from named_values(record)
    for path in lists:
        elements = value_of(record, path)
        for element in elements if isinstance(elements, list) else ():
            if isinstance(element, dict):
                yield from named_values(element, f"{path}[].")


__all__ = ["MOST", "RETRACT_KEYS", "TIME_KEYS", "Growing", "cuts", "elements_of", "named_values", "value_of"]
