"""What evaluation looks up: for any bound positions exactly the triples that have these terms there."""

from __future__ import annotations

from itertools import product

import pytest

from etalis_py.executors.windows.source import StoredGraphs, TimedDataset, WindowSource
from etalis_py.knowledge import load
from etalis_py.sparql import BackgroundSource, EventSource, HistorySource, OccurrenceLog, Source
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


def every_source() -> dict[str, Source]:
    """Sources whose background and occurrences have triples in common."""
    known = load([TRIPLES[:2]], entailment="rdf", cache=False)
    stored, background = StoredGraphs(known), BackgroundSource(known)
    log = OccurrenceLog()
    log.add(1, 2, TRIPLES[1:3], "<urn:s>")
    log.add(2, 3, TRIPLES[1:])
    return {
        "background": background,
        "history": HistorySource(background, log),
        "history up to a time": HistorySource(background, log, 2),
        "event": EventSource(background, dict.fromkeys(TRIPLES[1:3]), 1, 2),
        "event that says what is known": EventSource(background, dict.fromkeys(TRIPLES[:2]), 1, 2),
        "window": WindowSource(stored, {}),
        "dataset": TimedDataset(stored, {}),
    }


@pytest.mark.parametrize("stream", ["", "<urn:s>"])
@pytest.mark.parametrize("graph", [None, "<urn:g>"])
@pytest.mark.parametrize("name", every_source())
def test_the_intervals_at_a_node_are_those_of_all_nodes(name: str, graph: str | None, stream: str) -> None:
    source = every_source()[name]
    nodes = list(source.nodes(stream, graph))
    for node in (A, B, "<urn:elsewhere>"):
        assert sorted(source.intervals(node, stream, graph)) == sorted((a, b) for x, a, b in nodes if x == node)
