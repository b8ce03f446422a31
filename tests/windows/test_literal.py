"""The engine against the definitions, over random windows, streams, policies and event patterns."""

from __future__ import annotations

from collections import defaultdict

from etalis_compiler.parser import parse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etalis_py import Engine
from etalis_py.events import Event
from etalis_py.executors.windows.executor import Evaluation
from tests.draws import examples
from tests.windows.literal import rsep, rspql
from tests.windows.literal.rspql import Item
from tests.windows.small import EX, SECOND

QUICK = settings(max_examples=examples(4 / 5), suppress_health_check=[HealthCheck.too_slow])
STREAMS = (f"<{EX}s>", f"<{EX}u>")


def terms(names: str) -> st.SearchStrategy[str]:
    return st.sampled_from([f"<{EX}{n}>" for n in names])


triples = st.tuples(terms("abc"), terms("pq"), terms("abc"))
items = st.builds(
    lambda t, found, s: Item(t, tuple(dict.fromkeys(found)), s),
    st.integers(1, 22),
    st.lists(triples, min_size=1, max_size=3),
    st.sampled_from(STREAMS),
)
# one item for each stream and time: two of them would be one item for a set of triples, but two for consumption
streams = st.lists(items, min_size=1, max_size=9, unique_by=lambda i: (i.time, i.stream)).map(
    lambda found: sorted(found, key=lambda i: i.time)
)
windows = st.one_of(
    st.builds(
        lambda a, b, t0: f"[RANGE PT{a}S SLIDE PT{b}S T0 {t0}]", st.integers(1, 7), st.integers(1, 7), st.integers(0, 5)
    ),
    st.builds(lambda a: f"[RANGE PT{a}S TUMBLING]", st.integers(1, 7)),
    st.builds(
        lambda a, b, d: f"[NOW - {a + d} S TO NOW - {d} S SLIDE {b} S]",
        st.integers(1, 6),
        st.integers(1, 6),
        st.integers(1, 4),
    ),
    st.builds(lambda a: f"[LANDMARK {a}]", st.integers(0, 9)),
    st.builds(lambda a, b: f"[INTERVAL {a} {a + b}]", st.integers(0, 9), st.integers(0, 9)),
)
policies = st.sampled_from(
    [
        "",
        "REPORT ON WINDOW CLOSE",
        "REPORT ON CONTENT CHANGE",
        "REPORT ON CONTENT CHANGE AND NON-EMPTY CONTENT",
        "REPORT ON CONTENT CHANGE AND WINDOW CLOSE",
        "REPORT PERIODIC PT2S",
        "REPORT ON NON-EMPTY CONTENT, PERIODIC PT3S",
        "REPORT ON CONTENT CHANGE, PERIODIC PT3S",
        "REPORT ON WINDOW CLOSE, PERIODIC PT2S",
        "REPORT AT (5, 9, 25)",
        "REPORT ON NON-EMPTY CONTENT",
    ]
)


def events(stream: list[Item]) -> list[Event]:
    return [Event(i.time * SECOND, i.time * SECOND, i.triples, i.stream) for i in stream]


