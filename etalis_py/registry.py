"""The families that an engine runs, found by the wording of a text."""

from __future__ import annotations

from dataclasses import replace

from etalis_compiler.diagnostics import Source
from etalis_compiler.families import wording_of
from etalis_compiler.pipeline import query_name

from etalis_py.families import GatheredQueries, Group, member


class Registry:
    """The families that an engine runs, by their wordings: a text that fits into one need not be parsed."""

    def __init__(self, compilation: GatheredQueries) -> None:
        self.rest = frozenset(query.name for query in compilation.rest)
        self.size = compilation.size
        self._groups: dict[tuple[str, ...], list[Group]] = {}
        for group in compilation.groups:
            if group.plain:
                empty = replace(group, members=())
                self._groups.setdefault(group.template.wording.pieces, []).append(empty)

    def find(self, text: Source, policy: str) -> Group | None:
        """The family of a text, with its row alone; ``policy`` holds where the text names none."""
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
            if constants is not None:
                name = query_name(template.query.syntax, text, 1, 0) if template.named < 0 else given[template.named]
                return replace(group, members=(member(name, constants, 0, template.is_numeric),))
        return None

    def place(self) -> int:
        """The place of one more query."""
        self.size += 1
        return self.size - 1


__all__ = ["Registry"]
