"""Faults that the passes after parsing find.  A fault has its place in the tree; the pipeline adds the source text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import ast


class Fault(Exception):
    """A query that is well-formed but cannot be executed; the pipeline turns it into a ``QueryError``."""

    def __init__(self, code: str, message: str, hint: str = "", span: ast.Span | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.span = span


@contextmanager
def within_depth() -> Iterator[None]:
    """Report a query too deep for a pass as a fault of the query, not as an overflow of Python's stack."""
    try:
        yield
    except RecursionError:
        raise Fault(
            "limit",
            "the operators of this query are nested too deeply to be compiled",
            "split the query into several rules (CONSTRUCT), and long groups into sub-queries",
        ) from None
