"""Values of another kind than a condition needs are told wherever the condition stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from etalis_py import Event, compile, event, run

PAID = [event(':ann :paid "$120"', 1), event(":ann :paid 90", 2), event(':ann :paid "9.5"', 3)]
TEXTS = 'some values of :paid are texts, as "$120": '
QUOTED = 'values of :paid are texts, as "9.5": '
NONE = "?x > 80 lets none of them through"
LETTERS = 'compares them letter by letter, so "9" comes after "10"; xsd:decimal(…) makes a number of one'


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{ ?c :seen ?y } NEXT { ?c :paid ?x FILTER (?x > ?y + 1 && ?x > 80) }", TEXTS + NONE),
        ("{ ?c :seen ?y } SEQ NOT { ?c :paid ?x FILTER (?x > 80) } WITHIN 5 s", TEXTS + NONE),
        ("{ ?c :paid ?x } SEQ NOT { ?c :seen ?y FILTER (?x > 80 && ?y > ?x) } WITHIN 5 s", TEXTS + NONE),
        ("{ ?c :seen ?y } SEQ OPTIONAL { ?c :paid ?x FILTER (?x > 80) } WITHIN 5 s", TEXTS + NONE),
        ("{ ?c :seen ?y } UNION { ?c :paid ?x FILTER (?x > 80) }", TEXTS + NONE),
        ("?c :seen ?y OPTIONAL { ?c :paid ?x FILTER (?x > 80) }", TEXTS + NONE),
        ("?c :paid ?x OPTIONAL { ?c :seen ?y FILTER (?x > 80) }", TEXTS + NONE),
        ("?c :seen ?y MINUS { ?c :paid ?x FILTER (?x > 80) }", TEXTS + NONE),
        ("EVENT { { ?c :seen ?y } UNION { ?c :paid ?x FILTER (?x > 80) } }", TEXTS + NONE),
        ("{ ?c :paid ?x } REPEAT 2 BY ?c WHERE (?x > 80)", TEXTS + NONE),
        ("{ ?c :paid ?x } REPEAT 2 BY ?c WHERE (?x > PREVIOUS(?x))", f"{QUOTED}?x > PREVIOUS(?x) {LETTERS}"),
        ("{ ?c :paid ?x } REPEAT 3 BY ?c WHERE (?x < PREVIOUS(?x, 2))", f"{QUOTED}?x < PREVIOUS(?x, 2) {LETTERS}"),
        ("{ ?c :paid ?x } NEXT { ?c :paid ?y FILTER (?y > ?x) }", f"{QUOTED}?y > ?x {LETTERS}"),
        ("{ ?c :paid ?x } REPEAT 2 BY ?c AS (SUM(?x) AS ?n)", f"{TEXTS}SUM(?x) has no value with one of them"),
        (
            "{ ?c :paid ?x } REPEAT 2 BY ?c WHERE (SUM(?x) < 100) LONGEST",
            f"{TEXTS}SUM(?x) has no value with one of them",
        ),
        (
            "SELECT (AVG(?x * 2) AS ?n) { ?c :paid ?x }",
            f"{TEXTS}nothing can be calculated with ?x, so AVG(…) has no value with one of them",
        ),
    ],
)
def test_values_are_told_where_a_part_of_an_answer_or_a_step_of_a_run_needs_others(pattern: str, expected: str) -> None:
    assert expected in told(f"SELECT * {{ {pattern} }}", [*PAID, event(":ann :seen 3", 4)])


@pytest.mark.parametrize(
    ("amounts", "number"),
    [
        (("$9.50", "$12.00"), 'REPLACE(…, "[^0-9.-]", "")'),
        (("$1,200", "$900"), 'REPLACE(…, "[^0-9.-]", "")'),
        (("9,50", "12,00"), 'REPLACE(REPLACE(…, "[^0-9,-]", ""), ",", ".")'),
        (("1.200,50 €", "900 €"), 'REPLACE(REPLACE(…, "[^0-9,-]", ""), ",", ".")'),
    ],
)
@pytest.mark.parametrize("rows", [list, pd.DataFrame], ids=["dicts", "frame"])
def test_amounts_that_are_compared_with_one_another_are_told(
    rows: Callable[[Any], Any], amounts: tuple[str, ...], number: str
) -> None:
    """They were compared letter by letter without a word, unless a file had them."""
    given = rows([{"time": place, "id": "a", "paid": amount} for place, amount in enumerate(amounts)])
    matches = run(
        "SELECT * { { ?c :paid ?x } NEXT { ?c :paid ?y FILTER (?y > ?x) } }", given, time="time", subject="id"
    )
    list(matches)
    letters = LETTERS.partition(";")[0]
    assert matches.warnings == (
        f'values of :paid are texts, as "{amounts[0]}": ?y > ?x {letters}; xsd:decimal({number}) makes a number of one',
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "{ ?c :paid ?x } REPEAT 2 BY ?c WHERE (COALESCE(?x > 80, true))",
        "{ ?c :paid ?x } REPEAT 2 BY ?c AS (COUNT(?x) AS ?n)",
        "{ ?c :paid ?y } UNION { ?c :seen ?x FILTER (?x > 80) }",
        "?c :paid ?y OPTIONAL { ?c :seen ?x FILTER (?x > 80) }",
    ],
)
def test_values_that_no_condition_needs_are_left_alone(pattern: str) -> None:
    assert told(f"SELECT * {{ {pattern} }}", [*PAID, event(":ann :seen 3", 4)]) == ()


def told(text: str, given: list[Event]) -> tuple[str, ...]:
    """What is told of the events, without what is told of the text alone."""
    program = compile(text)
    matches = run(program, given)
    list(matches)
    return matches.warnings[len(program.warnings) :]
