"""Stored graphs that are read again while a query runs: ``FROM <g> [RESCAN 20 SECONDS]`` ([REQ])."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etalis_compiler.rsp import WindowPlan

from etalis_py.events import Triple
from etalis_py.knowledge import Knowledge, load

Loader = Callable[[int], Iterable[Triple]]
"""A time-varying graph ([RSPQL] Definition 10): the triples at a time."""


def graph_name(name: str) -> str:
    """The term for a graph's name."""
    return name if not name or name[0] in "<_" else f"<{name}>"


class MissingGraph(ValueError):
    """A query names a stored graph that does not exist."""


class TimeVarying:
    """The background of windowed queries, and the graphs in it that are read again while they run.

    ``given``: there is a background, which may change.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        plans: Iterable[WindowPlan],
        graphs: Mapping[str, Loader] | None,
        named: Mapping[str, Any] | None,
        *,
        given: bool,
    ) -> None:
        self.knowledge = knowledge
        self.given = given
        self.loaders = {graph_name(name): loader for name, loader in (graphs or {}).items()}
        self._read_at: dict[str, int] = {}
        self._loaded: dict[str, set[Triple]] = {}
        from_files = file_loaders(plans, named or {})
        for name in from_files.keys() - self.loaders.keys():
            self.loaders[name] = from_files[name]
            self._loaded[name] = set(from_files[name](0))  # the background has it already

    @property
    def has_any(self) -> bool:
        """Whether there may be stored triples, now or later."""
        return self.given or bool(self.loaders)

    def check(self, plans: Sequence[WindowPlan]) -> None:
        """FROM and FROM NAMED must name existing graphs, or a query would silently match nothing."""
        fault = unreadable(plans, self.loaders)
        if fault:
            raise MissingGraph(fault)
        there = {*self.knowledge.names(), *self.loaders}
        for plan in plans:
            for name in (*plan.graphs, *plan.named):
                if name not in there:
                    known = ", ".join(sorted(filter(None, there))) or "none"
                    raise MissingGraph(
                        f"the query {plan.name} asks for the graph {name}, which is not loaded (loaded: {known}); give "
                        "it with named={…} or graphs={…}; on the command line FROM <file> names a file beside the query"
                    )

    def read(self, plan: WindowPlan, t: int) -> bool:
        """Read the graphs as of t, or of the last time that RESCAN allows; returns whether any has changed."""
        rescan = dict(plan.rescan)
        changed = False
        for name, loader in self.loaders.items():
            read = self._read_at.get(name)
            if read is not None and t < read + max(rescan.get(name, 0), 1):
                continue
            new, old = set(loader(t)), self._loaded.get(name, set())
            if new != old:
                self.knowledge.update(name, new - old, old - new)
                changed = True
            self._loaded[name] = new
            self._read_at[name] = t
        return changed

    def dump(self) -> list[Any]:
        """When each graph was read and what it held then, as plain data."""
        return [dict(self._read_at), {name: sorted(map(list, triples)) for name, triples in self._loaded.items()}]

    def go_on_from(self, other: TimeVarying) -> None:
        """Take over the contents read by ``other`` of the graphs that both have."""
        self._read_at |= other._read_at
        self._loaded |= other._loaded

    def load(self, state: Any) -> None:
        read_at, loaded = state
        self._read_at = dict(read_at)
        self._loaded = {name: {tuple(triple) for triple in triples} for name, triples in loaded.items()}


def unreadable(plans: Iterable[WindowPlan], readable: Iterable[str]) -> str:
    """The error message if a query wants a graph read again and there is no way to do so; empty if all is well."""
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
    """For each graph that must be read again and that came from files, a function that reads the files."""
    wanted = {name for plan in plans for name, _ in plan.rescan}
    loaders: dict[str, Loader] = {}
    for key, source in named.items():
        name = graph_name(key)
        sources = [source] if isinstance(source, str | Path) else list(source) if isinstance(source, list) else []
        if name in wanted and sources and all(isinstance(s, str | Path) for s in sources):
            loaders[name] = _loader(name, sources)
    return loaders


def _loader(name: str, files: list[str | Path]) -> Loader:
    def read(t: int) -> list[Triple]:
        graph = load([], named={name: files}, entailment="rdf", cache=False).graph(name)
        return list(graph.match(None, None, None))

    return read
