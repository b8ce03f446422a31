"""Joins with a lower and an upper bound: the answers are those of all pairs, and few pairs are looked at."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from etalis_rules import algebra as alg

from etalis_py import Engine, Event, compile
from etalis_py.executors.rows.generate import bands, joins
from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.written_plans import first_plan
from etalis_py.executors.rows.run import bands as run
from etalis_py.executors.rows.run import executor as row_executor
from etalis_py.executors.rows.run.goals import GoalStore
from etalis_py.values.implied_bounds import implied_bounds
from tests.draws import length
from tests.engine.judge import agree
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

SECOND = 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
BANDS = {
    "open": "?y > ?x && ?y < ?x + 3",
    "closed": "?x <= ?y && ?x + 3 >= ?y",
    "half open, around": "?y >= ?x - 2 && ?y < ?x + 2",
    "of the arriving side": "?x > ?y - 2 && ?x <= ?y + 2",
    "with a third": "?y > ?x && ?y < ?x + 3 && ?y != ?x + 1",
    "falling": "?y > 3 - ?x && ?y <= 5 - ?x",
    "not in one order": "?y > ?x - 2 && ?y < ?x * ?x",
    "of decimals": "?y > ?x - 0.5 && ?y < ?x + 1.5",
    "of doubles": "?y > ?x - 5e-1 && ?y < ?x + 1.5e0",
    "of values as they are": "?y >= ?x && ?x >= ?y",
    "of texts": "STR(?y) >= STR(?x) && STR(?y) <= CONCAT(STR(?x), '5')",
    "of days": "?y > ?x && ?y < ?x + 'P2D'^^xsd:dayTimeDuration",
    "of a difference": "?y - ?x < 2 && ?y - ?x > -2",
    "of a difference, closed": "?y - ?x <= 0.5 && 0.5e0 >= ?x - ?y",
    "a difference": "?x - ?y = 1",
    "no difference": "?x - ?y = 0e0",
    "a distance": "ABS(?y - ?x) < 2",
    "a distance of doubles": "15e-1 >= ABS(?x - ?y)",
    "a sum": "?y + ?x = 2",
    "one of each": "?y - ?x < 2 && ?y > ?x",
    "a difference of days": "?y - ?x <= 'P1D'^^xsd:dayTimeDuration && ?x - ?y < 'P2D'^^xsd:dayTimeDuration",
}
OPERATORS = ("SEQ", "AND", "PAR", "OVERLAPS", "SEQ NOT { ?e <urn:r> ?z } SEQ")


def typed(kind: str, *lexical: object) -> list[str]:
    return [f'"{text}"^^<{XSD}{kind}>' for text in lexical]


KINDS = {
    "integers": typed("integer", *range(-2, 6)),
    "numbers": [*typed("integer", *range(6)), *typed("decimal", 0.5, 1.0, 2.5, 4.5), *typed("double", 1, 2.5, "NaN")],
    "times": [
        *typed("dateTime", *(f"2026-01-0{day}T00:00:00Z" for day in range(1, 8))),
        *typed("date", "2026-01-02", "2026-01-03Z", "2026-01-04"),
    ],
    "anything": [
        *typed("integer", 1, 2, 3, 4, 9007199254740993),
        *typed("double", 2, 3, "INF", "-INF", 9007199254740992),
        *typed("float", 1, 2.5, "NaN"),
        *typed("boolean", "true", "false"),
        *('"2"', '"3"@en', "<urn:a>", "_:a", *typed("date", "2026-01-02")),
    ],
}
# The oracle orders no times of which only one has a zone.
ALL_KINDS = KINDS | {"zones": [*KINDS["times"], *typed("dateTime", "2026-01-03T00:00:00", "2026-01-05T00:00:00")]}


def query(band: str, op: str = "SEQ", within: int = 40) -> str:
    where = f"{{ ?c <urn:p> ?x }} {op} {{ ?d <urn:q> ?y }} FILTER ({band})"
    return f"PREFIX xsd: <{XSD}> SELECT * {{ {{ {where} }} WITHIN {within} s }}"


def drawn(seed: int, size: int, values: Sequence[str]) -> Iterator[Event]:
    """Events a second or two apart, some at the same time, half of which began before."""
    draw, t = random.Random(seed), 10
    for _ in range(size):
        t += draw.choice((0, 1, 1, 2))
        triple = (f"<urn:s{draw.randrange(3)}>", f"<urn:{draw.choice('ppqqr')}>", draw.choice(values))
        yield Event((t - draw.choice((0, 0, 1, 3))) * SECOND, t * SECOND, (triple,), "", "")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals are searched however few they are."""
    monkeypatch.setattr(bands, "FEW", 0)
    monkeypatch.setattr(row_executor, "first_plan", first_plan.__wrapped__)  # plans of other tests know more goals


