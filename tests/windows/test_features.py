"""What a windowed query may say: windows of all kinds, datasets, query forms, operators, programs."""

from __future__ import annotations

import pytest
from etalis_compiler.parser import parse
from etalis_compiler.rsp import Count, Identity, Interval, Landmark, Now, Sliding
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile
from etalis_py.events import Event
from etalis_py.executors.windows import times
from tests.oracle import answers
from tests.windows.small import EX, SECOND, evaluations, facts, item, run, short, show

# --- the definitions as functions ---

slidings = st.builds(Sliding, st.integers(1, 9), st.integers(1, 9), st.integers(-5, 5), st.integers(0, 4))


@given(slidings, st.integers(-10, 40))
def test_next_close_is_the_first_closing(window: Sliding, after: int) -> None:
    closings = [window.t0 + window.width + window.offset + i * window.slide for i in range(60)]
    assert times.next_close(window, after) == min(c for c in closings if c > after)


@given(slidings, st.integers(-10, 40))
def test_the_present_window_is_the_oldest_open(window: Sliding, t: int) -> None:
    at = t - window.offset
    opened = [(o, o + window.width) for i in range(60) if (o := window.t0 + i * window.slide) < at <= o + window.width]
    assert times.present(window, t) == (min(opened) if opened else None)


@given(slidings, st.integers(-10, 30), st.integers(-10, 60))
def test_next_close_of_an_item(window: Sliding, end: int, after: int) -> None:
    closings = []
    for i in range(90):
        o = window.t0 + i * window.slide
        if o < end <= o + window.width and o + window.width + window.offset > after:
            closings.append(o + window.width + window.offset)
    assert times.next_close_of(window, end, after) == min(closings, default=None)


@given(slidings, st.integers(0, 30), st.integers(0, 30))
def test_what_is_not_kept_is_never_seen_again(window: Sliding, end: int, t: int) -> None:
    if end <= times.keep_after(window, t):
        for later in range(t + 1, t + 40):
            found = times.span(window, later)
            assert found is None or not found[0] < end <= found[1]


@pytest.mark.parametrize(
    ("shape", "held"),
    [
        (Landmark(3), [3, 4, 6]),
        (Interval(2, 4), [2, 3, 4]),
        (Identity(), [1, 2, 3, 4, 6]),
        (Now(), [6]),
        (Sliding(3, 1), [4, 6]),
        (Sliding(3, 3), [4, 6]),
        (Sliding(2, 1, 0, 2), [3, 4]),
        (Count("EVENTS", 2, 1), [4, 6]),
        (Count("EVENTS", 2, 2), [3, 4]),
        (Count("TRIPLES", 3, 1), [3, 4, 6]),
    ],
)
def test_contents_at_6(shape: times.Shape, held: list[int]) -> None:
    stream = [Event(t, t, ((f"<urn:a{t}>", "<urn:p>", "<urn:b>"),)) for t in (1, 2, 3, 4, 6, 7)]
    assert [i.end for i in times.content(shape, stream, 6)] == held


# --- count windows, offsets, nesting ---

LAST = "SELECT ?x FROM NAMED WINDOW :w ON :s {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"
SIX = [item(t, f":a{t} :p {t}") for t in range(1, 7)]


def test_count_windows_slide_and_tumble() -> None:
    assert evaluations(LAST.format("[RANGE 3 EVENTS SLIDE 2 EVENTS]"), SIX) == [
        (2, ["x=a1", "x=a2"]),
        (4, ["x=a2", "x=a3", "x=a4"]),
        (6, ["x=a4", "x=a5", "x=a6"]),
    ]
    assert evaluations(LAST.format("[RANGE 3 EVENTS TUMBLING]"), SIX) == [
        (3, ["x=a1", "x=a2", "x=a3"]),
        (6, ["x=a4", "x=a5", "x=a6"]),
    ]


