"""[RSEP] Examples 2 and 5 to 11 and the table of Figure 1, with the paper's numbers.  The unit of time is a second."""

from __future__ import annotations

import pytest
from etalis_compiler.rsp import Basic, Interval, Landmark, Sequence, Sliding, WindowUse
from etalis_rules import algebra as alg

from etalis_py.events import Event
from etalis_py.executors.windows import times
from etalis_py.executors.windows.content import Content
from etalis_py.executors.windows.patterns import EventMapping, EventMatcher
from tests.windows.small import EX, evaluations, item, run, short

# Figure 1
G = {
    1: item(2, ":a1 :p :b1"),
    2: item(4, ":a2 :p :b2"),
    3: item(6, ":b1 :q :c1 . :b2 :q :c2"),
    4: item(8, ":a3 :p :b3 . :b2 :q :c2"),
    5: item(10, ":b1 :q :c1"),
}
S = list(G.values())
SECONDS = {n: Event(g.start // 10**6, g.end // 10**6, g.triples) for n, g in G.items()}
STREAM = list(SECONDS.values())
LANDMARK, TIME = Landmark(1), Sliding(width=5, slide=1)


def graphs(items: list[Event]) -> list[int]:
    return [n for i in items for n, g in SECONDS.items() if g.end == i.end]


def test_example_2_landmark() -> None:
    assert graphs(times.content(LANDMARK, STREAM, 8)) == [1, 2, 3, 4]


def test_example_2_time_based() -> None:
    """(8 − 5, 8]; Example 7 lists (G1, 2) for the same window, which its own definition leaves out."""
    assert graphs(times.content(TIME, STREAM, 8)) == [2, 3, 4]


def test_example_2_nested() -> None:
    assert graphs(times.nested(Interval(0, 5), LANDMARK, STREAM, 8)) == [1, 2]


def test_example_5_the_snapshot_at_12() -> None:
    triples = {t for i in times.content(TIME, STREAM, 12) for t in i.triples}
    assert {" ".join(map(short, t)) for t in triples} == {"a3 p b3", "b1 q c1", "b2 q c2"}


def test_example_6_window_graph_pattern() -> None:
    query = """SELECT ?x ?y FROM NAMED :s WIN [RANGE 5] AS :w2 REPORT AT (12)
        WHERE { WINDOW :w2 { ?x :p ?y } }"""
    assert evaluations(query, S) == [(12, ["x=a3 y=b3"])]


# --- event patterns ---


def event(window: str, s: str, p: str, o: str) -> Basic:
    triple = alg.Triple(alg.Var(s), alg.Const(f"<{EX}{p}>"), alg.Var(o))
    return Basic(window, alg.BGP((triple,)))


E1, E2 = event("w1", "x", "p", "y"), event("w2", "y", "q", "z")


def contents(t: int, first: object = LANDMARK, second: object = TIME) -> dict[str, Content]:
    held = {}
    for name, shape in (("w1", first), ("w2", second)):
        held[name] = Content()
        held[name].replace(times.content(shape, STREAM, t))  # type: ignore[arg-type]
    return held


def told(mappings: list[EventMapping]) -> list[str]:
    return sorted(" ".join([*(short(m.mu[v]) for v in sorted(m.mu)), f"{m.start},{m.end}"]) for m in mappings)


def at_8(pattern: object) -> list[str]:
    return told(EventMatcher(pattern).evaluate(contents(8), 8))  # type: ignore[arg-type]


def test_example_7_a_basic_event_pattern() -> None:
    assert at_8(E2) == ["b1 c1 6,6", "b2 c2 6,6", "b2 c2 8,8"]


def test_example_8_seq() -> None:
    """The text gives the third result as (…, 6, 8) where (7) makes (…, 4, 6): from the start of E1 to the end of E2."""
    assert at_8(Sequence(E1, E2)) == ["a1 b1 c1 2,6", "a2 b2 c2 4,6", "a2 b2 c2 4,8"]


def test_example_9_match_takes_the_times_away() -> None:
    query = """SELECT ?x ?y ?z FROM NAMED :s WIN [LND 1] AS :w1 FROM NAMED :s WIN [RANGE 5] AS :w2 REPORT AT (8)
        EVENT ON :w1 { ?x :p ?y } AS E1 EVENT ON :w2 { ?y :q ?z } AS E2 WHERE { MATCH { E1 SEQ E2 } }"""
    query = query.replace(" REPORT AT (8)", "").replace("WHERE", "REPORT AT (8) WHERE")
    assert evaluations(query, S) == [(8, ["x=a1 y=b1 z=c1", "x=a2 y=b2 z=c2"])]


def test_example_10_naive() -> None:
    assert at_8(Sequence(E1, E2, "naive")) == ["a2 b2 c2 4,8"]


def test_example_10_chronological() -> None:
    assert at_8(Sequence(E1, E2, "chronological")) == ["a1 b1 c1 2,6", "a2 b2 c2 4,6"]


def test_example_10_recent() -> None:
    assert at_8(Sequence(E1, E2, "recent")) == ["a1 b1 c1 2,6", "a2 b2 c2 4,8"]


def in_turn(policy: str, consumption: str, second: object = LANDMARK) -> list[list[str]]:
    """The evaluations at 8 and 10."""
    matcher = EventMatcher(Sequence(E1, E2, policy), consumption)
    return [told(matcher.evaluate(contents(t, second=second), t)) for t in (8, 10)]


def test_example_11_chronological_consumes() -> None:
    matcher = EventMatcher(Sequence(E1, E2, "chronological"), "chronological")
    assert told(matcher.evaluate(contents(8), 8)) == ["a1 b1 c1 2,6", "a2 b2 c2 4,6"]
    used = {(" ".join(map(short, triple)), at) for _, triple, at in matcher.consumed}
    assert used == {("a1 p b1", 2), ("a2 p b2", 4), ("b1 q c1", 6), ("b2 q c2", 6)}  # G1, G2 and G3
    assert matcher.evaluate(contents(10), 10) == []


# the events of Figure 1
e1, e2, e3, e4 = "a2 b2 c2 4,6", "a1 b1 c1 2,6", "a2 b2 c2 4,8", "a1 b1 c1 2,10"


def test_figure_1_unrestricted() -> None:
    """e1, e2, e3 at 8; at 10 what is new is e4."""
    first, second = in_turn("unrestricted", "unrestricted")
    assert first == sorted([e1, e2, e3])
    assert sorted(set(second) - set(first)) == [e4]


def test_figure_1_chronological() -> None:
    assert in_turn("chronological", "chronological") == [sorted([e1, e2]), []]


def test_figure_1_recent() -> None:
    assert in_turn("recent", "recent") == [sorted([e2, e3]), []]


def test_figure_1_c_sparql() -> None:
    """A sliding window of 7 that slides by 1: e3 at 8, nothing at 10."""
    matcher = EventMatcher(Sequence(E1, E2, "naive"))
    window = Sliding(7, 1)
    assert told(matcher.evaluate(contents(8, window, window), 8)) == [e3]
    assert matcher.evaluate(contents(10, window, window), 10) == []


@pytest.mark.parametrize(
    "spelled",
    [
        "timestamp(?x :p ?y) < timestamp(?y :q ?z)",
        "f:timestamp(?x, :p, ?y) < f:timestamp(?y, :q, ?z)",  # as the engine of C-SPARQL spells it
    ],
)
def test_figure_1_c_sparql_by_timestamp(spelled: str) -> None:
    """The same by C-SPARQL's function.  At 8 the older b1 passes the test too: timestamps are those of the triples
    that match, not of the last match overall, so that c1 is found beside what [RSEP] (9) gives."""
    query = f"""PREFIX : <http://example.org/> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
        SELECT ?x ?z FROM STREAM :s [RANGE 7 SLIDE 1] REPORT AT (8, 10)
        WHERE {{ ?x :p ?y . ?y :q ?z . FILTER({spelled}) }}"""
    assert evaluations(query, S) == [(8, ["x=a1 z=c1", "x=a2 z=c2"]), (10, ["x=a2 z=c2"])]


# --- Table 1: what each row stands for, at 8 and 10 ---

TWO = """SELECT ?x ?y ?z FROM NAMED :s WIN {0} AS :w1 FROM NAMED :s WIN {0} AS :w2
    EVENT ON :w1 {{ ?x :p ?y }} AS E1 EVENT ON :w2 {{ ?y :q ?z }} AS E2 {1} WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("ep-sparql-unrestricted", {6: ["x=a1 y=b1 z=c1", "x=a2 y=b2 z=c2"]}),
        ("ep-sparql-chronological", {6: ["x=a1 y=b1 z=c1", "x=a2 y=b2 z=c2"]}),
        ("ep-sparql-recent", {6: ["x=a1 y=b1 z=c1", "x=a2 y=b2 z=c2"]}),
    ],
)
def test_table_1_ep_sparql_reports_when_the_content_changes(preset: str, expected: dict[int, list[str]]) -> None:
    """At 6, the first time at which there is something to find; after it nothing new by its bindings."""
    found = evaluations(TWO.format("[LND 0]", ""), S, preset=preset)
    assert [t for t, _ in found] == [2, 4, 6, 8, 10]
    assert {t: rows for t, rows in found if rows} == expected


def test_table_1_a_landmark_preset_wants_landmark_windows() -> None:
    with pytest.raises(ValueError, match=r"write <http://example.org/w1> … \[LANDMARK 0\]"):
        run(TWO.format("[RANGE 5]", ""), S, preset="ep-sparql-recent")


def test_table_1_c_sparql_sequence() -> None:
    found = dict(evaluations(TWO.format("[RANGE 7]", ""), S, preset="c-sparql"))
    assert found[8] == ["x=a2 y=b2 z=c2"]
    assert found[10] == []


def test_table_1_c_sparql_window() -> None:
    query = "SELECT ?x FROM STREAM :s [RANGE 5 STEP 5] { ?x :p ?y }"
    assert run(query, S) == ["x=a1 @[0, 5]", "x=a2 @[0, 5]", "x=a3 @[5, 10]"]


def test_the_windows_of_example_4() -> None:
    """Printed with [LND 9] although Example 3 says 1; as printed, only G5 is in the landmark window."""
    from etalis_py import compile

    text = """SELECT ?x ?z FROM NAMED :S WIN [LND 9] AS :w1 FROM NAMED :S WIN [RANGE 5] AS :w2
        EVENT ON :w1 { ?x :p ?y. } AS E1 EVENT ON :w2 { ?y :q ?z. } AS E2 WHERE { MATCH { E1 SEQ E2 } }"""
    windows = compile(text).plans[0].windows
    stream = f"<{EX}S>"
    assert windows == (
        WindowUse(f"<{EX}w1>", stream, Landmark(9_000_000)),
        WindowUse(f"<{EX}w2>", stream, Sliding(5_000_000, 1_000_000)),
    )
