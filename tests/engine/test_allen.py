"""Allen's relations, and what NOT, SEQ NOT and NEXT mean said with other operators."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event
from tests.oracle import strategies

SECOND = 1_000_000
RELATIONS = ("SEQ", "MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "EQUALS")
INTERVALS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda t: (min(t), max(t)))


SIDES = [(relation, turned) for relation in (*RELATIONS, "PAR") for turned in (False, True)]
PAIRS = {False: "{{ ?x :p 1 }} {} {{ ?y :q 1 }}", True: "{{ ?y :q 1 }} {} {{ ?x :p 1 }}"}
PROGRAM = compile("".join(f"SELECT * {{ {PAIRS[turned].format(relation)} }}\n" for relation, turned in SIDES))


@given(INTERVALS, INTERVALS)
def test_exactly_one_of_thirteen_holds(one: tuple[int, int], other: tuple[int, int]) -> None:
    """SEQ, EQUALS, the five, and the inverses of six; points included."""
    intervals = ((":a :p 1", one), (":b :q 1", other))
    events = [Event(s * SECOND, e * SECOND, event(text, 0).triples) for text, (s, e) in intervals]
    engine = Engine(PROGRAM)
    matches = [*engine.push_all(sorted(events, key=lambda e: e.end)), *engine.close()]
    held = [SIDES[int(m.query[1:]) - 1] for m in matches]
    thirteen = [side for side in held if side[0] != "PAR" and side != ("EQUALS", True)]
    assert len(thirteen) == 1
    apart = thirteen[0][0] == "SEQ"
    assert [turned for relation, turned in held if relation == "PAR"].count(False) == (not apart)
    assert (("PAR", False) in held) == (("PAR", True) in held)


def rows(query: str, events: tuple[Event, ...]) -> list[tuple[object, ...]]:
    engine = Engine(compile(query))
    found = [*engine.push_all(events), *engine.close()]
    return sorted((m.start_us, m.end_us, *sorted(m.bindings.items())) for m in found)


BY_HAND = {
    "P NOT N": (
        "SELECT ?x ?y ?z { { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } NOT { ?x <urn:r> ?v } }",
        "SELECT ?x ?y ?z { { { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } "
        "BIND (getSTARTTIME() AS ?s1) BIND (getENDTIME() AS ?e1) } "
        "OPTIONAL { { ?x <urn:r> ?v BIND (getSTARTTIME() AS ?s2) BIND (getENDTIME() AS ?e2) } "
        "FILTER (?s1 < ?s2 && ?e2 < ?e1) } FILTER (!BOUND(?v)) }",
    ),
    "A SEQ NOT N SEQ C": (
        "SELECT ?x ?y ?z { { ?x <urn:p> ?y } SEQ NOT { ?x <urn:r> ?v } SEQ { ?x <urn:q> ?z } }",
        "SELECT ?x ?y ?z { { ?x <urn:p> ?y BIND (getENDTIME() AS ?ta) } "
        "SEQ { ?x <urn:q> ?z BIND (getSTARTTIME() AS ?tc) } "
        "FILTER NOT EXISTS { ?x <urn:r> ?v FILTER (?ta < getSTARTTIME() && getENDTIME() < ?tc) } }",
    ),
    "A NEXT B": (
        "SELECT ?x ?y ?z { { ?x <urn:p> ?y } NEXT { ?x <urn:q> ?z } }",
        "SELECT ?x ?y ?z { { ?x <urn:p> ?y BIND (getENDTIME() AS ?ta) } "
        "SEQ { ?x <urn:q> ?z BIND (getENDTIME() AS ?tb) } "
        "FILTER NOT EXISTS { ?x <urn:q> ?v FILTER (?ta < getSTARTTIME() && getENDTIME() < ?tb) } }",
    ),
}


@pytest.mark.parametrize("kind", BY_HAND)
def test_absence_and_next_said_with_other_operators(kind: str) -> None:
    short, by_hand = BY_HAND[kind]

    @given(st.one_of(strategies.streams(8, 14), strategies.streams(8, 14, lengths=strategies.LONG)))
    def check(events: tuple[Event, ...]) -> None:
        assert rows(short, events) == rows(by_hand, events)

    check()


# --- what other systems document --------------------------------------------------------------------------------


def run(query: str, *steps: str) -> list[str]:
    """The rows over events one second apart, as ``name=word …`` in the order of reporting."""
    engine = Engine(compile(query))
    found = [*engine.push_all([event(text, t + 1) for t, text in enumerate(steps)]), *engine.close()]
    return [" ".join(f"{v}={_word(t)}" for v, t in sorted(m.bindings.items())) for m in found]


def _word(term: str) -> str:
    return term.rsplit("/", 1)[-1].strip(">") if term[0] == "<" else term.split('"')[1]


def test_flink_strict_and_relaxed_contiguity() -> None:
    """Flink CEP, "Combining Patterns", a b over a, c, b1, b2: next nothing, followedBy {a b1}, followedByAny both.

    ``next`` there is the very next event of the stream, whatever it is: here what is next is said by the right side's
    braces, so strict contiguity takes any event there and filters the pair.
    """
    stream = (":s :type :a", ":s :type :c", ":s :type :b1", ":s :type :b2")
    a, any_b = "{ ?s :type :a }", "{ ?s :type ?b FILTER (?b = :b1 || ?b = :b2) }"
    assert run(f"SELECT ?b {{ {a} NEXT {{ ?s :type ?b }} FILTER (?b = :b1 || ?b = :b2) }}", *stream) == []
    assert run(f"SELECT ?b {{ {a} NEXT {any_b} }}", *stream) == ["b=b1"]
    assert run(f"SELECT ?b {{ {a} SEQ {any_b} }}", *stream) == ["b=b1", "b=b2"]


def test_flink_not_followed_by_and_not_next() -> None:
    """Flink CEP: ``notFollowedBy`` between two patterns is SEQ NOT … SEQ; ``notNext`` is NEXT with a filter."""
    quiet = "SELECT ?x { { ?s :a ?x } SEQ NOT { ?s :c ?n } SEQ { ?s :b ?y } }"
    assert run(quiet, ":s :a 1", ":s :c 1", ":s :b 1") == []
    assert run(quiet, ":s :a 1", ":s :d 1", ":s :b 1") == ["x=1"]
    not_next = "SELECT ?x { { ?s :type :a } NEXT { ?s :type ?x } FILTER (?x != :c) }"
    assert run(not_next, ":s :type :a", ":s :type :c", ":s :type :b") == []
    assert run(not_next, ":s :type :a", ":s :type :b") == ["x=b"]


def test_flink_not_followed_by_at_the_end_within() -> None:
    """Flink CEP: a pattern sequence may end with notFollowedBy() when within gives the time."""
    query = "SELECT ?s { { ?s :a ?x } SEQ NOT { ?s :b ?y } WITHIN 2 SECONDS }"
    assert run(query, ":s :a 1", ":s :c 1", ":s :c 2", ":s :b 1") == ["s=s"]
    assert run(query, ":s :a 1", ":s :b 1") == []


def test_flink_times() -> None:
    """Flink CEP, "Looping patterns": ``times(2)`` and ``oneOrMore`` with strict contiguity between the elements.

    Flink's ``times(2, 4)`` reports each number of times once it is reached, and so does REPEAT without LONGEST.
    """
    stream = (":s :a 1", ":s :a 2", ":s :a 3")
    pairs = "SELECT ?from ?to { { ?s :a ?x } REPEAT 2 BY ?s AS (FIRST(?x) AS ?from, LAST(?x) AS ?to) }"
    assert run(pairs, *stream) == ["from=1 to=2", "from=2 to=3"]
    more = "SELECT ?from ?to { { ?s :a ?x } REPEAT 1 OR MORE BY ?s AS (FIRST(?x) AS ?from, LAST(?x) AS ?to) }"
    assert run(more, *stream) == [
        *("from=1 to=1", "from=1 to=2", "from=2 to=2", "from=1 to=3", "from=2 to=3", "from=3 to=3"),
    ]


def test_match_recognize_v_shape() -> None:
    """The V-shape of the manuals of MATCH_RECOGNIZE, PATTERN (STRT DOWN+ UP+): price falls, then rises.

    AFTER MATCH SKIP TO LAST UP has no counterpart: every later rise that prolongs the V is a match of its own.
    """
    query = """
    SELECT ?top ?bottom ?end {
      { { ?c :price ?p } REPEAT 2 OR MORE BY ?c WHERE (?p < PREVIOUS(?p)) LONGEST
        AS (FIRST(?p) AS ?top, LAST(?p) AS ?bottom) }
      NEXT { { ?c :price ?q } } FILTER (?q > ?bottom) BIND (?q AS ?end)
    }"""
    prices = (12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19)  # Oracle's ticker ACME
    assert run(query, *(f":acme :price {p}" for p in prices)) == ["bottom=12 end=15 top=25"]
