"""What Flink CEP and MATCH_RECOGNIZE document, said with NEXT, REPEAT and NOT: the answers that they print."""

from __future__ import annotations

import pytest

from etalis_py import Event, compile, event, run

SECOND = 1_000_000
MINUTE = 60 * SECOND


def kinds(text: str) -> list[Event]:
    """``a c b1``: one event a second, each thing of the kind that its letter says."""
    return [event(f":{name} :is :{name[0]}", t) for t, name in enumerate(text.split())]


def prices(rows: list[tuple[int, int]]) -> list[Event]:
    return [Event(t, t, event(f":ACME :price {price}", 0).triples) for t, price in rows]


def local(value: object) -> object:
    return value.rsplit("/", 1)[-1] if isinstance(value, str) else value


def answers(where: str, events: list[Event], *variables: str) -> list[tuple[object, ...]]:
    matches = run(compile(f"SELECT * {{ {where} }}"), events)
    return sorted(tuple(local(m[v]) for v in variables) for m in matches)


# --- Flink CEP: contiguity ---


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # strict, next(): whatever comes first must be it, so every event is a candidate of NEXT
        ("{ ?x :is ?a } NEXT { ?y :is ?b } FILTER (?a = :a && ?b = :b)", []),
        # relaxed, followedBy(): the first b
        ("{ ?x :is :a } NEXT { ?y :is :b }", [("a", "b1")]),
        # non-deterministic relaxed, followedByAny(): any b
        ("{ ?x :is :a } SEQ { ?y :is :b }", [("a", "b1"), ("a", "b2")]),
    ],
    ids=["strict", "relaxed", "any"],
)
def test_contiguity(where: str, expected: list[tuple[str, str]]) -> None:
    assert answers(where, kinds("a c b1 b2"), "x", "y") == expected


@pytest.mark.parametrize(
    ("contiguity", "expected"),
    [
        ("NOT { ?d :is :d }", [("b1", "b1"), ("b2", "b2"), ("b3", "b3")]),  # strict: there are no adjacent b's
        ("", [("b1", "b1"), ("b1", "b2"), ("b1", "b3"), ("b2", "b2"), ("b2", "b3"), ("b3", "b3")]),  # relaxed
    ],
    ids=["strict", "relaxed"],
)
def test_contiguity_within_looping_patterns(contiguity: str, expected: list[tuple[str, str]]) -> None:
    """``a b+ c``.  What non-deterministic relaxed contiguity adds, {b1 b3}, is no run here: none is left out."""
    run_of_b = f"{{ {{ ?b :is :b }} REPEAT 1 OR MORE {contiguity} AS (FIRST(?b) AS ?f, LAST(?b) AS ?l) }}"
    where = f"{{ ?x :is :a }} SEQ {run_of_b} SEQ {{ ?z :is :c }}"
    assert answers(where, kinds("a b1 d1 b2 d2 b3 c"), "f", "l") == expected


@pytest.mark.parametrize(
    ("consecutive", "expected"),
    [("NOT { ?d :is :D }", [(1, "A1"), (2, "A2"), (3, "A3")]), ("", [(1, "A1"), (2, "A2"), (3, "A3"), (4, "A4")])],
    ids=["consecutive", "relaxed"],
)
def test_one_or_more(consecutive: str, expected: list[tuple[int, str]]) -> None:
    """``C A+ B``: the first A is the one that follows C, so that none lies between C and the run.

    What ``allowCombinations()`` adds is no run here: a run leaves nothing out.
    """
    loop = f"{{ {{ ?a :is :A }} REPEAT 1 OR MORE {consecutive} AS (COUNT(*) AS ?n, LAST(?a) AS ?l) }}"
    where = f"{{ ?c :is :C }} SEQ NOT {{ ?x :is :A }} SEQ {loop} SEQ {{ ?b :is :B }}"
    assert answers(where, kinds("C D A1 A2 A3 D A4 B"), "n", "l") == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ("2", [("a1", "a2"), ("a2", "a3"), ("a3", "a4")]),
        ("4", [("a1", "a4")]),
        ("2 TO 3", [("a1", "a2"), ("a1", "a3"), ("a2", "a3"), ("a2", "a4"), ("a3", "a4")]),
        ("3 OR MORE", [("a1", "a3"), ("a1", "a4"), ("a2", "a4")]),
    ],
    ids=["times(2)", "times(4)", "times(2, 3)", "timesOrMore(3)"],
)
def test_times(times: str, expected: list[tuple[str, str]]) -> None:
    where = f"{{ ?a :is :a }} REPEAT {times} AS (FIRST(?a) AS ?f, LAST(?a) AS ?l)"
    assert answers(where, kinds("a1 x a2 a3 a4"), "f", "l") == expected


