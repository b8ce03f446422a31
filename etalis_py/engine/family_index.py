"""The families that an engine runs, found by the wording of a text."""

from __future__ import annotations

from dataclasses import replace
from sys import intern

from etalis_compiler.diagnostics import FIRST, Source
from etalis_compiler.families import wording_of

from etalis_py.engine.query_families import GatheredQueries, Member, QueryFamily, member


class Added(GatheredQueries):
    """A text that was added to a family, kept as the row that runs: an engine may have a hundred thousand."""

    __slots__ = ("_family", "_row")
    rest = ()
    places = ()
    _family: QueryFamily
    _row: Member

    def __init__(self, family: QueryFamily, row: Member) -> None:
        """``family`` has no members."""
        for name, value in (("_family", family), ("_row", row), ("warnings", ()), ("_expanded", None), ("_size", 1)):
            object.__setattr__(self, name, value)

    @property
    def groups(self) -> tuple[QueryFamily, ...]:  # type: ignore[override]
        """The family with this row alone, as the first of its program."""
        place = self._row[1 + len(self._family.template.places)]
        return (replace(self._family, members=(self._row,)).moved(-place, self._family.policy),)


class FamilyIndex:
    """The families that an engine runs, by their wordings: a text that fits into one need not be parsed."""

    def __init__(self, compilation: GatheredQueries) -> None:
        self.rest = frozenset(query.name for query in compilation.rest)
        self.size = compilation.size
        self._groups: dict[tuple[str, ...], list[QueryFamily]] = {}
        for group in compilation.groups:
            if group.plain:
                empty = replace(group, members=())
                self._groups.setdefault(group.template.wording.pieces, []).append(empty)

    def find(self, text: Source, policy: str) -> tuple[QueryFamily, Member] | None:
        """The family of a text, and its row in the next place; ``policy`` holds where the text names none."""
        wording = wording_of(text)
        if wording is None:
            return None
        given = wording.constants
        for group in self._groups.get(wording.pieces, ()):
            template = group.template
            if not template.query.syntax.policy and policy != group.policy:
                continue
            if template.likeness(given) != template.likeness(template.wording.constants):
                continue
            constants = template.constants_of(given)
            registered = template.name_in(given)
            if constants is not None and registered is not None:
                name = registered or text.stem or FIRST
                identity = registered or template.query.syntax.identity or text.identity
                shared = tuple(map(intern, constants))
                return group, member(name, shared, self.size, template.is_numeric, identity)
        return None

    def add(self, family: QueryFamily, row: Member) -> Added:
        """The row that was found, as a program; this takes its place."""
        self.size += 1
        return Added(family, row)


__all__ = ["Added", "FamilyIndex"]