def test_tumbling_counts_lose_nothing_when_several_close_in_one_instant() -> None:
    burst = [item(1, " . ".join(f":a{n} :p {n}" for n in range(7)))]
    found = evaluations(LAST.format("[RANGE 3 TRIPLES TUMBLING]"), burst)
    assert found == [(1, ["x=a0", "x=a1", "x=a2"]), (1, ["x=a3", "x=a4", "x=a5"])]


def test_an_offset_looks_back() -> None:
    """What a window without it says, two seconds later."""
    plain = evaluations(LAST.format("[RANGE 2 TUMBLING]"), SIX)
    behind = evaluations(LAST.format("[RANGE 2 TUMBLING OFFSET 2]"), SIX)
    assert behind == [(t + 2, rows) for t, rows in plain]


def test_a_window_that_ends_before_now() -> None:
    """SPARQLstream's `NOW - a TO NOW - b`: what lay in (t − a, t − b]."""
    query = LAST.format("[NOW - 5 S TO NOW - 2 S SLIDE 1 S]")
    found = dict(evaluations(query, SIX))
    assert found[6] == ["x=a2", "x=a3", "x=a4"]
    assert evaluations(LAST.format("[RANGE 3 SLIDE 1 SECONDS OFFSET 2]"), SIX) == evaluations(query, SIX)


def test_windows_on_windows() -> None:
    """The last two events of the last five seconds ([RSEP]: W1 • W2)."""
    query = """SELECT ?x FROM NAMED WINDOW :v ON :s [RANGE 5 SLIDE 1 SECONDS]
        FROM NAMED WINDOW :w ON WINDOW :v [RANGE 2 EVENTS] REPORT ON WINDOW CLOSE { WINDOW :w { ?x :p ?y } }"""
    found = dict(evaluations(query, SIX))
    assert found[6] == ["x=a5", "x=a6"]
    assert found[10] == ["x=a6"]


def test_two_windows_on_one_stream() -> None:
    """Those seen in the last two seconds but at no other time of the last six."""
    query = """SELECT ?x FROM NAMED WINDOW :short ON :s [RANGE 2 SLIDE 2]
        FROM NAMED WINDOW :long ON :s [RANGE 6 SLIDE 2]
        { WINDOW :short { ?x :p ?y } FILTER NOT EXISTS { WINDOW :long { ?x :p ?z FILTER(?z != ?y) } } }"""
    stream = [item(1, ":a :p 1"), item(5, ":a :p 5 . :b :p 5")]
    assert "x=b @[0, 6]" in run(query, stream)
    assert "x=a @[0, 6]" not in run(query, stream)


# --- datasets ---


def test_two_streams_and_stored_data() -> None:
    query = """SELECT ?x ?room FROM NAMED WINDOW :w ON :s [RANGE 5] FROM NAMED WINDOW :v ON :doors [RANGE 5]
        { WINDOW :w { ?x :badge ?b } WINDOW :v { ?b :opens ?d } ?d :leadsTo ?room }"""
    stream = [item(1, ":axel :badge :b1"), item(3, ":b1 :opens :d1", "doors")]
    assert run(query, stream, background=facts(":d1 :leadsTo :lab")) == ["room=lab x=axel @[0, 5]"]


NAMED = [item(1, ":a :p 1 . :a :q 1", graph="g1"), item(2, ":b :p 2", graph="g2"), item(2, ":b :q 2", graph="g3")]


def test_graph_in_a_window_ranges_over_its_items() -> None:
    query = "SELECT ?g ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { GRAPH ?g { ?x :p ?y . ?x :q ?y } } }"
    assert run(query, NAMED) == ["g=g1 x=a @[0, 5]"]
    together = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :p ?y . ?x :q ?y } }"
    assert run(together, NAMED) == ["x=a @[0, 5]", "x=b @[0, 5]"]


def test_one_item_by_its_name() -> None:
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { GRAPH :g2 { ?x ?p ?y } } }"
    assert run(query, NAMED) == ["x=b @[0, 5]"]


