"""Answers as multisets, equal up to the names of blank nodes that rules made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from etalis_rules.terms import is_blank

Flat = tuple[Any, ...]  # nested tuples with terms in them


def flat(answer: Any) -> list[Flat]:
    """An answer as plain comparable tuples: bindings sorted by variable, triples sorted."""
    if isinstance(answer, tuple):  # an ASK's answer
        return [tuple(answer)]
    rows: list[Flat] = []
    for content, start, end in answer:
        items = content.items() if hasattr(content, "items") else content
        rows.append((tuple(sorted(tuple(i) for i in items if i[-1])), start, end))
    return rows


def same(a: Any, b: Any, is_made: Callable[[str], bool] = is_blank) -> bool:
    """Whether two answers are the same multiset after some renaming of the made blank nodes."""
    return _coloured(flat(a), is_made) == _coloured(flat(b), is_made)


def same_occurrences(a: Iterable[Flat], b: Iterable[Flat], is_made: Callable[[str], bool] = is_blank) -> bool:
    """The same for sets of occurrences."""
    return _coloured(list(a), is_made) == _coloured(list(b), is_made)


def _coloured(rows: list[Flat], is_made: Callable[[str], bool]) -> Counter[Flat]:
    """The rows with each made node replaced by a colour: where it stands, refined until nothing new is told apart."""
    made = {t for row in rows for t in _terms(row) if is_made(t)}
    colour = dict.fromkeys(made, "_:0")
    for _ in range(len(made)):
        seen = {
            node: repr(sorted(repr(_painted(row, colour, node)) for row in rows if node in _terms(row)))
            for node in made
        }
        ranks = {text: f"_:{i}" for i, text in enumerate(sorted(set(seen.values())))}
        finer = {node: ranks[seen[node]] for node in made}
        if len(set(finer.values())) == len(set(colour.values())):
            colour = finer
            break
        colour = finer
    return Counter(_painted(row, colour, None) for row in rows)


def _terms(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    return {t for part in value for t in _terms(part)} if isinstance(value, tuple) else set()


def _painted(value: Any, colour: dict[str, str], self: str | None) -> Any:
    if isinstance(value, str):
        return "_:self" if value == self else colour.get(value, value)
    if isinstance(value, tuple):
        painted = tuple(_painted(part, colour, self) for part in value)
        return tuple(sorted(painted, key=repr)) if painted and isinstance(painted[0], tuple) else painted
    return value
