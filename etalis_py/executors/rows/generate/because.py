"""Why a solution holds."""

from __future__ import annotations

from typing import Any


class Because:
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
