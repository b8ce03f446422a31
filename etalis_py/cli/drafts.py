"""The mappings that are drafted for the streams of a run; one that goes on reads by those that it began with.

Another draft may be made later, because a file that is followed has more rows then, or by another version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeAlias

Mapped: TypeAlias = "dict[str, Any]"
Kept: TypeAlias = "Iterable[tuple[int, str, Mapped]]"
"""The number of a stream in the order of ``--stream``, the name of its source without a folder, and its mapping."""


class Drafts:
    """``kept`` gives the drafts that the run began with, if it goes on; it is asked when one is needed."""

    def __init__(self, kept: Callable[[], Kept] = tuple) -> None:
        self._kept = kept
        self._made: dict[tuple[int, str], Mapped] = {}

    @cached_property
    def _before(self) -> dict[tuple[int, str], Mapped]:
        return {(number, name): mapping for number, name, mapping in self._kept()}

    def before(self, number: int, source: str) -> Mapped | None:
        """The mapping that was drafted for a stream when the run began."""
        made = self._before.get((number, os.path.basename(source)))
        self.add(number, source, made)
        return made

    def add(self, number: int, source: str, mapping: Mapped | None) -> None:
        if mapping is not None:
            self._made[number, os.path.basename(source)] = mapping

    def all(self) -> list[tuple[int, str, Mapped]]:
        """What another process needs to go on."""
        return [(*place, mapping) for place, mapping in sorted(self._made.items(), key=lambda one: one[0])]
