"""Several EXISTS in one query: each is asked of the solution it stands beside, and of no other."""

from __future__ import annotations

import pytest

from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import Short, at, run

LEFT = "{ ?x :d ?v FILTER NOT EXISTS { ?x :in :u } }"
ABSENT = "{ ?x :f ?w FILTER EXISTS { ?x :in :t } }"
RIGHT = "{ ?y :q ?z }"
HALTED = (at(1, "b d 0"), at(5, "b f 0 ; b in t"), at(7, "b q 4"))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (f"{LEFT} SEQ NOT {ABSENT} SEQ {RIGHT}", []),
        (f"{LEFT} SEQ NOT {ABSENT} WITHIN 5 s", []),
        (f"{{ {LEFT} SEQ {RIGHT} }} NOT {ABSENT}", []),
        (f"{LEFT} SEQ NOT {ABSENT} SEQ {{ ?y :q ?z FILTER NOT EXISTS {{ ?y :in :u }} }}", []),
        (f"{LEFT} SEQ NOT {{ ?x :f ?w FILTER EXISTS {{ ?x :in :s }} }} SEQ {RIGHT}", [("v=0 x=b y=b z=4", 1, 7)]),
        (f"{LEFT} SEQ {ABSENT} SEQ {{ ?x :q ?z FILTER NOT EXISTS {{ ?x :in :u }} }}", [("v=0 w=0 x=b z=4", 1, 7)]),
        (f"{LEFT} MINUS {{ ?x :d ?v FILTER EXISTS {{ ?x :in :t }} }}", [("v=0 x=b", 1, 1)]),
        (f"{LEFT} FILTER EXISTS {{ ?x :d ?v FILTER EXISTS {{ ?x :d 0 }} }}", [("v=0 x=b", 1, 1)]),
    ],
)
def test_what_one_exists_finds_says_nothing_of_another(where: str, rows: list[Short]) -> None:
    text = f"SELECT * {{ {where} }}"
    assert run(text, *HALTED) == rows
    assert in_rows_and_columns(text, *HALTED) == [rows, rows]


@pytest.mark.parametrize(("policy", "taken"), [("recent", 2), ("chronological", 1)])
@pytest.mark.parametrize("marked", [1, 2])
def test_candidates_are_ordered_by_their_variables(policy: str, taken: int, marked: int) -> None:
    """Of simultaneous candidates ``recent`` takes the one with the greatest terms, whatever an EXISTS says of it."""
    text = "SELECT ?y { { ?x :p ?y FILTER (EXISTS { :m :r ?y } || ?y > 0) } SEQ { ?x :q ?z } }"
    events = (at(0, f"m r {marked}"), at(1, "a p 1 ; a p 2"), at(2, "a q 0"))
    rows = [(f"y={taken}", 1, 2)]
    assert run(text, *events, policy=policy) == rows
    assert in_rows_and_columns(text, *events, policy=policy) == [rows, rows]