def test_the_names_of_the_items() -> None:
    query = "SELECT ?g FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { GRAPH ?g {} } }"
    assert run(query, NAMED) == ["g=g1 @[0, 5]", "g=g2 @[0, 5]", "g=g3 @[0, 5]"]


def test_an_item_and_its_time() -> None:
    """[REQ]: names of named graphs and triples that contain them can be queried."""
    query = """SELECT ?x ?t FROM NAMED WINDOW :w ON :s [RANGE 5]
        { WINDOW :w { GRAPH ?g { ?x :p ?y } ?g prov:generatedAtTime ?t } }"""
    assert run(query, NAMED) == ["t=1970-01-01T00:00:01Z x=a @[0, 5]", "t=1970-01-01T00:00:02Z x=b @[0, 5]"]


def test_the_names_of_stored_graphs_are_no_names_of_items() -> None:
    from etalis_py.knowledge import load

    stored = load([], named={f"{EX}stored": list(facts(":a :p :b").default)}, entailment="rdf", cache=False)
    query = "SELECT ?g FROM NAMED WINDOW :w ON :s [RANGE 5] { GRAPH ?g {} WINDOW :w { GRAPH ?h { ?x :q 1 } } }"
    assert run(query, NAMED, background=stored) == ["g=stored @[0, 5]"]


def test_graph_outside_windows_is_stored_data() -> None:
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { GRAPH ?g { ?x ?p ?y } }"
    assert run(query, NAMED) == []


def test_a_window_variable() -> None:
    query = """SELECT ?w ?x FROM NAMED WINDOW :u ON :s [RANGE 2] FROM NAMED WINDOW :v ON :s [RANGE 4]
        { WINDOW ?w { ?x :p ?y } }"""
    assert dict(evaluations(query, [item(1, ":a :p 1")]))[2] == ["w=u x=a", "w=v x=a"]


def test_rdfs_holds_inside_windows() -> None:
    schema = facts(":Axel a :Person . :isIn <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :near")
    from etalis_py.knowledge import load

    closed = load(list(schema.default), cache=False)
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :near ?y } }"
    assert run(query, [item(1, ":axel :isIn :red")], background=closed) == ["x=axel @[0, 5]"]


def test_updates_of_the_background_hold_from_then_on() -> None:
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 2] { WINDOW :w { ?x :p ?y } ?x :is :good }"
    engine = Engine(query, background=facts(":b :is :good"))
    found = list(engine.push_all([item(1, ":a :p 1"), item(3, ":a :p 1")]))
    engine.update("", [(f"<{EX}a>", f"<{EX}is>", f"<{EX}good>")])
    found += engine.close()
    assert [show(m) for m in found] == ["x=a @[2, 4]"]


drawn_graphs = st.lists(
    st.sets(st.sampled_from([f":{s} :p :{o}" for s in "ab" for o in "abc"]), min_size=1), min_size=2
)


@given(drawn_graphs, st.booleans())
def test_the_default_graph_is_the_merge_of_what_from_names(graphs: list[set[str]], windowed: bool) -> None:
    """A merge of RDF graphs is a set (SPARQL 1.1 §13.2.1): a triple that several of them state is one solution."""
    stated = {f"{EX}g{i}": " . ".join(sorted(graph)) for i, graph in enumerate(graphs)}
    window = "FROM WINDOW :w" if windowed else "FROM NAMED WINDOW :w"
    named = " ".join(f"FROM <{name}>" for name in stated)
    query = f"SELECT ?x ?y {named} {window} ON :s [RANGE 5] WHERE {{ ?x :p ?y }}"
    whole = set().union(*graphs, *([{":a :p :a"}] if windowed else []))
    expected = sorted(f"x={s} y={o} @[0, 5]" for s, o in (t.replace(":", "").split(" p ") for t in whole))
    assert sorted(run(query, [item(1, ":a :p :a")], background=facts("", stated))) == expected


