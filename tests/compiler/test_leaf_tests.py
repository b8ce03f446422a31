"""What leaves ask of triples, against the definition: a triple matches if every position holds its term."""

from __future__ import annotations

from itertools import product

from etalis_rules.algebra import Const, Var
from etalis_rules.leaf_tests import Among, OfStream, Same, implies, may_overlap, predicates_of
from etalis_rules.leaf_tests import tests_of as asked_of
from etalis_rules.program import Any, Leaf, NoneOf, OneOf, Position
from hypothesis import given
from hypothesis import strategies as st

TERMS = ("<a>", "<b>", "<c>")
STREAMS = ("<s>", "<t>")
TRIPLES = list(product(product(TERMS, repeat=3), STREAMS))
positions = st.sampled_from(
    [
        *(Any(), Var("x"), Var("y"), Const("<a>"), Const("<b>"), OneOf(("<a>", "<b>")), OneOf(("<b>", "<c>"))),
        *(NoneOf(("<a>",)), NoneOf(("<a>", "<b>"))),
    ]
)
leaves = st.builds(Leaf, st.just(()), positions, positions, positions, st.sampled_from(("", "<s>")))


def holds(position: Position, term: str) -> bool:
    match position:
        case Const(own):
            return term == own
        case OneOf(terms):
            return term in terms
        case NoneOf(terms):
            return term not in terms
    return True


def matches(leaf: Leaf, triple: tuple[str, str, str], stream: str) -> bool:
    """By definition, with equal terms for equal variables."""
    at = (leaf.subject, leaf.predicate, leaf.object)
    if leaf.stream not in ("", stream) or not all(map(holds, at, triple)):
        return False
    bound = [(p.name, term) for p, term in zip(at, triple, strict=True) if isinstance(p, Var)]
    return len(dict(bound)) == len(set(bound))


@given(leaves)
def test_the_tests_are_the_definition(leaf: Leaf) -> None:
    for triple, stream in TRIPLES:
        terms = dict(zip(("subject", "predicate", "object"), triple, strict=True))
        passed = []
        for test in asked_of(leaf):
            match test:
                case Among(place, some, negated):
                    passed.append((terms[place] in some) != negated)
                case Same(place, other):
                    passed.append(terms[place] == terms[other])
                case OfStream(name):
                    passed.append(stream == name)
        assert all(passed) == matches(leaf, triple, stream)


@given(leaves, leaves)
def test_what_is_implied_holds(narrow: Leaf, wide: Leaf) -> None:
    if implies(narrow, wide):
        assert all(matches(wide, *row) for row in TRIPLES if matches(narrow, *row))


@given(leaves, leaves)
def test_leaves_that_share_a_triple_may_overlap(one: Leaf, other: Leaf) -> None:
    shared = (
        matches(one, triple, s) and matches(other, triple, t) for (triple, s), (_, t) in product(TRIPLES, TRIPLES)
    )
    assert may_overlap(one, other) or not any(shared)


@given(leaves)
def test_a_leaf_implies_itself_and_sees_its_predicates(leaf: Leaf) -> None:
    assert implies(leaf, leaf)
    predicates = predicates_of(leaf)
    seen = {triple[1] for triple, stream in TRIPLES if matches(leaf, triple, stream)}
    assert predicates is None or seen <= set(predicates)


def test_an_entailed_leaf_may_see_any_predicate() -> None:
    leaf = Leaf((), Var("x"), Const("<p>"), Var("y"), entailed=True)
    assert predicates_of(leaf) is None
    assert implies(Leaf((), Any(), Const("<q>"), Any()), leaf)
    assert not implies(leaf, Leaf((), Var("x"), Const("<p>"), Var("y")))
