"""Functional forms, which decide themselves what an error of an argument means ([SPARQL 1.1 Query] §17.4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from etalis_py.values.errors import SparqlError
from etalis_py.values.operators import ebv


def coalesce(*candidates: Callable[[], Any]) -> Any:
    """COALESCE: the first argument that is not an error."""
    for candidate in candidates:
        try:
            return candidate()
        except SparqlError:
            continue
    raise SparqlError("every argument of COALESCE is unbound or an error; end it with a constant")


def if_(condition: Callable[[], Any], then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """IF: only the chosen branch is evaluated; an error of the condition is the error of the whole."""
    return then() if ebv(condition()) else otherwise()
