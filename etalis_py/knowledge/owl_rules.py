"""The OWL 2 RL rules that a stream needs, as CONSTRUCT rules.

The schema entails consequences of single streamed triples (``schema.Schema``).  An axiom that reverses a triple
(inverses) or joins two of them (transitivity, intersections, restrictions) concludes a new occurrence, whose interval
is the hull of its premises: so it is a rule of the query language, and any of its premises may also be background.

A class without a name (a restriction written with ``[]``) is replaced by its definition.  Equality is concluded but not
substituted: a streamed ``owl:sameAs`` does not rename what was streamed before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from etalis_rules.terms import RDF_TYPE, is_iri

from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.owl import (
    ALL_VALUES,
    CHAIN,
    FIRST,
    FUNCTIONAL,
    HAS_VALUE,
    INTERSECTION,
    INVERSE_FUNCTIONAL,
    INVERSE_OF,
    NIL,
    ON_PROPERTY,
    REST,
    SAME_AS,
    SOME_VALUES,
    SYMMETRIC,
    THING,
    TRANSITIVE,
)
from etalis_py.knowledge.schema_closure import SUB_CLASS_OF

Pattern = tuple[str, str, str]
"""A triple of terms and variables, which begin with a question mark."""


@dataclass(frozen=True, slots=True)
class OwlRule:
    """Where ``body`` holds, ``head`` does; ``things`` are no literals, and ``different`` are not the same term."""

    head: Pattern
    body: tuple[Pattern, ...]
    things: tuple[str, ...] = ()
    different: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text of a CONSTRUCT query without prologue."""
        tests = [f"!sameTerm({', '.join(self.different)})"] if self.different else []
        tests += [f"!isLiteral({name})" for name in self.things]
        condition = f" FILTER({' && '.join(tests)})" if tests else ""
        body = " . ".join(map(" ".join, self.body))
        return f"CONSTRUCT {{ {' '.join(self.head)} }} WHERE {{ {body}{condition} }}"


def owl_rules(closed: Graph) -> list[OwlRule]:
    """The rules for a closed graph, sorted by text.

    >>> print(owl_rules(Graph([("<urn:in>", INVERSE_OF, "<urn:holds>")]))[0])
    CONSTRUCT { ?y <urn:holds> ?x } WHERE { ?x <urn:in> ?y FILTER(!isLiteral(?y)) }
    """
    return sorted({*_property_rules(closed), *_class_rules(closed)}, key=str)


def construct_rules(closed: Graph) -> list[str]:
    """The texts of the rules."""
    return list(map(str, owl_rules(closed)))


def _property_rules(g: Graph) -> Iterator[OwlRule]:
    x, y, z = "?x", "?y", "?z"
    for pair in g.pairs(INVERSE_OF):
        if all(map(is_iri, pair)):
            for p, q in (pair, pair[::-1]):
                yield OwlRule((y, q, x), ((x, p, y),), (y,))
    for p in filter(is_iri, g.subjects(RDF_TYPE, SYMMETRIC)):
        yield OwlRule((y, p, x), ((x, p, y),), (y,))
    for p in filter(is_iri, g.subjects(RDF_TYPE, TRANSITIVE)):
        yield OwlRule((x, p, z), ((x, p, y), (y, p, z)))
    for p in filter(is_iri, g.subjects(RDF_TYPE, FUNCTIONAL)):
        yield OwlRule((y, SAME_AS, z), ((x, p, y), (x, p, z)), (y, z), (y, z))
    for p in filter(is_iri, g.subjects(RDF_TYPE, INVERSE_FUNCTIONAL)):
        yield OwlRule((x, SAME_AS, z), ((x, p, y), (z, p, y)), (), (x, z))
    for p, cell in g.pairs(CHAIN):
        steps = _members(g, cell)
        if is_iri(p) and steps and all(map(is_iri, steps)):
            body = tuple((f"?x{n}", step, f"?x{n + 1}") for n, step in enumerate(steps))
            yield OwlRule(("?x0", p, f"?x{len(steps)}"), body)


def _class_rules(g: Graph) -> Iterator[OwlRule]:
    """Rules that conclude a class from its definition, and rules from a class to what its restriction demands."""
    for c in dict.fromkeys([*(c for c, _ in g.pairs(ON_PROPERTY)), *(c for c, _ in g.pairs(INTERSECTION))]):
        names = [c] if is_iri(c) else [d for d in g.objects(c, SUB_CLASS_OF) if is_iri(d)]
        for body in _definitions(g, c, "?x", frozenset()):
            for name in names:
                yield OwlRule(("?x", RDF_TYPE, name), body)
        below = [c] if is_iri(c) else [d for d in g.subjects(SUB_CLASS_OF, c) if is_iri(d)]
        for p, name in itertools.product(filter(is_iri, g.objects(c, ON_PROPERTY)), below):
            member = ("?x", RDF_TYPE, name)
            for value in g.objects(c, HAS_VALUE):
                if not value.startswith("_:"):
                    yield OwlRule(("?x", p, value), (member,))
            for d in g.objects(c, ALL_VALUES):
                for above in [d] if is_iri(d) else filter(is_iri, g.objects(d, SUB_CLASS_OF)):
                    yield OwlRule(("?y", RDF_TYPE, above), (member, ("?x", p, "?y")), ("?y",))


def _definitions(g: Graph, c: str, x: str, above: frozenset[str]) -> Iterator[tuple[Pattern, ...]]:
    """The patterns that, by a definition of c, imply that ``x`` is a c."""
    if c in above:  # a definition that uses itself adds nothing
        return
    above |= {c}
    for p in filter(is_iri, g.objects(c, ON_PROPERTY)):
        for value in g.objects(c, HAS_VALUE):
            if not value.startswith("_:"):
                yield ((x, p, value),)
        for d in g.objects(c, SOME_VALUES):
            if d == THING:
                yield ((x, p, f"{x}v"),)
            else:
                for part in _is_a(g, d, f"{x}v", above):
                    yield ((x, p, f"{x}v"), *part)
    for cell in g.objects(c, INTERSECTION):
        parts = [list(_is_a(g, d, f"{x}{n}", above)) for n, d in enumerate(_members(g, cell))]
        for choice in itertools.product(*parts):
            if choice:
                # The members are about the same thing: only their inner variables differ.
                yield tuple((x if s == f"{x}{n}" else s, p, o) for n, part in enumerate(choice) for s, p, o in part)


def _is_a(g: Graph, c: str, x: str, above: frozenset[str]) -> Iterator[tuple[Pattern, ...]]:
    if is_iri(c):
        yield ((x, RDF_TYPE, c),)
    else:
        yield from _definitions(g, c, x, above)


def _members(g: Graph, cell: str) -> list[str]:
    """The members of an RDF list; none if it is not a list."""
    members: list[str] = []
    seen: set[str] = set()
    while cell != NIL:
        first, rest = list(g.objects(cell, FIRST)), list(g.objects(cell, REST))
        if cell in seen or len(first) != 1 or len(rest) != 1:
            return []
        seen.add(cell)
        members += first
        cell = rest[0]
    return members
