"""Several EXISTS in one query: each is asked of the solution it stands beside, and of no other."""

from __future__ import annotations

from typing import Any

import pytest
from etalis_rules import program as ir
from etalis_rules.relations import Op

from etalis_py import Engine, Event
from tests.engine.judge import in_rows_and_columns
from tests.engine.judge import run as run_engine
from tests.oracle.strategies import Case
from tests.oracle.traces import Short, at, background, in_short, queries, run

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


@pytest.mark.parametrize(
    ("where", "events", "known", "rows"),
    [
        # What is absent at 2 is absent then: the supervisor has not signed, and comes too late at 3.
        (
            "?x :done ?y FILTER NOT EXISTS { ?s :leads ?x FILTER NOT EXISTS { ?s :signed ?y } }",
            "2 a done b ; 3 m signed b ; 4 c done b ; 5 a done b",
            "m leads a",
            [("x=c y=b", 4, 4), ("x=a y=b", 5, 5)],
        ),
        ("?x :p ?v FILTER EXISTS { ?x :q ?y FILTER EXISTS { ?z :q ?v } }", "3 a p b", "a q b", [("v=b x=a", 3, 3)]),
        ("?x :r ?y FILTER NOT EXISTS { ?x :p ?v MINUS { ?x :r ?v } }", "2 a r a", "a p c", []),
        ("?x :r ?y FILTER EXISTS { ?x :p ?v MINUS { ?z :r ?v } }", "2 a r a ; 3 a r c", "a p c", [("x=a y=a", 2, 2)]),
        ("?z :r ?y FILTER EXISTS { ?x :p ?y OPTIONAL { ?x :p ?z } }", "3 b r c", "b p c", [("y=c z=b", 3, 3)]),
        (
            "?x :p ?v FILTER EXISTS { ?z :q ?v OPTIONAL { ?z :p ?y . ?y :r ?y } }",
            "1 b p c",
            "b q c",
            [("v=c x=b", 1, 1)],
        ),
    ],
)
def test_what_is_absent_inside_an_exists_is_so_by_the_end_of_the_solution_beside_it(
    where: str, events: str, known: str, rows: list[Short]
) -> None:
    """Beside a background, too: at that time it is SPARQL over what has occurred and what is known."""
    stream = tuple(at(int(time), triple) for time, triple in (e.split(maxsplit=1) for e in events.split(" ; ")))
    text = f"SELECT * {{ {where} }}"
    assert run(text, *stream, knowing=background(known)) == rows
    case = Case(queries(text), stream, background(known))
    for executor in ("rows", "columns"):
        [answer] = run_engine(case, executor=executor).values()
        assert in_short(answer) == rows


@pytest.mark.parametrize(
    "group",
    [
        "{ ?z :p ?v FILTER (getENDTIME() < ?o) }",
        "{ { ?z :p ?v FILTER (getENDTIME() < ?o) } }",
        "{ { ?z :p ?v FILTER (getENDTIME() < ?o) } FILTER (?v = 1) }",
        "{ { { ?z :p ?v FILTER (getENDTIME() < ?o) } FILTER (getSTARTTIME() < ?o) } }",
    ],
)
def test_a_filter_inside_an_exists_has_the_time_of_its_own_group(group: str) -> None:
    """However many braces stand around it: :p ends at 1, and what is asked at 2."""
    text = f"SELECT ?x {{ ?x :q ?y BIND (getENDTIME() AS ?o) FILTER EXISTS {group} }}"
    rows = [("x=b", 2, 2)]
    events = (at(1, "a p 1"), at(2, "b q 2"))
    assert run(text, *events) == rows
    assert in_rows_and_columns(text, *events) == [rows, rows]


@pytest.mark.parametrize("shown", ["*", "?z"])
def test_a_minus_inside_an_exists_reads_variables_that_the_query_does_not_show(shown: str) -> None:
    """With y = a the MINUS takes nothing: nobody has :p to a."""
    text = f"SELECT {shown} {{ ?y :r ?z FILTER EXISTS {{ ?x :r ?z MINUS {{ ?x :p ?y }} }} }}"
    rows = [("y=a z=b" if shown == "*" else "z=b", 3, 3)]
    events = (at(2, "a p c"), at(3, "a r b"))
    assert run(text, *events) == rows
    assert in_rows_and_columns(text, *events) == [rows, rows]