def all_of(engine: Engine, events: Sequence[Event]) -> list[dict[str, Any]]:
    return [m.to_dict() for m in [*engine.push_all(events), *engine.close()]]


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("band", BANDS)
def test_answers_are_those_of_the_definition(band: str, kind: str) -> None:
    # Nor does the oracle subtract days of which only one has a zone.
    values = [term for term in KINDS[kind] if "difference" not in band or "#date>" not in term]
    for seed, op in enumerate(OPERATORS):
        agree(Case(queries(query(BANDS[band], op)), tuple(drawn(seed, 16, values))), executor="rows")


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("band", BANDS)
def test_ids_and_order_are_those_of_all_pairs(band: str, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a snapshot, and whether or not values are mixed; with and without explanations."""
    found = 0
    for (kind, values), explain in zip(ALL_KINDS.items(), (False, True, False, False, False), strict=True):
        program, events = compile(query(BANDS[band], op)), list(drawn(len(kind), max(180, length(240)), values))
        with monkeypatch.context() as patch:
            patch.setattr(joins, "_bounds", lambda *_: None)
            plain = Engine(program, executor="rows", explain=explain)
            first = [m.to_dict() for m in plain.push_all(events[:90])]
            stored = plain.snapshot()
            rest = all_of(plain, events[90:])
        assert all_of(Engine(program, executor="rows", explain=explain), events) == first + rest
        after = Engine(program, executor="rows", explain=explain)
        after.restore(stored)
        assert all_of(after, events[90:]) == rest
        found += len(first + rest)
    assert found


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("op", ["SEQ", "AND"])
def test_a_journal_goes_on(op: str) -> None:
    program, events = compile(query(BANDS["open"], op)), list(drawn(2, 90, KINDS["numbers"]))
    expected = [m["id"] for m in all_of(Engine(program), events)]
    before = Engine(program, executor="rows", journal=True)
    stored = before.snapshot()
    ids = [m.id for m in before.push_all(events[:45])]
    after = Engine(program, executor="rows", journal=True)
    after.restore(stored)
    after.apply_journal(before.take_journal())
    assert ids + [m["id"] for m in all_of(after, events[45:])] == expected


def rising(size: int) -> list[Event]:
    return [Event(t * SECOND, t * SECOND, (("<urn:c>", "<urn:p>", *typed("integer", t)),), "", "") for t in range(size)]


def drifting(size: int) -> list[Event]:
    """Every value within ``size`` once, in no order."""
    return [
        Event(t * SECOND, t * SECOND, (("<urn:c>", "<urn:p>", *typed("decimal", t * 577 % size)),), "", "")
        for t in range(size)
    ]


NEAR = {
    "two bounds": "?y > ?x && ?y < ?x + 3",
    "two bounds of the difference": "?y - ?x > 0 && 3 > ?y - ?x",
    "the difference": "?y - ?x = 2",
    "the distance": "ABS(?x - ?y) <= 1",
}


@pytest.mark.parametrize("band", NEAR)
@pytest.mark.parametrize("events", [rising, drifting])
@pytest.mark.parametrize("op", ["SEQ", "AND"])
def test_few_goals_are_looked_at(band: str, events: Any, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counted(*args: Any) -> Sequence[Any]:
        nonlocal looked
        found = run.narrowed(*args)
        looked += len(found)
        return found

    monkeypatch.setattr(bands, "narrowed", counted)
    monkeypatch.setattr(row_executor, "first_plan", first_plan.__wrapped__)
    text = f"SELECT * {{ {{ ?c <urn:p> ?x }} {op} {{ ?c <urn:p> ?y }} FILTER ({NEAR[band]}) }}"
    counts = []
    for size in (500, 2_000):
        looked = 0
        matches = all_of(Engine(text, executor="rows"), events(size))
        assert matches
        counts.append(looked)
        assert looked <= 4 * size
    assert counts[1] <= 5 * counts[0]


BOUNDED = {
    *typed("integer", 3), *typed("decimal", 0.5), *typed("double", "1E-20"), *typed("dayTimeDuration", "PT3S"),
}  # fmt: skip
UNBOUNDED = {
    *typed("double", "1E40", "1E-40", "NaN", "INF"), *typed("yearMonthDuration", "P1M"), *typed("duration", "P1MT1S"),
    *typed("boolean", "true"), '"3"',
}  # fmt: skip


@pytest.mark.parametrize("limit", sorted(BOUNDED | UNBOUNDED))
def test_which_constants_imply_bounds(limit: str) -> None:
    difference = alg.Apply("-", (alg.Var("y"), alg.Var("x")))
    bounds = list(implied_bounds(alg.Apply("<", (difference, alg.Const(limit)))))
    assert len(bounds) == (2 if limit in BOUNDED else 0)


NEIGHBOURS = {
    "doubles": typed("double", *(repr(n * 0.1) for n in range(40))),
    "floats": typed("float", *(f"{n * 0.1:.7g}" for n in range(40))),
    "large doubles": typed("double", *(repr(2.0**53 + 2 * n) for n in range(40))),
    "decimals and doubles": [
        *typed("double", *(repr(n * 0.1) for n in range(40))),
        *typed("decimal", *(f"{n * 0.1:.1f}" for n in range(40))),
    ],
    "large integers": typed("integer", *(2**53 + n for n in range(40))),
    "tiny": [*typed("decimal", *(f"0.{'0' * 400}{n}" for n in range(9))), *typed("double", 5e-324, 0, -5e-324, 1e-300)],
    "infinite": typed("double", "INF", "-INF", 1e308, -1e308, 1, 0),
}
ROUNDED = ("ABS(?y - ?x) <= {}", "?y - ?x = {}", "?y + ?x = {}", "?x - ?y > -1e6 && ?x - ?y < {}")
LIMITS = ("0.3", "3e-1", "'0.3'^^xsd:float", "0", "0e0", "1", "12", "1e-320", "1e300")


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_no_goal_is_lost_where_differences_are_rounded(kind: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(drawn(5, length(200), NEIGHBOURS[kind]))
    for band in ROUNDED:
        program = compile(query(band.format(limit)))
        with monkeypatch.context() as patch:
            patch.setattr(joins, "_bounds", lambda *_: None)
            expected = all_of(Engine(program, executor="rows"), events)
        assert all_of(Engine(program, executor="rows"), events) == expected


def test_goals_that_have_expired_are_not_kept() -> None:
    text = "SELECT * { { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?y > ?x && ?y < ?x + 3) } WITHIN 50 s }"
    engine = Engine(text, executor="rows")
    assert len(engine.push_all(rising(3_000))) > 5_000
    ((_, executor),) = engine._rule_stages
    (store,) = executor.state.stores.values()  # type: ignore[attr-defined]
    assert isinstance(store, GoalStore)
    (band,) = store.orders.values()
    assert band.count < 400


def test_a_goal_that_is_retracted_is_found_no_more() -> None:
    goals = [(end, end, "<a>", end) for end in range(1, 60)]
    store = GoalStore(1, "j", "G", Layout(("k", "v"), ()), (2,), None)
    for goal in goals:
        store.insert(goal)

    def found() -> list[Any]:
        bucket = store.buckets["<a>"]
        bounds = (3, bisect_right, 5, int), (3, bisect_left, 9, int)
        return [goal[0] for goal in run.narrowed(store.orders, "<a>", bucket, *bounds)]

    assert found() == [6, 7, 8]
    store.retract(goals[6])
    assert found() == [6, 8]
    store.insert((3, 4, "<a>", 7))
    assert found() == [3, 6, 8]
