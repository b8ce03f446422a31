"""OPTIONAL inside WITHIN: partners that are too old are not shown, but a left that has one is not alone.

So each key keeps its first partner, and those within the window.
"""

from __future__ import annotations

import random

import pytest
from etalis_compiler.parser import parse

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import node_operators
from etalis_py.executors.rows.generate import blocks
from etalis_py.kernel.batch import Batch
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import agree, batches
from tests.executors.columns.test_exists_by_key import events
from tests.oracle.strategies import Case

SECOND = 1_000_000
BY_KEY = [
    "SELECT * { { ?s <urn:p> ?x OPTIONAL { ?s <urn:q> ?y } } WITHIN PT4S }",
    "SELECT * { { ?s <urn:p> ?x OPTIONAL { ?t <urn:q> ?y } } WITHIN PT3S FILTER (!BOUND(?y) || ?y != ?x) }",
    "SELECT * { { { ?s <urn:p> ?x } OPTIONALSEQ { ?s <urn:q> ?y } } WITHIN PT4S }",
    "SELECT * { { { { ?s <urn:p> ?x } SEQ { ?s <urn:r> ?z } } OPTIONAL { ?s <urn:q> ?y } } WITHIN PT5S }",
    "SELECT * { { { ?s <urn:p> ?x OPTIONAL { ?s <urn:q> ?y } } WITHIN PT6S OPTIONAL { ?s <urn:r> ?z } } WITHIN PT2S }",
]
LOOKING_BACK = [
    "SELECT * { { ?s <urn:p> ?x OPTIONAL { ?s <urn:q> ?y FILTER (?y != ?x) } } WITHIN PT4S }",
    "SELECT * { { { ?s <urn:p> ?x } OPTIONALSEQ { ?s <urn:q> ?y FILTER (STR(?y) < STR(?x)) } } WITHIN PT4S }",
    "SELECT * { { ?s <urn:p> ?x OPTIONAL { ?s <urn:r> ?y } OPTIONAL { ?s <urn:q> ?y } } WITHIN PT4S }",
    "SELECT * { { ?s <urn:p> ?x OPTIONAL { ?s <urn:q> ?y FILTER EXISTS { ?y <urn:r> ?x } } } WITHIN PT4S }",
    "SELECT * { { { { ?s <urn:p> ?x } REPEAT 1 OR MORE BY ?s MAXIMAL AS (COUNT(*) AS ?n) } "
    "OPTIONAL { ?s <urn:q> ?y } } WITHIN PT4S }",
    "SELECT * { { { ?s <urn:p> ?x } REPEAT 1 OR MORE BY ?s MAXIMAL AS (COUNT(*) AS ?n) } NOT { ?s <urn:q> ?y } }",
    "SELECT * { { { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?x } WITHIN PT3S GROUP BY ?s } "
    "OPTIONAL { ?s <urn:q> ?y } } WITHIN PT4S }",
    "SELECT * { { { { ?s <urn:p> ?x } SEQ NOT { ?s <urn:r> ?z } WITHIN PT2S } "
    "OPTIONAL { ?s <urn:q> ?y } } WITHIN PT4S }",
]


@pytest.mark.parametrize("query", BY_KEY + LOOKING_BACK)
@pytest.mark.parametrize("seed", seeds(3))
def test_drawn_streams_by_the_definition(seed: int, query: str) -> None:
    items, program = events(random.Random(f"{seed} {query}"), 32), compile(query)
    assert agree(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9)) is None
    for executor in ("rows", "columns"):
        judge.agree(Case(parse(query), tuple(items)), executor=executor)


@pytest.mark.parametrize("query", BY_KEY + LOOKING_BACK)
def test_long_streams_as_if_everything_were_kept(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough for goals to be swept."""
    items, program = events(random.Random(query), 700), compile(query)
    with monkeypatch.context() as patched:
        for module in (blocks, node_operators):
            patched.setattr(module, "shown_within", lambda name, nodes: None)
        engine = Engine(program, executor="rows", sweep_every=100)
        expected = [m.id for m in [*engine.push_all(items), *engine.close()]]
    for executor in ("rows", "columns"):
        engine, found = Engine(program, executor=executor, sweep_every=100), []
        for some in batches(items, 50):
            found += [m.id for m in engine.push_all(Batch(some, some[-1].end).columns)]
        assert [*found, *(m.id for m in engine.close())] == expected, executor


def stream(number: int) -> list[Event]:
    """A partner and a left by turns, about ten subjects."""
    return [
        Event(n * SECOND, n * SECOND, ((f"<urn:s{n // 2 % 10}>", f"<urn:{'qp'[n % 2]}>", f"<urn:x{n}>"),))
        for n in range(number)
    ]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("query", [BY_KEY[0], BY_KEY[2]])
def test_only_the_first_partner_and_those_in_the_window_are_kept(query: str, executor: str) -> None:
    """Else state and cost would grow with the stream."""
    engine, items = Engine(query, executor=executor), stream(6_000)
    for first in range(0, len(items), 500):
        engine.push_all(Batch(items[first : first + 500], items[first + 499].end).columns)
    engine.push_all([Event(6_000 * SECOND, 6_000 * SECOND, (("<urn:s0>", "<urn:p>", "<urn:x>"),))])
    assert engine.counters.goals <= 10 + 500


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_left_whose_partners_are_too_old_is_not_alone(executor: str) -> None:
    """Also if all that is too old has been swept."""
    engine, items = Engine(BY_KEY[0], executor=executor, sweep_every=500), stream(2_000)
    others = [Event(t * SECOND, t * SECOND, (("<urn:z>", "<urn:q>", "<urn:x>"),)) for t in range(2_000, 4_000)]
    last = [Event(4_000 * SECOND, 4_000 * SECOND, ((s, "<urn:p>", "<urn:x>"),)) for s in ("<urn:s3>", "<urn:new>")]
    found = [m for some in batches([*items, *others, *last], 500) for m in engine.push_all(Batch(some, 0).columns)]
    found += engine.close()
    assert engine.counters.pruned > 1_000
    assert [m.bindings["s"] for m in found if m.end_us == 4_000 * SECOND] == ["<urn:new>"]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_the_end_of_the_stream_decides_finds_its_partners(executor: str) -> None:
    query = next(query for query in LOOKING_BACK if "MAXIMAL" in query)
    times = [
        ("<urn:s>", "q", 8),
        ("<urn:s>", "q", 9),
        ("<urn:s>", "p", 10),
        *(("<urn:z>", "q", t) for t in range(11, 900)),
    ]
    items = [Event(t * SECOND, t * SECOND, ((s, f"<urn:{p}>", f"<urn:x{t}>"),)) for s, p, t in times]
    engine = Engine(query, executor=executor, sweep_every=100)
    found = [m for some in batches(items, 100) for m in engine.push_all(Batch(some, 0).columns)]
    assert [m.bindings["y"] for m in [*found, *engine.close()]] == ["<urn:x8>", "<urn:x9>"]


def test_explain_says_what_is_kept() -> None:
    text = str(compile(BY_KEY[0]).explain())
    assert "keeps the first solution of e2 for each" in text
    assert "keeps every solution of e2:" in str(compile(LOOKING_BACK[0]).explain())
