"""RSP-QL, RSEP-QL, C-SPARQL, CQELS and SPARQLstream: windows, streams, registration, reports, event patterns."""

from __future__ import annotations

import pytest
from etalis_compiler.ast import (
    DatasetClause,
    Duration,
    EventDeclaration,
    EventName,
    EventSequence,
    EventUnary,
    Group,
    Match,
    Query,
    Register,
    ReportClause,
    ReportItem,
    Select,
    StreamGroup,
    Term,
    TripleTime,
    Var,
    WindowGroup,
    WindowSpec,
)
from etalis_compiler.parser import QueryError, parse
from etalis_rules.terms import XSD

W, S = Term("<http://example.org/w>"), Term("<http://example.org/s>")
FIVE = Term(f'"5"^^<{XSD}integer>')
NINE = Term(f'"9"^^<{XSD}integer>')


def one(text: str) -> Query:
    (query,) = parse(text).queries
    return query


def lasting(lexical: str) -> Duration:
    return Duration("duration", lexical)


def window(spec: str) -> WindowSpec | None:
    (clause,) = one(f"SELECT * FROM NAMED WINDOW :w ON :s {spec} {{ WINDOW :w {{ ?s ?p ?o }} }}").dataset
    assert (clause.kind, clause.iri, clause.source, clause.named) == ("window", W, S, True)
    return clause.window


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", None),
        ("[RANGE PT5M STEP PT1M]", WindowSpec("sliding", lasting("PT5M"), lasting("PT1M"))),
        ("[RANGE PT10M SLIDE PT01M]", WindowSpec("sliding", lasting("PT10M"), lasting("PT01M"))),
        ("[RANGE 5m SLIDE 1s]", WindowSpec("sliding", lasting("PT5M"), lasting("PT1S"))),
        ("[RANGE PT5M]", WindowSpec("sliding", lasting("PT5M"))),
        ("[RANGE 5]", WindowSpec("sliding", lasting("PT5S"))),
        ("[RANGE 10m TUMBLING]", WindowSpec("tumbling", lasting("PT10M"))),
        ("[1 MINUTES SLIDE 1 MINUTES]", WindowSpec("sliding", lasting("PT1M"), lasting("PT1M"))),
        ("[NOW - 10 SECONDS TO NOW SLIDE 1 SECONDS]", WindowSpec("sliding", lasting("PT10S"), lasting("PT1S"))),
        ("[NOW -10 SECONDS TO NOW]", WindowSpec("sliding", lasting("PT10S"))),
        ("[FROM NOW - 10 MINUTES TO NOW STEP 1 MINUTE]", WindowSpec("sliding", lasting("PT10M"), lasting("PT1M"))),
        (
            "[NOW - 10 MINUTES TO NOW - 240 SECONDS SLIDE 1 MINUTES]",
            WindowSpec("sliding", lasting("PT6M"), lasting("PT1M"), offset=lasting("PT240S")),
        ),
        ("[NOW - 10 S TO NOW - 0 S]", WindowSpec("sliding", lasting("PT10S"))),
        ("[RANGE BGP 3]", WindowSpec("sliding", Duration("BGP", "", 3))),
        ("[RANGE TRIPLES 3]", WindowSpec("sliding", Duration("TRIPLES", "", 3))),
        ("[RANGE 3 TRIPLES]", WindowSpec("sliding", Duration("TRIPLES", "", 3))),
        (
            "[RANGE 3 EVENTS SLIDE 1 EVENTS]",
            WindowSpec("sliding", Duration("EVENTS", "", 3), Duration("EVENTS", "", 1)),
        ),
        ("[LND 9]", WindowSpec("landmark", start=NINE)),
        ("[LANDMARK 9]", WindowSpec("landmark", start=NINE)),
        ("[INTERVAL 5 9]", WindowSpec("interval", start=FIVE, end=NINE)),
        ("[INTERVAL 5, 9]", WindowSpec("interval", start=FIVE, end=NINE)),
        ("[IDENTITY]", WindowSpec("identity")),
        ("[ALL]", WindowSpec("identity")),
        ("[NOW]", WindowSpec("now")),
        ("[RANGE PT5M OFFSET PT10M]", WindowSpec("sliding", lasting("PT5M"), offset=lasting("PT10M"))),
        ("[RANGE PT5M SLIDE PT1M T0 5]", WindowSpec("sliding", lasting("PT5M"), lasting("PT1M"), t0=FIVE)),
        (
            '[RANGE PT5M T0 "2016-01-01T00:00:00Z"^^xsd:dateTime]',
            WindowSpec("sliding", lasting("PT5M"), t0=Term(f'"2016-01-01T00:00:00Z"^^<{XSD}dateTime>')),
        ),
    ],
)
def test_windows(spec: str, expected: WindowSpec | None) -> None:
    assert window(spec) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("[RANGE ? STEP ?]", "no size of a window"),
        ("[RANGE PT5M RANGE PT6M]", "range twice"),
        ("[RANGE PT5M LND 9]", "both range and landmark"),
        ("[SLIDE PT5M]", "no length"),
        ("[RANGE PT5M SLIDE PT1M TUMBLING]", "slides by its own length"),
        ("[RANGE 0 SECONDS]", "be or move by nothing"),
        ("[RANGE PT5M SLIDE PT0S]", "be or move by nothing"),
        ("[]", "unexpected"),
        ("[NOW - 5m TO NOW - 10m]", "ends before it begins"),
        ("[NOW - 5m TO NOW - 5m]", "ends before it begins"),
        ("[NOW - P1M TO NOW - 5m]", "without months"),
        ("[NOW - 3 EVENTS TO NOW - 1 EVENTS]", "must be lengths of time"),
        ("[NOW +10 S TO NOW]", "looks back"),
        ("[NOW - 10m TO NOW - 5m OFFSET 5m]", "twice how late"),
    ],
)
def test_windows_that_are_none(spec: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        window(spec)
    assert caught.value.diagnostics[0].hint or caught.value.diagnostics[0].expected


def test_several_windows_and_graphs() -> None:
    query = one(
        "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10M] FROM NAMED :people FROM <urn:g> [RESCAN 20 SECONDS]"
        " FROM WINDOW :v ON WINDOW :w [RANGE 3 EVENTS] { WINDOW ?any { ?s ?p ?o } }"
    )
    assert query.dataset == (
        DatasetClause("window", W, True, S, WindowSpec("sliding", lasting("PT10M"))),
        DatasetClause("graph", Term("<http://example.org/people>"), True),
        DatasetClause("graph", Term("<urn:g>"), rescan=lasting("PT20S")),
        DatasetClause(
            "window",
            Term("<http://example.org/v>"),
            window=WindowSpec("sliding", Duration("EVENTS", "", 3)),
            nested=W.spelling,
        ),
    )
    (element,) = query.where.elements
    assert isinstance(element, WindowGroup)
    assert element.window == Var("any")
    assert query.dialect == "rsp-ql"


def test_on_stream_is_on() -> None:
    on = "SELECT * FROM NAMED WINDOW :w ON {}:s [RANGE 5] {{ WINDOW :w {{ ?s ?p ?o }} }}"
    assert one(on.format("STREAM ")) == one(on.format(""))


@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} * {{ }}",
        "CONSTRUCT {} {{ ?s :p ?o }} {{ ?s ?p ?o }}",
        "ASK {} {{ }}",
        "DESCRIBE {} ?s {{ ?s ?p ?o }}",
        "SELECT {} DISTINCT ?s {{ ?s ?p ?o }}",
        "SELECT DISTINCT {} ?s {{ ?s ?p ?o }}",
        "REGISTER {} :out AS SELECT ?s {{ ?s ?p ?o }}",
    ],
)
def test_streaming_operators(text: str, operator: str) -> None:
    assert one(text.format(operator.lower())).r2s == operator


