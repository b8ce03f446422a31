"""Walking and rewriting immutable trees: patterns, expressions, rules, and the syntax they come from.

A tree is made of frozen dataclasses and tuples.  ``walk`` and ``transform`` look at nothing but that.  ``rename`` must
know which strings are names of variables, and takes that from the types of the fields: ``Name`` is renamed, ``Text`` is
not, and a field that is a plain ``str`` is an error, so that a new field cannot be forgotten.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache, wraps
from typing import Annotated, Any, TypeVar

T = TypeVar("T")
Node = TypeVar("Node")
_REMEMBERED = 4096

Name = Annotated[str, "the name of a variable, or nothing"]
Text = Annotated[str, "a term, an IRI, an operator, the id of a node: whatever is no name of a variable"]


@lru_cache(maxsize=1024)
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls)) if is_dataclass(cls) else ()


def remembered(function: Callable[[Node], T]) -> Callable[[Node], T]:
    """The function with the values of the nodes that it was asked for lately, each known by its identity.

    A function that asks itself for the parts of a node, at each node of a deep tree, takes time with the square of the
    depth otherwise; to find a node by what it holds would take as long.
    """
    values: dict[int, tuple[Node, T]] = {}

    @wraps(function)
    def remembering(node: Node) -> T:
        known = values.get(id(node))
        if known is not None:
            return known[1]
        value = function(node)
        if len(values) >= _REMEMBERED:
            values.clear()
        values[id(node)] = node, value  # with the node, so that no other one takes its place in memory
        return value

    return remembering


def _class(value: Any) -> Any:
    return value.__class__


def walk(value: object) -> Iterator[Any]:
    """Every node of the tree, parents first, from left to right."""
    stack: list[Any] = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            stack.extend(reversed(here))
        elif names := _field_names(here.__class__):
            yield here
            stack.extend(getattr(here, name) for name in reversed(names))


def transform(value: T, change: Callable[[Any], Any]) -> T:
    """The tree with every node replaced for which ``change`` returns another.

    ``change`` is called from the top down.  Its result is used as it is; None means: keep the node and go on inside it.
    Unchanged parts stay the same objects.

    >>> from etalis_rules.algebra import Apply, Const, Var
    >>> transform(Apply("+", (Var("x"), Var("y"))), lambda node: Const('"1"') if node == Var("x") else None)
    Apply(op='+', args=(Const(term='"1"'), Var(name='y')))
    """
    if isinstance(value, tuple):
        items = tuple(transform(item, change) for item in value)
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else typing.cast(T, items)
    names = _field_names(_class(value))
    if not names:
        return value
    replacement = change(value)
    return descend(value, change) if replacement is None else replacement


def descend(value: T, change: Callable[[Any], Any]) -> T:
    """``transform`` for everything below a node, and not for the node itself."""
    changed = {}
    for name in _field_names(_class(value)):
        before = getattr(value, name)
        after = transform(before, change)
        if after is not before:
            changed[name] = after
    return rebuilt(value, changed) if changed else value


def rebuilt(value: T, changed: Mapping[str, Any]) -> T:
    """The node with some of its fields changed."""
    names = _field_names(_class(value))
    return type(value)(**{name: changed[name] if name in changed else getattr(value, name) for name in names})


# --- names of variables ----------------------------------------------------------------------------------------

Renaming = Callable[[Any, Mapping[str, str]], Any]


def rename(value: T, names: Mapping[str, str]) -> T:
    """The same expression, pattern or node with its variables renamed (α-renaming, everywhere).

    >>> from etalis_rules.algebra import UNIT, Extend, Var
    >>> rename(Extend(UNIT, "x", Var("y")), {"x": "a", "y": "b"})
    Extend(child=Table(variables=(), rows=((),)), variable='a', expression=Var(name='b'))
    """
    if isinstance(value, tuple):
        return typing.cast(T, tuple(rename(item, names) for item in value))
    changed = {}
    for name, renaming in renamings(_class(value)):
        before = getattr(value, name)
        after = renaming(before, names)
        if after is not before:
            changed[name] = after
    return rebuilt(value, changed) if changed else value


def own_names(value: object) -> Iterator[str]:
    """The names of variables directly in a node, in the order of its fields."""
    for name in name_fields(_class(value)):
        yield from _leading(getattr(value, name))


def _leading(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        if part:
            yield part
        return
    for item in part:
        yield item if isinstance(item, str) else item[0]


@lru_cache(maxsize=1024)
def name_fields(cls: Any) -> tuple[str, ...]:
    """The fields of a class that hold names of variables: a name, names, or pairs of a name and something else."""
    hints = _hints(cls)
    return tuple(name for name in _field_names(cls) if _holds_names(hints[name]))


def _holds_names(hint: Any) -> bool:
    return hint == Name or (typing.get_origin(hint) is tuple and any(map(_holds_names, typing.get_args(hint))))


def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True) if is_dataclass(cls) else {}


@lru_cache(maxsize=1024)
def renamings(cls: Any) -> tuple[tuple[str, Renaming], ...]:
    """How each field of a class is renamed; fields that never change are left out."""
    hints = _hints(cls)
    every = ((name, _renaming(hints[name], f"{cls.__name__}.{name}")) for name in _field_names(cls))
    return tuple((name, renaming) for name, renaming in every if renaming is not None)


def _renaming(hint: Any, place: str) -> Renaming | None:
    if hint == Name:
        return _rename_name
    if hint == Text or hint in (int, bool, type(None), ...) or (isinstance(hint, type) and issubclass(hint, Enum)):
        return None
    if hint is str:
        raise TypeError(f"{place} is a plain str: declare it as Name if it names a variable, as Text if it does not")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[-1] is ...:
        return _each(_renaming(arguments[0], place))
    if origin is tuple:
        return _side_by_side([_renaming(argument, place) for argument in arguments])
    if origin in (typing.Union, types.UnionType):
        parts = [_renaming(argument, place) for argument in arguments]
        if all(part is None for part in parts):
            return None
        if all(part is None or part is rename for part in parts):
            return rename
    elif is_dataclass(hint):
        return rename
    raise TypeError(f"{place} has the type {hint}, in which variable names cannot be distinguished from other strings")


def _rename_name(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, name) if name else name


def _each(renaming: Renaming | None) -> Renaming | None:
    def each(items: tuple[Any, ...], names: Mapping[str, str]) -> tuple[Any, ...]:
        return tuple([renaming(item, names) for item in items]) if renaming is not None else items

    return None if renaming is None else each


def _side_by_side(renamings: list[Renaming | None]) -> Renaming | None:
    def side_by_side(items: tuple[Any, ...], names: Mapping[str, str]) -> tuple[Any, ...]:
        pairs = zip(items, renamings, strict=True)
        return tuple(item if renaming is None else renaming(item, names) for item, renaming in pairs)

    return side_by_side if any(renamings) else None
