"""Networks of queries: windows feed rules, rules feed windows, at the same instant and in any number of steps."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile
from etalis_py.events import Event, event
from etalis_py.knowledge import load
from tests.draws import examples
from tests.windows.small import EX, item, show

COUNTS = """
REGISTER STREAM :counts AS CONSTRUCT { ?x :n ?n } FROM NAMED WINDOW :w ON :s [RANGE 5]
    { { SELECT ?x (COUNT(*) AS ?n) { WINDOW :w { ?x :p ?y } } GROUP BY ?x } }
"""
RISES = "REGISTER STREAM :rises AS CONSTRUCT { ?x :rose ?b } { ?x :n ?a } SEQ { ?x :n ?b } FILTER(?b > ?a)"
MANY = """
REGISTER QUERY many AS SELECT (COUNT(*) AS ?k) FROM NAMED WINDOW :v ON :rises [RANGE 20] { WINDOW :v { ?x :rose ?b } }
"""


def shown(text: str, stream: list[Event], query: str = "") -> list[str]:
    engine = Engine(text)
    found = [*engine.push_all(stream), *engine.close()]
    return [show(m) for m in found if query in m.query]


READINGS = [item(t, f":a :p {t}") for t in (1, 5, 6, 7, 8, 13)]


def test_rules_over_what_windows_find() -> None:
    """The counts are 2, 3 and 1 at 5, 10 and 15; SEQ finds the rise between the first two."""
    assert shown(COUNTS + RISES, READINGS, "counts") == ["a n 2 @[0, 5]", "a n 3 @[5, 10]", "a n 1 @[10, 15]"]
    assert shown(COUNTS + RISES, READINGS, "rises") == ["a rose 3 @[5, 10]"]


def test_windows_over_what_rules_find_over_what_windows_find() -> None:
    assert shown(COUNTS + RISES + MANY, READINGS, "many") == ["k=1 @[0, 20]"]
    assert [s.kind for s in compile(MANY + RISES + COUNTS).stages()] == ["windows", "rules", "windows"]


def test_rules_join_raw_events_with_what_windows_find_at_the_same_instant() -> None:
    """A window that closes at 5, and an event at 5."""
    rule = "REGISTER QUERY both AS SELECT ?x ?n { { ?x :n ?n } EQUALS { ?x :p 5 } }"
    assert shown(COUNTS + rule, READINGS, "both") == ["n=2 x=a @[5, 5]"]


def test_rules_that_feed_windows_do_not_wait_for_those_that_windows_feed() -> None:
    text = """
    REGISTER STREAM :pairs AS CONSTRUCT { ?x :pair ?b } { { { ?x :p ?a } SEQ { ?x :p ?b } } WITHIN 1 SECONDS }
    REGISTER STREAM :busy AS CONSTRUCT { ?x :busy ?n } FROM NAMED WINDOW :w ON :pairs [RANGE 5]
        { { SELECT ?x (COUNT(*) AS ?n) { WINDOW :w { ?x :pair ?y } } GROUP BY ?x } }
    REGISTER QUERY quiet AS SELECT ?x ?n ?y { ?x :busy ?n } SEQ { ?x :p ?y }
    """
    assert [s.names for s in compile(text).stages()] == [
        (f"<{EX}pairs>",),
        (f"<{EX}busy>",),
        ("quiet",),
    ]
    assert shown(text, READINGS, "busy") == ["a busy 3 @[5, 10]"]
    assert shown(text, READINGS, "quiet") == ["n=3 x=a y=13 @[10, 13]"]


@pytest.mark.parametrize(("policy", "expected"), [("unrestricted", "n=4"), ("chronological", "n=2"), ("recent", "n=2")])
def test_windows_over_what_a_consuming_rule_finds(policy: str, expected: str) -> None:
    """Two :p, two :q: four pairs, or two when each is used once."""
    text = f"""
    REGISTER STREAM :pairs AS CONSTRUCT {{ ?y :before ?z }} {{ {{ ?x :p ?y }} SEQ {{ ?x :q ?z }} }}
        USING POLICY {policy}
    REGISTER QUERY count AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :pairs [RANGE 9]
        {{ WINDOW :w {{ ?y :before ?z }} }}"""
    stream = [item(t, f":a :{p} :x{t}") for t, p in enumerate("ppqq", 1)]
    assert shown(text, stream, "count") == [f"{expected} @[0, 9]"]


def test_a_circle_through_rules_is_refused() -> None:
    rule = "REGISTER STREAM :s AS CONSTRUCT { ?x :p ?n } { ?x :n ?n }"
    with pytest.raises(QueryError, match="feed one another in a circle"):
        compile(COUNTS + rule)
    apart = rule.replace("REGISTER STREAM :s", "REGISTER STREAM :other")
    compile(COUNTS + apart)  # the window reads another stream


def test_a_rule_that_names_its_stream_is_not_fed_by_others() -> None:
    """:n comes from outside too; only what stands on :raw is meant."""
    text = COUNTS + "REGISTER STREAM :s AS CONSTRUCT { ?x :p ?n } { STREAM :raw { ?x :n ?n } }"
    engine = Engine(text)
    found = [*engine.push_all([item(2, ":b :n 7", "raw"), item(3, ":b :p 8")]), *engine.close()]
    assert [show(m) for m in found if "counts" in m.query] == ["b n 2 @[0, 5]"]


def test_the_schema_decides_who_feeds_whom() -> None:
    """:n is a kind of :value: rules that read :value come after the windows, and a circle through it is refused."""
    schema = load(list(event(":n <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :value", 0).triples), cache=False)
    rule = "REGISTER QUERY up AS SELECT ?a ?b { ?x :value ?a } SEQ { ?x :value ?b } FILTER(?b > ?a)"
    engine = Engine(COUNTS + rule, background=schema)
    found = [*engine.push_all(READINGS), *engine.close()]
    assert [show(m) for m in found if m.query == "up"] == ["a=2 b=3 @[5, 10]"]
    circle = "REGISTER STREAM :s AS CONSTRUCT { ?x :p ?n } { ?x :value ?n }"
    compile(COUNTS + circle)
    with pytest.raises(ValueError, match="what the background says"):
        Engine(COUNTS + circle, background=schema)


def test_the_background_of_several_stages_stays() -> None:
    text = COUNTS + "REGISTER STREAM :s AS CONSTRUCT { ?x :p ?n } { ?x :raw ?n }" + RISES
    engine = Engine(text, background=[])
    with pytest.raises(ValueError, match="as two programs"):
        engine.update("", [(f"<{EX}a>", f"<{EX}p>", f"<{EX}b>")])


streams = st.lists(st.tuples(st.integers(1, 30), st.sampled_from("ab"), st.integers(1, 4)), max_size=14).map(
    lambda found: [item(t, f":{x} :p {v}") for t, x, v in sorted(set(found))]
)
NETWORKS = [
    COUNTS + RISES + MANY,
    COUNTS + "REGISTER QUERY seen AS SELECT ?x ?n ?y { { ?x :n ?n } SEQ { ?x :p ?y } }" + RISES,
    COUNTS.replace("[RANGE 5]", "[RANGE 6 SLIDE 2]")
    + "REGISTER QUERY never AS SELECT ?x ?n { ?x :n ?n FILTER NOT EXISTS { ?x :p 3 } }",
]


@settings(max_examples=examples(8 / 15))
@given(st.sampled_from(NETWORKS), streams, st.integers(0, 14))
def test_a_network_is_its_queries_one_after_another(text: str, stream: list[Event], cut: int) -> None:
    """The rules alone, over the stream and what the windows answered, find the same; so does a restored engine."""
    engine, restored = Engine(text), Engine(text)
    found = list(engine.push_all(stream[:cut]))
    restored.restore(engine.snapshot())
    found += [*restored.push_all(stream[cut:]), *restored.close()]
    whole = Engine(text)
    assert sorted(m.id for m in found) == sorted(m.id for m in [*whole.push_all(stream), *whole.close()])
    counts = [m for m in found if m.query == f"<{EX}counts>"]
    answers: dict[int, list[tuple[str, str, str]]] = {}
    for m in counts:
        answers.setdefault(m.end_us, []).extend(m.triples)
    fed = [Event(t, t, tuple(sorted(triples)), f"<{EX}counts>") for t, triples in answers.items()]
    rules = compile(text).compilation.queries
    alone = Engine(compile("\n".join(q.source.text[q.syntax.span.start : q.syntax.span.end] for q in rules)))
    expected = alone.push_all(sorted([*stream, *fed], key=lambda e: e.end))
    expected = [*expected, *alone.close()]
    mine = [m for m in found if m.query in {q.name for q in rules}]
    assert sorted(map(show, mine)) == sorted(map(show, expected))
