"""Provenance: the record of why a solution holds, and its form as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Provenance:
    """Why a solution holds: the rule (a node's id) and the provenance of its parts.

    ``event`` has the triple, its interval and stream as parts; ``background`` the triples (or the variables) found.
    """

    __slots__ = ("parts", "rule")

    def __init__(self, rule: str, parts: tuple[Any, ...]) -> None:
        self.rule = rule
        self.parts = parts

    def __lt__(self, other: object) -> bool:
        """Solutions are compared by their terms; where these are equal, either may come first."""
        return False


def plain(because: Provenance) -> list[Any]:
    """Provenance as plain data: ``[rule, parts]``."""
    parts = [plain(p) if isinstance(p, Provenance) else list(p) if isinstance(p, tuple) else p for p in because.parts]
    return [because.rule, parts]


def provenance(plain: Iterable[Any]) -> Provenance:
    """The provenance that ``plain`` wrote."""
    rule, parts = plain
    if rule == "event":
        return Provenance(rule, tuple(parts))
    if rule == "background":
        return Provenance(rule, tuple(tuple(pair) for pair in parts))
    return Provenance(rule, tuple(provenance(p) for p in parts))