def test_two_streaming_operators_must_agree() -> None:
    with pytest.raises(QueryError, match="registered as RSTREAM but selects ISTREAM"):
        parse("REGISTER RSTREAM :out AS SELECT ISTREAM * { }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REGISTER QUERY TrackAxel AS", Register("QUERY", "TrackAxel")),
        ("REGISTER QUERY :q AS", Register("QUERY", "<http://example.org/q>")),
        ("REGISTER STREAM :q AS", Register("STREAM", "<http://example.org/q>")),
        ("REGISTER STREAM Counts AS", Register("STREAM", "<http://example.org/Counts>")),
        ("REGISTER STREAM :q COMPUTED EVERY 1m AS", Register("STREAM", "<http://example.org/q>", lasting("PT1M"))),
        ("REGISTER QUERY q EVERY PT1M AS PREFIX a: <urn:a>", Register("QUERY", "q", lasting("PT1M"))),
    ],
)
def test_registration(text: str, expected: Register) -> None:
    assert one(f"{text} SELECT * {{ ?s ?p ?o }}").register == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REPORT ON WINDOW CLOSE AND NON-EMPTY CONTENT", [ReportItem("WC"), ReportItem("NC")]),
        ("REPORT CONTENT CHANGE", [ReportItem("CC")]),
        ("REPORT ON NON EMPTY, PERIODIC PT5S", [ReportItem("NC"), ReportItem("P", period=lasting("PT5S"))]),
        ("REPORT AT (5, 9)", [ReportItem("AT", times=(FIVE, NINE))]),
        ("REPORT ON WINDOW CLOSE OF :w, NON-EMPTY CONTENT", [ReportItem("WC", W), ReportItem("NC")]),
        (
            "REPORT ON CONTENT CHANGE OF :w AND CONTENT CHANGE OF :v",
            [ReportItem("CC", W), ReportItem("CC", Term("<http://example.org/v>"))],
        ),
    ],
)
def test_report_policies(text: str, expected: list[ReportItem]) -> None:
    query = one(f"SELECT * FROM NAMED WINDOW :w ON :s [RANGE 5] {text} WHERE {{ WINDOW :w {{}} }}")
    assert query.report == ReportClause(tuple(expected))