# --- Flink CEP: what must not come ---


@pytest.mark.parametrize(
    ("stream", "not_next", "not_followed_by"), [("a n c", [], []), ("a x n c", ["a"], []), ("a x c", ["a"], ["a"])]
)
def test_negation(stream: str, not_next: list[str], not_followed_by: list[str]) -> None:
    """notNext() looks at the very next event, notFollowedBy() at all before the pattern goes on."""
    directly = "{ ?a :is :a } NEXT { ?y :is ?k } FILTER (?k != :n)"
    assert answers(directly, kinds(stream), "a") == [(a,) for a in not_next]
    between = "{ ?a :is :a } SEQ NOT { ?n :is :n } SEQ { ?c :is :c }"
    assert answers(between, kinds(stream), "a") == [(a,) for a in not_followed_by]


def test_negation_at_the_end_of_a_pattern_needs_a_time() -> None:
    """notFollowedBy().within(): the answer comes when the time is over."""
    where = "{ ?a :is :a } SEQ NOT { ?n :is :n } WITHIN 3 SECONDS"
    assert answers(where, kinds("a1 x n a2 x x x n"), "a") == [("a2",)]


def test_within() -> None:
    assert answers("{ { ?a :is :a } SEQ { ?b :is :b } } WITHIN 2 SECONDS", kinds("a1 a2 x b"), "a") == [("a2",)]


# --- MATCH_RECOGNIZE ---

FALL = """{
  { { ?c :price ?p } REPEAT 2 OR MORE BY ?c WHERE (?p < PREVIOUS(?p)) LONGEST AS (LAST(?p) AS ?bottom) }
  BIND (getENDTIME() AS ?when)
} NEXT { ?c :price ?up } FILTER (?up > ?bottom)"""


def test_a_period_of_falling_prices() -> None:
    """``START_ROW PRICE_DOWN+ PRICE_UP``: from 10:00:04 over 10:00:07 to 10:00:08."""
    ticker = prices([(t * SECOND, p) for t, p in enumerate((12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19))])
    (match,) = run(compile(f"SELECT ?c ?when {{ {FALL} }}"), ticker)
    assert (match.start, match["when"].second, match.end) == (4, 7, 8)


def test_a_drop_of_more_than_ten_within_an_hour() -> None:
    """``A B* C WITHIN INTERVAL '1' HOUR``: 14, from 15 at 12:00 to 1 at 13:00.

    SQL leaves out what begins inside a match that it has reported (AFTER MATCH SKIP PAST LAST ROW).  Here every match
    is one: from 14 at 12:20 and from 24 at 12:40, too.
    """
    rows = enumerate((20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19))
    ticker = prices([(20 * MINUTE * i, p) for i, p in rows])
    where = """{ { ?c :price ?p } REPEAT 1 OR MORE BY ?c WHERE (?p > FIRST(?p) - 10) AS (FIRST(?p) AS ?from) }
      NEXT { ?c :price ?to } FILTER (?to < ?from - 10)"""
    matches = sorted(run(compile(f"SELECT * {{ {{ {where} }} WITHIN 1 HOUR }}"), ticker), key=lambda m: m.start_us)
    assert [(m.start_us // MINUTE, m.end_us // MINUTE, m["from"] - m["to"]) for m in matches] == [
        (120, 180, 14),
        (140, 180, 13),
        (160, 180, 23),
    ]
