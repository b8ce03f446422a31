"""The Q-closure of a stream ([EP] §4.2, end; docs/semantics.md, Rules).

[EP]: ``clos_Q(S)`` is the smallest set with S ⊆ clos_Q(S) and Ψ_q(P_q) ⊆ clos_Q(S) for every CONSTRUCT rule q ∈ Q.
With negation that is read instant by instant: what ends earlier is settled; within an instant the rules are decided
stratum by stratum, each to its least fixpoint.  Timeless derived triples become background before the stream starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from etalis_compiler import ast
from etalis_rules.terms import is_iri, is_literal

from etalis_py.events import Event

from .entailment import closed
from .matching import Fact, Scope
from .patterns import Dataset, Place, answers, may_match, scope_of
from .plan import Beginning, Optionally, Plan, Runs, Without, plain_walk
from .records import Record, with_consequences
from .reports import Report, report
from .solutions import AFTER, BEFORE, Instant, is_made
from .strata import Rule, strata

Triple = tuple[str, str, str]
Occurrence = tuple[str, str, str, int, int, str]  # subject, predicate, object, start, end, stream
MOST_IN_AN_INSTANT = 400
MOST_AFTER_THE_END = 40


class Endless(Exception):
    """A derivation that does not end within an instant."""


@dataclass(frozen=True, slots=True)
class Background:
    """Timeless knowledge: the default graph and named graphs by IRI (spellings in angle brackets)."""

    default: frozenset[Triple] | set[Triple] = frozenset()
    named: dict[str, set[Triple]] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """A stream with what is derived from it, and the background with the timeless derived triples."""

    occurrences: dict[Occurrence, Instant]
    background: frozenset[Triple]
    named: dict[str, set[Triple]]
    schema: frozenset[Triple] = frozenset()
    records: dict[Record, Instant] = field(default_factory=dict)

    def place(self, query: ast.Query, policy: str) -> Place:
        """What a query ranges over: its FROM clauses choose among the background graphs."""
        default, named = set(self.background), dict(self.named)
        graphs = [d for d in query.dataset if d.kind == "graph"]
        if graphs:
            default = {t for d in graphs if not d.named for t in self.named.get(d.iri.spelling, ())}
            named = {d.iri.spelling: self.named.get(d.iri.spelling, set()) for d in graphs if d.named}
        everywhere = self._facts(None)
        streams = {stream for *_, stream in self.occurrences if stream}
        dataset = Dataset(
            scope_of(everywhere, closed(default, self.schema)),
            {iri: scope_of({}, closed(triples, self.schema)) for iri, triples in named.items()},
            {iri: Scope(self._facts(iri)) for iri in streams},
            with_consequences(self.records, self.schema),
        )
        return Place(dataset, dataset.default, policy)

    def _facts(self, stream: str | None) -> dict[Fact, Instant]:
        """The occurrences of one stream or, as one set, of all; each with its entailed triples."""
        found: dict[Fact, Instant] = {}
        for (s, p, o, start, end, where), known in self.occurrences.items():
            if stream in (None, where):
                for triple in closed({(s, p, o)}, self.schema) if self.schema else [(s, p, o)]:
                    fact = (*triple, start, end)
                    found[fact] = min(known, found.get(fact, known))
        return found


def occurrences(events: Iterable[Event]) -> dict[Occurrence, Instant]:
    """The stream as a set of triple occurrences (docs/semantics.md, Time); each is known at its end."""
    return {(s, p, o, e.start, e.end, e.stream): e.end for e in events for s, p, o in e.triples}


def reports_of(query: ast.Query, plan: Plan, world: World, policy: str) -> list[Report]:
    """What a query reports over a world."""
    place = world.place(query, policy)
    return report(query, plan, answers(plan, place), place.exists, may_match(plan))


def applied(rule: Rule, rows: Iterable[Report]) -> list[Report]:
    """The solutions to which a CONSTRUCT rule is applied.

    A rule that makes new nodes leaves out a solution that binds a node which would not be there, in this instant,
    without the rule itself: so new nodes do not lead to ever newer ones, and CONSTRUCT { [] ?p ?o } WHERE { ?s ?p ?o }
    gives what it gives in SPARQL, as it does with a blank node for ?s.  (What is made of a solution comes from the
    rules that led to what it binds, not from those that led to what a blank node of the pattern stands for.)
    """
    if not any(isinstance(n, ast.Blank) for t in rule.template for n in (t.subject, t.predicate, t.object)):
        return list(rows)

    def own(row: Report) -> bool:
        return any(rule.index in _makers(term, row.known) for term in (*dict(row.mu).values(), *row.nodes))

    return [row for row in rows if not own(row)]


def _makers(term: str, at: Instant) -> frozenset[int]:
    """The rules that took part in making a node at this instant; the name tells."""
    if not is_made(term):
        return frozenset()
    _, when, rules, _ = term.split(".")
    return frozenset(map(int, rules.split("-"))) if when == repr(at) else frozenset()


def derived(rule: Rule, row: Report) -> frozenset[Triple]:
    """The triples of a template under one solution; those with an unbound variable or no place in RDF are left out.

    A template's blank node is a name made of ⟨rule, μ, start, end⟩ and its label, with the rules that led to it.
    """
    mu = dict(row.mu)
    seed = repr((rule.index, row.mu, row.start, row.end))
    makers = frozenset({rule.index}).union(*(_makers(term, row.known) for term in mu.values()))
    name = f"_:made.{row.known!r}.{'-'.join(map(str, sorted(makers)))}."

    def term(node: ast.Node | ast.Path) -> str:
        if isinstance(node, ast.Var):
            return mu.get(node.name, "")
        if isinstance(node, ast.Blank):
            return name + blake2b(f"{seed} {node.label}".encode(), digest_size=12).hexdigest()
        assert isinstance(node, ast.Term)
        return node.spelling

    triples = ((term(t.subject), term(t.predicate), term(t.object)) for t in rule.template)
    return frozenset((s, p, o) for s, p, o in triples if o and s and not is_literal(s) and is_iri(p))


def closure(rules: Sequence[Rule], world: World) -> World:
    """The world with all that the rules derive."""
    named = frozenset(t for graph in world.named.values() for t in graph)
    order = strata(rules, world.background | named)
    still = World({}, world.background, world.named, world.schema)
    still = _until_settled(still, lambda w: _timeless_round(order, w))
    order = strata(rules, still.background | named)
    known = still
    now = BEFORE
    past_the_end = 0
    while (following := _next_instant(rules, world, known, now)) is not None:
        now = following
        seen = max(now, min(world.occurrences.values()))  # the first events tell when it starts
        arrived = {r: k for r, k in world.records.items() if k == seen}
        known = _extended(known, {o: k for o, k in world.occurrences.items() if k == seen}, arrived)
        for stratum in order:
            known = _until_settled(known, partial(_round, stratum, now))
        past_the_end += now > max(world.occurrences.values())
        if past_the_end > MOST_AFTER_THE_END:
            raise Endless("the rules derive for ever after the end of the stream")
    return known


def _next_instant(rules: Sequence[Rule], world: World, known: World, now: Instant) -> Instant | None:
    """The next time at which something ends, or at which a rule's deadline is over (if nothing prevents it until then).

    At an instant too many nothing is derived.
    """
    times = {k for k in world.occurrences.values() if k > now}
    if times and any(isinstance(part, Beginning) for rule in rules for part in plain_walk(rule.plan)):
        _, start = min((k, start) for (*_, start, _, _), k in world.occurrences.items())
        times |= {start} if now < start else set()
    for rule in rules:
        if now != BEFORE and any(map(_waits, plain_walk(rule.plan))):
            rows = reports_of(rule.query, rule.plan, known, rule.policy)
            times |= {row.known for row in rows if now < row.known < AFTER}
    return min(times, default=None)


def _waits(part: object) -> bool:
    """Whether it may be decided by the clock."""
    if isinstance(part, Runs):
        return part.written.maximal and part.written.gap is not None
    return isinstance(part, Without | Optionally) and bool(part.deadline)


def _until_settled(world: World, step: Callable[[World], World]) -> World:
    size = len(world.occurrences) + len(world.background)
    while True:
        larger = step(world)
        if larger == world:
            return world
        if len(larger.occurrences) + len(larger.background) > size + MOST_IN_AN_INSTANT:
            raise Endless(f"more than {MOST_IN_AN_INSTANT} triples derived in one instant")
        world = larger


def _timeless_round(order: list[list[Rule]], world: World) -> World:
    background = world.background
    for stratum in order:
        for rule in stratum:
            for row in applied(rule, reports_of(rule.query, rule.plan, world, rule.policy)):
                if row.start is None and row.known == BEFORE:
                    background |= derived(rule, row)
    return World(world.occurrences, background, world.named, world.schema, world.records)


def _round(rules: list[Rule], now: Instant, world: World) -> World:
    """One application of the rules of a stratum: what they derive at this instant."""
    made: dict[Occurrence, Instant] = {}
    whole: dict[Record, Instant] = {}
    for rule in rules:
        for row in applied(rule, reports_of(rule.query, rule.plan, world, rule.policy)):
            if row.known == now and row.start is not None and row.end is not None:
                triples = derived(rule, row)
                for s, p, o in triples:
                    made[(s, p, o, row.start, row.end, rule.stream)] = now
                if triples:
                    whole[Record(triples, row.start, row.end, rule.stream, "")] = now
    return _extended(world, made, whole)


def _extended(world: World, more: dict[Occurrence, Instant], whole: dict[Record, Instant]) -> World:
    return World(more | world.occurrences, world.background, world.named, world.schema, whole | world.records)