def test_a_report_policy_named_twice_is_an_error() -> None:
    with pytest.raises(QueryError, match="named twice"):
        parse("SELECT * FROM NAMED WINDOW :w ON :s [RANGE 5] REPORT ON WINDOW CLOSE OF :w AND WINDOW CLOSE OF :w {}")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT * FROM STREAM :s [RANGE 5m STEP 1m] { ?s ?p ?o }", "c-sparql"),
        ("SELECT * { STREAM :s [RANGE 5m SLIDE 1m] { ?s ?p ?o } }", "cqels"),
        ("SELECT * FROM NAMED STREAM :s [5 MINUTES SLIDE 1 MINUTES] { ?s ?p ?o }", "sparqlstream"),
        ("SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT5M] { WINDOW :w { ?s ?p ?o } }", "rsp-ql"),
        ("SELECT * { STREAM :s { ?s ?p ?o } }", ""),
        ("SELECT * { ?s ?p ?o }", ""),
        ("SELECT * { { SELECT ?s { ?s ?p ?o } } STREAM :s [RANGE 5m] { ?s ?p ?o } }", "cqels"),
        ("SELECT * { STREAM :s [RANGE 5m] { ?s ?p ?o } { SELECT ?s { ?s ?p ?o } } }", "cqels"),
    ],
)
def test_dialects(text: str, dialect: str) -> None:
    assert one(text).dialect == dialect


def test_a_dialect_is_that_of_one_query() -> None:
    first, second = parse("SELECT * FROM STREAM :s [RANGE 5m] { ?s ?p ?o } SELECT * { ?s ?p ?o }").queries
    assert (first.dialect, second.dialect) == ("c-sparql", "")


def test_streams_with_windows_in_the_pattern() -> None:
    (element,) = one("SELECT * { STREAM<S1>[RANGE 5M]{ ?s ?p ?o } }").where.elements
    assert isinstance(element, StreamGroup)
    assert element.window == WindowSpec("sliding", lasting("PT5M"))


def test_the_time_of_a_triple() -> None:
    query = one("SELECT * { ?s :p ?o FILTER (timestamp(?s :p ?o) > timestamp(?s isIn ?o)) }")
    condition = query.where.elements[1].condition
    assert isinstance(condition.left, TripleTime)
    assert condition.right.pattern.predicate == Term("<http://example.org/isIn>")
    assert query.dialect == "c-sparql"