# --- SPARQL over windows ---

PRICES = [item(1, ":a :price 3 . :b :price 5"), item(2, ":a :price 4"), item(7, ":b :price 1")]
PRICED = "FROM NAMED WINDOW :w ON :s [RANGE 5] {{ WINDOW :w {{ {} }} }}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?x ?y " + PRICED.format("?x :price ?y FILTER(?y > 3)"), ["x=a y=4 @[0, 5]", "x=b y=5 @[0, 5]"]),
        ("SELECT DISTINCT ?x " + PRICED.format("?x :price ?y"), ["x=a @[0, 5]", "x=b @[0, 5]", "x=b @[5, 10]"]),
        (
            "SELECT ?x (AVG(?y) AS ?m) " + PRICED.format("?x :price ?y") + " GROUP BY ?x ORDER BY DESC(?m)",
            ["m=5 x=b @[0, 5]", "m=3.5 x=a @[0, 5]", "m=1 x=b @[5, 10]"],
        ),
        ("SELECT (MAX(?y) AS ?m) " + PRICED.format("?x :price ?y"), ["m=5 @[0, 5]", "m=1 @[5, 10]"]),
        ("SELECT ?y " + PRICED.format("?x :price ?y") + " ORDER BY DESC(?y) LIMIT 1", ["y=5 @[0, 5]", "y=1 @[5, 10]"]),
        ("SELECT ?x " + PRICED.format("?x :price ?y MINUS { ?x :price 4 }"), ["x=b @[0, 5]", "x=b @[5, 10]"]),
        ("SELECT ?x " + PRICED.format("{ ?x :price 3 } UNION { ?x :price 1 }"), ["x=a @[0, 5]", "x=b @[5, 10]"]),
        (
            "SELECT ?x ?z " + PRICED.format("?x :price ?y BIND(?y * 2 AS ?z) VALUES ?x { :b }"),
            ["x=b z=10 @[0, 5]", "x=b z=2 @[5, 10]"],
        ),
        ("SELECT ?x " + PRICED.format("?x (:price|:cost)/^:price ?z FILTER(?z != ?x)"), []),
    ],
)  # fmt: skip
def test_sparql(query: str, expected: list[str]) -> None:
    assert run(query, PRICES) == expected


def test_ask_answers_at_every_evaluation() -> None:
    query = "ASK " + PRICED.format("?x :price ?y FILTER(?y > 4)")
    assert run(query, PRICES) == ["true @[0, 5]", "false @[5, 10]"]
    assert run(query.replace("ASK", "ASK ISTREAM"), [*PRICES, item(12, ":c :price 1")]) == [
        "true @[0, 5]",
        "false @[5, 10]",
    ]


def test_construct_with_fresh_nodes() -> None:
    query = "CONSTRUCT { [] :of ?x ; :is ?y } " + PRICED.format("?x :price ?y FILTER(?y > 4)")
    (match,) = Engine(query).push_all([*PRICES, item(20, ":z :q 1")])
    (one, two) = match.triples
    assert one[0] == two[0]
    assert one[0].startswith("_:")


def test_describe_from_window_and_background() -> None:
    query = "DESCRIBE ?x " + PRICED.format("?x :price 5")
    assert run(query, PRICES, background=facts(":b :madeIn :oslo")) == ["b madeIn oslo. b price 5 @[0, 5]"]


def test_now_is_the_evaluation_time() -> None:
    query = "SELECT (NOW() AS ?t) " + PRICED.format("?x :price 5")
    assert run(query, PRICES) == ["t=1970-01-01T00:00:05Z @[0, 5]"]


