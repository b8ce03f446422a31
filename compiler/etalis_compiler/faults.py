"""Faults found by the passes after parsing: they know a place of the tree, the pipeline knows the source text."""

from __future__ import annotations

from . import ast


class Fault(Exception):
    """A query that is well-formed but cannot be executed; the pipeline turns it into a ``QueryError``."""

    def __init__(self, code: str, message: str, hint: str = "", span: ast.Span | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.span = span
