"""Where ETALIS is wrong, each as a test: small traces through the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import process_time

import psutil
import pytest

from etalis_py import Engine, Event, Match, Program, compile, event

pytestmark = pytest.mark.usefixtures("still_heap")

PRICE = "<http://example.org/price>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
SECOND = 1_000_000


def run(source: str | list[str] | Program, *events: Event, **options: object) -> list[Match]:
    program = source if isinstance(source, Program) else compile(source)
    engine = Engine(program, **options)  # type: ignore[arg-type]
    return [*engine.push_all(events), *engine.close()]


def intervals(found: Iterable[Match]) -> list[tuple[object, object]]:
    return [(m.start, m.end) for m in found]


# --- consumption -------------------------------------------------------------------------------------------------

FALL = "SELECT ?x ?y { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y < ?x)"


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_failing_filter_does_not_consume(policy: str) -> None:
    """10, 12, 9: the pair (10, 12) fails the filter, so 10 and 12 both wait on; ETALIS has lost them by then."""
    prices = [event(f":c :price {p}", t) for t, p in enumerate((10, 12, 9), 1)]
    found = run(FALL, *prices, policy=policy)
    assert [(m["x"], m["y"]) for m in found] == [(12, 9) if policy == "recent" else (10, 9)]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_no_partner_is_lost_when_a_filter_fails_for_an_error(policy: str) -> None:
    """A comparison with a word is an error, not a partner; the number before it still waits."""
    events = [event(":c :price 10", 1), event(':c :price "unknown"', 2), event(":c :price 9", 3)]
    assert [(m["x"], m["y"]) for m in run(FALL, *events, policy=policy)] == [(10, 9)]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_no_partner_is_lost_when_a_filter_above_fails_later(policy: str) -> None:
    """The filter over all three steps fails for the 1st end; the pair that it spoke of is there for the 2nd."""
    query = "SELECT ?x ?z { ?c :a ?x } SEQ { ?c :b ?y } SEQ { ?c :d ?z } FILTER(?z > ?x + ?y)"
    events = [event(":c :a 1", 1), event(":c :b 2", 2), event(":c :d 3", 3), event(":c :d 4", 4)]
    assert intervals(run(query, *events, policy=policy)) == [(1, 4)]


def test_a_window_that_is_over_does_not_consume() -> None:
    """The first a is too old for both b, and is no candidate; the second is taken once."""
    query = "SELECT ?x { { { ?c :a ?x } SEQ { ?c :b ?y } } WITHIN PT5S }"
    events = [event(":c :a 1", 1), event(":c :a 2", 8), event(":c :b 1", 9), event(":c :b 2", 10)]
    assert intervals(run(query, *events, policy="chronological")) == [(8, 9)]


# --- events ------------------------------------------------------------------------------------------------------


def test_two_equal_payloads_at_different_times_are_two_events() -> None:
    query = "SELECT ?x { ?c :a ?x } SEQ { ?c :b ?y }"
    found = run(query, event(":c :a 1", 1), event(":c :a 1", 2), event(":c :b 1", 3))
    assert intervals(found) == [(1, 3), (2, 3)]
    assert len({m.id for m in found}) == 2


def test_the_same_triple_at_the_same_time_is_one_event() -> None:
    query = "SELECT ?x { ?c :a ?x } SEQ { ?c :b ?y }"
    assert intervals(run(query, event(":c :a 1", 1), event(":c :a 1", 1), event(":c :b 1", 3))) == [(1, 3)]


def test_equal_payloads_are_counted_each() -> None:
    found = run("SELECT (COUNT(*) AS ?n) { ?c :a ?x }", *(event(":c :a 1", t) for t in range(1, 4)))
    assert [m["n"] for m in found] == [1, 2, 3]


def test_patterns_of_a_group_are_joined_over_events() -> None:
    """ETALIS's EP-SPARQL has no joins inside a group."""
    query = "SELECT ?r ?s { ?r :rater ?a ; :score ?s }"
    found = run(query, event(":r1 :rater :sp", 1), event(":r2 :score 1", 2), event(":r1 :score 7", 3))
    assert [(m["s"], m.start, m.end) for m in found] == [(7, 1, 3)]


# --- the language ------------------------------------------------------------------------------------------------


def test_a_product_in_a_filter_is_arithmetic() -> None:
    query = "SELECT ?x ?y { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y > ?x * 2)"
    prices = [event(f":c :price {p}", t) for t, p in enumerate((10, 20, 21), 1)]
    assert [(m["x"], m["y"]) for m in run(query, *prices)] == [(10, 21)]


def test_numbers_of_different_types_are_compared_by_value() -> None:
    query = "SELECT ?x ?y { ?c :a ?x } SEQ { ?c :b ?y } FILTER(?x = ?y)"
    assert len(run(query, event(":c :a 1", 1), event(":c :b 1.0", 2), event(":c :b 1e0", 3), event(":c :b 2", 4))) == 2


def test_times_are_dates_in_filters() -> None:
    query = 'SELECT ?x { ?c :a ?x } FILTER(getSTARTTIME() >= "2020-01-01T00:00:00Z"^^xsd:dateTime)'
    query = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> " + query
    events = [event(":c :a 1", "2019-12-31T23:59:59Z"), event(":c :a 2", "2020-01-01T00:00:00Z")]
    assert [m["x"] for m in run(query, *events)] == [2]


