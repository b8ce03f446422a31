"""Background knowledge: a default graph and named graphs, closed under an entailment regime, in versions.

Each graph is closed by itself, as in SPARQL's entailment regimes; the schema of the default graph also applies to
streams.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from etalis_compiler.tables import cache_directory
from etalis_rules.messages import INTO_UTF8
from etalis_rules.terms import is_blank, is_iri

from etalis_py.events import Triple
from etalis_py.knowledge import cache as _cache
from etalis_py.knowledge.closed_graph import Changed, ClosedGraph, check_regime
from etalis_py.knowledge.errors import KnowledgeError, KnowledgeWarning
from etalis_py.knowledge.event_closure import EventClosure
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.loading import SourceDocument, documents, expand, parse
from etalis_py.knowledge.owl_rules import owl_rules
from etalis_py.knowledge.schema import Schema
from etalis_py.knowledge.solving import SharedProcess, answer_set
from etalis_py.knowledge.triples import check_triple, triples_of
from etalis_py.values.limits import LIMITS, Limits

if TYPE_CHECKING:
    from etalis_py.knowledge.asp import Outcome
    from etalis_py.knowledge.asp_interface import AspProgram
    from etalis_py.knowledge.loading import Source


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of one update: the new version, and the triples (stated or entailed) that were added and removed.

    A triple that a static program offered before and offers again counts as both.  ``inconsistent`` has the names of
    the static programs that have no answer set in this version.
    """

    version: int
    added: int
    removed: int
    schema_changed: bool
    inconsistent: tuple[str, ...] = ()


