"""ORDER BY, LIMIT and OFFSET over groups, texts of all solutions so far and COUNT(DISTINCT *), in columns.

The same reports as in rows, however the input is cut, and those of the definition.
"""

from __future__ import annotations

import random

import pytest
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import group_concat
from etalis_py.executors.columns.cumulative import CumulativeOperator
from etalis_py.executors.columns.grouped import GroupedOperator
from etalis_py.kernel.batch import Batch
from etalis_py.values import bounds
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import agree, in_columns, rule_executors, same_reports
from tests.executors.columns.keyed_events import gathered
from tests.executors.columns.test_vectors import NASTY
from tests.oracle.strategies import Case

pytestmark = pytest.mark.usefixtures("forgetful")

SECOND = 1_000_000
INTEGERS = [f'"{n}"^^<{XSD}integer>' for n in ("0", "1", "01", "7", "-3", "7", "900")]
MIXED = [
    *INTEGERS,
    f'"7.0"^^<{XSD}decimal>',
    f'"7"^^<{XSD}double>',
    '"a"',
    '"b"@en',
    "<urn:a>",
    f'"NaN"^^<{XSD}double>',
]
TEXTS = ['"a"', '"b"', '"é"', '""', '"a!"']
CALLS = ["COUNT(*)", "SUM(?x)", "AVG(?x)", "MIN(?x)", "MAX(?x)", "COUNT(DISTINCT ?x)", "COUNT(DISTINCT *)"]
CALLS += ["MAX(?x) * 2"]
ORDERS = ["DESC(?y)", "?y", "DESC(?y) ?c", "?n DESC(?y)", "?c", "STR(?y)", "(?n - ?y)", "(IF(?n > 2, ?y, ?n))"]
SLICES = ["LIMIT 1", "LIMIT 2", "LIMIT 3", "LIMIT 2 OFFSET 1", "OFFSET 1", "LIMIT 0", "LIMIT 100", ""]
HAVINGS = ["", "", " HAVING (COUNT(*) > 1)", " HAVING (MAX(?x) < 900)"]
WINDOWS = ["", "", " WITHIN PT3S", " WITHIN PT6S", " WITHIN 2 EVENTS", " WITHIN 5 EVENTS"]


def ranked(drawn: random.Random, window: str) -> str:
    shown = drawn.choice(["?c ", "?c ", "?d ", ""])
    key = drawn.choice(["?c", "?c", "?c ?d", "?d"])
    distinct = drawn.choice(["", "", "DISTINCT "])
    asked = f"{distinct}{shown if shown.strip() in key else ''}({drawn.choice(CALLS)} AS ?y) (COUNT(*) AS ?n)"
    order = drawn.choice(ORDERS)
    order = order if "?c" in key or "?c" not in order else "DESC(?y)"
    where = f"WHERE {{ ?c ?d ?x }}{window} GROUP BY {key}{drawn.choice(HAVINGS)}"
    return f"SELECT {asked} {where} ORDER BY {order} {drawn.choice(SLICES)}"


TERMS = {"integers": INTEGERS, "mixed": MIXED, "texts": TEXTS, "nasty": [term for term in NASTY if term]}


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("seed", seeds(8))
def test_drawn_results_of_the_best_groups(seed: int, terms: list[str]) -> None:
    drawn = random.Random(f"{seed} {len(terms)}")
    text, items = ranked(drawn, drawn.choice(WINDOWS)), gathered(drawn, terms, 50, 5)
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9))
    if terms is INTEGERS:
        judge.agree(Case(parse(text), tuple(items)), executor="columns")


def operators(engine: Engine) -> list[object]:
    return list(rule_executors(engine)[0]._columns._operators.values())  # type: ignore[union-attr]