def test_streaming_operators() -> None:
    stream = [item(1, ":a :p 1 . :b :p 1"), item(6, ":b :p 1 . :c :p 1"), item(11, ":c :p 1")]
    query = "SELECT {} ?x FROM NAMED WINDOW :w ON :s [RANGE 5] {{ WINDOW :w {{ ?x :p ?y }} }}"
    assert [rows for _, rows in evaluations(query.format("RSTREAM"), stream)] == [
        ["x=a", "x=b"],
        ["x=b", "x=c"],
        ["x=c"],
    ]
    assert [rows for _, rows in evaluations(query.format("ISTREAM"), stream)] == [["x=a", "x=b"], ["x=c"], []]
    assert [rows for _, rows in evaluations(query.format("DSTREAM"), stream)] == [[], ["x=a"], ["x=b"]]


def test_computed_every() -> None:
    """C-SPARQL's period of a registered query."""
    query = "REGISTER QUERY q COMPUTED EVERY 4 s AS SELECT ?x FROM STREAM :s [RANGE 6 SLIDE 2] { ?x :p ?y }"
    assert evaluations(query, [item(1, ":a :p 1")]) == [(4, ["x=a"]), (8, [])]


# --- programs ---


def test_a_stream_of_graphs_feeds_another_query() -> None:
    """[REQ] nesting: averages of ten seconds, and alarms when one is above the one before."""
    text = """
    REGISTER STREAM :averages AS
    CONSTRUCT { ?x :average ?m }
    FROM NAMED WINDOW :w ON :s [RANGE 10] { { SELECT ?x (AVG(?y) AS ?m) { WINDOW :w { ?x :price ?y } } GROUP BY ?x } }

    REGISTER QUERY alarms AS
    SELECT ?x ?a ?b FROM NAMED WINDOW :v ON :averages [RANGE 20 SLIDE 10]
    { WINDOW :v { MATCH { {?x :average ?a} SEQ {?x :average ?b} } } FILTER(?b > ?a) }"""
    engine = Engine(text)
    found = [*engine.push_all([item(t, f":a :price {t}") for t in (2, 4, 12, 14, 22)]), *engine.close()]
    assert [show(m) for m in found if m.query == "alarms"] == [
        "a=3 b=13 x=a @[0, 20]",
        "a=13 b=22 x=a @[10, 30]",
    ]


def test_ep_sparql_rules_beside_windows() -> None:
    """A rule makes a stream of complex events, a window counts them."""
    text = """
    REGISTER STREAM :rises AS
    CONSTRUCT { ?x :rose ?b } { ?x :price ?a } SEQ { ?x :price ?b } FILTER(?b > ?a)

    REGISTER QUERY counts AS
    SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :rises [RANGE 10] { WINDOW :w { ?x :rose ?b } }"""
    engine = Engine(text)
    found = [*engine.push_all([item(t, f":a :price {t}") for t in (1, 2, 3)]), *engine.close()]
    assert [show(m) for m in found if m.query == "counts"] == ["n=2 @[0, 10]"]
    assert len([m for m in found if m.query.endswith("rises>")]) == 3


def test_the_default_operators_of_the_dialects() -> None:
    plans = {
        "c-sparql": "SELECT ?x FROM STREAM :s [RANGE 5] { ?x :p ?y }",
        "cqels": "SELECT ?x { STREAM :s [RANGE 5] { ?x :p ?y } }",
        "sparqlstream": "SELECT ?x FROM NAMED STREAM :s [5 SECONDS SLIDE 5 SECONDS] { ?x :p ?y }",
        "rsp-ql": "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :p ?y } }",
    }
    found = {}
    for name, text in plans.items():
        (plan,) = compile(text).plans
        assert plan.dialect == name
        found[name] = (plan.windows[0].default, [s.kind for s in plan.report], plan.r2s)
    assert found == {
        "c-sparql": (True, ["WC", "NC"], "RSTREAM"),
        "cqels": (False, ["CC"], "ISTREAM"),
        "sparqlstream": (True, ["WC", "NC"], "RSTREAM"),
        "rsp-ql": (False, ["WC", "NC"], "RSTREAM"),
    }


