"""Errors of expressions ([SPARQL 1.1 Query] §17.2): an error is an exception, never a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SparqlError(Exception):
    """A SPARQL expression error: the FILTER drops the row, BIND leaves the variable unbound."""


class Unbound(SparqlError):
    """An unbound variable was evaluated."""


class LimitExceeded(RuntimeError):
    """A program went beyond a limit.  If an engine raises it, the engine is broken: see ``BrokenEngine``.

    ``matches`` are those of the instants that were over before: the interrupted step would have returned them.
    """

    matches: Sequence[Any] = ()


class BrokenEngine(RuntimeError):
    """A step of the engine was interrupted, so it takes no further one until its last snapshot is restored."""


class EngineInUse(RuntimeError):
    """Another step of the engine is under way."""


def type_error(operation: str, *values: object) -> SparqlError:
    """The type error of an operation on values it is not defined for."""
    kinds = ", ".join(f"{type(value).__name__} {value!r}" for value in values)
    return SparqlError(f"{operation} is not defined for {kinds}")
