"""The examples of [EP] §4.1 through the engine, on small traces whose answers were worked out by hand.

The queries are the repaired ones of the rules room and, where the paper can be taken as printed, those as printed.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine, Event, compile, event

DAY = 86_400
PAPER = Path(__file__).parents[1] / "compiler" / "papers" / "ep"
STOCK = files("etalis_rules") / "programs" / "stock"
STOCK_IRI = "http://example.org/stock#"
TWO_SUMS = ("first_sum", "next_sum")


def shipped(*names: str) -> list[str]:
    return [(STOCK / f"{name}.rq").read_text(encoding="utf-8") for name in names]


def printed(name: str) -> list[str]:
    return [(PAPER / name).read_text(encoding="utf-8")]


def day(n: float, turtle: str) -> Event:
    return event(f"@prefix : <{STOCK_IRI}> . {turtle}", int(n * DAY))


def prices(*pairs: tuple[float, int], company: str = "acme") -> list[Event]:
    return [day(n, f":{company} :hasStockPrice {price}") for n, price in pairs]


def answers(texts: list[str], events: list[Event], **options: Any) -> list[tuple[Any, ...]]:
    """The rows of the last query: the values of its variables in alphabetical order, start and end in days."""
    engine = Engine(compile(texts, base=STOCK_IRI, prefixes={"": STOCK_IRI}), **options)
    found = [*engine.push_all(sorted(events, key=lambda e: e.end)), *engine.close()]
    last = engine.rules.outputs[-1].query
    rows = []
    for m in found:
        if m.query != last:
            continue
        values = [" ".join(map(short, t)) for t in m.triples] if m.triples is not None else [*m.bindings.values()]
        rows.append((*(short(v) for v in values), days(m.start_us), days(m.end_us)))
    return rows


def short(term: str) -> str:
    if term.startswith('"'):
        return term[1 : term.rindex('"')]
    return term.removeprefix(f"<{STOCK_IRI}").rstrip(">")


def days(us: int | None) -> float:
    assert us is not None
    return us / 1e6 / DAY


# --- (1) a fall by more than 30 %, then a rise to more than 5 % above the first price, within 30 days --------------

BOTH_1 = pytest.mark.parametrize("query", [printed("1.rq"), shipped("drop_and_rise")], ids=["printed", "shipped"])


@BOTH_1
def test_1_fall_and_rise(query: list[str]) -> None:
    (row,) = answers(query, prices((0, 100), (9, 69), (20, 106)))
    assert row[0] == "acme"
    assert row[-2:] == (0, 20)


@BOTH_1
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(prices((0, 100), (9, 70), (20, 106)), id="a fall by exactly 30 %"),
        pytest.param(prices((0, 100), (9, 69), (20, 105)), id="a rise by exactly 5 %"),
        pytest.param(prices((0, 100), (9, 69), (30, 106)), id="exactly 30 days"),
        pytest.param([*prices((0, 100), (9, 69)), *prices((20, 106), company="other")], id="another company"),
        pytest.param(prices((0, 100), (20, 106), (25, 69)), id="in another order"),
        pytest.param(prices((0, 100), (9, 69), (9, 106)), id="fall and rise at the same time"),
    ],
)
def test_1_near_misses(query: list[str], trace: list[Event]) -> None:
    assert answers(query, trace) == []


def test_1_every_combination_counts() -> None:
    """Two falls and two rises are four answers; where partners are consumed, 100 has one fall and that one rise."""
    trace = prices((0, 100), (1, 60), (2, 50), (3, 110), (4, 120))
    found = answers(shipped("drop_and_rise"), trace)
    assert sorted(row[1:4] for row in found) == [
        ("100", "50", "110"),
        ("100", "50", "120"),
        ("100", "60", "110"),
        ("100", "60", "120"),
    ]
    assert [row[1:4] for row in answers(shipped("drop_and_rise"), trace, policy="recent")] == [("100", "60", "110")]


# --- (2) a fall by more than half, with the agencies that downrated the company before, if any --------------------


@pytest.mark.parametrize("query", [printed("2.rq"), shipped("drop_with_rating")], ids=["printed", "shipped"])
def test_2_names_the_agency_where_one_downrated_before(query: list[str]) -> None:
    events = [
        day(1, ":acme :downratedby :sp"),
        day(2, ":acme :hasStockPrice 100 . :corp :hasStockPrice 100"),
        day(3, ":acme :hasStockPrice 40 . :corp :hasStockPrice 40"),
        day(4, ":corp :downratedby :sp"),
    ]
    found = answers(query, events)
    assert [(row[0], "sp" in row, *row[-2:]) for row in found] == [("acme", True, 1, 3), ("corp", False, 2, 3)]


# --- (3) a rise by more than half in less than 15 days without an acquisition -------------------------------------

BOTH_3 = pytest.mark.parametrize(
    "query", [printed("3.repaired.rq"), shipped("rise_without_acquisition")], ids=["printed", "shipped"]
)
RISE = prices((1, 100), (5, 151))
BOUGHT = ":acme :hasAcquired :corp"


@BOTH_3
def test_3_absence_is_absence_in_all_the_past(query: list[str]) -> None:
    (row,) = answers(query, RISE)
    assert (row[0], *row[-2:]) == ("acme", 1, 5)
    assert len(answers(query, [*RISE, day(6, BOUGHT)])) == 1
    assert answers(query, [*RISE, day(3, BOUGHT)]) == []
    assert answers(query, [*RISE, day(0, BOUGHT)]) == []


@BOTH_3
def test_3_takes_less_than_fifteen_days(query: list[str]) -> None:
    assert answers(query, prices((1, 100), (16, 151))) == []
    assert answers(query, prices((1, 100), (5, 150))) == []


# --- (4) downratings are events -------------------------------------------------------------------------------------

RATINGS = [
    day(1, ":r1 :rater :sp ; :rated :acme ; :score 9"),
    day(2, ":r2 :rater :sp ; :rated :acme ; :score 7"),
]
BOTH_4 = pytest.mark.parametrize("query", [printed("4.rq"), shipped("downrated")], ids=["printed", "shipped"])


@BOTH_4
def test_4_a_lower_score_by_the_same_agency(query: list[str]) -> None:
    assert answers(query, RATINGS) == [("acme downratedby sp", 1, 2)]
    assert answers(query, [RATINGS[0], day(2, ":r2 :rater :moody ; :rated :acme ; :score 7")]) == []
    assert answers(query, RATINGS[:1]) == []


@BOTH_4
def test_4_a_rating_may_be_spread_over_events(query: list[str]) -> None:
    spread = [
        day(1, ":r1 :rater :sp"),
        day(2, ":r1 :rated :acme ; :score 9"),
        day(3, ":r2 :rater :sp"),
        day(4, ":r2 :rated :acme"),
        day(5, ":r2 :score 7"),
    ]
    assert answers(query, spread) == [("acme downratedby sp", 1, 5)]


def test_4_and_2_together_query_the_closure() -> None:
    events = [*RATINGS, *prices((3, 100), (4, 40))]
    assert answers(shipped("downrated", "drop_with_rating"), events) == [("acme", "100", "40", "sp", 1, 4)]


# --- (5) and (6) sums and counts are passed from price to price: a sliding average by recursive rules --------------


def acme(*pairs: tuple[float, int]) -> list[Event]:
    return prices(*pairs, company="ACME")


def test_5_a_sum_and_a_count_begin_with_every_price_and_grow_with_the_next() -> None:
    """Of 10, 20, 60: three sums begin, the first two grow; [1, 3] is 10 + 20 + 60."""
    sums = "PREFIX : <http://example.org/stock#> SELECT ?n ?s { ?point :hasCount ?n ; :hasSum ?s }"
    found = answers([*shipped(*TWO_SUMS), sums], acme((1, 10), (2, 20), (3, 60)))
    assert sorted(found, key=lambda r: (r[-1], r[-2])) == [
        ("1", "10", 1, 1),
        ("2", "30", 1, 2),
        ("1", "20", 2, 2),
        ("3", "90", 1, 3),
        ("2", "80", 2, 3),
        ("1", "60", 3, 3),
    ]


def test_5_a_sum_lasts_less_than_ten_days() -> None:
    sums = "PREFIX : <http://example.org/stock#> SELECT ?n ?s { ?point :hasCount ?n ; :hasSum ?s }"
    found = answers([*shipped(*TWO_SUMS), sums], acme((0, 10), (9, 20), (10, 60)))
    assert ("2", "30", 0, 9) in found
    assert not [row for row in found if row[-1] - row[-2] >= 10]


def test_6_the_average_of_the_last_ten_days() -> None:
    """One price every third day.

    On day 12 the sum that began on day 3 (20, 30, 40, 50) is full, since with the price of day 0 it lasts 12 days; on
    day 15 that of day 6.  Day 9's is not: from day 0 to day 9 are less than ten days.
    """
    trace = acme((0, 10), (3, 20), (6, 30), (9, 40), (12, 50), (15, 60))
    assert answers(shipped(*TWO_SUMS, "average"), trace) == [("35", 0, 12), ("45", 3, 15)]


def test_5_and_6_as_repaired_from_the_print_say_the_same() -> None:
    trace = acme((0, 10), (3, 20), (6, 30), (9, 40), (12, 50), (15, 60))
    rules = printed("5.repaired.rq") + printed("6.repaired.rq")
    assert answers(rules, trace) == [("35", 0, 12), ("45", 3, 15)]


def test_the_count_window_variant() -> None:
    """The average of the last three prices, by ``WITHIN 3 EVENTS``: a row at every price."""
    query = f"PREFIX : <{STOCK_IRI}> SELECT (AVG(?p) AS ?average) WHERE {{ :ACME :hasStockPrice ?p }} WITHIN 3 EVENTS"
    assert answers([query], acme((0, 10), (1, 20), (2, 60), (3, 10), (4, 20))) == [
        ("10", 0, 0),
        ("15", 0, 1),
        ("30", 0, 2),
        ("30", 1, 3),
        ("30", 2, 4),
    ]


def test_the_count_window_by_recursive_rules() -> None:
    """The same from the sums of (5): those of three prices, the next price being another sum's."""
    query = f"PREFIX : <{STOCK_IRI}> SELECT (?s / ?n AS ?average) {{ ?p :hasCount ?n ; :hasSum ?s FILTER(?n = 3) }}"
    found = answers([*shipped(*TWO_SUMS), query], acme((0, 10), (1, 20), (2, 60), (3, 10), (4, 20)))
    assert found == [("30", 0, 2), ("30", 1, 3), ("30", 2, 4)]


def test_7_there_is_no_optional_that_looks_ahead() -> None:
    """[EP] (7), timewise monotonicity: what was an answer stays one."""
    query = ["SELECT ?x ?y WHERE { ?x ?x ?x OPTIONAL { ?y ?y ?y FILTER(?x != ?y) } }"]
    first = [day(0, ":a :a :a")]
    assert answers(query, first) == [("a", 0, 0)]
    assert answers(query, [*first, day(1, ":b :b :b")]) == [("a", 0, 0), ("b", "a", 0, 1)]