def answers(text: str, stream: list[Item]) -> list[tuple[int, int, list[tuple[str, ...]]]]:
    heard: list[Evaluation] = []
    engine = Engine(text, listen=heard.append)
    engine.push_all(events(stream))
    engine.close()
    variables = engine.plans[0].variables
    found = []
    for a in heard:
        rows = sorted(tuple(m.bindings[v] for v in variables) for m in a.matches)
        found.append((a.time // SECOND, a.opening // SECOND, rows))
    return found


# policies that look at one window of two
of_one = st.sampled_from(
    [
        "REPORT ON WINDOW CLOSE OF :v",
        "REPORT ON WINDOW CLOSE OF :v, NON-EMPTY CONTENT OF :w",
        "REPORT ON CONTENT CHANGE OF :w",
        "REPORT ON CONTENT CHANGE OF :v AND WINDOW CLOSE OF :w",
        "REPORT ON CONTENT CHANGE OF :v AND CONTENT CHANGE OF :w",
        "REPORT ON NON-EMPTY CONTENT OF :v",
        "REPORT ON NON-EMPTY CONTENT OF :w, PERIODIC PT2S",
        "REPORT ON WINDOW CLOSE, NON-EMPTY CONTENT OF :v",
    ]
)


@QUICK
@given(windows, windows, of_one, st.sampled_from(["RSTREAM", "ISTREAM"]), streams)
def test_rspql_policies_of_one_window(one: str, two: str, policy: str, r2s: str, stream: list[Item]) -> None:
    text = f"""SELECT {r2s} ?x ?y FROM NAMED WINDOW :w ON :s {one} FROM NAMED WINDOW :v ON :u {two} {policy}
        WHERE {{ WINDOW :w {{ ?x :p ?y }} WINDOW :v {{ ?y :q ?z }} }}"""
    assert answers(text, stream) == rspql.run(rspql.read(parse(text).queries[0]), stream)


@QUICK
@given(windows, windows, st.booleans(), policies, st.sampled_from(["", "RSTREAM", "ISTREAM", "DSTREAM"]), streams)
def test_rspql(one: str, two: str, both: bool, policy: str, r2s: str, stream: list[Item]) -> None:
    second = f"FROM NAMED WINDOW :v ON :u {two}" if both else ""
    where = "WINDOW :v { ?y :q ?z }" if both else ""
    text = f"""SELECT {r2s} ?x ?y FROM NAMED WINDOW :w ON :s {one} {second} {policy}
        WHERE {{ WINDOW :w {{ ?x :p ?y }} {where} }}"""
    query = rspql.read(parse(text).queries[0])
    expected = rspql.run(query, stream)
    assert answers(text, stream) == expected


PATTERNS = [
    "E1",
    "LAST E1",
    "E1 SEQ E2",
    "FIRST E1 SEQ LAST E2",
    "E1 SEQ E2 SEQ E3",
    "E1 SEQ (E2 SEQ E3)",
    "FIRST (E1 SEQ E2)",
]
EVENTS = """EVENT ON :w { ?x :p ?y } AS E1 EVENT ON :v { ?y :q ?z } AS E2 EVENT ON :w { ?z :p ?u } AS E3"""


@QUICK
@given(
    st.sampled_from(PATTERNS),
    st.sampled_from(["", "NAIVE", "CHRONOLOGICAL", "RECENT"]),
    st.sampled_from(["unrestricted", "chronological", "recent"]),
    st.sampled_from(["[LND 0]", "[LND 4]", "[RANGE 6]", "[INTERVAL 2 12]"]),
    st.sampled_from(["[LND 0]", "[RANGE 9]", "[RANGE 4]"]),
    streams,
)
def test_rsep(pattern: str, policy: str, consuming: str, one: str, two: str, stream: list[Item]) -> None:
    stream = [Item(i.time, i.triples, STREAMS[0]) for i in stream]
    stream = list({i.time: i for i in stream}.values())
    text = f"""SELECT * FROM NAMED :s WIN {one} AS :w FROM NAMED :s WIN {two} AS :v REPORT ON CONTENT CHANGE {EVENTS}
        WHERE {{ MATCH {{ {pattern.replace("SEQ", f"SEQ {policy}")} }} }} USING POLICY {consuming}"""
    text = text.replace("REPORT ON CONTENT CHANGE ", "").replace("WHERE", "REPORT ON CONTENT CHANGE WHERE")
    matcher = rsep.Matcher(parse(text).queries[0], consuming != "unrestricted")
    found = defaultdict(list)
    for t, _, rows in answers(text, stream):
        found[t] = rows
    heard = engine_mappings(text, stream)
    for t, mappings in heard.items():
        literal = {(mu, start, end) for mu, start, end, _ in matcher.evaluate(stream, t)}
        assert mappings == literal, t
        names = sorted({v for mu, _, _ in literal for v, _ in mu})
        assert sorted({tuple(dict(mu)[v] for v in names) for mu, _, _ in literal}) == found[t]


def engine_mappings(text: str, stream: list[Item]) -> dict[int, set[tuple[rspql.Mu, int, int]]]:
    """The event mappings that the engine's own matcher finds at each of its evaluations."""
    engine = Engine(text)
    (query,) = engine._windows[0].queries
    (matcher,) = query._matchers.values()
    heard = {}
    evaluate = matcher.evaluate

    def listening(contents, t):  # type: ignore[no-untyped-def]
        found = evaluate(contents, t)
        heard[t // SECOND] = {(tuple(sorted(m.mu.items())), m.start // SECOND, m.end // SECOND) for m in found}
        return found

    matcher.evaluate = listening  # type: ignore[method-assign]
    engine.push_all(events(stream))
    engine.close()
    return heard