def answered(text: str, items: list[Event]) -> list[tuple[int, int, dict[str, object]]]:
    """The matches, of which kernels rank all."""
    engine = Engine(text, executor="columns")
    (executor,) = rule_executors(engine)
    assert not executor.division.by_row
    found = [*engine.push_all(Batch(items, items[-1].end).columns), *engine.close()]
    assert any(isinstance(o, GroupedOperator | CumulativeOperator) and o.fast for o in operators(engine))
    return [(m.start_us // SECOND, m.end_us // SECOND, dict(m)) for m in found]


def priced(*prices: tuple[int, str, int]) -> list[Event]:
    return [Event(t * SECOND, t * SECOND, ((f"<urn:{c}>", "<urn:p>", f'"{x}"^^<{XSD}integer>'),)) for t, c, x in prices]


def test_a_group_that_comes_back_among_the_best_is_reported_as_it_was() -> None:
    """The total of c falls below that of a, whose row is that of instant 1."""
    text = "SELECT ?c (SUM(?x) AS ?s) WHERE { ?c <urn:p> ?x } GROUP BY ?c ORDER BY DESC(?s) LIMIT 2"
    found = answered(text, priced((1, "a", 3), (2, "b", 9), (3, "c", 5), (4, "c", -4), (5, "d", 1)))
    a, b, c = "urn:a", "urn:b", "urn:c"
    assert found == [
        (1, 1, {"c": a, "s": 3}),
        (2, 2, {"c": b, "s": 9}),
        (3, 3, {"c": c, "s": 5}),
        (1, 1, {"c": a, "s": 3}),
    ]


def test_a_group_that_leaves_the_window_makes_room_for_the_next() -> None:
    """At 12 the solution of b is gone, so a is the best again; there is nothing to say of b."""
    text = "SELECT ?c (MAX(?x) AS ?m) WHERE { ?c <urn:p> ?x } WITHIN PT10S GROUP BY ?c ORDER BY DESC(?m) LIMIT 1"
    found = answered(text, priced((1, "b", 9), (5, "a", 4), (12, "c", 1)))
    assert found == [(1, 1, {"c": "urn:b", "m": 9}), (5, 5, {"c": "urn:a", "m": 4})]


def test_equal_values_are_ranked_by_the_next_key() -> None:
    """1, 01 and 1.0 are equal, so ?c decides, in descending order."""
    text = "SELECT ?c (MAX(?x) AS ?m) WHERE { ?c <urn:p> ?x } GROUP BY ?c ORDER BY ?m DESC(?c) LIMIT 1"
    items = [
        Event(t * SECOND, t * SECOND, ((f"<urn:{c}>", "<urn:p>", f'"{x}"^^<{XSD}{kind}>'),))
        for t, c, x, kind in ((1, "a", "1", "integer"), (2, "b", "01", "integer"), (3, "c", "1.0", "decimal"))
    ]
    assert [m["c"] for _, _, m in answered(text, items)] == ["urn:a", "urn:b", "urn:c"]


def test_many_groups_and_a_long_limit() -> None:
    """Groups rise and fall across the border of the result all the time."""
    drawn = random.Random(7)
    items = priced(*((t, f"c{drawn.randrange(90)}", drawn.randrange(-50, 51)) for t in range(1, 901)))
    for window in ("", " WITHIN PT200S"):
        where = f"SELECT ?c (SUM(?x) AS ?s) WHERE {{ ?c <urn:p> ?x }}{window} GROUP BY ?c"
        program = compile(f"{where} ORDER BY DESC(?s) LIMIT 20 OFFSET 5")
        rows = Engine(program, executor="rows")
        expected = [m.to_dict() for m in [*rows.push_all(items), *rows.close()]]
        for size in (37, 10**9):
            assert in_columns(Engine(program, executor="columns"), items, size) == expected


# --- texts of all solutions so far ---

CONCATENATED = "SELECT ?c (GROUP_CONCAT(%s) AS ?y) (COUNT(*) AS ?n) WHERE { ?c ?d ?x } GROUP BY ?c"
OPERANDS = ["?x", 'STR(?x) ; SEPARATOR = ", "', '?x ; SEPARATOR = "\\""', "1 / ?x", "?d"]


@pytest.mark.parametrize("terms", [INTEGERS, TEXTS, ["_:b", *MIXED]], ids=["integers", "texts", "with a blank node"])
@pytest.mark.parametrize("operand", OPERANDS)
def test_texts_so_far_are_joined_in_their_order(operand: str, terms: list[str]) -> None:
    program, items = compile(CONCATENATED % operand), gathered(random.Random(operand), terms, 50, 5)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9))
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert not executor.division.by_row


