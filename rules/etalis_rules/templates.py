"""What a CONSTRUCT query writes for each of its solutions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .algebra import Const, Var
from .traversal import Name


@dataclass(frozen=True, slots=True)
class NewTerm(Var):
    """A triple term of a template that holds a blank node, so that each solution makes a new one of its parts."""

    parts: tuple[Var | Const, Var | Const, Var | Const]


@dataclass(frozen=True, slots=True)
class Template:
    """One triple of a CONSTRUCT template; a variable that begins with ``_:`` is a fresh node for each solution."""

    subject: Var | Const
    predicate: Var | Const
    object: Var | Const


def new_nodes(triples: Iterable[Template]) -> tuple[tuple[Name, ...], tuple[NewTerm, ...]]:
    """The blank nodes that a template makes for each solution, and the triple terms, the inner ones first."""
    positions = (position for t in triples for position in (t.subject, t.predicate, t.object))
    made = tuple(dict.fromkeys(n for position in positions for n in _made(position)))
    return tuple(n.name for n in made if not isinstance(n, NewTerm)), tuple(n for n in made if isinstance(n, NewTerm))


def _made(position: Var | Const) -> Iterator[Var]:
    if isinstance(position, NewTerm):
        for part in position.parts:
            yield from _made(part)
    if isinstance(position, Var) and position.name.startswith("_:"):
        yield position
