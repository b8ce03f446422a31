"""The generated code of a program as a value: the text of its functions and what they need; and the loaded
functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etalis_py.executors.rows.generate.runtime_objects import GoalStoreSpec, Need
from etalis_py.executors.rows.generate.writer import load
from etalis_py.executors.rows.run.operands import OperatorCode

Occurrence = tuple[str, str, str, int, str]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The functions of a program, as text, and what they need.

    ``single``: the name of the function for an instant of one triple, by its predicate.  ``objects`` are functions and
    constants of the library, by their names in the text; ``needs`` are the objects that the run time must provide.
    ``operators`` is the code of aggregations and runs, by node.
    """

    source: str
    single: Mapping[str, str]
    objects: Mapping[str, Any]
    needs: Mapping[str, Need]
    stores: tuple[GoalStoreSpec, ...]
    operators: Mapping[str, OperatorCode]

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class GeneratedFunctions:
    """The loaded functions of a plan."""

    single: Mapping[str, Any]
    other: Any
    instant: Any
    due: Any
    """The function for times without an event; None if nothing can be reported then."""
    finish: Any
    """The function that reports what only the end of the stream ends; None if there is no such thing."""


def load_functions(plan: RowPlan, scope: dict[str, Any]) -> GeneratedFunctions:
    """Compile the functions of a plan; ``scope`` has the objects they need, by name, and receives the functions."""
    load(plan.source, scope)
    single = {predicate: scope[name] for predicate, name in plan.single.items()}
    return GeneratedFunctions(single, scope["other"], scope["instant"], scope.get("due"), scope.get("finish"))
