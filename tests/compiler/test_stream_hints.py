"""What a query with words of other stream processors is told: how EP-SPARQL says it."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.parser import parse

WINDOWS = "{ … } WITHIN 10 SECONDS is a window"
PAIR = "{ { ?s :a ?x } SEQ { ?s :b ?y } }"


def hint(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (f"SELECT ?s {{ {PAIR} WITHIN 5 MINUTES PARTITION BY ?s }}", "parts that share a variable match"),
        (f"SELECT ?s {{ {PAIR} WITHIN 5 m BY ?s }}", "parts that share a variable match"),
        ("SELECT (AVG(?t) AS ?a) { ?s :t ?t } WITHIN 10 s BY ?s", "parts that share a variable match"),
        ("SELECT ?s { { ?s :a ?x } THROTTLE 10 s PER ?s }", "parts that share a variable match"),
        ("SELECT (AVG(?t) AS ?a) { ?s :t ?t } WITHIN 5 EVENTS BY ?s", "WITHIN 5 EVENTS counts all events"),
        ("SELECT (AVG(?t) AS ?a) { ?s :t ?t } WITHIN 5 EVENTS PARTITION BY ?s", "WITHIN 5 EVENTS counts all events"),
        ("SELECT (AVG(?t) AS ?a) { ?s :t ?t } WITHIN 5 EVENTS PER ?s", "WITHIN 5 EVENTS counts all events"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3 PARTITION BY ?s }", "the key of a run is written"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3 OR MORE GROUP BY ?s }", "the key of a run is written"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3 BY ?s, ?x }", "several keys are separated by spaces: BY"),
        (f"SELECT ?s {{ {PAIR} SKIP BY ?s }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} SKIP PAST LAST }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} AFTER MATCH SKIP PAST LAST ROW }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} SKIP }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} SKIP 3 }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} SKIP PAST ?x }}", "matches that do not overlap are { … } DISJOINT"),
        (f"SELECT ?s {{ {PAIR} DISJOINT ?s }}", "the key comes last, after BY"),
        (f"SELECT ?s {{ {PAIR} THROTTLE 5 s ?s }}", "the key comes last, after BY"),
        (f"SELECT ?s {{ {PAIR} THROTTLE 5m ?s }}", "the key comes last, after BY"),
        (f"SELECT ?s {{ {PAIR} THROTTLE BY ?s 5 s }}", "the key comes last, after BY"),
        ("SELECT ?s { { ?s :a ?x } GAP 3 s }", "what ends a run comes after REPEAT"),
        ("SELECT ?s { { ?s :a ?x } UNTIL { ?s :b ?y } }", "what ends a run comes after REPEAT"),
        ("SELECT ?s { { ?s :a ?x } MAXIMAL }", "what ends a run comes after REPEAT"),
        ("SELECT ?s { { ?s :a ?x } SESSION 30 min }", "what ends a run comes after REPEAT"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 OR MORE GREEDY }", "LONGEST reports the longest run"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 OR MORE WHERE ?x > 3 }", "the condition on the elements stands"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 OR MORE WHERE (?x > PREV(?x)) }", "the value in the element before is"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 OR MORE UNTIL ?x }", "what ends a run is a pattern in braces"),
        ("SELECT ?s { { ?s :a ?x } OPTIONAL SEQ { ?s :b ?y } }", "what may be missing is { A } SEQ OPTIONAL"),
        ("SELECT ?s { { ?s :a ?x } SEQ { ?s :b ?y } OPTIONAL }", "what may be missing is { A } SEQ OPTIONAL"),
        ("SELECT ?s { { ?s :a ?x } REPEAT+ }", "a run is written { A } REPEAT 2 TO 5"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 OR MORE AS COUNT(*) AS ?n }", "a run is written { A } REPEAT 2 TO 5"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 1 TO 0 }", "write REPEAT 1"),
        ("SELECT ?s { { ?s :a ?x } REPEAT AT LEAST 3 BY ?s }", "a run is written { A } REPEAT 2 TO 5"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3 TO MORE BY ?s }", "a run is written { A } REPEAT 2 TO 5"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3 WHERE (?x > LAG(?x)) }", "the value in the element before is PREVIOUS(?x)"),
        ("SELECT ?s { { ?s :a ?x } REPEAT }", "a run is written { A } REPEAT 2 TO 5"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 3..5 BY ?s }", "a run is written { A } REPEAT 2 TO 5"),
        (
            "SELECT ?s { { ?s :a ?x } REPEAT 3 BY ?s UNTIL { ?s :b ?y } UNION { ?s :d ?z } AS (COUNT(*) AS ?n) }",
            "this UNION is one of the whole run with something else",
        ),
        ("SELECT ?s { { ?s :a ?x } OR { ?s :b ?y } }", "one or the other is { A } UNION { B }"),
        ("SELECT ?s { ?s :a ?x UNLESS { ?s :b ?y } }", "absence lies between two matches"),
        (
            "select * from pattern [every a=T -> b=T where timer:within(10 sec)]",
            "this is Esper's language; here a limit",
        ),
        ("select * from pattern [every timer:interval(10 sec)]", "this is Esper's language; here what does not happen"),
        ("// copied\nselect * from pattern [every a=T -> b=T]", "this is Esper's language"),
        ("from every e1=T[x > 1] -> e2=T[x > e1.x] select e1.s insert into Out;", "this is Siddhi's language"),
        ("define stream Tick (company string, price int);", "a stream is not declared in a query"),
        ("CREATE STREAM ticks (company VARCHAR) WITH (kafka_topic='t');", "a stream is not declared in a query"),
        ("SELECT s, COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY s EMIT CHANGES;", "this is ksqlDB"),
        ("MATCH (a:Tick)-[:NEXT]->(b:Tick) WHERE a.x < b.x RETURN a", "this is Cypher"),
        ("rise(C) :- price(C, X), price(C, Y), Y > X.", "this is a rule of logic programming"),
        ("rise(C) <- price(C, X) SEQ price(C, Y) WHERE (Y > X).", "this is a rule of logic programming"),
        ("SELECT (COUNT(*) AS ?n) { ?s :a ?x } EVERY 10 s", WINDOWS),
        ("SELECT (COUNT(*) AS ?n) { ?s :a ?x } WITHIN 10 s EVERY 5 s", WINDOWS),
        ("SELECT (COUNT(*) AS ?n) { ?s :a ?x } TUMBLING 10 s", WINDOWS),
        (
            "SELECT (COUNT(*) AS ?n) { ?s :a ?x } WITHIN 10 s SLIDE 5 s GROUP BY ?s",
            WINDOWS,
        ),
        ("SELECT ?s { { ?s :a ?x } WINDOW 10 s }", WINDOWS),
        ("SELECT ?s { EVERY EVENT { ?s :a ?x } }", "every match is reported"),
        ("SELECT ?s { EVENT { ?s :a ?x } BACKGROUND { ?s :b ?y } }", "background knowledge has no keyword"),
        ("SELECT ?s { EVENT ?s :a ?x }", "the pattern of an event stands in braces"),
        ("SELECT ?s { EVENT { ?s.a > 5 } }", "a property is a triple"),
        ("SELECT ?s { EVENT { ?s :a ?x } WHERE { ?x > 5 } }", "a condition is a filter"),
        ("SELECT ?s { { ?s :a ?x } NEXT { ?s :b ?y } IF (?x > ?y) }", "a condition is a filter"),
        ("SELECT ?s { NOT { ?s :a ?x } SEQ { ?s :b ?y } }", "absence lies between two matches"),
        ("SELECT ?s { { ?s :a ?x } NEXT NOT { ?s :b ?y } }", "absence lies between two matches"),
        ("SELECT ?s { { ?s :a ?x } NEXT 2 { ?s :b ?y } }", "three in a row are"),
        ("SELECT ?s { { ?s :a ?x } FIRST 3 BY ?s }", "three in a row are"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 2 BY ?s WHERE (NEXT(?x) > ?x) }", "WHERE looks at the elements before"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 2 WHERE (FIRST(getENDTIME()) > ?x) }", "FIRST, LAST and PREVIOUS take a"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 2 WITHIN 5 s AS (COUNT(*) AS ?n) }", "what a run counts comes before"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 0 TO 3 }", "write REPEAT 1 TO 3; what may be missing is"),
        ("SELECT ?s { { ?s :a ?x } REPEAT 0 OR MORE }", "write REPEAT 1 OR MORE; what may be missing is"),
        ("CONSTRUCT AT END { ?s :b ?x } WHERE { ?s :a ?x }", "AT END stands after the template"),
        ("SELECT ?s AT END { ?s :a ?x }", "AT END stands after the template"),
        ("CONSTRUCT { ?s :b ?x } WHERE { ?s :a ?x } AT END", "AT END stands after the template"),
        (f"SELECT ?s {{ {PAIR} DISJOINT ON ?s }}", "the key comes last, after BY"),
        ("ALERT ?s { EVENT { ?s :a ?x } }", "a query begins with SELECT"),
    ],
)
def test_words_of_others(text: str, begins: str) -> None:
    assert hint(text).startswith(begins)


@pytest.mark.parametrize(
    "written",
    [
        "SELECT * { { ?key :a ?x } REPEAT 5 BY ?key AS (AVG(?x) AS ?mean) }",
        "SELECT * { { ?key :a ?x } REPEAT 1 OR MORE BY ?key GAP 30 min MAXIMAL AS (COUNT(*) AS ?n) }",
        "SELECT * { { ?key :a ?x } REPEAT 1 OR MORE BY ?key UNTIL { ?key :logs :out } }",
        "SELECT * { { ?key :a ?x } REPEAT 2 OR MORE BY ?key WHERE (?x > PREVIOUS(?x) && ?x > PREVIOUS(?x, 2)) }",
        "SELECT * { { ?s :a ?x } REPEAT 2 OR MORE AS (COUNT(*) AS ?n) WITHIN 10 s }",
        "SELECT * { { ?s :a ?x } SEQ OPTIONAL { { ?s :b ?y } REPEAT 1 TO 3 } SEQ { ?s :c ?z } }",
        "SELECT * { { ?s :a ?x BIND (getENDTIME() AS ?t) } REPEAT 2 WHERE (?t > FIRST(?t)) }",
        "SELECT * { { START } SEQ NOT { ?s :a ?x } WITHIN 10 s }",
        "SELECT * { ?s :a ?x FILTER NOT EXISTS { ?s :b ?y } }",
        "CONSTRUCT { ?s :b ?x } AT END WHERE { ?s :a ?x }",
        f"SELECT ?s {{ {PAIR} DISJOINT BY ?s }}",
        f"SELECT ?s {{ {PAIR} THROTTLE 1 h BY ?s }}",
        f"SELECT ?s {{ {PAIR} SKIP PAST (getENDTIME()) BY ?s }}",
        "SELECT * FROM NAMED WINDOW :w ON :stream [RANGE 10s TUMBLING] WHERE { WINDOW :w { ?s :a ?x } }",
        "SELECT ?order { EVENT { ?order :sku ?p . ?p :limit ?l } }",
    ],
)
def test_what_the_hints_write_is_right(written: str) -> None:
    parse(written)


def test_an_error_elsewhere_is_not_about_these_words() -> None:
    """The words of the first query are right, and its keys, too; so is AT END in the second."""
    assert hint("CONSTRUCT { ?s :b ?x } AT END WHEER { ?s :a ?x }") == "did you mean WHERE?"
    assert hint("SELECT ?s (COUNT(*) AS ?n) { ?s :a ?x } WITHIN 10 s GROUP BY ?s HAVING ?n > 5").startswith(
        "the condition"
    )