class Knowledge:
    """Graphs and their closures.  ``version`` counts updates, ``schema_version`` those that changed a schema.

    The graphs that ``graph`` gives, and the indexes that they give, stay the same objects over all versions: they
    always show the current one.  A ``schema`` belongs to its ``schema_version``; after a change, ask for it again.

    Static programs read the closed default graph and offer triples to it, again for each version; they do not read what
    programs offer.  Programs that read events are kept in ``programs``, for the code that has the events
    (``LiveProgram``).
    """

    __slots__ = (
        "_changes",
        "_graphs",
        "_offered",
        "_static",
        "entailment",
        "inconsistent",
        "limits",
        "programs",
        "schema_version",
        "version",
    )

    def __init__(
        self,
        graphs: dict[str, ClosedGraph],
        entailment: str,
        programs: Iterable[AspProgram] = (),
        limits: Limits = LIMITS,
    ) -> None:
        self.limits = limits
        self._graphs = graphs
        self.entailment = entailment
        self.version = 0
        self.schema_version = 0
        programs = tuple(programs)
        self.programs = tuple(p for p in programs if p.events)
        self._static = tuple(p for p in programs if not p.events)
        self._offered: list[Triple] = []
        self._changes: dict[str, dict[Triple, bool]] = {}  # since the start: newly stated (true) or no longer
        self.inconsistent: tuple[str, ...] = ()
        if "" not in graphs:
            graphs[""] = ClosedGraph.of(Graph(), entailment)
        self._offer()

    @property
    def default(self) -> Graph:
        """The default graph, closed."""
        return self._graphs[""].closed

    @property
    def schema(self) -> Schema:
        """The schema of the default graph, which also applies to streams."""
        return self._graphs[""].schema

    def event_closure(self) -> EventClosure:
        """What streamed triples entail, singly and as those of one event; for the current version of the schema."""
        rules = owl_rules(self.default) if self.entailment == "owlrl" else ()
        return EventClosure(self.default, self.schema, rules)

    @property
    def static(self) -> tuple[AspProgram, ...]:
        """The programs that read no events."""
        return self._static

    def with_keys_of(self, share: tuple[int, int]) -> Knowledge:
        """The same graphs for one of several engines, with programs that only deal with the keys of its share."""
        if share[1] == 1 or not any(program.key for program in self.programs):
            return self
        one = copy(self)
        one.programs = tuple(replace(p, share=share) if p.key else p for p in self.programs)
        return one

    def said(self, name: str = "") -> list[Triple]:
        """The triples of a graph as they were stated, in order, without what static programs offer."""
        offered = set() if name else set(self._offered)
        return sorted(t for t in self.stated(name) if t not in offered)

    def names(self) -> list[str]:
        """The names of the named graphs that hold something."""
        return [name for name, graph in self._graphs.items() if name and len(graph.closed)]

    def graph(self, name: str = "") -> Graph:
        """A closed graph; an unknown one is empty, and will hold what later updates add."""
        return self._closed(name).closed

    def stated(self, name: str = "") -> Graph:
        """A graph as stated or offered, without its entailments; ask for it again after an update."""
        return self._closed(name).asserted

    def check_update(
        self, graph: str, add: Iterable[Triple], remove: Iterable[Triple]
    ) -> tuple[list[Triple], list[Triple]]:
        """The triples of an update; raises an error if it cannot be made."""
        if graph and not (is_iri(graph) or is_blank(graph)):
            raise KnowledgeError(
                f"{graph!r} cannot name a graph", hint="an IRI in angle brackets, or '' for the default"
            )
        return [check_triple(t) for t in triples_of(add)], [check_triple(t) for t in triples_of(remove)]

    def update(self, graph: str = "", add: Iterable[Triple] = (), remove: Iterable[Triple] = ()) -> Change:
        """Remove triples from a graph, then add triples to it: the next version.

        Entailments follow.  Instance triples cost what they entail; a change of the schema (or any change under
        ``owlrl``) computes the closure again.  A bad triple is an error and changes nothing.
        """
        new, old = self.check_update(graph, add, remove)
        stated = self.stated(graph)
        offered = set() if graph else set(self._offered)
        came = [t for t in new if t not in stated or t in offered]
        went = [t for t in set(old).difference(new) if t in stated and t not in offered]
        old += offered
        back = [t for t in old if t in stated], [t for t in new if t not in stated]
        parts = [self._closed(graph).update(new, old, self._ask)]
        if not graph and self._static:
            try:
                parts.append(self._offer())
            except KnowledgeError:  # a program cannot read the data: undo everything
                self._closed(graph).update(*back, self._ask)
                raise
        self._note(graph, came, True)
        self._note(graph, went, False)
        self.version += 1
        schema = any(part.schema for part in parts)
        self.schema_version += schema
        added, removed = sum(part.added for part in parts), sum(part.removed for part in parts)
        return Change(self.version, added, removed, schema, self.inconsistent)

    def _note(self, graph: str, triples: Iterable[Triple], stated: bool) -> None:
        changes = self._changes.setdefault(graph, {})
        for triple in triples:
            if changes.get(triple, stated) is not stated:
                del changes[triple]  # as it was at the start
            else:
                changes[triple] = stated

    # ------------------------------------------------------------------------------------------------------ state

    def snapshot(self) -> dict[str, Any]:
        """The version and, by graph, the triples stated since the start (``added``) or no longer stated (``removed``).

        Plain data: lists, strings and numbers.  Its size is that of the difference, not of the knowledge.
        """
        graphs = {
            name: {
                "added": sorted(list(t) for t, stated in changes.items() if stated),
                "removed": sorted(list(t) for t, stated in changes.items() if not stated),
            }
            for name, changes in self._changes.items()
            if changes
        }
        return {"version": self.version, "schema_version": self.schema_version, "graphs": graphs}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go to the version of a snapshot, from any version of knowledge that was loaded from the same sources."""
        for name in dict.fromkeys((*self._changes, *snapshot["graphs"])):
            now = dict(self._changes.get(name, {}))
            record = snapshot["graphs"].get(name, {"added": [], "removed": []})
            then = dict.fromkeys(map(tuple, record["added"]), True)
            then |= dict.fromkeys(map(tuple, record["removed"]), False)
            wanted = {t: not stated for t, stated in now.items() if t not in then} | then
            add = [t for t, stated in wanted.items() if stated]
            self.update(name, add=add, remove=[t for t, stated in wanted.items() if not stated])
        self.version, self.schema_version = snapshot["version"], snapshot["schema_version"]

    def _offer(self) -> Changed:
        """Solve the static programs over a default graph without their offers, and add these."""
        outcomes = [(program.source, _answers(program, self.default, self.limits)) for program in self._static]
        self.inconsistent = tuple(source for source, outcome in outcomes if outcome.inconsistent)
        stated = self.stated()
        offered = dict.fromkeys(t for _, outcome in outcomes for t in outcome.triples if t not in stated)
        self._offered = list(offered)
        return self._closed("").update(self._offered, (), self._ask)

    def _ask(self, program: str, constants: Mapping[str, int], *, name: str) -> bytes:
        return answer_set(program, constants, name=name, limits=self.limits)

    def _closed(self, name: str) -> ClosedGraph:
        closed = self._graphs.get(name)
        if closed is None:
            closed = self._graphs[name] = ClosedGraph.of(Graph(), self.entailment)
        return closed

    def __repr__(self) -> str:
        sizes = f"{len(self.default)} triples, {len(self.names())} named graphs"
        return f"Knowledge(version {self.version}, {self.entailment}, {sizes})"


def load(
    background: Source | Iterable[Source] = (),
    *,
    named: Mapping[str, Source | Iterable[Source]] | None = None,
    entailment: str = "rdfs",
    base: str = "",
    cache: str | Path | bool = True,
    limits: Limits = LIMITS,
    programs: Iterable[AspProgram] = (),
) -> Knowledge:
    """Read background knowledge and close it: files, texts of Turtle, rdflib graphs and triples.

    ``background`` goes to the default graph (quads of its files to the graphs they name), ``named`` gives sources for
    graphs by IRI (with or without angle brackets).  A ``.lp`` file in ``background`` is an answer-set program with the
    interface that ``asp_interface`` describes; a static one without an answer set gives a warning.  ``entailment`` is
    ``rdf`` (nothing), ``rdfs``, ``rdfs-full`` or ``owlrl``.  ``cache`` is a folder, ``True`` for the default one, or
    ``False``; results that were quick to compute are not kept there.  ``limits``: how far a document may grow,
    and what an answer-set program may cost.
    ``programs``: further programs, already read.
    """
    check_regime(entailment)
    sources = _each(background)
    every = [*programs, *(_program(path) for s in sources if _is_program(s) for path in expand(str(s)))]
    wanted: list[tuple[str, SourceDocument]] = [
        ("", d) for s in sources if not _is_program(s) for d in documents(s, base=base, limits=limits)
    ]
    for name, content in (named or {}).items():
        graph = name if name[:1] in ("<", "_") else f"<{name}>"
        wanted += ((graph, d) for s in _each(content) for d in documents(s, base=base, limits=limits))
    folder = cache_directory() if cache is True else Path(cache) if cache else None
    if folder is None:
        graphs = _close(wanted, entailment, limits)
    else:
        graphs = _cached(folder, wanted, entailment, limits)
    knowledge = Knowledge(graphs, entailment, every, limits)
    for source in knowledge.inconsistent:
        warnings.warn(f"{source}: the program has no answer set, so it offers nothing", KnowledgeWarning, stacklevel=2)
    return knowledge


def _cached(
    folder: Path, wanted: list[tuple[str, SourceDocument]], entailment: str, limits: Limits
) -> dict[str, ClosedGraph]:
    file = _cache.entry(folder, entailment, (f"{d.digest} {graph}" for graph, d in wanted))
    graphs = _cache.read(file, entailment)
    if graphs is None:
        began = perf_counter()
        graphs = _close(wanted, entailment, limits)
        if perf_counter() - began >= _cache.WORTH_SECONDS:
            _cache.write(file, graphs)
    return graphs


def _is_program(source: Source) -> bool:
    return isinstance(source, str | Path) and str(source).endswith(".lp")


def _program(path: Path) -> AspProgram:
    from etalis_py.knowledge.asp_interface import parse_program  # clingo takes a while to load

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise KnowledgeError("the program is no text in UTF-8", source=str(path), hint=INTO_UTF8) from None
    except OSError as error:
        raise KnowledgeError(f"the program cannot be read: {error}", source=str(path)) from error
    return parse_program(text, str(path))


def _answers(program: AspProgram, graph: Graph, limits: Limits) -> Outcome:
    from etalis_py.knowledge.asp import static_answers

    return static_answers(program, graph, limits)


def _each(sources: Source | Iterable[Source]) -> list[Source]:
    """One source, or several: a list or tuple is several unless it holds triples."""
    if isinstance(sources, list | tuple) and not (sources and isinstance(sources[0], tuple)):
        return list(sources)
    return [sources]  # type: ignore[list-item]


def _close(wanted: list[tuple[str, SourceDocument]], entailment: str, limits: Limits) -> dict[str, ClosedGraph]:
    triples: dict[str, list[Triple]] = {"": []}
    for graph, document in wanted:
        for name, parsed in parse(document, limits).items():
            triples.setdefault(name or graph, []).extend(parsed)
    with SharedProcess(limits) as process:
        ask = process.answer_set
        return {name: ClosedGraph.of(Graph(parsed), entailment, ask) for name, parsed in triples.items()}
