"""What stands in the positions of triples, and in expressions that are just a variable or a constant.

>>> constant_of(Const("<urn:a>")), variable_of(Var("x")), constant_of(Var("x"))
('<urn:a>', 'x', '')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ..traversal import Name, Text
from .nodes import Const, Var


class Positions(Protocol):
    """A triple pattern, or a triple of a template."""

    @property
    def subject(self) -> Var | Const: ...
    @property
    def predicate(self) -> Var | Const: ...
    @property
    def object(self) -> Var | Const: ...


def constant_of(part: object) -> Text:
    """The term of a constant; empty for anything else."""
    return part.term if isinstance(part, Const) else ""


def variable_of(part: object) -> Name:
    """The name of a variable; empty for anything else."""
    return part.name if isinstance(part, Var) else ""


def term_in(row: Mapping[Name, str], position: Var | Const) -> str:
    """The constant, or what the row has for the variable; empty where the row leaves it unbound."""
    return position.term if isinstance(position, Const) else row.get(position.name, "")


def triple_in(row: Mapping[Name, str], triple: Positions) -> tuple[str, str, str]:
    """The triple with the values of a row in place of its variables."""
    return term_in(row, triple.subject), term_in(row, triple.predicate), term_in(row, triple.object)


def spelled(position: Var | Const, variable: Callable[[str], str], constant: Callable[[str], str]) -> str:
    """The position as these functions write a variable and a constant."""
    return constant(position.term) if isinstance(position, Const) else variable(position.name)


def variable_places(positions: Iterable[object]) -> dict[Name, int]:
    """In which position each variable stands, the last one if it stands in several."""
    return {position.name: place for place, position in enumerate(positions) if isinstance(position, Var)}


def renamed(columns: Iterable[tuple[Name, object]]) -> dict[Name, Name]:
    """From which variable each of these columns takes its values, if it takes them from just one variable."""
    return {name: source for name, expression in columns if (source := variable_of(expression))}
