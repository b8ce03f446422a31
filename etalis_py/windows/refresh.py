"""Stored graphs that are read again while a query runs: ``FROM <g> [RESCAN 20 SECONDS]`` ([REQ])."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from etalis_compiler.rsp import WindowPlan

from etalis_py.events import Triple
from etalis_py.knowledge import load

Loader = Callable[[int], Iterable[Triple]]
"""A time-varying graph ([RSPQL] Definition 10): the triples at a time."""


def graph_name(name: str) -> str:
    """A graph's name as its term."""
    return name if not name or name[0] in "<_" else f"<{name}>"


def unreadable(plans: Iterable[WindowPlan], readable: Iterable[str]) -> str:
    """What is wrong when a query wants a graph read again that nobody can read; empty when nothing is."""
    there = set(readable)
    for plan in plans:
        for name, _ in plan.rescan:
            if name not in there:
                return (
                    f"the query {plan.name} has {name} read again (RESCAN), and nothing says from where: give the file "
                    f"with named={{{name!r}: path}}, a function with graphs={{…}}, or leave RESCAN out and change the "
                    "graph with update()"
                )
    return ""


def file_loaders(plans: Iterable[WindowPlan], named: Mapping[str, Any]) -> dict[str, Loader]:
    """For each graph that is to be read again and that came from files, a function that reads them."""
    wanted = {name for plan in plans for name, _ in plan.rescan}
    found: dict[str, Loader] = {}
    for key, source in named.items():
        name = graph_name(key)
        sources = [source] if isinstance(source, str | Path) else list(source) if isinstance(source, list) else []
        if name in wanted and sources and all(isinstance(s, str | Path) for s in sources):
            found[name] = _loader(name, sources)
    return found


def _loader(name: str, files: list[str | Path]) -> Loader:
    def read(t: int) -> list[Triple]:
        graph = load([], named={name: files}, entailment="rdf", cache=False).graph(name)
        return list(graph.match(None, None, None))

    return read