def test_match_beside_windows_and_graphs() -> None:
    """[RSEP] §3.3: MATCH is a graph pattern: it joins with WINDOW, stored data and others."""
    query = """SELECT ?x ?z ?n FROM NAMED :s WIN [LND 0] AS :w1 FROM NAMED :s WIN [RANGE 5] AS :w2
        EVENT ON :w1 { ?x :posts ?y } AS E1 EVENT ON :w2 { ?z :follows ?x } AS E2
        WHERE { MATCH { E1 SEQ E2 } WINDOW :w2 { ?m :mentions ?z } ?z :followers ?n FILTER(?n > 10) }"""
    stream = [
        item(1, ":ann :posts :p1"),
        item(3, ":joe :mentions :eve"),
        item(4, ":eve :follows :ann . :bob :follows :ann"),
    ]
    stored = facts(":eve :followers 20 . :bob :followers 30")
    assert evaluations(query, stream, background=stored)[-1] != []
    assert run(query, stream, background=stored)[0] == "n=20 x=ann z=eve @[0, 5]"


def test_an_event_over_two_streams() -> None:
    """[RSEP] §5: E1 and E2 may match over different streams."""
    query = """SELECT ?x FROM NAMED :s WIN [LND 0] AS :w1 FROM NAMED :u WIN [LND 0] AS :w2
        EVENT ON :w1 { ?x :p ?y } AS E1 EVENT ON :w2 { ?y :q ?z } AS E2 WHERE { MATCH { E1 SEQ E2 } }"""
    stream = [item(1, ":a :p :b"), item(2, ":b :q :c", "u"), item(3, ":c :p :b")]
    assert run(query, stream) == ["x=a @[0, 2]", "x=a @[0, 3]"]


def test_repeated_calls_and_batches_give_the_same() -> None:
    query = LAST.format("[RANGE 3 SLIDE 1 SECONDS]")
    whole = run(query, SIX)
    engine = Engine(query)
    found = []
    for event in SIX:
        found += engine.push(event)
        found += engine.advance(event.end)
    found += engine.advance(7 * SECOND)
    assert [show(m) for m in [*found, *engine.close()]] == whole


def test_ids_are_the_same_in_every_run() -> None:
    query = LAST.format("[RANGE 3 SLIDE 1 SECONDS]")
    one, two = Engine(query), Engine(query)
    first = [m.id for m in [*one.push_all(SIX), *one.close()]]
    assert first == [m.id for m in [*two.push_all(SIX), *two.close()]]
    assert len(set(first)) == len(first)


def test_why_names_the_evaluation_and_its_windows() -> None:
    (match, *_) = [*(engine := Engine(LAST.format("[RANGE 3 TUMBLING]"))).push_all(SIX), *engine.close()]
    assert str(match.why()) == f"q1 was evaluated at 3 over\n  <{EX}w>: after 0, until 3"


def test_explain() -> None:
    text = """REGISTER STREAM :out AS CONSTRUCT { ?x :n ?y } FROM STREAM :s [RANGE 5] REPORT PERIODIC PT2S { ?x :p ?y }
        REGISTER QUERY counts AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [LANDMARK 0]
        { WINDOW :w { ?x :p ?y } }"""
    program = compile(text)
    assert program.explain().windows.splitlines() == [
        ":out: RSTREAM of CONSTRUCT as stream :out",
        "  window on stream :s: PT5S long, sliding by PT5S, in the default graph",
        "  evaluated every PT2S",
        "  each evaluation looks at the whole content",
        "counts: RSTREAM of SELECT ?n",
        "  window :w on stream :s: everything from 0 on",
        "  evaluated when a window takes an item",
        "  groups are kept up to date",
    ]
    (warning,) = program.warnings
    assert "keeps every item" in warning.message


