"""Warnings about programs that can be run but are doubtful: each with its place and what to do."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.knowledge import KnowledgeSummary
from etalis_compiler.pipeline import compile_sources
from etalis_compiler.rule_warnings import check
from etalis_compiler.value_kinds import no_value

from etalis_py import compile
from etalis_py.values.codec import decode
from etalis_py.values.types import Opaque
from tests.compiler.warned import found


def test_a_warning_shows_the_place_and_what_to_do() -> None:
    text = "SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }\nFILTER (getDURATION() < 'P30D')"
    assert [str(d) for d in found(text, "type-error")] == [
        "<query>:2:9: warning: getDURATION() is a duration, 'P30D' a text: this can only be an error\n"
        "  2 | FILTER (getDURATION() < 'P30D')\n"
        "    |         ^^^^^^^^^^^^^^^^^^^^^^\n"
        '  hint: give the duration its type: "P30D"^^xsd:duration'
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y } FILTER (getDURATION() < 'P30D'^^xsd:duration)",
        "SELECT ?c WHERE { ?c :p ?x } EQUALS { ?c :q ?y }",
        "SELECT ?x { ?x :p ?y BIND (?y + 1 AS ?z) FILTER (?z > 2 && BOUND(?z)) }",
        "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } WITHIN PT1H GROUP BY ?c HAVING (COUNT(*) > 2)",
        "CONSTRUCT { ?x :high ?y } { ?x :p ?y } SELECT ?x { ?x :high ?y }",
        "CONSTRUCT { ?x :high ?y } { ?x :p ?y }",
        "SELECT * { { ?x :p ?y . ?z :q ?w . ?y :r ?z } WITHIN PT1S FILTER (NOW() > ?w) }",
        "SELECT * { ?x :p ?y FILTER (1.5 < 2 && 'a' < 'b' && ?y > xsd:integer(1)) }",
        "SELECT * { ?x :p ?y FILTER (xsd:date(?y) > '2026-01-01'^^xsd:date && xsd:dateTime(?y) < NOW()) }",
    ],
)
def test_nothing_is_said_of_what_is_well(text: str) -> None:
    assert found(text) == []


# --- state -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "token", "message"),
    [
        ("SELECT * { ?c :p ?x } SEQ { ?c :q ?y }", "{ ?c :p ?x } SEQ { ?c :q ?y }", "everything that may come first"),
        ("SELECT * { ?c :p ?x . ?c :q ?y }", "?c :p ?x . ?c :q ?y", "everything on both sides"),
        ("SELECT * { ?c :p ?x OPTIONAL { ?c :q ?y } }", "OPTIONAL { ?c :q ?y }", "look back at"),
        ("SELECT * { ?c :p ?x MINUS { ?c :q ?y } }", "MINUS { ?c :q ?y }", "look back at"),
        ("SELECT * { ?c :p ?x FILTER NOT EXISTS { ?c :q ?y } }", "NOT EXISTS { ?c :q ?y }", "look back at"),
        ("SELECT * { ?c :p+ ?x }", ":p+", "every edge of the path"),
        ("SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } GROUP BY ?c", "COUNT(*)", "one row per group"),
        ("DESCRIBE ?c { ?c :p ?x }", "DESCRIBE ?c", "every triple of the stream"),
        ("SELECT * { { ?c :p ?x } NEXT { ?c :q ?y } }", "{ ?c :p ?x } NEXT ", "its next one for each ?c for"),
        ("SELECT * { { ?c :p ?x } MEETS { ?c :q ?y } }", "{ ?c :p ?x } MEETS", "everything on both sides"),
        ("SELECT * { { ?c :p ?x } REPEAT 3 BY ?c FILTER (?c != :a) }", "{ ?c :p ?x } REPEAT", "may go on for each ?c"),
        ("SELECT * { { START } SEQ NOT { ?c :q ?y } SEQ { ?c :p ?x } }", "{ START } SEQ NOT {", "solution of the NOT"),
        ("SELECT * { { ?c :p ?x } NOT { ?c :q ?y } }", "{ ?c :p ?x } NOT { ?", "every solution of the NOT"),
    ],
)
def test_unbounded_state(text: str, token: str, message: str) -> None:
    (warning,) = found(text, "unbounded")
    assert message in warning.message
    assert warning.token.startswith(token[:20])
    assert warning.hint


def test_a_bound_is_not_advised_for_absence_since_the_start() -> None:
    """WITHIN PT1H after START is the first hour: another question."""
    (warning,) = found("SELECT * { { START } SEQ NOT { ?c :q ?y } SEQ { ?c :p ?x } }", "unbounded")
    assert "absence in all the past" in warning.hint
    assert "bound the group" not in warning.hint
    assert not found("SELECT * { { { START } SEQ NOT { ?c :q ?y } SEQ { ?c :p ?x } } WITHIN PT1H }", "unbounded")


def test_a_window_bounds_what_is_kept() -> None:
    assert not found("SELECT * { { { ?c :p ?x } SEQ { ?c :q ?y } } WITHIN PT5M }", "unbounded")
    assert not found("SELECT * { { ?c :p+ ?x } WITHIN PT5M }", "unbounded")


def test_a_window_around_not_is_advised_and_bounds_what_is_kept() -> None:
    """Only what lies inside a solution keeps it away, so a length of the whole, or of its left side, is enough."""
    left, absent = "{ { ?c :p ?x } NEXT { ?c :r ?z } }", "NOT { ?c :q ?y }"
    warning, _ = found(f"SELECT * {{ {left} {absent} }}", "unbounded")
    assert warning.message == "this keeps every solution of the NOT for ever"
    assert warning.hint.startswith("bound the group, {…} WITHIN PT1H")
    assert not found(f"SELECT * {{ {{ {left} {absent} }} WITHIN 5 s }}", "unbounded")
    assert not found(f"SELECT * {{ {left} WITHIN 5 s {absent} }}", "unbounded")


def test_a_window_that_belongs_to_the_second_side_alone_is_told() -> None:
    (warning,) = found("SELECT * { { ?c :p ?x } SEQ { ?c :q ?y ; :r ?z } WITHIN 5 s }", "unbounded")
    assert warning.hint == (
        "WITHIN 5 s bounds { ?c :q ?y ; :r ?z } alone; "
        "braces around both sides bound the whole: { … { ?c :q ?y ; :r ?z } } WITHIN 5 s"
    )


@pytest.mark.parametrize(
    "operator", ["SEQ", "NEXT", "NOT", "SEQ NOT { ?c :n ?n } SEQ", "SEQ OPTIONAL { ?c :n ?n } SEQ"]
)
def test_a_window_of_the_last_event_is_told_once(operator: str) -> None:
    (warning,) = compile(f"SELECT * {{ {{ ?c :p ?x }} {operator} {{ ?c :q ?y }} WITHIN 5 s }}").check()
    assert warning.code == "last-bound"


def test_what_another_window_would_bound_is_still_told() -> None:
    text = "SELECT * { { { ?c :p ?x } SEQ { ?c :q ?y } WITHIN 5 s } SEQ { ?c :r ?z } }"
    assert {w.code for w in compile(text).check()} == {"last-bound", "unbounded"}


def test_absence_is_kept_even_inside_a_window() -> None:
    """A WITHIN around the group does not shorten what OPTIONAL looks back at."""
    assert found("SELECT * { { ?c :p ?x OPTIONAL { ?c :q ?y } } WITHIN PT5M }", "unbounded")


# --- what never holds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "token", "hint"),
    [
        ("SELECT * { ?price :p ?x FILTER (?prize > 3) }", "?prize", "did you mean ?price?"),
        ("SELECT * { { { ?c :p ?x } SEQ { ?c :q ?y } } WITHIN PT0S }", "PT0S", "use EQUALS"),
        ("SELECT * { ?c :p ?x VALUES ?c { } }", "VALUES ?c { }", "give it a row"),
        (
            "REGISTER STREAM <urn:o> AS CONSTRUCT { ?x :a ?y } { ?x :p ?y } SELECT * { STREAM <urn:o> { ?x :b ?y } }",
            "?x :b ?y",
            "the rules write <http://example.org/a>",
        ),
    ],
)
def test_what_never_matches(text: str, token: str, hint: str) -> None:
    (warning,) = found(text, "never")
    assert warning.token == token
    assert hint in warning.hint


SILENCE = "{ ?u :p ?x } SEQ NOT { ?u :q ?y } WITHIN 10 s"
VISIT = "{ ?u :p ?x } REPEAT 2 OR MORE BY ?u GAP 30 min MAXIMAL"


@pytest.mark.parametrize(
    ("where", "least"),
    [
        (f"{{ {{ {SILENCE} }} WITHIN 5 s }}", "PT10S"),
        (f"{{ {SILENCE} }} WITHIN 5 s", "PT10S"),
        (f"{{ {{ {VISIT} WITHIN 20 min }} }}", "PT30M"),
        (f"{{ {{ {{ {VISIT} }} SEQ {{ ?u :r ?z }} }} WITHIN 29 min }}", "PT30M"),
        (f"{{ {{ {{ {VISIT} }} SEQ NOT {{ ?u :r ?z }} WITHIN 1 min }} WITHIN 30 min }}", "PT31M"),
        (f"{{ {{ {{ ?u :p ?a }} NEXT {{ {{ {VISIT} }} DISJOINT BY ?u }} }} WITHIN 1 min }}", "PT30M"),
    ],
)
def test_a_window_shorter_than_the_time_that_something_waits(where: str, least: str) -> None:
    (warning,) = found(f"SELECT ?u {{ {where} }}" if where[-1] == "}" else f"SELECT ?u {where}", "never")
    assert warning.message.startswith(f"every match of this group lasts {least} or longer")


@pytest.mark.parametrize(
    "where",
    [
        f"{{ {{ {SILENCE} }} WITHIN 10 s }}",
        f"{{ {{ {{ {VISIT} }} UNION {{ ?u :r ?z }} }} WITHIN 1 s }}",
        f"{{ {{ ?u :r ?z OPTIONAL {{ {VISIT} }} }} WITHIN 1 s }}",
        f"{{ {{ {VISIT} WHERE (?x > PREVIOUS(?x)) }} WITHIN 1 s }}",
        "{ { { ?u :p ?x } REPEAT 2 TO 3 BY ?u GAP 5 s MAXIMAL } WITHIN 1 s }",
        "{ { { ?u :p ?x } SEQ OPTIONAL { ?u :q ?y } WITHIN 10 s } WITHIN 5 s }",
        "{ { ?u :p ?x } SEQ NOT { { ?u :q ?y } WITHIN 1 s } WITHIN 10 s }",
        f"{{ {{ {SILENCE} }} WITHIN P1M }}",
    ],
)
def test_a_window_that_something_may_fit_into(where: str) -> None:
    assert not found(f"SELECT ?u {{ {where} }}", "never")


def test_a_sliding_window_of_an_aggregate_is_no_bound_of_its_matches() -> None:
    assert not found(f"SELECT ?u (COUNT(*) AS ?n) {{ {SILENCE} }} WITHIN 5 s GROUP BY ?u", "never")


def test_an_unbound_variable_that_a_filter_can_bear_is_no_fault() -> None:
    for condition in ("!BOUND(?z)", "COALESCE(?z, 1) = 1", "?z > 3 || ?x > 3"):
        assert not found(f"SELECT * {{ ?c :p ?x FILTER ({condition}) }}", "never")


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("{ ?u :p ?x } SEQ { ?u :q ?y FILTER (?y > ?x) }", "move it behind the groups"),
        (
            "{ ?u :p ?x } SEQ NOT { ?u :n ?n FILTER (?n > ?y) } SEQ { ?u :q ?y }",
            "it sees what stands to the left; with",
        ),
        (
            "{ ?u :p ?x } SEQ OPTIONAL { ?u :n ?n FILTER (?n > ?y) } SEQ { ?u :q ?y }",
            "it sees what stands to the left; to",
        ),
        ("{ ?u :p ?x } REPEAT 2 BY ?u NOT { ?u :n ?n FILTER (?n > ?x) }", "it sees the BY variables alone"),
        ("{ ?u :p ?x } REPEAT 2 BY ?u UNTIL { ?u :n ?n FILTER (?n > ?x) }", "it sees the BY variables alone"),
        ("{ { ?u :p ?x } REPEAT 2 BY ?u } FILTER (?x > 3)", "outside there are the BY variables and what AS names"),
    ],
)
def test_what_an_operator_hides_from_a_filter_and_how_to_ask_for_it(where: str, hint: str) -> None:
    (warning,) = [w for w in compile(f"SELECT ?u {{ {where} }}").warnings if w.code == "never"]
    assert "is not in scope here" in warning.message
    assert warning.hint.startswith(hint)


# --- rules -----------------------------------------------------------------------------------------------------


def test_a_construct_that_no_query_reads() -> None:
    (warning,) = found("CONSTRUCT { ?x :higgh ?y } { ?x :p ?y } SELECT ?x { ?x :high ?y }", "unused")
    assert warning.token == "?x :higgh ?y"
    assert warning.hint == "did you mean <http://example.org/high>?"


def test_what_the_background_schema_derives_counts_as_read() -> None:
    text = "CONSTRUCT { ?x :car ?y } { ?x :p ?y } SELECT ?x { ?x :owns ?y }"
    known = KnowledgeSummary(
        sub_properties={"<http://example.org/owns>": frozenset({"<http://example.org/car>"})},
    )
    assert [d.code for d in check(compile_sources([Source(text)]), known)] == []


# --- comparisons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "message"), [("SUM(?d)", "?d is a duration"), ("AVG(STR(?x))", "STR(?x) is a text")]
)
def test_a_sum_of_what_is_no_number_has_no_value(aggregate: str, message: str) -> None:
    body = "{ ?c :p ?x BIND (getDURATION() AS ?d) } GROUP BY ?c"
    (warning,) = found(f"SELECT ?c ({aggregate} AS ?total) {body}", "type-error")
    assert message in warning.message
    assert "takes numbers only: it has no value" in warning.message
    for right in ("SUM(?x)", "MAX(?d)", "COUNT(?d)", 'SUM(?d / "PT1S"^^xsd:dayTimeDuration)'):
        assert found(f"SELECT ?c ({right} AS ?total) {body}", "type-error") == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("?x < :a", ":a is an IRI, and IRIs have no order"),
        ("3 < 'x'", "3 is a number, 'x' a text"),
        ("STRLEN(?x) > '3'", "STRLEN(?x) is a number, '3' a text"),
        ("getENDTIME() > 5", "getENDTIME() is a time, 5 a number"),
        ("getDURATION() < 30", "getDURATION() is a duration, 30 a number"),
        ("BOUND(?x) = 'yes'", "they are never equal"),
        ("?x * 'a' > 3", "'a' is a text, which cannot be calculated with"),
        ("getENDTIME() - getSTARTTIME() > 'PT5S'", "getENDTIME() - getSTARTTIME() is a duration, 'PT5S' a text"),
        ("(NOW() - getENDTIME()) * 2 > 5", "(NOW() - getENDTIME()) * 2 is a duration, 5 a number"),
        ("NOW() - 'PT5S'^^xsd:dayTimeDuration > 5", "NOW() - 'PT5S'^^xsd:dayTimeDuration is a time, 5 a number"),
        ("?x > NOW() - 3600", "NOW() is a time, 3600 a number"),
        ("getENDTIME() > '2026-01-01'^^xsd:date", "getENDTIME() is a dateTime, '2026-01-01'^^xsd:date a date"),
        ("'12:00:00'^^xsd:time < NOW()", "'12:00:00'^^xsd:time is a time, NOW() a dateTime"),
        ("xsd:date(?x) = getENDTIME()", "they are never equal"),
    ],
)
def test_comparisons_that_can_only_be_errors(condition: str, message: str) -> None:
    (warning,) = found(f"SELECT * {{ ?c :p ?x FILTER ({condition}) }}", "type-error")
    assert message in warning.message


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ('?c :p ?x FILTER (?x > "5"^^xsd:Integer)', "did you mean xsd:integer?"),
        ('?c :p "2026-01-01T00:00:00Z"^^xsd:datetime', "did you mean xsd:dateTime?"),
        ('VALUES ?x { "PT5S"^^xsd:daytimeDuration } ?c :p ?x', "did you mean xsd:dayTimeDuration?"),
    ],
)
def test_a_datatype_that_xsd_does_not_have_is_told(where: str, hint: str) -> None:
    (warning,) = compile(f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?c {{ {where} }}").warnings
    assert (warning.code, warning.hint) == ("datatype", hint)


@pytest.mark.parametrize(
    ("where", "message", "hint"),
    [
        ('?c :p ?x FILTER (?x > "2026-02-30T00:00:00Z"^^xsd:dateTime)', "2026-02-30T00", "'2026-03-01T13:00:00Z'"),
        ('?c :p "1.5"^^xsd:integer', "'1.5' is no xsd:integer", "'5'"),
        ('VALUES ?x { "5s"^^xsd:duration } ?c :p ?x', "'5s' is no xsd:duration", "'PT5S'"),
    ],
)
def test_a_text_that_is_no_value_of_its_datatype_is_told(where: str, message: str, hint: str) -> None:
    (warning,) = compile(f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?c {{ {where} }}").warnings
    assert warning.code == "datatype"
    assert message in warning.message
    assert warning.hint == f"such a value is written {hint}"


@pytest.mark.parametrize("form", ['"PT0.#S"^^xsd:duration', '"2026-01-01T00:00:00.#Z"^^xsd:dateTime'])
def test_digits_finer_than_a_microsecond_are_told(form: str) -> None:
    query = f"SELECT ?c {{ ?c :p ?x FILTER (?x < {form}) }}"
    (warning,) = compile(query.replace(".#", ".0000001")).warnings
    assert "finer than a microsecond" in warning.message
    assert compile(query.replace(".#", ".0000010")).warnings == ()


def test_what_is_no_value_is_none_for_the_engine() -> None:
    """The same texts as for the functions that read values."""
    texts = "1,01,+1,-0,1.0,.5,1.,1e3,1E+3,INF,-INF,+INF,NaN,abc,, 1 ,true,TRUE,0,2026-01-01,2026-02-30,2024-02-29,"
    texts += "2026-01-01T10:00:00,2026-01-01T10:00:00Z,2026-01-01T24:00:00Z,2026-01-01T10:00:00+15:00,2026-01-01T10:00,"
    texts += "2026-01-01T10:00:60Z,2026-01-01T10:00:00.123456789Z,99999-01-01,-0001-01-01,2026-01-01Z, 2026-01-01,"
    texts += "PT5S,P,P1M,-P1D,P1W,PT5M,P1Y,P1MT5M,P1DT5M, PT5S"
    names = "integer,decimal,double,float,boolean,dateTime,date,duration,dayTimeDuration,yearMonthDuration,int,gYear"
    told = 0
    for text in texts.split(","):
        for name in names.split(","):
            spelling = f'"{text}"^^<http://www.w3.org/2001/XMLSchema#{name}>'
            known = name != "gYear" and isinstance(decode(spelling), Opaque)
            assert no_value(spelling) == (name if known else ""), spelling
            told += known
    assert told > 300


@pytest.mark.parametrize("datatype", ["xsd:gYear", "xsd:hexBinary", "xsd:NCName", "xsd:unsignedByte", ":integr"])
def test_other_datatypes_are_none_of_our_business(datatype: str) -> None:
    assert compile(f'SELECT ?c {{ ?c :p "5"^^{datatype} }}').warnings == ()


def test_a_time_that_is_bound_further_inside_is_known_to_be_one() -> None:
    pattern = "{ ?c :p ?x BIND (getENDTIME() AS ?then) } SEQ { ?c :q ?y }"
    (warning,) = found(f"SELECT * {{ {pattern} FILTER (getENDTIME() - ?then <= 'PT2S') }}", "type-error")
    assert "getENDTIME() - ?then is a duration, 'PT2S' a text" in warning.message


@pytest.mark.parametrize(
    "condition",
    [
        "getENDTIME() - getSTARTTIME() > 'PT5S'^^xsd:dayTimeDuration",
        "getDURATION() / 2 > 'PT5S'^^xsd:dayTimeDuration",
        "?x / 2 > 'PT5S'^^xsd:dayTimeDuration",
        "getDURATION() / 'PT1S'^^xsd:dayTimeDuration > 5",
        "NOW() - 'PT5S'^^xsd:dayTimeDuration < getENDTIME()",
        "getENDTIME() - ?x > 'PT5S'^^xsd:dayTimeDuration",
        "getENDTIME() - ?x > '2026-01-01T00:00:00Z'^^xsd:dateTime",
    ],
)
def test_calculations_with_times_that_may_well_hold(condition: str) -> None:
    assert found(f"SELECT * {{ ?c :p ?x FILTER ({condition}) }}", "type-error") == []


# --- what can never hold is known to every compilation ---------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "token", "message"),
    [
        (
            "SELECT * { ?c :p ?x } SEQ { ?c :q ?y FILTER (?y > ?x) }",
            "?x",
            "?x is not in scope here: it is bound in another group, so this filter lets nothing through",
        ),
        ("SELECT * { ?c :p ?x { ?c :q ?y BIND (?x + 1 AS ?z) } }", "?x", "so ?z stays unbound"),
        (
            "SELECT * { { ?x :p ?y } NEXT EVENT ?x { [] :p ?z FILTER (?x = ?z) } }",
            "?x",
            "?x is not in scope here: it is bound in another group, so this filter lets nothing through",
        ),
        ("SELECT * { BIND (?x + 1 AS ?z) ?c :p ?x }", "?x", "?x gets its value behind this BIND, so ?z stays unbound"),
        ("SELECT (?u + 1 AS ?z) { ?c :p ?x }", "?u", "nothing binds ?u, so ?z stays unbound"),
        ("SELECT (SUM(?u) AS ?z) { ?c :p ?x }", "?u", "nothing binds ?u, so SUM has no value"),
        ("SELECT ?c { ?c :p ?x } GROUP BY ?c HAVING (?x > 1)", "?x", "neither grouped by nor inside an aggregate"),
        (
            "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } GROUP BY ?c HAVING (?n > 1)",
            "?n",
            "?n has no value in HAVING, which comes before SELECT: no group passes it",
        ),
        ("SELECT ?c { ?c :p ?x } ORDER BY ?u", "?u", "nothing binds ?u, so this orders nothing"),
        ("SELECT ?c { ?c :p ?x } GROUP BY ?c ORDER BY ?x", "?x", "so this orders nothing"),
        ("SELECT ?c { ?c :p ?x } GROUP BY (?u AS ?c2) ?c", "?u", "so all solutions are one group"),
        ("SELECT ?c { ?c :p ?x MINUS { ?c :q ?y FILTER (?y > ?x) } }", "?x", "lets nothing through"),
        ("SELECT ?c { ?c :p ?x { SELECT ?c { ?c :q ?y FILTER (?y > ?x) } } }", "?x", "lets nothing through"),
        ("SELECT ?c { { ?c :p ?x } REPEAT 2 BY ?c NOT { ?c :q ?y FILTER (?y > ?x) } }", "?x", "lets nothing through"),
        (
            "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT1M] { WINDOW :w { ?a :p ?x FILTER (?z > 1) } }",
            "?z",
            "nothing",
        ),
    ],
)
def test_a_variable_that_is_not_in_scope_is_told_by_every_compilation(text: str, token: str, message: str) -> None:
    (warning,) = compile(text).warnings
    assert (warning.code, warning.token) == ("never", token)
    assert message in warning.message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?c :p ?x OPTIONAL { ?c :q ?y FILTER (?y > ?x) } }",
        "SELECT * { ?c :p ?x } EQUALSOPTIONAL { ?c :q ?y FILTER (?y > ?x) }",
        "SELECT * { ?c :p ?x FILTER (?x > 1) } OPTIONALSEQ { ?c :q ?y }",
        "SELECT * { { ?c :p ?x FILTER (?x > ?y) } OPTIONALSEQ { ?c :q ?y } }",
        "SELECT * { ?c :p ?x FILTER EXISTS { ?c :q ?y { ?c :r ?z FILTER (?z > ?x) } } }",
        "SELECT * { ?c :p ?x FILTER (!BOUND(?u) || ?x > COALESCE(?v, 1)) }",
        "SELECT ?c (SUM(?x) AS ?s) (?s + 1 AS ?t) { ?c :p ?x } GROUP BY ?c HAVING (SUM(?x) > 1) ORDER BY DESC(?t)",
        "SELECT ?c (?x * 2 AS ?y) { ?c :p ?x } ORDER BY ?y ?x",
        "SELECT ?u { ?c :p ?x } GROUP BY (?x + 1 AS ?u) ORDER BY ?u",
        "SELECT * { FILTER (?x > 1) ?c :p ?x }",
        "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y } FILTER (?y > ?x) }",
        "SELECT * { { ?c :p ?x } NOT { ?c :n ?z } FILTER (?x > 1) }",
        "SELECT * { { ?c :p ?x } SEQ NOT { ?c :n ?z FILTER (?z > 1) } SEQ { ?c :q ?y } FILTER (?y > ?x) }",
        "SELECT * { { ?c :p ?x } REPEAT 3 BY ?c WHERE (?x > PREVIOUS(?x)) AS (COUNT(*) AS ?n) FILTER (?n > 3) }",
        "SELECT ?x { ?x :p ?y BIND (getENDTIME() AS ?t) }",
        "SELECT ?x { BIND (NOW() AS ?t) ?x :p ?y }",
    ],
)
def test_what_is_in_scope_draws_no_warning(text: str) -> None:
    assert [str(w) for w in compile(text).warnings] == []
    assert not found(text, "cross-product")
    assert not found(text, "never")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?c :p ?y FILTER (?y > 3 && ?y > 'ten') }",
        "SELECT * { ?c :p ?y BIND (STRLEN(?y) AS ?n) FILTER (?n > 'ten') }",
        "SELECT ((?y + 1) AS ?z) { ?c :p ?y FILTER (?y > 'ten') }",
        "SELECT * { ?c :p ?y BIND (getDURATION() AS ?d) FILTER (?d < 5) }",
        "SELECT * { ?c :p ?y FILTER (3 > 'ten') }",
    ],
)
def test_types_that_never_compare_are_told_by_every_compilation(text: str) -> None:
    assert [w.code for w in compile(text).warnings] == ["type-error"]


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("SELECT ?x (SUM(?y) AS ?n) { ?x :p ?y } WITHIN 2 s GROUP BY ?x", True),
        ("SELECT ?x (SUM(?y) AS ?n) { ?x :p ?y } WITHIN 3 EVENTS GROUP BY ?x", False),
        ("SELECT ?x (SUM(?y) AS ?n) { ?x :p ?y } GROUP BY ?x ORDER BY ?n LIMIT 2", True),
        ("SELECT ?x (SUM(?y) AS ?n) { ?x :p ?y } GROUP BY ?x", False),
        ("SELECT ?x (?y AS ?n) { ?x :p ?y }", False),
    ],
)
def test_events_that_come_too_late_for_what_decides(rest: str, told: bool) -> None:
    rule = f"CONSTRUCT {{ ?x :sum ?n }} WHERE {{ {rest} }}"
    deciding = "SELECT ?x { { ?x :sum ?n } NEXT { ?x :q ?z } WITHIN 5 s }"
    found = [w for w in check(compile(f"{rule} ; {deciding}").compilation) if w.code == "past"]
    assert [w.message for w in found] == told * [
        "a row that changes because something left the window or the result ended before: NOT, NEXT, SEQ OPTIONAL, "
        "REPEAT and SKIP, which have decided by then, do not see what is derived from it"
    ]
    seeing = "SELECT ?x { { ?x :sum ?n } SEQ { ?x :q ?z } WITHIN 5 s }"
    assert not [w for w in check(compile(f"{rule} ; {seeing}").compilation) if w.code == "past"]


def test_a_call_of_a_run_beside_grouping_has_one_error() -> None:
    with pytest.raises(QueryError) as caught:
        compile("SELECT ?c (LAST(?x) AS ?m) { ?c :p ?x } GROUP BY ?c")
    assert str(caught.value).count("error:") == 1
    assert "LAST() is not allowed here" in str(caught.value)
