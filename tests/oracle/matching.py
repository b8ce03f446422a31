"""Basic graph patterns and property paths over a set of triple occurrences and background triples.

[EP] §4.2: ⟨μ, tα, tω⟩ is a solution for BGP(list of triples) exactly if μ's domain are the variables of the list and
for the triples it makes there are occurrences in S with tα the least start and tω the greatest end.  A
triple pattern may match a background triple instead, which is neutral for both; the solutions are a *set* over all
variables, blank nodes among them.

A path is the least relation of ⟨x, y, hull⟩ under that join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product

from etalis_compiler import ast
from etalis_rules.terms import triple_parts

from .solutions import BEFORE, Bindings, Instant, Solution, bindings, highest, lowest

Fact = tuple[str, str, str, int | None, int | None]
Link = tuple[str, str, int | None, int | None]
Relation = dict[Link, Instant]
Item = tuple[ast.Node, "ast.Var | ast.Term | ast.Path", ast.Node]


@dataclass(frozen=True)
class Scope:
    """What a triple pattern may match: facts (triples with an interval or without) and when they are known."""

    facts: dict[Fact, Instant]

    def by(self, outer: Solution) -> Scope:
        """What has ended and is known by the end of a solution."""
        ended = {f: known for f, known in self.facts.items() if f[4] is None or f[4] <= outer.end}  # type: ignore[operator]
        return Scope({f: known for f, known in ended.items() if known <= outer.known})

    def in_time(self) -> Scope:
        """What was known when it ended."""
        return Scope({f: known for f, known in self.facts.items() if f[4] is None or known <= f[4]})

    @cached_property
    def nodes(self) -> Relation:
        """The zero-length steps: every node with the intervals of its occurrences."""
        found: Relation = {}
        for (s, _, o, start, end), known in self.facts.items():
            for n in (s, o):
                _add(found, (n, n, start, end), known)
        return found


def _add(relation: Relation, link: Link, known: Instant) -> None:
    relation[link] = min(known, relation.get(link, known))


def match_block(patterns: Iterable[ast.TriplePattern], scope: Scope) -> list[Solution]:
    """The solutions of adjacent triple patterns; alternatives of paths add up, each on its own is a set."""
    fresh = count()
    choices = [_expanded(p.subject, p.predicate, p.object, fresh) for p in patterns]
    found: list[Solution] = []
    for choice in product(*choices):
        found += _match_items([item for items in choice for item in items], scope)
    return found


def _expanded(s: ast.Node, path: ast.Var | ast.Term | ast.Path, o: ast.Node, fresh: count[int]) -> list[list[Item]]:
    """SPARQL §18.2.2.4: ``/`` and ``^`` become triples with fresh variables, ``|`` alternatives; the rest stays."""
    match path:
        case ast.PathIri(iri):
            return [[(s, ast.Term(iri), o)]]
        case ast.PathInverse(inner):
            return _expanded(o, inner, s, fresh)
        case ast.PathAlternative(parts):
            return [items for part in parts for items in _expanded(s, part, o, fresh)]
        case ast.PathSequence(parts):
            stops = [s, *(ast.Blank(f"path {next(fresh)}") for _ in parts[1:]), o]
            steps = [_expanded(a, part, b, fresh) for a, part, b in zip(stops, parts, stops[1:], strict=False)]
            return [[item for items in choice for item in items] for choice in product(*steps)]
        case ast.PathNegated(forward, inverse) if forward and inverse:
            return [[(s, ast.PathNegated(forward, ()), o)], [(s, ast.PathNegated((), inverse), o)]]
    return [[(s, path, o)]]


def _match_items(items: list[Item], scope: Scope) -> list[Solution]:
    partial: dict[tuple[Bindings, int | None, int | None], Instant] = {((), None, None): BEFORE}
    for subject, predicate, object_ in items:
        if isinstance(predicate, (ast.Var, ast.Term)):
            pattern: tuple[ast.Node, ...] = (subject, predicate, object_)
            rows = [((s, p, o), start, end, known) for (s, p, o, start, end), known in scope.facts.items()]
        else:
            pattern = (subject, object_)
            constants = {n.spelling for n in pattern if isinstance(n, ast.Term)}
            links = relation(predicate, scope, constants)
            rows = [((x, y), start, end, known) for (x, y, start, end), known in links.items()]
        after: dict[tuple[Bindings, int | None, int | None], Instant] = {}
        for (mu, start, end), known in partial.items():
            for terms, start2, end2, known2 in rows:
                extended = _unified(dict(mu), pattern, terms)
                if extended is not None:
                    key = (bindings(extended), lowest(start, start2), highest(end, end2))
                    both = max(known, known2)
                    after[key] = min(both, after.get(key, both))
        partial = after
    return [
        Solution(
            tuple((v, t) for v, t in mu if v[0] != " "), start, end, known, frozenset(t for v, t in mu if v[0] == " ")
        )
        for (mu, start, end), known in partial.items()
    ]


def _unified(mu: dict[str, str], pattern: tuple[ast.Node, ...], terms: tuple[str, ...]) -> dict[str, str] | None:
    """μ extended so that the pattern becomes the terms; blank nodes are variables whose names start with a space."""
    for node, term in zip(pattern, terms, strict=True):
        if isinstance(node, ast.Term):
            if node.spelling != term:
                return None
        elif isinstance(node, ast.TripleTerm):
            inner = triple_parts(term) if term.startswith("<<(") else None
            extended = inner and _unified(mu, (node.subject, node.predicate, node.object), inner)
            if extended is None:
                return None
            mu = extended
        else:
            name = node.name if isinstance(node, ast.Var) else " " + node.label
            if mu.setdefault(name, term) != term:
                return None
    return mu


def relation(path: ast.Path, scope: Scope, constants: set[str]) -> Relation:
    """The set of ⟨x, y, hull⟩ that a path denotes; ``constants`` are the ends that are written as terms."""
    match path:
        case ast.PathIri(iri):
            return _links(scope, lambda p: p == iri)
        case ast.PathInverse(inner):
            return {(y, x, a, b): k for (x, y, a, b), k in relation(inner, scope, constants).items()}
        case ast.PathSequence(parts):
            found = relation(parts[0], scope, constants)
            for part in parts[1:]:
                found = _composed(found, relation(part, scope, constants))
            return found
        case ast.PathAlternative(parts):
            return _united(relation(part, scope, constants) for part in parts)
        case ast.PathNegated(forward, inverse):
            ways = []
            if forward or not inverse:
                ways.append(_links(scope, lambda p: p not in forward))
            if inverse:
                back = _links(scope, lambda p: p not in inverse)
                ways.append({(y, x, a, b): k for (x, y, a, b), k in back.items()})
            return _united(ways)
        case ast.PathRepeat(inner, mark):
            step = relation(inner, scope, constants)
            more = step if mark == "?" else _closed(step)
            if mark == "+" and not _may_be_empty(inner):
                return more
            # SPARQL §18.4: ALP visits a node once, so a way back to a constant adds nothing to its zero-length step.
            away = {(x, y, a, b): k for (x, y, a, b), k in more.items() if x != y or x not in constants}
            return _united([_zero(scope, constants), away])
    raise TypeError(f"not a path: {path!r}")


def _may_be_empty(path: ast.Path) -> bool:
    """Whether the path has zero-length steps."""
    match path:
        case ast.PathRepeat(inner, mark):
            return mark != "+" or _may_be_empty(inner)
        case ast.PathInverse(inner):
            return _may_be_empty(inner)
        case ast.PathSequence(parts):
            return all(map(_may_be_empty, parts))
        case ast.PathAlternative(parts):
            return any(map(_may_be_empty, parts))
    return False


def _links(scope: Scope, wanted: object) -> Relation:
    found: Relation = {}
    for (s, p, o, start, end), known in scope.facts.items():
        if wanted(p):  # type: ignore[operator]
            _add(found, (s, o, start, end), known)
    return found


def _zero(scope: Scope, constants: set[str]) -> Relation:
    """A node's zero-length step has the interval of its occurrence; that of a constant is timeless."""
    found = {link: known for link, known in scope.nodes.items() if link[0] not in constants}
    return found | {(c, c, None, None): BEFORE for c in constants}


def _united(relations: Iterable[Relation]) -> Relation:
    found: Relation = {}
    for each in relations:
        for link, known in each.items():
            _add(found, link, known)
    return found


def _composed(left: Relation, right: Relation) -> Relation:
    found: Relation = {}
    for (x, y, a, b), k in left.items():
        for (y2, z, a2, b2), k2 in right.items():
            if y == y2:
                _add(found, (x, z, lowest(a, a2), highest(b, b2)), max(k, k2))
    return found


def _closed(step: Relation) -> Relation:
    """The least R with step ⊆ R and R ∘ step ⊆ R."""
    found = dict(step)
    while True:
        larger = _united([found, _composed(found, step)])
        if larger == found:
            return found
        found = larger
