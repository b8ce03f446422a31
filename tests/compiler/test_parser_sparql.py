"""SPARQL 1.1 text to AST: terms, paths, expressions, and the rules that need a whole query."""

from __future__ import annotations

import pytest
from etalis_compiler.ast import (
    Aggregate,
    Binary,
    Blank,
    Call,
    Expression,
    Filter,
    FunctionCall,
    In,
    PathAlternative,
    PathInverse,
    PathIri,
    PathNegated,
    PathRepeat,
    PathSequence,
    Query,
    Term,
    TriplePattern,
    Unary,
    Values,
    Var,
)
from etalis_compiler.iris import resolve
from etalis_compiler.lexing import AGGREGATES, BUILTINS
from etalis_compiler.parser import QueryError, parse
from etalis_rules.terms import RDF, XSD

E = "http://example.org/"


def one(text: str, **options: object) -> Query:
    (query,) = parse(text, **options).queries
    return query


def triples(text: str) -> tuple[TriplePattern, ...]:
    return one(f"SELECT * {{ {text} }}").where.elements[0].patterns


def expression(text: str) -> Expression:
    (found,) = one(f"SELECT * {{ FILTER ({text}) }}").where.elements
    assert isinstance(found, Filter)
    return found.condition


def number(text: str, kind: str = "integer") -> Term:
    return Term(f'"{text}"^^<{XSD}{kind}>')


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("'a'", '"a"'),
        ('"a\\tb\\"c"', '"a\\tb\\"c"'),
        ("'''a\n'b''c'''", "\"a\\n'b''c\""),
        ('"""a"b""c"""', '"a\\"b\\"\\"c"'),
        ("'chat'@FR-be", '"chat"@fr-be'),
        ("'5'^^xsd:integer", f'"5"^^<{XSD}integer>'),
        ("'5'^^xsd:string", '"5"'),
        ("01", f'"01"^^<{XSD}integer>'),
        ("-1.50", f'"-1.50"^^<{XSD}decimal>'),
        (".5", f'".5"^^<{XSD}decimal>'),
        ("+1.E3", f'"+1.E3"^^<{XSD}double>'),
        ("1e-3", f'"1e-3"^^<{XSD}double>'),
        ("TRUE", f'"true"^^<{XSD}boolean>'),
        ("<a/b>", f"<{E}a/b>"),
        (":a.b", f"<{E}a.b>"),
        (":a\\,b", f"<{E}a,b>"),
        (":a%20b", f"<{E}a%20b>"),
        (":1", f"<{E}1>"),
        (":a:b", f"<{E}a:b>"),
        ("'\\u00e9'", '"é"'),
        ("'\\\\u00e9'", '"\\\\u00e9"'),
        ("()", f"<{RDF}nil>"),
    ],
)
def test_terms(text: str, spelling: str) -> None:
    assert triples(f"?s ?p {text}")[0].object == Term(spelling)


def test_a_is_rdf_type() -> None:
    assert triples("?s a ?t")[0].predicate == Term(f"<{RDF}type>")


def test_semicolons_commas_and_blank_nodes() -> None:
    found = triples("?s :p 1, 2 ; :q [ :r ?x ] ; . _:me :s ?s")
    assert [(type(t.subject).__name__, t.predicate.spelling[-2]) for t in found] == [
        ("Var", "p"),
        ("Var", "p"),
        ("Var", "q"),
        ("Blank", "r"),
        ("Blank", "s"),
    ]
    assert found[2].object == found[3].subject
    assert found[4].subject == Blank("me")


def test_collections_are_chains() -> None:
    found = triples("?s :p (1 ?x)")
    first, rest, nil = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
    a, b = found[0].object, found[3].subject
    assert [(t.subject, t.predicate.spelling, t.object) for t in found[1:]] == [
        (a, first, number("1")),
        (a, rest, b),
        (b, first, Var("x")),
        (b, rest, Term(nil)),
    ]


def test_made_labels_do_not_meet_written_ones() -> None:
    found = triples("_:b0 :p [] . _:b1 :p [] ")
    assert len({t.subject for t in found} | {t.object for t in found}) == 4


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (":p/:q", PathSequence((PathIri(f"<{E}p>"), PathIri(f"<{E}q>")))),
        (":p|^:q", PathAlternative((PathIri(f"<{E}p>"), PathInverse(PathIri(f"<{E}q>"))))),
        ("(:p/:q)+", PathRepeat(PathSequence((PathIri(f"<{E}p>"), PathIri(f"<{E}q>"))), "+")),
        ("^:p*", PathInverse(PathRepeat(PathIri(f"<{E}p>"), "*"))),
        ("a?", PathRepeat(PathIri(f"<{RDF}type>"), "?")),
        ("!(:p|^:q|a)", PathNegated((f"<{E}p>", f"<{RDF}type>"), (f"<{E}q>",))),
        ("!:p", PathNegated((f"<{E}p>",), ())),
        ("(:p)", Term(f"<{E}p>")),
    ],
)
def test_paths(text: str, path: object) -> None:
    assert triples(f"?s {text} ?o")[0].predicate == path