# --- errors ------------------------------------------------------------------------------------------------------


def test_one_failing_expression_does_not_stop_the_other_rules() -> None:
    """1/0 and "word" + 1 are errors of one solution: a BIND stays unbound, a FILTER fails, other queries go on."""
    program = compile(
        [
            "SELECT ?z { ?c :a ?x BIND(1 / ?x AS ?z) }",
            "SELECT ?x { ?c :a ?x FILTER(1 / ?x > 0) }",
            "SELECT ?x { ?c :a ?x }",
        ]
    )
    found = run(program, event(":c :a 0", 1), event(':c :a "word"', 2), event(":c :a 1", 3))
    by_query = {q: [m for m in found if m.query == q] for q in program.queries}
    assert [[m.get("z") for m in by_query["q1"]], len(by_query["q2"]), len(by_query["q3"])] == [[None, None, 1], 1, 3]


def test_one_failing_expression_does_not_stop_a_rule_that_reads_the_same_event() -> None:
    rules = ["CONSTRUCT { ?c :ok ?z } { ?c :a ?x BIND(10 / ?x AS ?z) }", "SELECT ?z { ?c :ok ?z }"]
    found = run(rules, event(":c :a 0", 1), event(":c :a 5", 2))
    assert [m["z"] for m in found if m.query == "q2"] == [2]


def test_one_bad_event_does_not_stop_the_others() -> None:
    """An event that ends before it starts is refused aloud; what came before and comes after it is not lost."""
    engine = Engine(compile("SELECT ?x ?y { ?c :a ?x } SEQ { ?c :b ?y }"))
    first, last = event(":c :a 1", 1), event(":c :b 2", 9)
    bad = Event(5 * SECOND, 4 * SECOND, first.triples)
    with pytest.raises(ValueError, match="swap"):
        engine.push_all([first, bad])
    found = [*engine.push(last), *engine.close()]
    assert intervals(found) == [(1, 9)]


def test_a_late_event_is_a_dead_letter_and_the_others_go_on() -> None:
    engine = Engine(compile("SELECT ?x ?y { ?c :a ?x } SEQ { ?c :b ?y }"))
    found = [*engine.push_all([event(":c :a 1", 1), event(":c :a 7", 5), event(":c :a 3", 2), event(":c :b 2", 9)])]
    found += engine.close()
    assert intervals(found) == [(1, 9), (5, 9)]
    assert engine.counters.late == 1
    assert engine.dead_letters == [event(":c :a 3", 2)]


# --- memory and look-up ------------------------------------------------------------------------------------------

WINDOWED = [
    "SELECT ?c ?x ?y { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT20S FILTER(?y > ?x * 2) }",
    "CONSTRUCT { ?c :doubled ?y } { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT10S FILTER(?y = ?x * 2) }",
    "SELECT (AVG(?x) AS ?mean) { ?c :doubled ?x } WITHIN PT20S",
]


def ticks(n: int) -> Iterator[Event]:
    """A price a second, of companies that are seen twice and never again."""
    for t in range(n):
        company = f"<urn:c{t // 20}.{t % 10}>"
        yield Event(t * SECOND, t * SECOND, ((company, PRICE, f'"{1 + t % 20 // 10 * 2 + t % 3}"^^{INTEGER}'),))


def flat_memory(events: int) -> None:
    """Goals and memory after a tenth of the events are goals and memory after all of them."""
    engine = Engine(compile(WINDOWED), sweep_every=1_000)
    stream = ticks(events)
    process = psutil.Process()
    goals, sizes, matches = [], [], 0
    for _ in range(10):
        for _ in range(10):
            part = [e for _, e in zip(range(events // 100), stream, strict=False)]
            matches += len(engine.push_all(part))
        goals.append(engine.count().goals)
        sizes.append(process.memory_info().rss)
    assert matches > events // 10
    assert engine.counters.events == events
    assert engine.counters.pruned > 0
    assert max(goals) <= 100, goals
    assert max(sizes[1:]) - sizes[0] < 8_000_000, sizes


def test_memory_stays_flat_under_a_window() -> None:
    flat_memory(200_000)


@pytest.mark.nightly
def test_memory_stays_flat_over_a_million_events() -> None:
    flat_memory(1_000_000)


def test_goals_are_found_without_scanning() -> None:
    """The cost of an event does not grow with the goals that it does not join (measured, so with a wide margin)."""

    def seconds(waiting: int) -> float:
        engine = Engine(compile("SELECT ?c ?y { ?c :a ?x } SEQ { ?c :b ?y }"), sweep_every=10**9)
        goals = (Event(t, t, ((f"<urn:{t}>", "<http://example.org/a>", '"1"'),)) for t in range(waiting))
        engine.push_all(goals)
        probes = [
            Event(waiting + t, waiting + t, ((f"<urn:{t % 100}>", "<http://example.org/b>", '"1"'),))
            for t in range(5_000)
        ]
        best = 1e9
        for i in range(0, 5_000, 1_000):
            began = process_time()
            found = engine.push_all(probes[i : i + 1_000])
            best = min(best, process_time() - began)
            assert len(found) >= 999
        assert engine.count().goals >= waiting
        return best

    few, many = seconds(200), seconds(100_000)
    assert many < 10 * few  # a scan would take some 500 times as long
