"""EP-SPARQL text to AST: the operators of [EP] §4.1, their precedence and the papers' looser spellings."""

from __future__ import annotations

import pytest
from etalis_compiler.ast import (
    Binary,
    Bind,
    Call,
    Combined,
    Construct,
    Duration,
    Filter,
    Group,
    Operator,
    Query,
    StreamGroup,
    Term,
    Triples,
    Var,
    Within,
)
from etalis_compiler.parser import QueryError, parse
from etalis_rules.terms import XSD


def one(text: str, **options: object) -> Query:
    (query,) = parse(text, **options).queries
    return query


def shape(pattern: object) -> str:
    """The operators of a pattern, each group by its first object: ``((1 SEQ 2) SEQ 3)``."""
    match pattern:
        case Combined(operator=operator, left=left, right=right):
            return f"({shape(left)} {operator.value} {shape(right)})"
        case Within(pattern=inner, bound=bound):
            return f"[{shape(inner)} {bound.lexical}]"
        case Group(elements=(Triples(patterns=(first, *_)),)):
            return first.object.spelling.split('"')[1]
        case Group(elements=(Combined() as inner,)):
            return "{" + shape(inner) + "}"
    raise AssertionError(pattern)


def where_shape(text: str) -> str:
    where = one("SELECT * WHERE " + text).where
    assert where is not None
    return shape(where.elements[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{?s :p 1} SEQ {?s :p 2}", "(1 SEQ 2)"),
        ("{ {?s :p 1} SEQ {?s :p 2} }", "(1 SEQ 2)"),
        ("{?s :p 1} SEQ {?s :p 2} SEQ {?s :p 3}", "((1 SEQ 2) SEQ 3)"),
        # [REQ]: A EQUALS B SEQ C EQUALS D pairs the simultaneous ones
        ("{?s :p 1} EQUALS {?s :p 2} SEQ {?s :p 3} EQUALS {?s :p 4}", "((1 EQUALS 2) SEQ (3 EQUALS 4))"),
        # [EP] (5): A SEQ B EQUALSOPTIONAL C takes the whole sequence as the left side
        ("{?s :p 1} SEQ {?s :p 2} EQUALSOPTIONAL {?s :p 3}", "((1 SEQ 2) EQUALSOPTIONAL 3)"),
        # [EP] (2)
        ("{?s :p 1} OPTIONALSEQ {?s :p 2} SEQ {?s :p 3}", "((1 OPTIONALSEQ 2) SEQ 3)"),
        ("{?s :p 1} AND {?s :p 2} EQUALS {?s :p 3}", "(1 AND (2 EQUALS 3))"),
        ("{?s :p 1} UNION {?s :p 2} UNION {?s :p 3}", "((1 UNION 2) UNION 3)"),
        ("{?s :p 1} SEQ { {?s :p 2} SEQ {?s :p 3} }", "(1 SEQ {(2 SEQ 3)})"),
        ("{ {?s :p 1} WITHIN PT5M SEQ {?s :p 2} }", "([1 PT5M] SEQ 2)"),
        ("{ {?s :p 1} SEQ {?s :p 2} WITHIN PT5M }", "(1 SEQ [2 PT5M])"),
        ("{ {?s :p 1} EQUALS {?s :p 2} WITHIN PT5M SEQ {?s :p 3} }", "((1 EQUALS [2 PT5M]) SEQ 3)"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert where_shape(text) == expected


def test_operators_in_any_case() -> None:
    assert where_shape("{?s :p 1} seq {?s :p 2} Equals {?s :p 3}") == "(1 SEQ (2 EQUALS 3))"


@pytest.mark.parametrize("operator", ["SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "AND"])
@pytest.mark.parametrize(
    "text", ["{{?s :p 1}} UNION {{?s :p 2}} {} {{?s :p 3}}", "{{?s :p 1}} {} {{?s :p 2}} UNION {{?s :p 3}}"]
)
def test_union_mixed_with_the_operators_draws_a_warning(operator: str, text: str) -> None:
    (warning,) = parse("SELECT * { " + text.format(operator) + " }").warnings
    assert (warning.severity, warning.code) == ("warning", "mixed-operators")
    assert "braces" in warning.hint
    assert ("EQUALS binds tighter" in warning.message) == (operator == "EQUALS")


def test_union_behind_the_end_of_a_run_draws_a_warning() -> None:
    run = "{?s :p 1} REPEAT 2 OR MORE BY ?s UNTIL "
    (warning,) = parse(f"SELECT * {{ {run} {{?s :p 2}} UNION {{?s :p 3}} }}").warnings
    assert (warning.code, "does not end the run" in warning.message) == ("mixed-operators", True)
    for plain in (f"{{ {run} {{?s :p 2}} }} UNION {{?s :p 3}}", f"{run} {{ {{?s :p 2}} UNION {{?s :p 3}} }}"):
        assert parse(f"SELECT * {{ {plain} }}").warnings == ()


def test_union_in_braces_draws_none() -> None:
    assert parse("SELECT * { {?s :p 1} SEQ { {?s :p 2} UNION {?s :p 3} } }").warnings == ()


# --- the WHERE clause without outer braces --------------------------------------------------------------------------


def test_where_without_outer_braces() -> None:
    """WHERE {A} SEQ {B} FILTER (…) is WHERE { {A} SEQ {B} FILTER (…) }."""
    loose = one("SELECT ?s WHERE {?s :p ?x} SEQ {?s :p ?y} FILTER (?y > ?x)")
    strict = one("SELECT ?s WHERE { {?s :p ?x} SEQ {?s :p ?y} FILTER (?y > ?x) }")
    assert loose == strict
    assert [type(e) for e in loose.where.elements] == [Combined, Filter]


def test_filter_after_the_braces_of_where() -> None:
    query = one("SELECT ?s WHERE {?s :p ?x} FILTER (getDURATION() < PT5M)".replace("PT5M", '"PT5M"^^xsd:duration'))
    group, condition = query.where.elements
    assert isinstance(group, Group)
    assert condition.condition == Binary("<", Call("GETDURATION", ()), Term(f'"PT5M"^^<{XSD}duration>'))


def test_bind_of_the_interval_inside_a_group() -> None:
    query = one("SELECT * { { ?s :p ?x BIND (getEndTime() AS ?t) } SEQ { ?s :p ?y } }")
    assert query.where.elements[0].left.elements[1] == Bind(Call("GETENDTIME", ()), Var("t"))


# --- WITHIN and USING POLICY ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 SECONDS", Duration("duration", "PT10S")),
        ("5m", Duration("duration", "PT5M")),
        ("5M", Duration("duration", "PT5M")),
        ("3 sec", Duration("duration", "PT3S")),
        ("250 ms", Duration("duration", "PT0.25S")),
        ("1.5 minutes", Duration("duration", "PT90S")),
        ("2 WEEKS", Duration("duration", "P14D")),
        ("0.5 WEEKS", Duration("duration", "PT302400S")),
        ("1 month", Duration("duration", "P1M")),
        ("1 year", Duration("duration", "P1Y")),
        ("100 days", Duration("duration", "P100D")),
        ("P30D", Duration("duration", "P30D")),
        ("PT01M", Duration("duration", "PT01M")),
        ("P2W", Duration("duration", "P14D")),
        ('"P1DT2H"^^xsd:dayTimeDuration', Duration("duration", "P1DT2H")),
        ('" PT5M"^^xsd:duration', Duration("duration", "PT5M")),
        ("5 EVENTS", Duration("EVENTS", "", 5)),
        ("1 event", Duration("EVENTS", "", 1)),
    ],
)
def test_within_after_where(text: str, expected: Duration) -> None:
    assert one("SELECT * WHERE {?s :p ?x} WITHIN " + text).within == expected
    assert one("SELECT * WHERE {?s :p ?x} FILTER (?x > 1) WITHIN " + text).within == expected


def test_within_after_a_group_and_after_where() -> None:
    query = one("SELECT * WHERE { {?s :p ?x} WITHIN PT1M } WITHIN 10 EVENTS")
    assert query.where == Group((Within(query.where.elements[0].pattern, Duration("duration", "PT1M")),))
    assert query.within == Duration("EVENTS", "", 10)


def test_within_at_the_end_of_an_unbraced_where_is_the_bound_of_the_whole_match() -> None:
    document = parse("SELECT * WHERE {?s :p 1} SEQ {?s :p 2} WITHIN PT1M")
    assert document.queries[0].within == Duration("duration", "PT1M")
    assert shape(document.queries[0].where.elements[0]) == "(1 SEQ 2)"
    assert document.warnings == ()


def test_within_at_the_end_of_an_unbraced_where_with_aggregates_is_the_window_and_says_so() -> None:
    document = parse("SELECT (COUNT(*) AS ?n) WHERE {?s :p 1} SEQ {?s :p 2} WITHIN PT1M")
    assert document.queries[0].within == Duration("duration", "PT1M")
    assert [w.code for w in document.warnings] == ["within"]


def test_a_within_before_the_window_of_aggregates_bounds_each_solution_and_says_so() -> None:
    document = parse("SELECT (COUNT(*) AS ?n) WHERE {?s :p 1} WITHIN PT4S WITHIN 3 EVENTS")
    assert document.queries[0].within == Duration("EVENTS", "", 3)
    assert [w.message for w in document.warnings] == [
        "this WITHIN bounds the duration of each solution; only the last one is a sliding window over them"
    ]
    assert parse("SELECT (COUNT(*) AS ?n) WHERE { {?s :p 1} WITHIN PT4S } WITHIN 3 EVENTS").warnings == ()
    assert parse("SELECT * WHERE {?s :p 1} WITHIN PT4S WITHIN PT3S").warnings == ()


@pytest.mark.parametrize("number", ["5", "2.5"])
def test_a_bare_number_is_no_length_of_time(number: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(f"SELECT * WHERE {{ {{?s :p 1}} SEQ {{?s :p 2}} }} WITHIN {number}")
    (found,) = raised.value.diagnostics
    assert (found.code, found.token) == ("duration", number)
    assert f"WITHIN {number} SECONDS" in found.hint


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("5 fortnights", "not a unit of time"),
        ('"PT"^^xsd:duration', "not a length of time"),
        ("P3SEC", "expected a length of time"),
        ('"5"^^xsd:integer', "not an xsd:duration"),
        ('"-PT5M"^^xsd:duration', "not a length of time"),
        ("0 EVENTS", "at least one"),
        ("1.5 months", "must be whole"),
        ("1e9 SECONDS", "no usable number"),
        ("9999999999999999999 EVENTS", "too large"),
        ("150000 years", "too long"),
        ("PT9999999999H", "too long"),
        ('"P300000Y"^^xsd:duration', "too long"),
    ],
)
def test_bounds_that_are_none(bound: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse("SELECT * WHERE {?s :p ?x} WITHIN " + bound)
    assert caught.value.diagnostics[0].line == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (COUNT(*) AS ?n) { ?s :p ?x } WITHIN PT0S",
        "SELECT ?s { ?s :p ?x } WITHIN 0 s GROUP BY ?s",
        "SELECT ?n { { SELECT (SUM(?x) AS ?n) { ?s :p ?x } WITHIN 0 MINUTES } ?s :q ?n }",
    ],
)
def test_a_sliding_window_has_a_length(query: str) -> None:
    """It holds what ends in (t - n, t], which is nothing where n is 0."""
    with pytest.raises(QueryError, match="of no length holds nothing"):
        parse(query)


def test_a_match_may_take_no_time() -> None:
    assert one("SELECT * { ?s :p ?x } WITHIN PT0S").within is not None


def test_a_number_of_events_cannot_bound_a_group() -> None:
    with pytest.raises(QueryError, match="cannot bound a group"):
        parse("SELECT * WHERE { {?s :p ?x} WITHIN 5 EVENTS }")


@pytest.mark.parametrize("policy", ["unrestricted", "chronological", "recent"])
def test_policy(policy: str) -> None:
    assert one(f"SELECT * WHERE {{?s :p ?x}} USING POLICY {policy.upper()}").policy == policy
    assert one(f"SELECT ?s WHERE {{?s :p ?x}} GROUP BY ?s USING POLICY {policy}").policy == policy


def test_policies_are_three() -> None:
    with pytest.raises(QueryError, match="no consumption policy") as caught:
        parse("SELECT * WHERE {?s :p ?x} USING POLICY latest")
    assert "chronological" in caught.value.diagnostics[0].hint


# --- looser spellings -----------------------------------------------------------------------------------------------


def test_construct_without_braces() -> None:
    loose = one("CONSTRUCT ?c downratedby ?a WHERE { ?r rater ?a ; rated ?c }")
    strict = one("CONSTRUCT { ?c :downratedby ?a } WHERE { ?r :rater ?a ; :rated ?c }")
    assert loose == strict


def test_construct_without_braces_and_where() -> None:
    query = one("CONSTRUCT _:a :n ?n . _:a :m ?m . { ?x :n ?n . ?x :m ?m }")
    assert isinstance(query.form, Construct)
    assert len(query.form.template) == 2


def test_columns_without_parentheses() -> None:
    loose = one("SELECT ?a + 1 AS ?b ?c ?a - 1 AS ?d COUNT(DISTINCT *) AS ?n ?a -1 AS ?e { ?a :p ?c } GROUP BY ?a ?c")
    strict = one(
        "SELECT (?a + 1 AS ?b) ?c (?a - 1 AS ?d) (COUNT(DISTINCT *) AS ?n) (?a - 1 AS ?e) { ?a :p ?c } GROUP BY ?a ?c"
    )
    assert loose == strict


def test_group_by_without_the_space() -> None:
    assert one("SELECT ?s { ?s ?p ?o } GROUPBY ?s ORDERBY ?s") == one("SELECT ?s { ?s ?p ?o } GROUP BY ?s ORDER BY ?s")


def test_stream_groups() -> None:
    query = one("SELECT * { STREAM <urn:s> { ?s :p ?o } SEQ STREAM ?t { ?s :q ?o } }")
    left, right = query.where.elements[0].left, query.where.elements[0].right
    assert isinstance(left, StreamGroup)
    assert (left.stream, right.stream) == (Term("<urn:s>"), Var("t"))


def test_words_that_are_keywords_elsewhere_are_names_in_triples() -> None:
    """``range``, ``first``, ``count`` and ``year`` mean something special only where that can stand."""
    query = one("SELECT * { ?e range ?r ; first ?f ; count ?n ; year ?y . ?e events ?x }")
    assert [p.predicate.spelling for p in query.where.elements[0].patterns] == [
        f"<http://example.org/{w}>" for w in ("range", "first", "count", "year", "events")
    ]


def test_words_of_sparql_are_never_names() -> None:
    with pytest.raises(QueryError, match="unexpected 'FILTER'"):
        parse("SELECT * { ?s FILTER ?o }")


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prologue", "options", "expected"),
    [
        ("", {}, "http://example.org/p"),
        ("PREFIX : <http://a/#>", {}, "http://a/#p"),
        ("BASE <http://b/c/d>", {}, "http://b/c/p"),
        ("BASE <http://b/c/d> PREFIX : <http://a/>", {}, "http://a/p"),
        ("", {"base": "http://b/c/"}, "http://b/c/p"),
        ("", {"base": "http://b/c#"}, "http://b/c#p"),
        ("", {"base": "http://b"}, "http://b/p"),
        ("PREFIX : <urn:x>", {}, "urn:xp"),
        ("", {"prefixes": {"": "http://z/"}}, "http://z/p"),
        ("PREFIX : <http://a/>", {"prefixes": {"": "http://z/"}}, "http://a/p"),
    ],
)
@pytest.mark.parametrize("name", ["p", ":p"])
def test_bare_names_and_the_empty_prefix(prologue: str, options: dict, expected: str, name: str) -> None:
    query = one(f"{prologue} SELECT * {{ ?s {name} ?o }}", **options)
    assert query.where.elements[0].patterns[0].predicate == Term(f"<{expected}>")


