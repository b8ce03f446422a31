"""Writing Python source: lines with an indentation that follows the blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from etalis_compiler.diagnostics import Diagnostic, QueryError

from etalis_py.values.generated import CompiledText


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


LONGEST_KEPT = 100_000  # characters of a source


def load(source: str, scope: dict[str, Any]) -> None:
    """Compile and run the source; nesting too deep for Python is reported as a fault of the program."""
    try:
        (_compiled(source) if len(source) <= LONGEST_KEPT else _compile(source)).run(scope)
    except (SyntaxError, RecursionError) as error:
        if isinstance(error, SyntaxError) and not str(error.msg).startswith("too many"):
            raise
        message = f"the operators of this program are nested too deeply to be compiled ({error})"
        hint = "split its queries into several rules (CONSTRUCT), and long expressions with BIND"
        raise QueryError([Diagnostic("error", "limit", message, hint)]) from None


def _compile(source: str) -> CompiledText:
    return CompiledText(source, "rules")


_compiled = lru_cache(maxsize=64)(_compile)
"""Engines of one program, such as the shards of a stream, share the compiled code."""
