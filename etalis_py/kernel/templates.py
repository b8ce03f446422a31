"""The triples that a CONSTRUCT template makes from a solution, with their blank nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.templates import new_nodes
from etalis_rules.terms import UNBOUND, is_triple_of

from etalis_py.events import Triple
from etalis_py.kernel.batch import Row
from etalis_py.values.errors import SparqlError
from etalis_py.values.functions.terms import triple

Fresh = Callable[[Row], tuple[str, ...]]


def template_triples(
    output: ir.Output, columns: tuple[str, ...], fresh: Callable[[Row], dict[str, str]] | None
) -> Callable[[Row], tuple[Triple, ...]]:
    """A function from a row to the template's triples; a triple that would not be RDF is left out (SPARQL §16.2)."""

    def make(row: Row) -> tuple[Triple, ...]:
        terms = dict(zip(columns, row[2:], strict=False))
        if fresh is not None:
            terms |= fresh(row)
        triples = tuple(alg.triple_in(terms, t) for t in output.template)
        return tuple(dict.fromkeys(t for t in triples if is_triple_of(*t)))

    return make


@dataclass(frozen=True, slots=True)
class Making:
    """A CONSTRUCT rule that makes new nodes, and what it needs in order to terminate.

    To guarantee termination, the rule ignores solutions that contain a node which this same rule created in this
    instant, directly or by way of other rules.  ``labels`` are the blank node labels of its template, ``places`` the
    positions in a row of the variables that the query projects, ``hidden`` those of the blank nodes in its pattern.  Of
    the terms of a solution, a new node depends only on those at ``places``; so it inherits the rules that led to these,
    but not the rules that led to the terms at ``hidden``.
    """

    labels: tuple[str, ...]
    nodes: Fresh
    rule: str
    places: tuple[int, ...]
    hidden: tuple[int, ...]
    makers: dict[str, Any]
    """For each node that was made in this instant, the rules that led to it."""

    def applied(self, rows: list[Row]) -> list[Row]:
        """The solutions without nodes that this rule led to; the rule ignores the others."""
        makers, rule, places = self.makers, self.rule, (*self.places, *self.hidden)
        if not makers:
            return rows
        return [x for x in rows if not any(rule in makers.get(x[i], ()) for i in places)]

    def fresh(self, x: Row) -> tuple[str, ...]:
        """The nodes that the rule makes for a solution."""
        rules = frozenset((self.rule,)).union(*(self.makers.get(x[i], ()) for i in self.places))
        nodes = self.nodes(x)
        self.makers.update((node, rules) for node in nodes if node != UNBOUND)
        return nodes


def making(output: ir.Output, columns: tuple[str, ...], makers: dict[str, Any]) -> Making | None:
    """The ``Making`` of a rule, or None if its template has no blank nodes.

    ``makers`` is shared by all rules and emptied when the instant is over.
    """
    blanks = fresh_nodes_of(output, columns)
    if blanks is None:
        return None
    places = tuple(2 + columns.index(v) for v in sorted(output.variables) if v in columns)
    hidden = tuple(2 + i for i, v in enumerate(columns) if v.startswith("_:"))
    return Making(*blanks, output.query, places, hidden, makers)


def fresh_nodes_of(output: ir.Output, columns: tuple[str, ...]) -> tuple[tuple[str, ...], Fresh] | None:
    """The names of what a template makes new for each solution, and a function from a solution to that.

    These are its blank nodes, then the triple terms that hold them, the inner ones first.
    """
    labels, terms = new_nodes(output.template)
    if not labels:
        return None
    # μ is the part of the solution that the query projects: its source may have more columns.
    order = [2 + columns.index(v) for v in sorted(output.variables) if v in columns]

    def fresh(x: Row) -> tuple[str, ...]:
        key = (output.query, x[0], x[1], *(x[i] for i in order))
        return tuple(fresh_node(label, *key) for label in labels)

    if not terms:
        return labels, fresh

    def with_terms(x: Row) -> tuple[str, ...]:
        values = dict(zip(columns, x[2:], strict=False)) | dict(zip(labels, fresh(x), strict=True))
        for term in terms:
            values[term.name] = _triple(*(alg.term_in(values, part) for part in term.parts))
        return tuple(values[n] for n in names)

    names = (*labels, *(t.name for t in terms))
    return names, with_terms


def _triple(subject: str, predicate: str, object: str) -> str:
    """The triple term; unbound where TRIPLE is an error."""
    try:
        return triple(subject, predicate, object)
    except SparqlError:
        return UNBOUND


def fresh_node(label: str, *key: object) -> str:
    """The blank node of a template for one solution: a hash of the rule, μ and the interval."""
    return "_:d" + blake2b(repr((label, *key)).encode(), digest_size=12).hexdigest()
