"""A selection of graphs: some merged as the default graph, others by their names."""

from __future__ import annotations

from collections.abc import Iterable

from etalis_py.events import Triple
from etalis_py.knowledge.closed_graph import ClosedGraph
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.knowledge import Change, Knowledge


class ChosenKnowledge(Knowledge):
    """What FROM (``default``) and FROM NAMED (``named``) choose; the rest of ``base`` is hidden.

    An update of a chosen graph also updates ``base``, and the default graph if that is merged from it.
    """

    __slots__ = ("_base", "_merged", "_own")

    def __init__(self, base: Knowledge, default: Iterable[str], named: Iterable[str]) -> None:
        self._base, self._merged = base, tuple(default)
        self._own: set[Triple] = set()  # stated in the default graph itself, beside the graphs it is merged from
        merged = Graph(dict.fromkeys(t for name in self._merged for t in base.stated(name).match(None, None, None)))
        graphs = {"": ClosedGraph.of(merged, base.entailment, base._ask)}
        graphs |= {name: base._closed(name) for name in named}
        super().__init__(graphs, base.entailment, (*base._static, *base.programs), base.limits)

    @property
    def base(self) -> Knowledge:
        """The knowledge that this was chosen from."""
        return self._base

    @property
    def own(self) -> frozenset[Triple]:
        """The triples stated in the default graph itself, beside the graphs that it is merged from."""
        return frozenset(self._own)

    def update(self, graph: str = "", add: Iterable[Triple] = (), remove: Iterable[Triple] = ()) -> Change:
        """Like ``Knowledge.update``."""
        add, remove = list(add), list(remove)
        if not graph:
            change = super().update("", add, remove)
            self._own = (self._own - set(remove)) | set(add)
            return change
        stated = self._base.stated(graph)
        came = [t for t in add if t not in stated]
        went = [t for t in set(remove).difference(add) if t in stated]
        change = self._base.update(graph, add, remove)
        schema = graph in self._graphs and change.schema_changed
        if graph in self._merged:
            sources = [self._base.stated(name) for name in self._merged]
            gone = [t for t in went if t not in self._own and not any(t in source for source in sources)]
            parts = [self._closed("").update(came, [*gone, *self._offered], self._ask)]
            if self._static:
                parts.append(self._offer())
            schema = any(part.schema for part in parts)
        self._note(graph, came, True)
        self._note(graph, went, False)
        self.version += 1
        self.schema_version += schema
        return Change(self.version, change.added, change.removed, schema, self.inconsistent)
