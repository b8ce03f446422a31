"""Writing Python source: lines with an indentation that follows the blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects source lines.

    >>> w = Writer()
    >>> with w.block("for x in xs:"):
    ...     w("print(x)")
    >>> print(w.text())
    for x in xs:
        print(x)
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, *lines: str) -> None:
        self.lines.extend("    " * self.depth + line for line in lines)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self(header)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self("pass")
        self.depth -= 1

    def text(self) -> str:
        return "\n".join(self.lines)
