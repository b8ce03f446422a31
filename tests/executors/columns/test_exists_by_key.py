"""MINUS and EXISTS without a condition need no pairs in columns: the first goal of a key tells if there is one."""

from __future__ import annotations

import random

import pytest
from etalis_compiler.parser import parse

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns.store import ColumnGoalStore
from etalis_py.kernel.batch import Batch
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import agree
from tests.oracle.strategies import Case

SECOND = 1_000_000
QUERIES = [
    "SELECT ?s ?x WHERE { ?s <urn:p> ?x FILTER EXISTS { ?s <urn:q> ?y } }",
    "SELECT ?s ?x WHERE { ?s <urn:p> ?x FILTER NOT EXISTS { ?s <urn:q> ?y . ?y <urn:r> ?z } }",
    "SELECT ?s ?x WHERE { ?s <urn:p> ?x MINUS { ?s <urn:q> ?x } }",
    "SELECT ?s ?x WHERE { ?s <urn:p> ?x MINUS { ?t <urn:q> ?y } }",
    "SELECT ?s ?x WHERE { { ?s <urn:p> ?x } SEQ { ?s <urn:r> ?z } FILTER (EXISTS { ?s <urn:q> ?y } || ?x = <urn:a0>) }",
    "SELECT ?s ?x WHERE { ?s <urn:p> ?x FILTER EXISTS { ?t <urn:q> ?y } }",
]


def events(drawn: random.Random, number: int) -> list[Event]:
    """Several in some instants, some of which began earlier."""
    times = sorted(drawn.randrange(number // 2) for _ in range(number))
    triples = [
        (f"<urn:a{drawn.randrange(4)}>", f"<urn:{drawn.choice('pqr')}>", f"<urn:a{drawn.randrange(4)}>") for _ in times
    ]
    made = [
        Event((t - drawn.choice((0, 0, 2))) * SECOND, t * SECOND, (x,)) for t, x in zip(times, triples, strict=True)
    ]
    return list(dict.fromkeys(made))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", seeds(3))
def test_drawn_partners_by_the_definition(seed: int, query: str) -> None:
    items, program = events(random.Random(f"{seed} {query}"), 40), compile(query)
    assert agree(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9)) is None
    judge.agree(Case(parse(query), tuple(items)), executor="columns")


@pytest.mark.parametrize("query", QUERIES[:4])
def test_no_pairs_are_listed(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the cost would grow with the square of the stream."""
    items, query = events(random.Random(5), 40), query.replace(" . ?y <urn:r> ?z", "")
    rows = Engine(query, executor="rows")
    expected = [*rows.push_all(items), *rows.close()]
    listed: list[int] = []

    def pairs(self: ColumnGoalStore, relation: int, *given: object) -> object:
        listed.append(relation)
        return iter(())

    monkeypatch.setattr(ColumnGoalStore, "pairs", pairs)
    engine = Engine(query, executor="columns")
    found = [*engine.push_all(Batch(items, items[-1].end).columns), *engine.close()]
    assert [m.id for m in found] == [m.id for m in expected]
    assert not listed
