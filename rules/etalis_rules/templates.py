"""What a CONSTRUCT query writes for each of its solutions."""

from __future__ import annotations

from dataclasses import dataclass

from .algebra import Const, Var


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
