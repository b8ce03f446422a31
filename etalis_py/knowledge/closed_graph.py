"""One graph with what it entails, maintained over updates.

``asserted`` is what was stated, ``closed`` what is stated or entailed.  A predicate about which nothing is entailed has
one table in both.  An update of instances is a small change to both; if the schema changes, the closure is computed
again and the difference entered into ``closed``, so its indexes always stay the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from etalis_rules.terms import RDF_TYPE

from etalis_py.events import Triple
from etalis_py.knowledge.derived_tables import derive
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.full_rdfs import close_rdfs_full
from etalis_py.knowledge.graph import Graph, PredicatePairs
from etalis_py.knowledge.owl import close_owl
from etalis_py.knowledge.schema import Schema, TypeTests
from etalis_py.knowledge.schema_closure import NOTHING, SCHEMA_PREDICATES, SchemaAnswer, close_rdfs, feeds_schema
from etalis_py.knowledge.solving import Ask

_CLOSERS: dict[str, Callable[[Graph, Ask | None], SchemaAnswer]] = {
    "rdf": lambda graph, ask: NOTHING,
    "rdfs": close_rdfs,
    "rdfs-full": close_rdfs_full,
    "owlrl": close_owl,
}
REGIMES = tuple(_CLOSERS)


def check_regime(name: object) -> None:
    """Refuse what is no entailment regime."""
    if name not in REGIMES:
        raise KnowledgeError(f"{name!r} is not an entailment regime", hint=f"one of {', '.join(REGIMES)}")


@dataclass(frozen=True, slots=True)
class Changed:
    """What an update did to a graph, counted in triples of the closed graph."""

    added: int
    removed: int
    schema: bool


class ClosedGraph:
    """A graph and its closure under an entailment regime."""

    __slots__ = ("_derived", "_tests", "asserted", "closed", "closure", "regime", "schema")

    def __init__(self, asserted: Graph, regime: str, closure: SchemaAnswer, derived: dict[str, PredicatePairs]) -> None:
        self.regime = regime
        self.asserted = asserted
        self.closed = asserted if regime == "rdf" else Graph.of_tables({**asserted.tables, **derived})
        self._use(closure)

    def _use(self, closure: SchemaAnswer) -> None:
        self.closure = closure
        self.schema = Schema.of(closure, self.closed.tables)
        self._derived = frozenset(closure.derived)
        self._tests: dict[str, TypeTests] = {}

    @classmethod
    def of(cls, asserted: Graph, regime: str, ask: Ask | None = None) -> ClosedGraph:
        """Close a graph with clingo, in a process of its own or as ``ask`` does it."""
        closure = _CLOSERS[regime](asserted, ask)
        return cls(asserted, regime, closure, derive(asserted, closure, Schema.of(closure), regime))

    def derived_tables(self) -> dict[str, PredicatePairs]:
        """The tables in which the closed graph differs from the stated one."""
        stated = self.asserted.tables
        return {p: table for p, table in self.closed.tables.items() if len(table) and stated.get(p) is not table}

    # ----------------------------------------------------------------------------------------------------- update

    def update(self, add: Iterable[Triple], remove: Iterable[Triple], ask: Ask | None = None) -> Changed:
        """Remove triples, then add triples; their consequences are removed and added with them.

        ``ask`` closes the graph again where that is needed.
        """
        new = dict.fromkeys(add)
        removed = [t for t in dict.fromkeys(remove) if t not in new and t in self.asserted]
        added = [t for t in new if t not in self.asserted]
        if not (added or removed):
            return Changed(0, 0, False)
        if self.closed is self.asserted:
            gone = sum(self.asserted.remove(*t) for t in removed)
            return Changed(sum(self.asserted.add(*t) for t in added), gone, False)
        if not (self._keeps_schema(removed) and self._keeps_schema(added)):
            return self._close_again(added, removed, None, ask)
        if self.schema.type_is_ruled:  # then the consequences of one triple may be about any term
            return self._close_again(added, removed, self.closure)
        came = sum(map(self._assert, added))  # first: what both entail is then neither removed nor added
        return Changed(came, sum(map(self._retract, removed)), False)

    def _keeps_schema(self, triples: list[Triple]) -> bool:
        return self.regime == "rdfs" and not any(feeds_schema(self.closure, t) for t in triples)

    def _shares(self, p: str) -> bool:
        """Whether stated and closed graph share the table of a predicate; if neither has one yet, they start to."""
        stated, closed = self.asserted.table(p), self.closed.table(p)
        if stated is not closed and not stated and not closed:
            self.asserted.tables[p] = closed
            return True
        return stated is closed

    def _assert(self, triple: Triple) -> int:
        shared = self._shares(triple[1])
        count = int(self.asserted.add(*triple))
        if not shared:
            count = int(self.closed.add(*triple))
        for s, p, o in self.schema.entailed(triple):
            if not self.closed.contains(s, p, o):
                if self._shares(p):
                    self.asserted.detach(p)
                count += self.closed.add(s, p, o)
        return count

    def _retract(self, triple: Triple) -> int:
        shared = self._shares(triple[1])
        self.asserted.remove(*triple)
        if not shared:
            count = self._forget(triple)
        elif self._supported(triple):  # no longer stated, but still entailed
            self.asserted.detach(triple[1])
            self.closed.add(*triple)
            count = 0
        else:
            count = 1
        return count + sum(self._forget(t) for t in self.schema.entailed(triple) if not self._shares(t[1]))

    def _forget(self, triple: Triple) -> int:
        """Remove a triple from the closed graph unless something still entails it."""
        if triple in self.asserted or self._supported(triple):
            return 0
        return int(self.closed.remove(*triple))

    def _supported(self, triple: Triple) -> bool:
        """Whether a stated triple entails this one; only the few candidates are looked at."""
        if triple in self._derived:
            return True
        s, p, o = triple
        schema, asserted = self.schema, self.asserted
        if any(asserted.contains(s, q, o) for q in schema.sub_properties(p)):
            return True
        if p != RDF_TYPE:
            return False
        tests = self._tests.get(o)
        if tests is None:
            tests = self._tests[o] = schema.type_tests(o)
        return (
            any(d in tests.classes for q in tests.type_predicates for d in asserted.objects(s, q))
            or any(asserted.objects(s, q) for q in tests.subject_of)
            or any(asserted.subjects(q, s) for q in tests.object_of)
        )

    def _close_again(
        self, added: list[Triple], removed: list[Triple], same: SchemaAnswer | None, ask: Ask | None = None
    ) -> Changed:
        """Compute the closed graph again and enter the difference, with the ``same`` closure or one from clingo."""
        # A failure (of clingo, say) must leave everything as it was: compute on a copy of what changes.
        future = Graph.of_tables(dict(self.asserted.tables))
        for p in {t[1] for t in (*added, *removed)}:
            future.tables[p] = future.tables[p].copy() if p in future.tables else PredicatePairs()
        for t in removed:
            future.remove(*t)
        for t in added:
            future.add(*t)
        closure = same or _CLOSERS[self.regime](future, ask)
        tables = derive(future, closure, Schema.of(closure), self.regime)
        came = went = 0
        shared = {p for p, table in self.closed.tables.items() if self.asserted.tables.get(p) is table}
        for p in dict.fromkeys((*future.tables, *tables, *self.closed.tables)):
            if same and p in SCHEMA_PREDICATES:
                continue
            target = tables.get(p) or future.table(p)
            current = self.closed.table(p)
            if target is current:
                continue
            if p in tables and future.tables.get(p) is current:
                future.detach(p)
            for s, o in list(current):
                if (s, o) not in target:
                    went += current.remove(s, o)
            for s, o in target:
                came += current.add(s, o)
            if p in shared and p not in tables:
                future.tables[p] = current
        self.asserted = future
        if same is None:
            self._use(closure)
        return Changed(came, went, same is None)
