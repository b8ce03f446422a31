"""Aggregates of groups over a sliding window, in columns: the rows that change, as in rows and by the definition."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import extremes, group_concat
from etalis_py.executors.columns.cumulative import CumulativeOperator
from etalis_py.executors.columns.grouped import GroupedOperator
from etalis_py.kernel.batch import Batch
from etalis_py.values import bounds
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import agree, rule_executors, same_reports
from tests.executors.columns.keyed_events import gathered
from tests.executors.columns.test_vectors import NASTY
from tests.oracle.strategies import Case

pytestmark = pytest.mark.usefixtures("forgetful")

SECOND = 1_000_000
INTEGERS = [f'"{n}"^^<{XSD}integer>' for n in ("0", "1", "01", "7", "-3", "7", "900")]
DECIMALS = [f'"{n}"^^<{XSD}decimal>' for n in ("0.5", "1.25", "-3.0", "100", "0.001")]
CALLS = [
    "COUNT(*)", "COUNT(?x)", "SUM(?x)", "AVG(?x)", "MIN(?x)", "MAX(?x)", "SAMPLE(?x)", "COUNT(DISTINCT ?x)",
    "SUM(DISTINCT ?x)", "AVG(DISTINCT ?x)", "SUM(?x * 2)", "MAX(STRLEN(STR(?x)))", "MIN(?x) + COUNT(*)", "AVG(?x) / 3",
    'IF(COUNT(?x) > 2, MIN(?x), "few")', "GROUP_CONCAT(?x)", 'GROUP_CONCAT(STR(?x) ; SEPARATOR = ", ")',
]  # fmt: skip
HAVINGS = ["", " HAVING (COUNT(*) > 1)", " HAVING (MAX(?x) > 1)", " HAVING (SUM(?x) < 20 || COUNT(*) = 2)"]
WITHOUT = [call for call in CALLS if "CONCAT" not in call] + ["SUM(?x + 1)", "COUNT(?x / 0)", "COUNT(DISTINCT STR(?x))"]
WINDOWS = ["PT3S", "PT5S", "1 EVENTS", "2 EVENTS", "4 EVENTS"]
KEYS = ["?c", "?c ?d", "?d", "?z", "", "(STR(?d) AS ?e)"]


def query(drawn: random.Random) -> str:
    calls = " ".join(f"({call} AS ?y{n})" for n, call in enumerate(drawn.sample(CALLS, drawn.randrange(1, 4))))
    key = drawn.choice(KEYS)
    shown = drawn.choice(["", key if key.startswith("?") else ""])
    grouped = f" GROUP BY {key}" if key else ""
    having = drawn.choice(HAVINGS)
    return f"SELECT {shown} {calls} WHERE {{ ?c ?d ?x }} WITHIN {drawn.choice(WINDOWS)}{grouped}{having}"


@pytest.mark.parametrize("terms", [INTEGERS, DECIMALS, [*INTEGERS, *DECIMALS], [t for t in NASTY if t]])
@pytest.mark.parametrize("seed", seeds(6))
def test_drawn_aggregates(seed: int, terms: list[str]) -> None:
    drawn = random.Random(f"{seed} {len(terms)}")
    program, items = compile(query(drawn)), gathered(drawn, terms, 60, 3)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9))


DOUBLES = [f'"{n}"^^<{XSD}double>' for n in ("0.1", "1e0", "-2.5", "3e-20", "1e17", "0")]
SO_FAR = [INTEGERS, DECIMALS, DOUBLES, [*INTEGERS, DECIMALS[0]], ['"a"', '"b"', "<urn:a>"], [t for t in NASTY if t]]


@pytest.mark.parametrize("terms", SO_FAR)
@pytest.mark.parametrize("seed", seeds(8))
def test_drawn_aggregates_of_all_solutions_so_far(seed: int, terms: list[str]) -> None:
    drawn = random.Random(f"{seed} {len(terms)}")
    calls = " ".join(f"({call} AS ?y{n})" for n, call in enumerate(drawn.sample(WITHOUT, drawn.randrange(1, 4))))
    key = KEYS[(seed + 1) % len(KEYS)]
    shown, grouped = key if key.startswith("?") else "", f" GROUP BY {key}" if key else ""
    text = f"SELECT {shown} {calls} WHERE {{ ?c ?d ?x }}{grouped}{drawn.choice(HAVINGS)}"
    program, items = compile(text), gathered(drawn, terms, 60, 3)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9))
    if terms in (INTEGERS, DECIMALS):
        judge.agree(Case(parse(text), tuple(items)), executor="columns")


@pytest.mark.parametrize("seed", seeds(6))
def test_drawn_aggregates_by_the_definition(seed: int) -> None:
    drawn = random.Random(seed)
    case = Case(parse(query(drawn)), tuple(gathered(drawn, [*INTEGERS, '"a"', "<urn:a>"], 40, 3)))
    judge.agree(case, executor="columns")


def priced(*prices: tuple[int, str, int]) -> list[Event]:
    return [Event(t * SECOND, t * SECOND, ((f"<urn:{c}>", "<urn:p>", f'"{x}"^^<{XSD}integer>'),)) for t, c, x in prices]


def answered(text: str, items: list[Event]) -> list[tuple[int, int, dict[str, object]]]:
    engine = Engine(text, executor="columns")
    found = [*engine.push_all(items), *engine.close()]
    operators = rule_executors(engine)[0]._columns._operators.values()  # type: ignore[union-attr]
    assert any(isinstance(operator, GroupedOperator | CumulativeOperator) and operator.fast for operator in operators)
    return [(m.start_us // SECOND, m.end_us // SECOND, dict(m)) for m in found]


def test_a_group_that_only_lost_solutions_is_reported_if_its_row_changed() -> None:
    text = "SELECT ?c (MAX(?x) AS ?m) WHERE { ?c <urn:p> ?x } WITHIN PT10S GROUP BY ?c"
    found = answered(text, priced((1, "a", 3), (5, "a", 2), (12, "b", 4), (30, "b", 1)))
    a, b = "urn:a", "urn:b"
    assert found == [
        (1, 1, {"c": a, "m": 3}),
        (1, 5, {"c": a, "m": 3}),
        (5, 5, {"c": a, "m": 2}),
        (12, 12, {"c": b, "m": 4}),
        (30, 30, {"c": b, "m": 1}),
    ]


def test_a_row_that_stays_as_it_is_is_not_reported_again() -> None:
    """The long event keeps the start of its group, and the greatest value is its own."""
    text = "SELECT ?c (MAX(?x) AS ?m) WHERE { ?c <urn:p> ?x } WITHIN PT10S GROUP BY ?c"
    one, other, third = priced((1, "a", 1), (5, "a", 9), (12, "b", 4))
    other = other._replace(start=0)
    one = one._replace(start=0)
    assert [(end, m["c"], m["m"]) for _, end, m in answered(text, [one, other, third])] == [
        (1, "urn:a", 1),
        (5, "urn:a", 9),
        (12, "urn:b", 4),
    ]


@pytest.mark.parametrize("call", ["COUNT(*)", "MAX(?x)"])
def test_rows_of_groups_whose_keys_are_hidden_are_compared_with_those_of_all_groups(call: str) -> None:
    """At 7 group a is what b was before, ⟨1, [5, 5]⟩, so only b has a row that is new; at 14 both are new."""
    text = f"SELECT ({call} AS ?n) WHERE {{ ?c <urn:p> ?x }} WITHIN PT3S GROUP BY ?c"
    items = priced((3, "a", 1), (5, "a", 1), (5, "b", 1), (7, "b", 2), (14, "a", 1), (14, "b", 1))
    at_7 = (5, 7, {"n": 2})
    assert answered(text, items) == [
        (3, 3, {"n": 1}),
        (3, 5, {"n": 2 if "COUNT" in call else 1}),
        (5, 5, {"n": 1}),
        at_7,
        (14, 14, {"n": 1}),
        (14, 14, {"n": 1}),
    ]
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 2, 10**9))
    judge.agree(Case(parse(text), tuple(items)), executor="rows")


def test_a_group_that_having_refused_is_reported_when_it_passes_again() -> None:
    text = "SELECT ?c (SUM(?x) AS ?m) WHERE { ?c <urn:p> ?x } WITHIN 2 EVENTS GROUP BY ?c HAVING (SUM(?x) > 5)"
    found = answered(text, priced((1, "a", 6), (2, "a", -6), (3, "a", 12), (4, "a", 1)))
    assert [(end, m["m"]) for _, end, m in found] == [(1, 6), (3, 6), (4, 13)]


def test_the_greatest_of_terms_that_are_no_numbers_is_below_all_numbers() -> None:
    text = "SELECT (MAX(?x) AS ?m) (MIN(?x) AS ?n) WHERE { ?c <urn:p> ?x } WITHIN 3 EVENTS"
    items = priced((1, "a", 5), (2, "a", 6), (3, "a", 7))
    for n, term in enumerate(("<urn:a>", f'"NaN"^^<{XSD}double>')):
        items[n] = items[n]._replace(triples=(("<urn:a>", "<urn:p>", term),))
    assert str([(m["m"], m["n"]) for _, _, m in answered(text, items)]) == (
        "[('urn:a', 'urn:a'), (nan, 'urn:a'), (7, 'urn:a')]"
    )


def test_counts_and_means_of_all_solutions_so_far_by_key() -> None:
    text = "SELECT ?c (SUM(?x) AS ?s) (AVG(?x) AS ?m) (COUNT(*) AS ?n) WHERE { ?c <urn:p> ?x } GROUP BY ?c"
    found = answered(text, priced((1, "a", 1), (2, "b", 2), (3, "a", 4)))
    assert found == [
        (1, 1, {"c": "urn:a", "s": 1, "m": Decimal(1), "n": 1}),
        (2, 2, {"c": "urn:b", "s": 2, "m": Decimal(2), "n": 1}),
        (1, 3, {"c": "urn:a", "s": 5, "m": Decimal("2.5"), "n": 2}),
    ]


@pytest.mark.parametrize("window", ["WITHIN 3 EVENTS", ""])
def test_sums_beyond_64_bits_and_other_numbers_go_on_in_rows(window: str) -> None:
    text = f"SELECT ?c (SUM(?x) AS ?m) WHERE {{ ?c <urn:p> ?x }} {window} GROUP BY ?c"
    items = priced(*((t, "ab"[t % 2], t) for t in range(20)))
    for odd in (f'"{"9" * 30}"^^<{XSD}integer>', f'"0.1"^^<{XSD}double>', f'"1.5"^^<{XSD}decimal>', '"x"', "<urn:a>"):
        mixed = [*items[:10], items[10]._replace(triples=(("<urn:a>", "<urn:p>", odd),)), *items[11:]]
        program = compile(text)
        assert agree(lambda executor, program=program: Engine(program, executor=executor), mixed, (3, 100)) is None


CONCATENATED = 'SELECT * { SELECT ?c (GROUP_CONCAT(?x ; SEPARATOR = "\\n") AS ?y) { ?c ?d ?x } WITHIN %s GROUP BY ?c }'
TEXTS = ['"a"', '"\\"b\\" \\\\"', '"c"@en', "<urn:i>", "_:blank", '"é\\t"', f'"1"^^<{XSD}integer>']


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("terms", [TEXTS[:1] + TEXTS[5:], TEXTS], ids=["texts", "with a blank node"])
def test_texts_are_joined_in_their_order(window: str, terms: list[str]) -> None:
    drawn = random.Random(window)
    program, items = compile(CONCATENATED % window), gathered(drawn, terms, 60, 3)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 7, 10**9))
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert not executor.division.by_row


def test_texts_that_grow_too_long_are_left_to_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BOUNDS", bounds.Bounds(characters=8))
    monkeypatch.setattr(group_concat, "BOUNDS", bounds.BOUNDS)
    program, items = compile(CONCATENATED % "PT5S"), gathered(random.Random(1), TEXTS[:1], 40, 3)
    same_reports(lambda executor: Engine(program, executor=executor), items, (7, 10**9))


# --- all solutions so far ---


def worded(*words: str) -> list[Event]:
    return [Event(t * SECOND, t * SECOND, (("<urn:a>", "<urn:p>", word),)) for t, word in enumerate(words, 1)]


def last(text: str, items: list[Event]) -> dict[str, object]:
    return answered(text, items)[-1][2]


def test_a_term_counts_once_by_group_in_all_batches() -> None:
    """Batches of two: 7 of group a comes in the first and in the last."""
    text = "SELECT ?c (COUNT(DISTINCT ?x) AS ?n) (SUM(DISTINCT ?x) AS ?s) WHERE { ?c <urn:p> ?x } GROUP BY ?c"
    engine = Engine(text, executor="columns")
    items = priced((1, "a", 7), (2, "b", 7), (3, "a", 1), (4, "a", 7))
    found = [dict(m) for i in (0, 2) for m in engine.push_all(Batch(items[i : i + 2], items[i + 1].end).columns)]
    found += [dict(m) for m in engine.close()]
    assert [(m["c"], m["n"], m["s"]) for m in found] == [
        ("urn:a", 1, 7), ("urn:b", 1, 7), ("urn:a", 2, 8), ("urn:a", 2, 8)
    ]  # fmt: skip


def test_extremes_of_all_solutions_so_far_outlive_their_batch() -> None:
    text = "SELECT ?c (MIN(?x) AS ?m) (MAX(?x) AS ?n) (SAMPLE(?x) AS ?s) WHERE { ?c <urn:p> ?x } GROUP BY ?c"
    items = priced((1, "a", 3), (2, "a", 9), (3, "a", 5))
    engine = Engine(text, executor="columns")
    found = [dict(m) for item in items for m in engine.push_all(Batch([item], item.end).columns)]
    found += [dict(m) for m in engine.close()]
    assert [(m["m"], m["n"], m["s"]) for m in found] == [(3, 3, 3), (3, 9, 3), (3, 9, 3)]


def test_having_shows_a_group_when_it_passes() -> None:
    text = "SELECT ?c (MAX(?x) AS ?m) WHERE { ?c <urn:p> ?x } GROUP BY ?c HAVING (COUNT(*) > 1 && MAX(?x) < 8)"
    found = answered(text, priced((1, "a", 3), (2, "a", 2), (3, "a", 9), (4, "b", 1)))
    assert [(end, m["m"]) for _, end, m in found] == [(2, 3)]


def test_decimals_of_a_finer_scale_change_the_sums_so_far() -> None:
    text = "SELECT (SUM(?x) AS ?s) (AVG(?x) AS ?a) WHERE { ?c <urn:p> ?x }"
    items = worded(*(f'"{x}"^^<{XSD}decimal>' for x in ("1.5", "0.25", "2.0")))
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 2, 3))
    assert last(text, items) == {"s": Decimal("3.75"), "a": Decimal("1.25")}


def test_doubles_of_all_solutions_so_far_are_added_exactly() -> None:
    """Ten times 0.1 is 1, whatever came and went in between."""
    text = "SELECT (SUM(?x) AS ?s) WHERE { ?c <urn:p> ?x }"
    items = worded(*(f'"{x}"^^<{XSD}double>' for x in ("1e9", *["0.1"] * 10, "-1e9")))
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 5, 100))
    assert last(text, items) == {"s": 1.0}


@pytest.mark.parametrize("window", ["", " WITHIN 3 EVENTS"])
@pytest.mark.parametrize(
    "words",
    [
        ['"b"', '"a!"', '"a"', '"é"', '"z"', '""'],
        ["<urn:b>", "<urn:a>", "<urn:a/>", "<urn:z>"],
        ['"b"', "<urn:a>", '"a"@en', '"\\"a\\""', '"7"^^<urn:t>'],
    ],
    ids=["strings", "IRIs", "mixed"],
)
def test_texts_are_compared_by_their_letters(words: list[str], window: str) -> None:
    """The quotes and brackets around them do not count: a comes before a!, though ! comes before the quote."""
    text = f"SELECT (MIN(?x) AS ?m) (MAX(?x) AS ?n) (SAMPLE(?x) AS ?s) WHERE {{ ?c <urn:p> ?x }}{window}"
    program, items = compile(text), worded(*words, *words[:2])
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 3, 100))


def test_more_strings_than_a_remembered_order_takes_stay_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremes, "MOST", 3)
    text = "SELECT (MIN(?x) AS ?m) WHERE { ?c <urn:p> ?x }"
    assert last(text, worded(*(f'"{word}"' for word in "hgfedcb"))) == {"m": "b"}


def test_values_that_do_not_fit_go_on_in_rows_without_what_they_began() -> None:
    """A batch that fails adds neither groups nor terms in columns."""
    text = "SELECT ?c (COUNT(DISTINCT ?x) AS ?n) (SUM(?x) AS ?s) WHERE { ?c <urn:p> ?x } GROUP BY ?c"
    items = priced((1, "a", 7), (2, "b", 7), (3, "a", 7), (4, "c", 7), (5, "c", 2))
    items[3] = items[3]._replace(triples=(("<urn:c>", "<urn:p>", f'"1.5"^^<{XSD}decimal>'),))
    program = compile(text)
    same_reports(lambda executor: Engine(program, executor=executor), items, (1, 2, 3, 100))