@pytest.mark.parametrize(("policy", "taken"), [("recent", 2), ("chronological", 1)])
@pytest.mark.parametrize("marked", [1, 2])
def test_candidates_are_ordered_by_their_variables(policy: str, taken: int, marked: int) -> None:
    """Of simultaneous candidates ``recent`` takes the one with the greatest terms, whatever an EXISTS says of it."""
    text = "SELECT ?y { { ?x :p ?y FILTER (EXISTS { :m :r ?y } || ?y > 0) } SEQ { ?x :q ?z } }"
    events = (at(0, f"m r {marked}"), at(1, "a p 1 ; a p 2"), at(2, "a q 0"))
    rows = [(f"y={taken}", 1, 2)]
    assert run(text, *events, policy=policy) == rows
    assert in_rows_and_columns(text, *events, policy=policy) == [rows, rows]


PAIR = "{ ?x :p ?y } SEQ { ?x :p ?v }"
LOOPS = (at(0, "a p a ; a q a"), at(3, "a p a ; a p 1"))
MARKED = (at(0, "a p b"), at(1, "a p c"), at(2, "b q 1"), at(3, "a r 1"), at(4, "a r 2"))


@pytest.mark.parametrize("policy", ["recent", "chronological"])
@pytest.mark.parametrize(
    ("where", "events", "rows"),
    [
        (f"{{ {PAIR} FILTER EXISTS {{ ?x :q ?v }} }}", LOOPS, [("v=a x=a y=a", 0, 3)]),
        (f"{{ {PAIR} FILTER NOT EXISTS {{ ?x :q ?v }} }}", LOOPS, [("v=1 x=a y=a", 0, 3)]),
        ("{ ?x :p ?y } SEQ { ?x :r ?v } FILTER EXISTS { ?y :q ?z }", MARKED, [("v=1 x=a y=b", 0, 3)]),
        ("{ ?x :p ?y } SEQ { ?x :r ?v } BIND(1 AS ?w) FILTER EXISTS { ?y :q ?z }", MARKED, [("v=1 w=1 x=a y=b", 0, 3)]),
        (
            "{ ?x :p ?y } SEQ NOT { ?x :n ?u } SEQ { ?x :r ?v } FILTER EXISTS { ?y :q ?z }",
            MARKED,
            [("v=1 x=a y=b", 0, 3)],
        ),
        ("{ { ?x :p ?y } SEQ { ?x :r ?v } FILTER EXISTS { ?y :q ?z } } WITHIN 3 s", MARKED, [("v=1 x=a y=b", 0, 3)]),
        ("{ ?x :p ?y } SEQ { ?x :r ?v } FILTER (EXISTS { ?y :q ?z } && ?v > 1)", MARKED, [("v=2 x=a y=b", 0, 4)]),
    ],
)
def test_a_candidate_satisfies_the_exists_of_its_join(
    policy: str, where: str, events: tuple[Event, ...], rows: Any
) -> None:
    """An EXISTS decides what is a candidate: another one is taken instead, and what has failed is not consumed."""
    text = f"SELECT * {{ {where} }}"
    assert run(text, *events, policy=policy) == rows
    assert in_rows_and_columns(text, *events, policy=policy) == [rows, rows]


def test_what_is_known_beforehand_is_tested_beside_the_candidates() -> None:
    """The right side is known from the background for one pair, and from the stream for the other."""
    text = "SELECT * { { ?x :p ?y } SEQ { ?x :r ?v } FILTER EXISTS { ?y :q ?z } }"
    known = background("a r 7")
    rows = [("v=7 x=a y=b", 2, 2), ("v=1 x=a y=b", 2, 3)]
    events = (at(0, "b q 1"), at(1, "a p c"), at(2, "a p b"), at(3, "a r 1"))
    assert run(text, *events, policy="chronological", knowing=known) == rows
    case = Case(queries(text), events, known, "chronological")
    for executor in ("rows", "columns"):
        [answer] = run_engine(case, executor=executor).values()
        assert in_short(answer) == rows