A, B, C = Var("a"), Var("b"), Var("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?a || ?b && ?c", Binary("||", A, Binary("&&", B, C))),
        ("?a + ?b * ?c", Binary("+", A, Binary("*", B, C))),
        ("?a - ?b - ?c", Binary("-", Binary("-", A, B), C)),
        ("?a / ?b * ?c", Binary("*", Binary("/", A, B), C)),
        ("(?a + ?b) * ?c", Binary("*", Binary("+", A, B), C)),
        ("?a-1", Binary("-", A, number("1"))),
        ("?a -1 * ?b", Binary("-", A, Binary("*", number("1"), B))),
        ("?a+1.5", Binary("+", A, number("1.5", "decimal"))),
        ("?a + -1", Binary("+", A, number("-1"))),
        ("!?a", Unary("!", A)),
        ("- ?a = 2", Binary("=", Unary("-", A), number("2"))),
        ("?a IN (1, ?b)", In(A, (number("1"), B), False)),
        ("?a NOT IN ()", In(A, (), True)),
        ("BOUND(?a)", Call("BOUND", (A,))),
        ("uri('x')", Call("IRI", (Term('"x"'),))),
        ("if(?a, ?b, ?c)", Call("IF", (A, B, C))),
        ("coalesce(?a, ?b)", Call("COALESCE", (A, B))),
        ("xsd:integer(?a)", FunctionCall(f"<{XSD}integer>", (A,))),
        ("<urn:f>()", FunctionCall("<urn:f>", ())),
        ("?a<?b", Binary("<", A, B)),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_function_of_the_list_can_be_called(name: str) -> None:
    least, _ = BUILTINS[name]
    called = expression(f"{name.lower()}({', '.join(['?a'] * least)})")
    assert called == Call({"URI": "IRI", "ISURI": "ISIRI"}.get(name, name), (A,) * least)


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_every_aggregate_of_the_list_can_be_called(name: str) -> None:
    (column,) = one(f"SELECT ({name.lower()}(DISTINCT ?o) AS ?a) {{ ?s ?p ?o }}").form.projections
    assert column.expression == Aggregate(name, Var("o"), True)


def test_aggregates() -> None:
    query = one(
        "SELECT (COUNT(*) AS ?n) (count(distinct ?x) AS ?d) (GROUP_CONCAT(?x ; separator = ', ') AS ?t) { ?s ?p ?x }"
    )
    assert [p.expression for p in query.form.projections] == [
        Aggregate("COUNT", None),
        Aggregate("COUNT", Var("x"), True),
        Aggregate("GROUP_CONCAT", Var("x"), False, ", "),
    ]