def test_known_prefixes_need_no_declaration_but_can_be_declared() -> None:
    query = one("SELECT * { ?s rdfs:label ?o }")
    assert query.where.elements[0].patterns[0].predicate == Term("<http://www.w3.org/2000/01/rdf-schema#label>")
    query = one("PREFIX rdfs: <urn:x:> SELECT * { ?s rdfs:label ?o }")
    assert query.where.elements[0].patterns[0].predicate == Term("<urn:x:label>")


def test_an_unknown_prefix_names_the_closest_known_one() -> None:
    with pytest.raises(QueryError) as caught:
        parse("PREFIX stock: <urn:x:> SELECT * { ?s stok:price ?o }")
    (found,) = caught.value.diagnostics
    assert (found.code, found.column, found.token) == ("unknown-prefix", 38, "stok:price")
    assert found.hint == "did you mean 'stock:'?"


def test_a_well_known_prefix_comes_with_its_declaration() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * { ?s foaf:name ?o }")
    assert caught.value.diagnostics[0].hint == "declare it: PREFIX foaf: <http://xmlns.com/foaf/0.1/>"


# --- several queries ------------------------------------------------------------------------------------------------


def test_a_program_of_several_queries() -> None:
    document = parse(
        """PREFIX a: <urn:a:>
        CONSTRUCT { ?x a:q ?y } WHERE { ?x a:p ?y } ;
        SELECT ?x { ?x a:q ?y }
        PREFIX a: <urn:b:>
        ASK { ?x a:q ?y }"""
    )
    predicates = [q.where.elements[0].patterns[0].predicate.spelling for q in document.queries]
    assert predicates == ["<urn:a:p>", "<urn:a:q>", "<urn:b:q>"]
    assert dict(document.prefixes) == {"a": "urn:b:"}


def test_spans_point_into_the_text() -> None:
    text = "SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }"
    pattern = one(text).where.elements[0]
    assert text[pattern.span.start : pattern.span.end] == "{ ?c :p ?x } SEQ { ?c :p ?y }"
    assert text[pattern.right.span.start : pattern.right.span.end] == "{ ?c :p ?y }"
    triple = pattern.left.elements[0].patterns[0]
    assert text[triple.span.start : triple.span.end] == "?c :p ?x"
    assert pattern.operator is Operator.SEQ


def test_spans_point_into_the_text_before_its_escapes_were_replaced() -> None:
    text = "SELECT ?x { ?x <http://example.org/caf\\u00e9> 'na\\u00efve' . ?x :p ?y }"
    first, second = one(text).where.elements[0].patterns
    assert first.predicate == Term("<http://example.org/café>")
    assert first.object == Term('"naïve"')
    assert text[first.object.span.start : first.object.span.end] == "'na\\u00efve'"
    assert text[second.span.start : second.span.end] == "?x :p ?y"
