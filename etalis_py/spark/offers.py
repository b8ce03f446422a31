"""What answer-set programs that read events mean for the parts of a job: what they are sent, and who may see them.

At every instant in which a triple occurs that a program reads, it says anew what is true in it, of all that happened
before.  So it needs all of these triples in one shard, and what sees an offer runs in that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from etalis_compiler.stratify import feeds
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.knowledge import Knowledge

Route = tuple[ir.Leaf, str]
"""A leaf, and the position that routes it; empty: to the only shard."""


@dataclass(frozen=True, slots=True)
class Offers:
    """``templates`` of the triples that programs offer, in the default stream; ``routes`` of those that they read."""

    templates: tuple[ir.Template, ...] = ()
    routes: tuple[Route, ...] = ()
    reason: str = ""

    def reach(self, nodes: Iterable[ir.Node]) -> bool:
        """May one of these nodes see an offer?"""
        leaves = [node for node in nodes if isinstance(node, ir.Leaf)]
        return any(feeds(template, "", leaf) for leaf in leaves for template in self.templates)


NO_OFFERS = Offers()


def offers_of(knowledge: Knowledge | None) -> Offers:
    """What the programs of the background that read events read and offer."""
    programs = () if knowledge is None else knowledge.programs
    if not programs:
        return NO_OFFERS
    triples = [triple for p in programs for triple in (p.inconsistency, *(offered.pattern for offered in p.offers))]
    names = ", ".join(p.source.rsplit("/", 1)[-1] for p in programs)
    one = len(programs) == 1
    return Offers(
        tuple(ir.Template(*map(_term, triple)) for triple in triples),
        tuple((_leaf(predicate), "") for predicate in sorted({x or "" for p in programs for x in p.predicates})),
        f"the answer-set program{'' if one else 's'} {names} see{'s' if one else ''} all events together",
    )


def _term(term: str) -> alg.Var | alg.Const:
    return alg.Const(term) if term[0] in '<"_' else alg.Var(term)


def _leaf(predicate: str) -> ir.Leaf:
    """All triples of a predicate, or all: with any of them a program is asked again."""
    return ir.Leaf((), alg.Var("s"), alg.Const(predicate) if predicate else alg.Var("p"), alg.Var("o"))


__all__ = ["NO_OFFERS", "Offers", "Route", "offers_of"]