def test_the_occurrences_that_a_candidate_looks_back_at_are_stored() -> None:
    text = "PREFIX : <urn:> SELECT * { { ?x :p ?y } SEQ { ?x :r ?v } FILTER EXISTS { ?y :q ?z } } USING POLICY recent"
    for cut in range(len(MARKED)):
        engine, later = Engine(text), Engine(text)
        before = engine.push_all(MARKED[:cut])
        later.restore(engine.snapshot())
        found = [*before, *later.push_all(MARKED[cut:]), *later.close()]
        assert [(m["v"], m["y"], m.start, m.end) for m in found] == [(1, "urn:b", 0, 3)]


def test_joins_without_exists_keep_their_ids() -> None:
    """A stored state is found by the ids of nodes."""
    ref = ir.Ref("l", ("x",))
    assert ir.identify(ir.Join(("x",), Op.SEQ, ref, ref, ("x",), policy="recent", owner="q#1")) == "je7e039f8ac6c"
    assert (
        ir.identify(ir.Absence(("x",), ref, ref, ref, ("x",), ("x",), policy="recent", owner="q#1")) == "a8f82b417138c"
    )


KNOWN = background(g="a e b", h="b d c")
SEEN = (at(1, "a p 6"), at(2, "a d 1"), at(3, "a p 9"), at(4, "c p 9"))


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("GRAPH :g { ?x :e ?z } FILTER NOT EXISTS { ?x :d ?w }", [("x=a y=6", 1, 1)]),
        ("GRAPH :g { ?x :e ?z } FILTER (?y > 8 && EXISTS { ?x :d ?w })", [("x=a y=9", 3, 3)]),
        (
            "GRAPH :g { ?x :e ?z } FILTER EXISTS { GRAPH :h { ?z :d ?v } FILTER NOT EXISTS { ?x :d ?w } }",
            [("x=a y=6", 1, 1)],
        ),
        (
            "GRAPH :g { ?x :e ?z } FILTER EXISTS { GRAPH :h { ?z :d ?v } FILTER EXISTS { GRAPH :g { ?x :e ?z } "
            "FILTER NOT EXISTS { ?x :d ?w } } }",
            [("x=a y=6", 1, 1)],
        ),
        ("GRAPH :g { ?x :e ?z } FILTER (?y > 8 || NOT EXISTS { GRAPH :h { ?z :d ?w } })", [("x=a y=9", 3, 3)]),
        ("GRAPH :g { ?x :e ?z } { FILTER (?y > 8) }", [("x=a y=9", 3, 3)]),
    ],
)
def test_an_exists_of_stored_graphs_looks_back_at_what_another_in_it_asks(asked: str, rows: list[Short]) -> None:
    text = f"SELECT ?x ?y {{ ?x :p ?y FILTER EXISTS {{ {asked} }} }}"
    assert run(text, *SEEN, knowing=KNOWN) == rows
    case = Case(queries(text), SEEN, KNOWN)
    for executor in ("rows", "columns"):
        assert in_short(run_engine(case, executor=executor)["q1"]) == rows


@pytest.mark.parametrize(
    "inner",
    [
        "?x ?w ?z VALUES ?x { :b :c }",
        "?x :p ?z VALUES ?x { :b } FILTER EXISTS { ?x :p ?v }",
        "?x :p ?z VALUES ?x { :b } FILTER (?v = ?z)",
        "?q :p ?z BIND (:b AS ?x)",
    ],
)
def test_values_inside_two_exists_are_joined_with_the_solution_around_both(inner: str) -> None:
    text = f"SELECT ?x {{ ?x :p ?v FILTER EXISTS {{ ?x :p ?y FILTER EXISTS {{ {inner} }} }} }}"
    events = (at(1, "a p b"), at(2, "b p c"))
    assert run(text, *events) == [("x=b", 2, 2)]
    assert in_rows_and_columns(text, *events) == [[("x=b", 2, 2)]] * 2
