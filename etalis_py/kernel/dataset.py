"""FROM and FROM NAMED: the background graphs that a program ranges over.

Definition (SPARQL 1.1 §13.2).  With a dataset clause the default background is the merge of the FROM graphs, closed as
one graph, and GRAPH sees the FROM NAMED graphs only; everything else that is loaded is hidden.  Without one everything
loaded is visible as it is.  All queries of an engine have one dataset, since what they derive from the background is
shared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etalis_compiler.diagnostics import QueryError
from etalis_compiler.pipeline import Compilation, CompiledQuery

from etalis_py.knowledge import Knowledge
from etalis_py.knowledge.graph_selection import ChosenKnowledge

if TYPE_CHECKING:
    from etalis_compiler.ast import DatasetClause


@dataclass(frozen=True, slots=True)
class Dataset:
    """The graphs of FROM and of FROM NAMED, as written."""

    default: tuple[str, ...]
    named: tuple[str, ...]


def dataset_of(compilation: Compilation) -> Dataset | None:
    """The dataset of a program; None if it has no FROM.  Raises an error if its queries differ."""
    chosen: list[Dataset | None] = []
    for query in compilation.queries:
        clauses = _clauses(query)
        graphs = tuple(sorted({c.iri.spelling for c in clauses if not c.named}))
        named = tuple(sorted({c.iri.spelling for c in clauses if c.named}))
        chosen.append(Dataset(graphs, named) if clauses else None)
        if chosen[-1] != chosen[0]:
            raise _error(query, "the queries of this program have different FROM clauses")
    return chosen[0] if chosen else None


def _clauses(query: CompiledQuery) -> list[DatasetClause]:
    return [clause for clause in query.syntax.dataset if clause.kind == "graph"]


def _error(query: CompiledQuery, message: str) -> QueryError:
    span = next((clause.span for clause in _clauses(query)), query.syntax.span)
    hint = "give all of them the same FROM clauses (or none), or run them in engines of their own"
    return query.source.error("dataset", message, span.start, span.end, hint=hint)


def choose(
    knowledge: Knowledge | None, compilation: Compilation, running: Iterable[Compilation], changes: bool
) -> Knowledge | None:
    """The knowledge for a program: the graphs that its dataset names, or all of them.

    Programs that run already must have the same dataset; the new one then shares their knowledge.
    """
    dataset = dataset_of(compilation)
    for other in running:
        if dataset != dataset_of(other):
            raise _error(compilation.queries[0], "this program has other FROM clauses than those that run already")
        return knowledge
    knowledge = whole(knowledge)  # any part chosen from it was for programs that are gone
    if dataset is None:
        return knowledge
    known = [] if knowledge is None else knowledge.names()
    for query in compilation.queries:
        for clause in _clauses(query):
            if clause.iri.spelling not in known and not (changes and knowledge is not None):
                raise query.source.error(
                    "dataset",
                    f"no graph {clause.iri.spelling} is loaded; there are: {', '.join(known) or 'none'}",
                    clause.span.start,
                    clause.span.end,
                    hint="give its source: Engine(…, named={iri: file}), a file in the FROM of a query that etalis run "
                    "or repl reads, or a graph in a quads file, --background graphs.trig",
                )
    assert knowledge is not None
    return ChosenKnowledge(knowledge, dataset.default, dataset.named)


def whole(knowledge: Knowledge | None) -> Knowledge | None:
    """All knowledge that is loaded, whatever part of it was chosen."""
    return knowledge.base if isinstance(knowledge, ChosenKnowledge) else knowledge
