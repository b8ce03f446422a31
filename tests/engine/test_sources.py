"""What evaluation looks up: for any bound positions exactly the triples that have these terms there."""

from __future__ import annotations

from itertools import product

import pytest

from etalis_py.knowledge import load
from etalis_py.sparql import BackgroundSource, HistorySource, OccurrenceLog
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

A, B, P, Q = "<urn:a>", "<urn:b>", "<urn:p>", "<urn:q>"
TRIPLES = [(A, P, A), (A, P, B), (B, P, B), (A, Q, B)]
LOOKUPS = list(product((A, B, None), (P, Q, None), (A, B, None)))
BOUND = ["".join(name for name, term in zip("spo", lookup, strict=True) if term) or "-" for lookup in LOOKUPS]


def wanted(lookup: tuple[str | None, str | None, str | None]) -> list[tuple[str, str, str]]:
    return sorted(t for t in TRIPLES if all(x is None or x == y for x, y in zip(lookup, t, strict=True)))


def background(*triples: tuple[str, str, str]) -> BackgroundSource:
    return BackgroundSource(load([list(triples)], entailment="rdf", cache=False))


@pytest.mark.parametrize("lookup", LOOKUPS, ids=BOUND)
def test_the_background_has_what_is_asked_for(lookup: tuple[str | None, str | None, str | None]) -> None:
    matches = background(*TRIPLES).match(*lookup, "", None)
    assert sorted(matches) == [(*triple, TIMELESS_START, TIMELESS_END) for triple in wanted(lookup)]


@pytest.mark.parametrize("lookup", LOOKUPS, ids=BOUND)
def test_a_history_has_what_is_asked_for(lookup: tuple[str | None, str | None, str | None]) -> None:
    log = OccurrenceLog()
    log.add(1, 2, TRIPLES)
    matches = HistorySource(background(), log).match(*lookup, "", None)
    assert sorted(matches) == [(*triple, 1, 2) for triple in wanted(lookup)]


@pytest.mark.parametrize("lookup", [lookup for lookup in LOOKUPS if lookup[1] is not None])
def test_the_order_of_joins_rests_on_exact_counts_where_the_predicate_is_bound(
    lookup: tuple[str | None, str | None, str | None],
) -> None:
    assert background(*TRIPLES).count(*lookup, None) == len(wanted(lookup))