def test_values() -> None:
    query = one("SELECT * { VALUES (?a ?b) { (1 UNDEF) (:x 'y') } } VALUES ?c { :z }")
    assert query.where.elements == (Values((A, B), ((number("1"), None), (Term(f"<{E}x>"), Term('"y"')))),)
    assert query.values == Values((C,), ((Term(f"<{E}z>"),),))


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("SELECT * { VALUES (?a ?b) { (1) } }", "values", "1 values"),
        ("SELECT * { VALUES (?a ?a) { (1 1) } }", "values", r"\?a twice"),
        ("SELECT * { ?s ?p ?x BIND (1 AS ?x) }", "scope", r"\?x has a value"),
        ("SELECT * { { ?s ?p ?x } BIND (1 AS ?x) }", "scope", r"\?x has a value"),
        ("SELECT (1 AS ?x) { ?s ?p ?x }", "scope", r"\?x has a value"),
        ("SELECT (1 AS ?x) (2 AS ?x) { }", "scope", r"\?x has a value"),
        ("SELECT * { { SELECT (1 AS ?x) { ?s ?p ?x } } }", "scope", r"\?x has a value"),
        ("SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s", "aggregate", r"\?p is neither"),
        ("SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o }", "aggregate", r"\?p is neither"),
        ("SELECT (?p + 1 AS ?q) (COUNT(?o) AS ?n) { ?s ?p ?o }", "aggregate", r"\?p is neither"),
        ("SELECT * { ?s ?p ?o } GROUP BY ?s", "aggregate", r"SELECT \*"),
        ("SELECT (SUM(COUNT(?o)) AS ?n) { ?s ?p ?o }", "aggregate", "COUNT stands inside SUM"),
        ("SELECT * { ?s ?p ?o FILTER (COUNT(?o) > 1) }", "aggregate", "is not allowed in FILTER"),
        ("SELECT * { ?s ?p ?o BIND (COUNT(?o) AS ?n) }", "aggregate", "is not allowed in BIND"),
        ("SELECT ?n { ?s ?p ?o } GROUP BY (COUNT(?o) AS ?n)", "aggregate", "is not allowed in GROUP BY"),
        ("SELECT ?s { ?s ?p ?o } GROUP BY (1 AS ?s)", "scope", r"\?s has a value"),
        ("SELECT * { _:a :p ?x OPTIONAL { _:a :q ?y } }", "blank", "_:a is used in two"),
        ("SELECT * { _:a :p ?x { } _:a :q ?y }", "blank", "_:a is used in two"),
        ("SELECT * { { _:a :p ?x } SEQ { _:a :q ?y } }", "blank", "_:a is used in two"),
        ("SELECT * { FILTER STRLEN(?a, ?b) }", "arguments", "one argument"),
        ("SELECT * { FILTER REGEX(?a) }", "arguments", "2 to 3 arguments"),
        ("SELECT * { FILTER BOUND(1) }", "arguments", "takes a variable"),
        ("CONSTRUCT { ?s :p/:q ?o } { ?s ?p ?o }", "syntax", "path"),
        ("CONSTRUCT WHERE { ?s :p* ?o }", "syntax", "path"),
        ("CONSTRUCT WHERE { ?s :p ?o FILTER (?o > 1) }", "syntax", "FILTER"),
    ],
)
def test_what_a_whole_query_must_keep_to(text: str, code: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse(text)
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { _:a :p ?x FILTER (?x > 1) _:a :q ?y }",
        "SELECT * { BIND (1 AS ?x) ?s ?p ?x }",
        "SELECT * { { BIND (1 AS ?x) } ?s ?p ?x }",
        "SELECT * { ?s ?p ?o MINUS { ?s :q ?x } BIND (1 AS ?x) }",
        "SELECT (COUNT(?o) AS ?n) (?n + 1 AS ?m) { ?s ?p ?o }",
        "SELECT ?k { ?s ?p ?o } GROUP BY (STR(?s) AS ?k) HAVING (COUNT(?o) > 1) ORDER BY DESC(COUNT(?o))",
        "SELECT * { { SELECT ?x { ?x ?p ?y } } BIND (1 AS ?y) }",
        "DESCRIBE <urn:x>",
        "DESCRIBE * WHERE { ?s ?p ?o } LIMIT 1",
        "ASK FROM <urn:g> FROM NAMED <urn:h> { GRAPH ?g { ?s ?p ?o } }",
        "SELECT * { SERVICE SILENT <urn:e> { ?s ?p ?o } }",
        "SELECT REDUCED ?s { ?s ?p ?o } OFFSET 5 LIMIT 10",
        "CONSTRUCT FROM <urn:g> WHERE { ?s ?p ?o }",
        "SELECT * { FILTER NOT EXISTS { ?s ?p ?o } FILTER EXISTS { } }",
    ],
)
def test_what_is_allowed(text: str) -> None:
    assert parse(text).queries


