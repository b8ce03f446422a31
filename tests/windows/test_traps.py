"""Where window engines go wrong: bounds, gaps, several closings at once, the end, lateness, spelling."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.rsp import Sliding

from etalis_py import Engine, compile
from etalis_py.events import Event
from tests.windows.small import EX, SECOND, evaluations, item, run, show

SELECT = "SELECT ?x FROM NAMED WINDOW :w ON :s {} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"


def test_every_window_that_closes_between_two_events_reports() -> None:
    """Each with its own bounds."""
    stream = [item(1, ":a :p 1"), item(9, ":b :p 1")]
    assert run(SELECT.format("[RANGE 4 SLIDE 2]"), stream) == [
        "x=a @[0, 4]",
        "x=b @[6, 10]",
        "x=b @[8, 12]",
    ]
    assert run(SELECT.format("[RANGE 6 SLIDE 2]"), [item(3, ":a :p 1"), item(20, ":b :q 1")]) == [
        "x=a @[0, 6]",
        "x=a @[2, 8]",
    ]


def test_all_rows_of_a_window_have_its_bounds() -> None:
    triples = " . ".join(f":a{n} :p {n}" for n in range(50))
    found = run(SELECT.format("[RANGE 10]"), [item(3, triples), item(47, ":b :p 1")])
    assert len(found) == 51
    assert {row.rsplit("@", 1)[1] for row in found} == {"[0, 10]", "[40, 50]"}


def test_an_event_on_a_bound_belongs_to_the_window_that_closes_there() -> None:
    stream = [item(5, ":a :p 1"), item(10, ":b :p 1")]
    assert run(SELECT.format("[RANGE 5 TUMBLING]"), stream) == ["x=a @[0, 5]", "x=b @[5, 10]"]


def test_landmark_and_interval_windows_are_closed_on_both_sides() -> None:
    stream = [item(t, f":a{t} :p 1") for t in (4, 5, 9, 10)]
    assert run(SELECT.format("[INTERVAL 5 9]"), stream) == ["x=a5 @[5, 9]", "x=a9 @[5, 9]"]
    landmark = SELECT.format("[LANDMARK 5]").replace("SELECT", "SELECT ISTREAM")
    assert run(landmark, stream) == ["x=a5 @[5, 5]", "x=a9 @[5, 9]", "x=a10 @[5, 10]"]


def test_milliseconds_and_microseconds() -> None:
    stream = [Event(t, t, ((f"<{EX}a{t}>", f"<{EX}p>", '"1"'),), f"<{EX}s>") for t in (1, 1000, 1001, 2000)]
    query = SELECT.format("[RANGE 1 ms TUMBLING]")
    assert run(query, stream, render=lambda us: us) == [
        "x=a1000 @[0, 1000]",
        "x=a1 @[0, 1000]",
        "x=a1001 @[1000, 2000]",
        "x=a2000 @[1000, 2000]",
    ]


@pytest.mark.parametrize(
    ("length", "micros"),
    [("1 ms", 1000), ("0.5 ms", 500), ("7 us", 7), ("3000 ns", 3), ("PT0.000001S", 1), ("PT0.0000010S", 1)],
)
def test_lengths_below_a_second(length: str, micros: int) -> None:
    (plan,) = compile(SELECT.format(f"[RANGE {length}]")).plans
    assert plan.windows[0].shape == Sliding(micros, micros)


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 1 ns]",
        "[RANGE 1.0000001 SECONDS]",
        "[RANGE PT0.0000015S]",
        "[RANGE 5 SLIDE 0.0001 ms]",
        "[RANGE 5 T0 0.0000005]",
        '[RANGE 5 T0 "2024-01-01T00:00:00.123456789Z"^^xsd:dateTime]',
        "[RANGE 5] REPORT AT (1.0000001)",
        "[RANGE 5] REPORT PERIODIC PT1.0000001S",
        "[NOW - 5 S TO NOW - 0.0000001 S]",
    ],
)
def test_nanoseconds_in_a_query_are_an_error(window: str) -> None:
    """Times are whole microseconds: what is finer is neither rounded nor cut off unsaid."""
    with pytest.raises(QueryError, match="finer than a microsecond") as caught:
        compile(SELECT.format(window))
    assert "round it" in caught.value.diagnostics[0].hint


def test_nanoseconds_in_a_stream_are_an_error_and_whole_microseconds_are_exact() -> None:
    """At the bound of a window a nanosecond decides: it must not be lost."""
    from etalis_py.events.clock import TimeError, parse_datetime

    assert parse_datetime("2024-03-01T00:00:00.000000000Z") % SECOND == 0
    assert parse_datetime("2024-03-01T00:00:00.123456000Z") % SECOND == 123_456
    with pytest.raises(TimeError, match="finer than a microsecond"):
        parse_datetime("2024-03-01T00:00:00.000000001Z")


def test_times_of_today_are_exact() -> None:
    """No float comes near 1.7e15 microseconds; windows align with the calendar."""
    from etalis_py.events.clock import parse_datetime, render_datetime

    at = parse_datetime("2024-02-29T23:59:59.999999Z")
    stream = [Event(at, at, ((f"<{EX}a>", f"<{EX}p>", '"1"'),), f"<{EX}s>")]
    assert run(SELECT.format("[RANGE PT1H]"), stream, render=render_datetime) == [
        "x=a @[2024-02-29T23:00:00Z, 2024-03-01T00:00:00Z]"
    ]


def test_the_end_of_the_stream_closes_every_window_that_holds_something() -> None:
    assert run(SELECT.format("[RANGE 6 SLIDE 2]"), [item(5, ":a :p 1")]) == [
        "x=a @[0, 6]",
        "x=a @[2, 8]",
        "x=a @[4, 10]",
    ]


def test_a_query_on_one_line() -> None:
    query = SELECT.format("[RANGE 5]")
    assert "\n" not in query
    assert run(query, [item(3, ":a :p 1")]) == ["x=a @[0, 5]"]


def test_a_late_event_is_kept_and_counted() -> None:
    engine = Engine(SELECT.format("[RANGE 5]"))
    engine.push_all([item(3, ":a :p 1"), item(7, ":b :p 1")])
    late = item(2, ":c :p 1")
    engine.push(late)
    assert (engine.dead_letters, engine.counters.late) == ([late], 1)
    assert [show(m) for m in engine.close()] == ["x=b @[5, 10]"]


def test_within_the_allowed_lateness_order_does_not_matter() -> None:
    stream = [item(7, ":b :p 1"), item(3, ":a :p 1"), item(9, ":c :p 1")]
    engine = Engine(SELECT.format("[RANGE 5]"), lateness=5 * SECOND)
    found = [*engine.push_all(stream), *engine.close()]
    assert [show(m) for m in found] == run(SELECT.format("[RANGE 5]"), sorted(stream, key=lambda e: e.end))
    assert engine.counters.late == 0


def test_an_empty_window_reports_as_the_policy_says() -> None:
    query = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 2 TUMBLING] {} {{ WINDOW :w {{ ?x :p ?y }} }}"
    stream = [item(1, ":a :p 1"), item(7, ":b :p 1")]
    assert run(query.format(""), stream) == ["n=1 @[0, 2]", "n=1 @[6, 8]"]
    assert run(query.format("REPORT ON WINDOW CLOSE"), stream) == [
        "n=1 @[0, 2]",
        "n=0 @[2, 4]",
        "n=0 @[4, 6]",
        "n=1 @[6, 8]",
    ]


def test_a_stream_that_starts_late_is_not_preceded_by_empty_windows() -> None:
    query = SELECT.format("[RANGE 1 TUMBLING] REPORT ON WINDOW CLOSE")
    found = evaluations(query, [item(1_000_000_000, ":a :p 1"), item(1_000_000_002, ":b :p 1")])
    assert [t - 1_000_000_000 for t, _ in found] == [0, 1, 2]


def test_a_gap_of_years_costs_nothing_when_empty_windows_do_not_report() -> None:
    stream = [item(100, ":a :p 1"), item(10**9, ":b :p 1")]
    assert len(run(SELECT.format("[RANGE 10 SLIDE 1 SECONDS]"), stream)) == 20
    periodic = SELECT.format("[RANGE 10 SLIDE 1 SECONDS] REPORT ON NON-EMPTY CONTENT, PERIODIC PT1S")
    assert len(run(periodic, stream)) == 20


def test_items_that_no_window_holds_are_counted() -> None:
    """A window that slides further than it is long leaves gaps; what lies before t0 is in none."""
    engine = Engine(SELECT.format("[RANGE 2 SLIDE 5]"))
    engine.push_all([item(1, ":a :p 1"), item(4, ":b :p 1"), item(6, ":c :p 1")])
    assert [show(m) for m in engine.close()] == ["x=c @[5, 7]"]
    assert engine.counters.outside == 1
    late = Engine(SELECT.format("[RANGE 2 T0 5]"))
    late.push_all([item(3, ":a :p 1"), item(6, ":c :p 1")])
    assert late.counters.outside == 1


def test_items_of_streams_that_nobody_reads_are_counted() -> None:
    engine = Engine(SELECT.format("[RANGE 2]"))
    engine.push(item(1, ":a :p 1", "other"))
    engine.advance(SECOND)
    assert engine.counters.unrouted == 1


def test_an_item_without_a_stream_belongs_to_the_only_one() -> None:
    bare = item(1, ":a :p 1")._replace(stream="")
    assert run(SELECT.format("[RANGE 2]"), [bare]) == ["x=a @[0, 2]"]


def test_the_same_occurrence_twice_is_one() -> None:
    query = SELECT.format("[RANGE 2 EVENTS]")
    assert run(query, [item(1, ":a :p 1"), item(1, ":a :p 1")]) == ["x=a @[1, 1]"]


def test_a_triple_in_two_items_leaves_with_the_last() -> None:
    stream = [item(1, ":a :p 1"), item(4, ":a :p 1")]
    assert run(SELECT.format("[RANGE 4 SLIDE 2]"), stream) == ["x=a @[0, 4]", "x=a @[2, 6]"]


def test_duplicates_count_when_asked() -> None:
    """[RSPQL], Relaxing the No Duplicate Data Assumption: aggregates and joins take the counters into account."""
    query = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :p ?y } }"
    stream = [item(1, ":a :p 1"), item(2, ":a :p 1"), item(3, ":a :p 2")]
    assert run(query, stream) == ["n=2 @[0, 5]"]
    assert run(query, stream, duplicates=True) == ["n=3 @[0, 5]"]
    join = "SELECT ?z FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :p 1 . ?x :p ?z } }"
    assert run(join, stream, duplicates=True) == ["z=1 @[0, 5]"] * 4 + ["z=2 @[0, 5]"] * 2


def test_spellings_are_kept() -> None:
    """A store that normalises would give 1 and 1.5 back, and take 01 and 1 for one term."""
    stream = [item(1, ':a :p "01"^^<http://www.w3.org/2001/XMLSchema#integer>, 1, 1.50')]
    query = "SELECT ?y FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { ?x :p ?y } }"
    assert run(query, stream) == ["y=01 @[0, 5]", "y=1 @[0, 5]", "y=1.50 @[0, 5]"]


def test_nothing_comes_out_before_its_time() -> None:
    engine = Engine(SELECT.format("[RANGE 5]"))
    assert engine.push(item(5, ":a :p 1")) == []
    assert engine.advance(4 * SECOND) == []
    assert [show(m) for m in engine.advance(5 * SECOND)] == ["x=a @[0, 5]"]
    assert engine.close() == []


def test_a_closed_engine_says_so() -> None:
    engine = Engine(SELECT.format("[RANGE 5]"))
    engine.close()
    with pytest.raises(ValueError, match="make a new one"):
        engine.push(item(1, ":a :p 1"))


TWO_WINDOWS = """SELECT ISTREAM ?x ?y FROM NAMED WINDOW :w ON :s [RANGE 5 SLIDE 2] FROM NAMED WINDOW :v ON :s
    [RANGE 3 EVENTS] { WINDOW :w { ?x :p ?z } WINDOW :v { ?x :q ?y } }"""
CHANGES = SELECT.format("[LANDMARK 0] REPORT ON CONTENT CHANGE, PERIODIC PT2S")
GROUPED = (
    """SELECT ?x (SUM(?y) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 5 SLIDE 2] { WINDOW :w { ?x :p ?y } } GROUP BY ?x"""
)
CONSUMING = """SELECT ?x ?y ?z FROM NAMED :s WIN [LND 0] AS :w
    EVENT ON :w { ?x :p ?y } AS E1 EVENT ON :w { ?x :q ?z } AS E2
    WHERE { MATCH { E1 SEQ CHRONOLOGICAL E2 } } USING POLICY chronological"""
NESTED = """SELECT ?x FROM NAMED WINDOW :v ON :s [RANGE 5 SLIDE 1 SECONDS] FROM NAMED WINDOW :w ON WINDOW :v
    [RANGE 2 EVENTS] { WINDOW :w { ?x :p ?y } }"""


@pytest.mark.parametrize("query", [TWO_WINDOWS, CHANGES, GROUPED, CONSUMING, NESTED])
def test_a_snapshot_anywhere_changes_nothing(query: str) -> None:
    stream = [item(t, f":a{t % 3} :p {t} . :a{t % 2} :q {t}") for t in (*range(1, 15), 19, 20)]
    whole = run(query, stream)
    assert len(whole) > 5
    for cut in range(len(stream)):
        first = Engine(query)
        found = list(first.push_all(stream[:cut]))
        second = Engine(query)
        second.restore(first.snapshot())
        found += [*second.push_all(stream[cut:]), *second.close()]
        assert [show(m) for m in found] == whole
        assert second.counters.events == len(stream)


def test_a_snapshot_of_another_program_is_refused() -> None:
    one, other = (
        Engine(SELECT.format("[RANGE 5]")),
        Engine("REGISTER QUERY z AS " + SELECT.format("[RANGE 5]")),
    )
    with pytest.raises(ValueError, match="with the same program"):
        other.restore(one.snapshot())
    with pytest.raises(ValueError, match="no snapshot"):
        other.restore(b"garbage")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (SELECT.format("[RANGE P1M]"), "write the window in days"),
        (SELECT.format("[RANGE PT1H SLIDE 1 ms] REPORT ON WINDOW CLOSE"), "times as long as it slides"),
        (
            SELECT.format("[RANGE 5]").replace("WINDOW :w {", "WINDOW :v {"),
            "no window is declared as <http://example.org/v>",
        ),
        (SELECT.format("[INTERVAL 9 5]"), "ends before it begins"),
        (SELECT.format("[RANGE 5 SLIDE 3 EVENTS]"), "lasts a time but moves by a count"),
        (SELECT.format("[RANGE 5 EVENTS SLIDE 3 TRIPLES]"), "counts EVENTS but moves by TRIPLES"),
        ("SELECT ?x FROM NAMED WINDOW :w ON WINDOW :v [RANGE 5] { WINDOW :w { ?x :p ?y } }", "names no window"),
        (
            "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE BGP 3] { WINDOW :w { ?x :p ?y OPTIONAL { ?x :q ?z } } }",
            "is used with 2",
        ),
        ("SELECT RSTREAM ?x { ?x :p ?y }", "has no window"),
        ("SELECT ?x { ?x :p ?y FILTER(timestamp(?x :p ?y) > 3) }", "gives times in a window, and the query has none"),
        ("SELECT ?x { {?x :p ?y} SEQ {WINDOW :w {?x :q ?z}} }", "no window is declared as"),
        ("SELECT ?x { ?x :p ?y FILTER EXISTS { WINDOW :w {?x :q ?z} } }", "no window is declared as"),
        (
            "SELECT ?n FROM NAMED WINDOW :w ON :s [RANGE 5]"
            " { WINDOW :w { MATCH { { SELECT (COUNT(*) AS ?n) { ?x :p ?y } } SEQ {?x :q ?z} } } }",
            "put MATCH into the sub-SELECT|is not allowed inside MATCH",
        ),
        (SELECT.format("[RANGE 5]") + " WITHIN 5 SECONDS", "write MATCH|windows of its own"),
        (
            "SELECT ?x FROM STREAM :s [RANGE 5] { ?x :p ?y FILTER(timestamp(?x :q ?z) > timestamp(?x :p ?y)) }",
            r"\?z has no value in timestamp",
        ),
        (
            "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
            " SELECT ?x FROM STREAM :s [RANGE 5] { ?x :p ?y FILTER(f:timestamp(?x, ?y + 1) > 3) }",
            "takes the three places of a triple",
        ),
        (SELECT.format("[RANGE 5]") + " USING POLICY recent", "the query has none"),
        (
            "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { MATCH { {?x :p ?y} SEQ {?x :q ?z} } } }"
            " USING POLICY recent",
            "the operators of EP-SPARQL, which consume nothing here",
        ),
        ("SELECT ?x { STREAM ?s [RANGE 5] { ?x :p ?y } }", "needs the IRI of a stream"),
    ],
)
def test_mistakes_are_explained(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        Engine(query)
    assert caught.value.diagnostics[0].hint


def test_timestamp_without_a_window_is_told_how_to_say_it() -> None:
    prefix = "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
    query = f"{prefix} SELECT ?x {{ ?x :p ?y . ?x :q ?z FILTER(f:timestamp(?x, :p, ?y) < f:timestamp(?x, :q, ?z)) }}"
    with pytest.raises(QueryError) as caught:
        Engine(query)
    assert "{ … } SEQ { … }" in caught.value.diagnostics[0].hint


def test_queries_in_a_circle_are_refused() -> None:
    text = """REGISTER STREAM :a AS CONSTRUCT { ?x :p ?y } FROM STREAM :b [RANGE 5] { ?x :p ?y }
        REGISTER STREAM :b AS CONSTRUCT { ?x :p ?y } FROM STREAM :a [RANGE 5] { ?x :p ?y }"""
    with pytest.raises(QueryError, match="feed one another in a circle"):
        Engine(text)


def test_a_graph_that_is_not_there_is_an_error() -> None:
    query = "SELECT ?x FROM NAMED :nowhere FROM STREAM :s [RANGE 5] { GRAPH :nowhere { ?x :p ?y } }"
    with pytest.raises(ValueError, match="nowhere>, which is not loaded"):
        Engine(query)


def test_what_is_due_after_an_advance_comes_with_the_next_event() -> None:
    engine = Engine(SELECT.format("[RANGE 5]"))
    engine.push(item(3, ":a :p 1"))
    assert engine.advance(4 * SECOND) == []
    assert [show(m) for m in engine.push(item(7, ":b :p 1"))] == ["x=a @[0, 5]"]


def test_an_event_that_ends_before_it_starts_is_an_error() -> None:
    engine = Engine(SELECT.format("[RANGE 5]"))
    with pytest.raises(ValueError, match="swap the two"):
        engine.push_all([item(3, ":a :p 1"), item(4, ":b :p 1")._replace(start=5 * SECOND)])
    assert [show(m) for m in engine.close()] == ["x=a @[0, 5]"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 10] WHERE { WINDOW :w { ?s :p ?x . ?s :q ?n } } ORDER BY ?n",
        "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE BGP 1] WHERE { WINDOW :w { ?s :p ?x } }",
    ],
)
def test_equal_rows_have_ids_of_their_own(query: str) -> None:
    """Where they do not stand together, and where a window closes several times at one time."""
    triples = " . ".join(f":s{n} :p {n % 2} ; :q {n}" for n in range(6))
    engine = Engine(query)
    found = [*engine.push(item(3, triples)), *engine.close()]
    assert len(found) > len({m.bindings["x"] for m in found})
    assert len({m.id for m in found}) == len(found)


@pytest.mark.parametrize(
    ("select", "pattern", "times"),
    [
        ("(COUNT(*) AS ?n)", "?x :p ?y", 2),  # by place
        ("(SUM(?y) AS ?n)", "?x :p ?y FILTER (?y > 0)", 2),  # by pattern
        ("(COUNT(*) AS ?n)", "?x :p ?y ; :q ?z", 1),  # by evaluation: of item 3 one triple is new
        ("(COUNT(DISTINCT ?x) AS ?n)", "?x :p ?y", 0),
        ("?x", "?x :p ?y", 0),
    ],
)
def test_items_that_repeat_each_other_are_told_where_they_are_counted(select: str, pattern: str, times: int) -> None:
    """[RSPQL]: a window holds a set of triples."""
    query = f"SELECT {select} FROM NAMED WINDOW :w ON :s [RANGE 10] WHERE {{ WINDOW :w {{ {pattern} }} }}"
    stream = [item(1, ":a :p 1 ; :q 1"), item(2, ":a :p 1 ; :q 1"), item(3, ":a :p 1 ; :q 2"), item(40, ":a :p 1")]
    engine = Engine(compile(query))
    engine.push_all(stream)
    engine.close()
    assert [int(text.split()[0]) for text in engine.warnings] == [times] * (times > 0)
    assert all("holds already; a window is a set of triples" in text for text in engine.warnings)
    twice = Engine(compile(query), duplicates=True)
    twice.push_all(stream)
    assert twice.warnings == ()


def test_a_named_window_that_no_pattern_reads_is_told() -> None:
    declared = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S] "
    (warning,) = compile(f"{declared} {{ ?x :p ?y }}").warnings
    assert (warning.code, warning.hint) == ("unread-window", "write WINDOW :w { … } around the pattern")
    for read in ("WINDOW :w { ?x :p ?y }", "WINDOW ?w { ?x :p ?y }", "GRAPH :w { ?x :p ?y }"):
        assert compile(f"{declared} {{ {read} }}").warnings == ()
    inside = "?x :p ?y FILTER EXISTS { WINDOW :w { ?x :q ?z } }"
    assert compile(f"{declared} {{ {inside} }}").warnings == ()


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_stream_before_the_first_window_is_told(executor: str) -> None:
    query = "SELECT ?y FROM NAMED WINDOW :w ON :s [RANGE 10s SLIDE 5s {}] {{ WINDOW :w {{ ?x :p ?y }} }}"
    for first, told in (("", ["no window held the 2 events that came"]), ("T0 -110", [])):
        engine = Engine(compile(query.format(first)), executor=executor)
        matches = [*engine.push_all([item(-100, ":a :p 1"), item(-7, ":a :p 2")]), *engine.close()]
        assert {match["y"] for match in matches} == ({1, 2} if first else set())
        assert [text.partition(":")[0] for text in engine.warnings] == told