def test_the_time_of_a_triple_as_the_engine_of_c_sparql_spells_it() -> None:
    prefix = "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> "
    query = one(prefix + "SELECT * { ?s :p ?o FILTER (f:timestamp(?s, :p, ?o) > timestamp(?s :p ?o)) }")
    condition = query.where.elements[1].condition
    assert isinstance(condition.left, TripleTime)
    assert condition.left == condition.right
    assert query.dialect == "c-sparql"


# --- RSEP-QL --------------------------------------------------------------------------------------------------------


def test_rsep_example_4() -> None:
    query = one(
        """SELECT ?x ?z
        FROM NAMED :S WIN [LND 9] AS :w1
        FROM NAMED :S WIN [RANGE 5] AS :w2
        EVENT ON :w1 { ?x :p ?y. } AS E1
        EVENT ON :w2 { ?y :q ?z. } AS E2
        WHERE { MATCH { E1 SEQ E2 } }"""
    )
    assert isinstance(query.form, Select)
    landmark, sliding = (c.window for c in query.dataset)
    assert landmark == WindowSpec("landmark", start=NINE)
    assert sliding == WindowSpec("sliding", lasting("PT5S"), lasting("PT1S"))  # RSEP's windows slide by one
    assert [(e.name, e.window.spelling) for e in query.events] == [
        ("E1", "<http://example.org/w1>"),
        ("E2", "<http://example.org/w2>"),
    ]
    assert query.where == Group((Match(EventSequence(EventName("E1"), EventName("E2"))),))
    assert query.dialect == "rsep-ql"


E1, E2, E3 = EventName("E1"), EventName("E2"), EventName("E3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("E1", E1),
        ("E1 SEQ E2 SEQ E3", EventSequence(EventSequence(E1, E2), E3)),
        ("E1 SEQ (E2 SEQ E3)", EventSequence(E1, EventSequence(E2, E3))),
        ("FIRST E1 SEQ LAST E2", EventSequence(EventUnary("FIRST", E1), EventUnary("LAST", E2))),
        ("LAST (E1 SEQ E2)", EventUnary("LAST", EventSequence(E1, E2))),
        ("E1 SEQ NAIVE E2", EventSequence(E1, E2, "naive")),
        ("E1 SEQ chronological E2", EventSequence(E1, E2, "chronological")),
        ("E1 SEQ^r E2", EventSequence(E1, E2, "recent")),
        ("E1 SEQ^c E2", EventSequence(E1, E2, "chronological")),
        ("E1 SEQ^n E2", EventSequence(E1, E2, "naive")),
        ("E1 SEQ UNRESTRICTED E2", EventSequence(E1, E2)),
    ],
)
def test_event_patterns(text: str, expected: object) -> None:
    declared = " ".join(f"EVENT ON :w {{ ?x{n} :p ?y }} AS E{n}" for n in (1, 2, 3))
    (match,) = one(f"SELECT * {declared} WHERE {{ MATCH {{ {text} }} }}").where.elements
    assert match == Match(expected)


def test_match_takes_the_operators_of_ep_sparql_too() -> None:
    query = one("SELECT * FROM NAMED WINDOW :w ON :s [RANGE 5] { WINDOW :w { MATCH { {?x :p ?y} SEQ {?y :p ?z} } } }")
    (match,) = query.where.elements[0].group.elements
    assert isinstance(match.pattern, Group)


def test_events_declared_in_where() -> None:
    query = one("SELECT ?x { EVENT ON :w { ?x :p ?y } AS A MATCH { A } ?x :q ?z }")
    assert isinstance(query.where.elements[0], EventDeclaration)
    assert parse("SELECT ?x { EVENT ON :w { ?x :p ?y } AS A MATCH { A } }").warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EVENT ON :w { } AS Rise WHERE { MATCH { Rice } }", "no event is declared as Rice"),
        ("EVENT ON :w { } AS E EVENT ON :v { } AS E WHERE { MATCH { E } }", "E is declared twice"),
        ("EVENT ON :w { } AS E WHERE { MATCH { E SEQ^x E } }", "no policy of SEQ"),
    ],
)
def test_event_patterns_that_are_none(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse("SELECT * " + text)
    assert caught.value.diagnostics[0].hint
