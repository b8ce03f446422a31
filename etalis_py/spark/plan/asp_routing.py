"""Plans the parts of a job for answer-set programs that read events: the triples they get, and who reads their offers.

In every instant with a triple that a program reads, it is solved again, given all that happened before.  So it needs
all of these triples in one shard, and every query that reads the triples it offers runs in that shard.  If all programs
have a key, each value of it has its own program in the shard of that value; a query that reads offers may run there if
it is sharded by the same term.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etalis_compiler.partition import POSITIONS
from etalis_compiler.shards import NOTHING_OFFERED, Offered
from etalis_compiler.stratify import feeds
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import leaves

from etalis_py.events import Triple
from etalis_py.knowledge import Knowledge

if TYPE_CHECKING:
    from etalis_py.knowledge.asp_interface import AspProgram

Route = tuple[ir.Leaf, str]
"""A leaf, and the position that routes it; empty: it goes to the only shard."""


@dataclass(frozen=True, slots=True)
class Offers:
    """``templates`` of the triples that programs offer, in the default stream; ``routes`` of those that they read.

    ``keyed`` has the same by key, if all programs have one.  ``reason`` says why there is one shard, ``past`` why there
    are no slices of time.
    """

    templates: tuple[ir.Template, ...] = ()
    routes: tuple[Route, ...] = ()
    reason: str = ""
    past: str = ""
    keyed: Offered = NOTHING_OFFERED

    @property
    def by_key(self) -> bool:
        """Whether all programs have a key."""
        return bool(self.keyed.templates)

    def may_read(self, template: ir.Template, stream: str) -> bool:
        """Whether a program may take a triple of this template for one of its events."""
        return any(feeds(template, stream, leaf) for leaf, _ in self.keyed.reads)

    def reach(self, nodes: Iterable[ir.Node]) -> bool:
        """Whether one of these nodes may see an offer."""
        return any(feeds(template, "", leaf) for leaf in leaves(nodes) for template in self.templates)


NO_OFFERS = Offers()


def offers_of(knowledge: Knowledge | None) -> Offers:
    """The triples that answer-set programs of the background read and offer, if they read events."""
    programs = () if knowledge is None else knowledge.programs
    if not programs:
        return NO_OFFERS
    names = ", ".join(p.source.rsplit("/", 1)[-1] for p in programs)
    one = len(programs) == 1
    named = f"the answer-set program{'' if one else 's'} {names}"
    triples = [(triple, p.key) for p in programs for triple in (_said_of_none(p), *(o.pattern for o in p.offers))]
    templates = [ir.Template(*map(_term, triple)) for triple, _ in triples]
    # Any triple of these predicates may make a program be solved again.
    routes = tuple(
        (_leaf("s", predicate or "p", "o"), "")
        for predicate in sorted({x or "" for p in programs for x in p.predicates})
    )
    reason = f"{named} see{'s' if one else ''} all events together"
    past = f"{named} draw{'s' if one else ''} on all the past"
    if not all(p.key for p in programs):
        return Offers(tuple(templates), routes, reason, past)
    keyed = Offered(
        tuple((template, _held(triple, key)) for template, (triple, key) in zip(templates, triples, strict=True)),
        tuple((_leaf(*read), max(_held(read, p.key))) for p in programs for read in p.patterns),
        f"it uses what {named} offer{'s' if one else ''}, and its key is not that of the program",
    )
    return Offers(tuple(templates), routes, keyed.reason, past, keyed)


def _said_of_none(program: AspProgram) -> Triple:
    """The triple by which a program states that it has no answer set."""
    return program.inconsistency_for(program.key) if program.key else program.inconsistency


def _held(triple: Triple, key: str) -> frozenset[str]:
    """The positions that hold the key."""
    return frozenset(position for position, term in zip(POSITIONS, triple, strict=True) if term == key)


def _term(term: str) -> alg.Var | alg.Const:
    return alg.Const(term) if term[0] in '<"_' else alg.Var(term)


def _leaf(s: str, p: str, o: str) -> ir.Leaf:
    """The triples of a pattern."""
    return ir.Leaf((), _term(s), _term(p), _term(o))


__all__ = ["NO_OFFERS", "Offers", "Route", "offers_of"]
