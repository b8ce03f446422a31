"""Errors of expressions ([SPARQL 1.1 Query] §17.2): an error is an exception, never a value."""

from __future__ import annotations


class SparqlError(Exception):
    """A SPARQL expression error: the FILTER drops the row, BIND leaves the variable unbound."""


class Unbound(SparqlError):
    """An unbound variable was evaluated."""


class LimitExceeded(RuntimeError):
    """A program went beyond a limit; the engine's state is no longer consistent and it must be closed."""


def type_error(operation: str, *values: object) -> SparqlError:
    """The type error of an operation on values it is not defined for."""
    kinds = ", ".join(f"{type(value).__name__} {value!r}" for value in values)
    return SparqlError(f"{operation} is not defined for {kinds}")
