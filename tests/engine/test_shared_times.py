"""Events of one subject and predicate at one time are told of where a query puts them in order."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py import compile, event, run
from etalis_py.engine.first_events import FirstEvents
from etalis_py.engine.shared_times import FEWEST, SharedTimes
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.kernel.batch import Batch

MOST = FirstEvents.MOST

ORDER = "SELECT ?x ?y { { ?c :price ?x } NEXT { ?c :price ?y } }"
COARSE = [event(f":acme :price {n}", n // 2) for n in range(40)]
FINE = [event(f":acme :price {n}", n) for n in range(40)]
TOLD = (
    "40 of 40 events share their time with another one of the same subject and predicate, such as :acme :price: "
    "simultaneous events have no order"
)


def warnings(text: str, events: Any) -> tuple[str, ...]:
    matches = run(text, events)
    list(matches)
    return matches.warnings


def test_a_coarse_clock_is_told_once() -> None:
    [told] = warnings(ORDER, COARSE)
    assert told.startswith(TOLD)


@pytest.mark.parametrize(
    "operator",
    [
        *("{A} SEQ {B}", "{A} SEQ NOT {B} WITHIN 5 s", "{A} REPEAT 2 BY ?c"),
        *("{A} SEQ OPTIONAL {B} WITHIN 5 s", "{A} OPTIONALSEQ {B}"),
    ],
)
def test_it_is_told_wherever_events_are_put_in_order(operator: str) -> None:
    where = operator.replace("{A}", "{ ?c :price ?x }").replace("{B}", "{ ?c :price ?y }")
    [told] = warnings(f"SELECT ?c {{ {where} }}", COARSE)
    assert told.startswith(TOLD)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (ORDER, FINE),
        ("SELECT ?x { ?c :price ?x }", COARSE),
        (ORDER, COARSE[: FEWEST - 1]),
        (ORDER, [event(f":c{n % 2} :price {n}", n // 2) for n in range(40)]),
        (ORDER, [*FINE, *FINE]),
        (ORDER, [event(f":acme :{'price' if n % 2 else 'volume'} {n}", n // 2) for n in range(40)]),
        (ORDER, [event(f":acme :price {n}", max(n, 10)) for n in range(110)]),
    ],
    ids=["fine times", "no order", "few", "other subjects", "the same again", "other predicates", "less than a tenth"],
)
def test_nothing_is_told(text: str, events: Any) -> None:
    assert not [w for w in warnings(text, sorted(events, key=lambda e: e.end)) if "share their time" in w]


def test_only_the_first_events_are_counted_in_rows_and_columns() -> None:
    many = [event(f":acme :price {n}", n // 2) for n in range(2 * MOST)]
    program = compile(ORDER)
    noticed: list[str] = []
    census = UnseenNames(program, noticed.append)
    census.see(many[:MOST])
    census.see(many[MOST:])
    assert noticed == list(census.warnings())
    assert noticed[0].startswith(f"{MOST:,} of the first {MOST:,} events share their time")
    columns = SharedTimes.of(program)
    assert columns is not None
    columns.see_columns(Batch(many, 0).columns)
    assert list(columns.warnings()) == noticed


def test_of_a_batch_that_was_looked_at_in_part_the_first_events_are_told() -> None:
    """Each event has two triples, so half as many events are looked at as rows."""
    many = [event(f":acme :price {n} ; :size 1", n // 2) for n in range(2 * MOST)]
    columns = SharedTimes.of(compile(ORDER))
    assert columns is not None
    columns.see_columns(Batch(many, 0).columns)
    [told] = columns.warnings()
    assert told.startswith(f"{MOST // 2:,} of the first {MOST // 2:,} events share their time")
