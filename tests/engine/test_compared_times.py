"""Texts, numbers and dates that are compared with times of another kind: no answer, but a word of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from etalis_py import event, run
from etalis_py.engine.program import program_from
from etalis_py.engine.unseen_names import UnseenNames

DAY = '"2026-03-02"'
TYPED = f"{DAY}^^<http://www.w3.org/2001/XMLSchema#date>"
MOMENT = '"2026-03-02T08:00:00Z"'
TEXTS = "all values of :due are texts, as "
DATES = 'all values of :due are dates, as "2026-03-02"^^xsd:date: '
TO_DATE, TO_MOMENT = "; xsd:date(…) makes a date of one", "; xsd:dateTime(…) makes a dateTime of one"


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        (DAY, 'FILTER (?d > "2026-01-01"^^xsd:date)', f'{TEXTS}{DAY}: ?d > "2026-01-01"^^xsd:date NONE{TO_DATE}'),
        (DAY, 'FILTER ("2026-01-01"^^xsd:date <= ?d)', f'{TEXTS}{DAY}: "2026-01-01"^^xsd:date <= ?d NONE{TO_DATE}'),
        (MOMENT, "FILTER (?d < NOW())", f"{TEXTS}{MOMENT}: ?d < NOW() NONE{TO_MOMENT}"),
        (DAY, "FILTER (?d < NOW())", f"{TEXTS}{DAY}: ?d < NOW() NONE"),
        (TYPED, "FILTER (?d < NOW())", f"{DATES}?d < NOW() NONE{TO_MOMENT}"),
        (
            "1772438400",
            "FILTER (?d < getENDTIME())",
            "all values of :due are numbers, as 1772438400: ?d < getENDTIME() NONE",
        ),
        (DAY, "FILTER (YEAR(?d) = 2026)", f"{TEXTS}{DAY}: YEAR(?d) has no value, so the filter NONE{TO_DATE}"),
        (
            '"soon"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
            "FILTER (?d < NOW())",
            'all values of :due are no dateTimes, as "soon"^^xsd:dateTime: ?d < NOW() NONE',
        ),
    ],
)
def test_values_that_are_compared_with_a_time_of_another_kind_are_told(value: str, pattern: str, expected: str) -> None:
    given = [event(f":o :due {value}", 1)]
    expected = expected.replace("NONE", "lets none of them through")
    assert told(f"SELECT ?o {{ ?o :due ?d {pattern} }}", given) == ([], expected)
    assert told(f"SELECT ?o {{ EVENT {{ ?o :due ?d {pattern} }} }}", given)[1] == expected


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        (TYPED, '?d > "2026-01-01"^^xsd:date'),
        (f"{MOMENT}^^<http://www.w3.org/2001/XMLSchema#dateTime>", "?d < NOW()"),
        (DAY, 'xsd:date(?d) > "2026-01-01"^^xsd:date'),
        (DAY, 'COALESCE(?d > "2026-01-01"^^xsd:date, true)'),
        (DAY, '?d > "2026-01-01"'),
        (TYPED, "YEAR(?d) = 2026"),
    ],
)
def test_times_of_the_right_kind_are_left_alone(value: str, condition: str) -> None:
    assert told(f"SELECT ?o {{ ?o :due ?d FILTER ({condition}) }}", [event(f":o :due {value}", 1)])[1] == ""


def test_a_column_of_days_is_told() -> None:
    table = pa.table({"at": [1, 2], "order": ["a", "b"], "due": ["2026-03-02", "2026-03-03"]})
    query = 'SELECT ?o { ?o :due ?d FILTER (?d > "2026-01-01"^^xsd:date) }'
    expected = f'{TEXTS}{DAY}: ?d > "2026-01-01"^^xsd:date lets none of them through{TO_DATE}'
    for executor in ("rows", "columns"):
        assert told(query, table, time="at", subject="order", executor=executor) == ([], expected)


def test_a_column_of_texts_is_told_before_any_event() -> None:
    due = "<http://example.org/due>"
    census = UnseenNames(program_from('SELECT ?o { ?o :due ?d FILTER (?d > "2026-01-01"^^xsd:date) }'))
    given = {"predicates": [due], "texts": [due], "numbers": [], "subjects": []}
    expected = ':due is a column of texts: ?d > "2026-01-01"^^xsd:date lets none of them through'
    assert census.foreseen(given) == (expected,)


def told(text: str, given: Any, **options: Any) -> tuple[list[Any], str]:
    matches = run(text, given, **options)
    return list(matches), " ".join(matches.warnings)
