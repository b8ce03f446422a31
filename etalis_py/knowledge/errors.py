"""Errors in background knowledge, which say where the problem is and what to do."""

from __future__ import annotations

from etalis_rules.messages import printable


class KnowledgeError(ValueError):
    """Background knowledge that cannot be used; ``source`` and ``line`` say where (line 0: not known)."""

    def __init__(self, problem: str, *, source: str = "", line: int = 0, column: int = 0, hint: str = "") -> None:
        place = source
        if line:
            place += f"{', ' if place else ''}line {line}" + (f", column {column}" if column else "")
        super().__init__(printable((f"{place}: " if place else "") + problem + (f"\n  {hint}" if hint else "")))
        self.problem, self.source, self.line, self.column, self.hint = problem, source, line, column, hint


class KnowledgeWarning(UserWarning):
    """Something about the knowledge that costs time but not correctness (a cache that had to be rebuilt)."""
