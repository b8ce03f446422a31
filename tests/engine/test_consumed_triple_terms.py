"""Patterns with triple terms under a policy that consumes: what is taken apart is no variable of the solution."""

from __future__ import annotations

import pytest

from etalis_py import Event
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import SECOND, Short, at, graph, run, term


def says(time: int, *statements: str) -> Event:
    """``"z a r 1"``: at this time z says <<( a r 1 )>>."""
    triples = []
    for statement in statements:
        speaker, inner = statement.split(" ", 1)
        ((s, p, o),) = graph(inner)
        triples.append((term(speaker), term("says"), f"<<( {s} {p} {o} )>>"))
    return Event(time * SECOND, time * SECOND, tuple(triples))


@pytest.mark.parametrize("policy", ["unrestricted", "chronological", "recent"])
@pytest.mark.parametrize(
    ("first", "rows"),
    [
        ("?e :says <<( ?x :r ?v )>>", [("e=e v=1 w=2 x=a", 1, 2)]),
        ("?e :says <<( ?x :r 1 )>>", [("e=e w=2 x=a", 1, 2)]),
        ("?e :says <<( ?x ?p ?v )>>", [("e=e p=r v=1 w=2 x=a", 1, 2)]),
        ("?e :says <<( [] :r ?v )>>", [("e=e v=1 w=2", 1, 2)]),
        ("?x :is ?y . ?e :says <<( ?x :r ?v )>>", [("e=e v=1 w=2 x=a y=0", 1, 2)]),
        ("_:b :is ?y . ?e :says <<( _:b :r ?v )>>", [("e=e v=1 w=2 y=0", 1, 2)]),
        ("?e (:says|:tells)/:none* <<( ?x :r ?v )>>", [("e=e v=1 w=2 x=a", 1, 2)]),
        ("?e :says <<( ?x :s ?v )>>", []),
    ],
)
def test_the_term_is_taken_apart(first: str, rows: list[Short], policy: str) -> None:
    text = f"SELECT * {{ {{ {first} }} SEQ {{ [] :q ?w }} }}"
    events = (says(1, "e a r 1"), at(1, "a is 0"), at(2, "f q 2"))
    assert run(text, *events, policy=policy) == rows
    assert in_rows_and_columns(text, *events, policy=policy) == [rows, rows]


@pytest.mark.parametrize(("policy", "taken"), [("recent", "z"), ("chronological", "y")])
@pytest.mark.parametrize("inner", ["?x :r ?v", "[] :r ?v"])
def test_candidates_are_ordered_by_their_variables(inner: str, policy: str, taken: str) -> None:
    """By ?e first, the first in the alphabet; the term, and the blank node in it, would have them the other way."""
    text = f"SELECT ?e {{ {{ ?e :says <<( {inner} )>> }} SEQ {{ ?f :q ?w }} }}"
    events = (says(1, "z a r 1", "y b r 1"), at(2, "f q 2"))
    rows = [(f"e={taken}", 1, 2)]
    assert run(text, *events, policy=policy) == rows
    assert in_rows_and_columns(text, *events, policy=policy) == [rows, rows]