@pytest.mark.parametrize(
    "inner",
    [
        "?a ?b ?c ?d ?e ?f .",  # no dot between triples
        ". ?a ?b ?c",
        "?a ?b ?c . .",
        "?a ?b ?c .. ?d ?e ?f",
        "; FILTER (?a)",
        "?a ; ?b ?c",
        "?a ?b ;",
        "?a ?b ?c . ;",
        "?a , ?b ?c",
        "?a ?b , ?c",
        "?a ?b ?c ,",
        "?a ?b ?c ; ?d ?e ?f . ?g .",
        "?a",
        "()",
        "[] .",
        "[,] ?b [;]",
        "?a [] ?c",
        "?a _:b ?c",
        "?a 'b' ?c",
        "FILTER (?x<?a&&?b>?y)",  # the longest token is an IRI
        "?a ?b _:c FILTER (_:c)",
        "?a ?b _:c FILTER (_:c < 3)",
        "GRAPH [] { }",
        "GRAPH _:g { }",
        "GRAPH 'g' { }",
        "OPTIONAL FILTER (?x)",
        "OPTIONAL GRAPH ?v OPTIONAL FILTER (?x)",
        "?a ?b ?c FILTER ?x",
        "FILTER 1",
        "FILTER !?x",
        "FILTER (?a < ?b < ?c)",
        "{ } SELECT * { ?a ?b ?c }",
        "?a ?b ?c UNION ?d ?e ?f",
        "UNION { ?a ?b ?c }",
        "BIND (?x)",
        "BIND 1 AS ?x",
        "VALUES ?x { ?y }",
        "VALUES ?x { _:b }",
        "VALUES ?x { (1) }",
        "VALUES (?x) { 1 }",
        "?a ?b 1. .",
        "?a ?b :c..",
        "?a ?b 'c'@",
        "?a ?b 'c'^^'d'",
        "?a ?b <c d>",
        "?a ?b <c\\u0020d>",
        "?a :b% ?c",
        "?a :b\\_x% ?c",
        "?a :p{1,2} ?c",
        "?a (:b|) ?c",
        "?a !?b ?c",
        "?a ^?b ?c",
        "?a :b/?c ?d",
        "MINUS ?a ?b ?c",
        "SERVICE { }",
    ],
)
def test_what_sparql_refuses_inside_a_group(inner: str) -> None:
    with pytest.raises(QueryError):
        parse(f"PREFIX : <urn:x:> SELECT * WHERE {{ {inner} }}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *",
        "SELECT { }",
        "SELECT ?x, ?y { }",
        "SELECT * ?x { }",
        "SELECT (?x + ?y) { }",
        "SELECT COUNT(*) { }",
        "SELECT (COUNT(*)) { }",
        "SELECT (SUM(?x, ?y) AS ?s) { }",
        "SELECT (COUNT(DISTINCT ?x, ?y) AS ?s) { }",
        "SELECT (1 AS ?x) { SELECT (2 AS ?x) { } }",
        "SELECT ?s (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY ?s VALUES ?c { 0 1 }",
        "SELECT DISTINCT REDUCED * { }",
        "SELECT * { } LIMIT -1",
        "SELECT * { } LIMIT 1.5",
        "SELECT * { } LIMIT 1 LIMIT 2",
        "SELECT * { } LIMIT 1 ORDER BY ?x",
        "SELECT * { } ORDER BY",
        "SELECT * { } ORDER BY 1",
        "SELECT * { } ORDER BY ?x + 1",
        "SELECT * { } ORDER BY ?x HAVING (?x)",
        "SELECT ?x { } HAVING ?x",
        "SELECT ?x { } GROUP BY",
        "SELECT ?x { } GROUP BY ?x + 1",
        "SELECT * FROM { }",
        "SELECT * FROM ?g { }",
        "SELECT * FROM NAMED { }",
        "SELECT * WHERE",
        "SELECT * WHERE { } { }",
        "CONSTRUCT",
        "CONSTRUCT { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o FILTER (?o) } { ?s ?p ?o }",
        "CONSTRUCT { { ?s ?p ?o } } { ?s ?p ?o }",
        "ASK",
        "ASK ?x { }",
        "DESCRIBE",
        "DESCRIBE * <u>",
        "DESCRIBE 'x'",
        "PREFIX a.: <urn:a> SELECT * { }",
        "PREFIX a:b <urn:a> SELECT * { }",
        "PREFIX <urn:a> SELECT * { }",
        "BASE a: SELECT * { }",
        "SELECT * { } PREFIX a: <urn:a",
        "SELECT * { BIND (1 AS ?x) . BIND (2 AS ?x) }",
        "SELECT * { ?s ?p ?o } WITHIN",
        "SELECT * { ?s ?p ?o } USING recent",
        "SELECT * { ?s ?p ?o SEQ ?s ?p ?o }",
        "SELECT * { SEQ { } }",
        "SELECT * { { } SEQ }",
        "SELECT * { OPTIONAL { } SEQ { } }",
        "SELECT * { { } SEQ OPTIONAL { } }",
    ],
)
def test_what_is_refused_around_groups(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text)


def test_trailing_values_are_joined_after_grouping() -> None:
    assert parse("SELECT ?s ?v { ?s ?p ?o } GROUP BY ?s VALUES ?v { 1 }").warnings == ()
    assert parse("SELECT ?s (STR(?v) AS ?w) { ?s ?p ?o } GROUP BY ?s VALUES ?v { 1 }").warnings == ()


def test_every_error_is_shown_at_once() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * { ?s ?p ?x BIND (1 AS ?x) } ; SELECT * { ?s ?p ?y BIND (1 AS ?y) }")
    assert [d.token for d in caught.value.diagnostics] == ["?x", "?y"]


def test_a_column_that_nothing_binds_draws_a_warning() -> None:
    (warning,) = parse("SELECT ?pirce { ?s :p ?price }").warnings
    assert warning.code == "unbound"
    assert warning.hint == "did you mean ?price?"


# RFC 3986 §5.4, all of the normal and abnormal examples
@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"),
        ("http:g", "http:g"),
    ],
)
def test_relative_references(reference: str, expected: str) -> None:
    assert resolve(reference, "http://a/b/c/d;p?q") == expected


def test_relative_references_with_schemes_that_urllib_does_not_know() -> None:
    assert resolve("b", "tag:example.org,2024:a/") == "tag:example.org,2024:a/b"
    assert resolve("../x", "stream://host/a/b/c") == "stream://host/a/x"
    assert resolve("x", "stream://host") == "stream://host/x"