def test_texts_so_far_by_the_definition() -> None:
    items = tuple(gathered(random.Random(3), [*INTEGERS, '"a"', "<urn:a>"], 30, 5))
    judge.agree(Case(parse(CONCATENATED % "?x"), items), executor="columns")


@pytest.mark.parametrize("limit", ["characters", "in a batch"])
def test_texts_so_far_that_grow_too_long_are_left_to_rows(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either one text is too long for anybody, or all that a batch would report are."""
    if limit == "characters":
        monkeypatch.setattr(bounds, "BOUNDS", bounds.Bounds(characters=8))
        monkeypatch.setattr(group_concat, "BOUNDS", bounds.BOUNDS)
    else:
        monkeypatch.setattr(group_concat, "MOST_IN_A_BATCH", 60)
    program, items = compile(CONCATENATED % "?x"), gathered(random.Random(1), TEXTS[:1], 40, 5)
    same_reports(lambda executor: Engine(program, executor=executor), items, (7, 10**9))
    engine = Engine(program, executor="columns")
    in_columns(engine, items, 10**9)
    assert not any(isinstance(o, CumulativeOperator) and o.fast for o in operators(engine))


# --- COUNT(DISTINCT *) ---


@pytest.mark.parametrize("window", ["", " WITHIN PT5S", " WITHIN 3 EVENTS"])
@pytest.mark.parametrize("key", ["?c", "", "?x"])
def test_distinct_solutions_are_counted(key: str, window: str) -> None:
    grouped, shown = (f" GROUP BY {key}", key) if key else ("", "")
    text = f"SELECT {shown} (COUNT(DISTINCT *) AS ?n) (COUNT(*) AS ?m) WHERE {{ ?c ?d ?x }}{window}{grouped}"
    items = gathered(random.Random(f"{key}{window}"), MIXED, 60, 5)
    program = compile(text)
    assert agree(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9)) is None
    judge.agree(Case(parse(text), tuple(items)), executor="columns")
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert not executor.division.by_row


# --- ORDER BY and LIMIT of plain solutions ---


TAILS = ["ORDER BY DESC(?x)", "ORDER BY ?d ?x LIMIT 20", "LIMIT 15 OFFSET 5", "OFFSET 3", "LIMIT 0"]


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("form", ["SELECT ?x ?c", "SELECT DISTINCT ?c", "SELECT *"])
def test_solutions_in_the_order_of_the_query(form: str, tail: str, terms: list[str]) -> None:
    text = f"{form} WHERE {{ ?c ?d ?x }} {tail}"
    program, items = compile(text), gathered(random.Random(f"{form} {tail}"), terms, 50, 5)
    assert agree(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9)) is None
    if terms is INTEGERS:
        judge.agree(Case(parse(text), tuple(items)), executor="columns")
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert not executor.division.by_row


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("tail", ["ORDER BY DESC(?x) LIMIT 9", "LIMIT 15 OFFSET 5", "ORDER BY STR(?x) OFFSET 30"])
def test_a_part_of_a_query_in_its_order(tail: str, terms: list[str]) -> None:
    text = f"SELECT ?c ?n WHERE {{ {{ SELECT DISTINCT ?c ?x WHERE {{ ?c ?d ?x }} {tail} }} BIND (STR(?x) AS ?n) }}"
    program, items = compile(text), gathered(random.Random(tail), terms, 50, 5)
    assert agree(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9)) is None
    if terms is INTEGERS:
        judge.agree(Case(parse(text), tuple(items)), executor="columns")
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert not executor.division.by_row