def test_explain_event_patterns_and_who_reads_what() -> None:
    text = """
    REGISTER STREAM :pairs AS CONSTRUCT { ?x :before ?z } FROM NAMED :s WIN [LND 9] AS :u
        FROM NAMED :s WIN [RANGE 5] AS :w FROM NAMED WINDOW :v ON WINDOW :w [RANGE 3 EVENTS]
        EVENT ON :u { ?x :p ?y } AS E1 EVENT ON :v { ?y :q ?z } AS E2
        REPORT AT (5, 9.5) AND NON-EMPTY CONTENT OF :v
        WHERE { MATCH { E1 SEQ RECENT LAST E2 } } USING POLICY recent
    REGISTER QUERY later AS SELECT ?x { ?x :before ?y } SEQ { ?x :p ?z }"""
    assert compile(text).explain().windows.splitlines() == [
        ":pairs: RSTREAM of CONSTRUCT as stream :pairs",
        "  window :u on stream :s: everything from 9 on",
        "  window :w on stream :s: PT5S long, sliding by PT1S",
        "  window :v on window :w: the last 3 events, sliding by 1",
        "  evaluated at 5, 9.5 when :v is not empty",
        "  MATCH {?x :p ?y} in :u SEQ RECENT LAST ({?y :q ?z} in :v), consumed (recent)",
        "  each evaluation looks at the whole content",
        "  read by later",
        "later: EP-SPARQL rules",
    ]


@given(
    st.sampled_from(
        [
            "{?x :p ?y} SEQ {?y :q ?z}",
            "{?x :p ?y} EQUALS {?x :q ?z}",
            "{?x :p ?y} PAR {?x :q ?z}",
            "{ {?x :p ?y} SEQ {?y :p ?z} } MEETS {?z :q ?u}",
            "{?x :q ?y} DURING { {?x :p ?u} SEQ {?u :p ?z} }",
            "{?x :p ?y} OPTIONALSEQ {?x :q ?z}",
            "{?x :p ?y} EQUALSOPTIONAL {?y :q ?z}",
            "{?x :p ?y . ?y :q ?z} SEQ {?z :p ?u}",
            "{ {?x :p ?y} SEQ {?y :p ?z} } WITHIN 3 SECONDS",
            '{?x :p ?y} SEQ {?y :q ?z} FILTER(getDURATION() > "PT2S"^^xsd:duration)',
        ]
    ),
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from("abc")),
        min_size=1,
        max_size=8,
    ),
)
def test_match_says_what_ep_sparql_says(pattern: str, drawn: list[tuple[int, str, str, str]]) -> None:
    """MATCH over a landmark window, at the end, against the oracle of EP-SPARQL over the whole stream."""
    stream = [item(t, f":{s} :{p} :{o}") for t, s, p, o in sorted(set(drawn))]
    query = f"""SELECT * FROM NAMED WINDOW :w ON :s [LANDMARK 0] REPORT AT ({stream[-1].end // SECOND})
        WHERE {{ WINDOW :w {{ MATCH {{ {pattern} }} }} }}"""
    ((_, rows),) = evaluations(query, stream)
    (meant,) = answers(parse(f"SELECT * WHERE {{ {pattern} }}"), stream).values()
    expected = {" ".join(f"{v}={short(t)}" for v, t in sorted(a.bindings.items())) for a in meant}
    assert set(rows) == expected
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("pattern", ["E1 NEXT E2", "E1 REPEAT 2", "E1 DURING E2"])
def test_events_are_related_by_seq_first_and_last_alone(pattern: str) -> None:
    declared = "EVENT ON :w { ?x :p ?y } AS E1 EVENT ON :w { ?y :q ?z } AS E2"
    with pytest.raises(QueryError, match="E1 is the name of an event") as refused:
        compile(f"SELECT * FROM NAMED WINDOW :w ON :s [RANGE 9 STEP 9] WHERE {{ {declared} MATCH {{ {pattern} }} }}")
    assert "MATCH { { … } DURING { … } }" in refused.value.diagnostics[0].hint
