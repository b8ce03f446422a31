"""The grammar of SPARQL 1.2 (https://www.w3.org/TR/sparql12-query/ §19): what it has is read, the rest refused."""

from __future__ import annotations

import pytest
from etalis_compiler.parser import QueryError, parse
from etalis_compiler.printer import to_text

PREFIX = "PREFIX : <http://example.org/> "


def patterns(*inner: str) -> list[str]:
    return [f"SELECT * {{ {one} }}" for one in inner]


def templates(*inner: str) -> list[str]:
    return [f"CONSTRUCT {{ {one} }} WHERE {{ ?s ?p ?o }}" for one in inner]


READ = [
    # code point escapes: in strings and IRIs, §19.2
    *patterns(
        r'?s ?p "\u0022"', r"?s ?p '\U0001F47E'", r'?s ?p "\u005C"', r'?s ?p """a\u000A\u0022"""', r'?s ?p "\\u0061"',
        r"?s ?p <http://example.org/\u0061>", r'?s ?p "\\u000\u241e"', r'?s ?p "\\u000Z"', "# \\uD83D\n ?s ?p 1",
    ),
    r"BASE <http://example.org/\u0061/> SELECT * { <b> ?p ?o }",
    r"PREFIX p: <http://example.org/\u0061/> SELECT * { p:b ?p ?o }",
    # UnaryExpression: '!' UnaryExpression
    *(f"SELECT ({e} AS ?x) {{ ?v ?p ?w }}" for e in ("!!?v", "! !?v", "!!!?v", "!-?v", "!+?v", "!(!?v)",
    "!!BOUND(?v)")),
    # VersionDecl: anywhere in the prologue, and as often as you like
    *(f"{v} SELECT * {{}}" for v in ('VERSION "1.2"', "VERSION '1.2'", 'version "1.1" VERSION "1.2-basic"')),
    'VERSION "1.2" PREFIX a: <http://example.org/a> SELECT * {}',
    'PREFIX a: <http://example.org/a> VERSION "1.2" SELECT * {}',
    'VERSION "1.7" SELECT * {}',
    # TripleTerm
    *patterns(
        "<<( ?s ?p ?o )>> ?q ?z", "?s ?p <<( ?s ?p ?o )>>", "<<(?s ?p ?o)>> :q 1",
        "?x ?q <<( ?s ?p <<( ?a ?b ?c )>> )>>",
        "?x ?q <<( <<( ?s ?p ?o )>> ?p 1 )>>", "?x ?q <<( 1 ?p 1 )>>", '?x ?q <<( "a"@en ?p 1 )>>',
        "?x ?q <<( true ?p 1 )>>",
        "?x ?q <<( [] ?p 1 )>>", "?x ?q <<( _:a ?p _:b )>>", "?x ?q <<( ?s a ?o )>>", "<<( ?s ?p ?o )>> :a/:b 1",
        "?x ?q <<( ?s ?p ?o )>> , <<( ?s ?p ?z )>> ; :r 1", "( <<( ?s ?p ?o )>> ) ?q 1", "[ :a <<( ?s ?p ?o )>> ]",
        "<<( ?s ?p ?o )>> ?q 1 {| :c :d |}", "?s ?p <<( ?s ?p ?o )>> {| :c :d |}",
    ),
    # ReifiedTriple, Reifier
    *patterns(
        "<< ?s ?p ?o >> ?q ?z", "<< ?s ?p ?o >>", "<<?s ?p ?o>> ?q 1", "<< ?s ?p ?o ~ ?r >>", "<< ?s ?p ?o ~ >>",
        "<< ?s ?p ?o ~ :r >>", "<< ?s ?p ?o ~ _:r >>", "<< ?s ?p ?o ~ [] >>", "?x ?q << ?s ?p ?o >>",
        "<< 1 ?p 1 >> ?r 1",
        "<< << ?s ?p ?o >> ?q 1 >> ?r 1", "<< ?s ?p << ?a ?b ?c >> >> ?r 1", '<< "a" ?p 1 >> ?r 1',
        "<< [] ?p [] >> ?r 1",
        "<< ?s ?p <<( ?s ?p ?o )>> >> ?r 1", "<< _:a ?p _:a >> ?r 1", "<< ?s a ?o >> ?r 1", "<< ?s ?p ?o >> :a/:b 1",
        "( << ?s ?p ?o >> 1 ) ?q 1", "{ << ?s ?p ?o >> }", "GRAPH ?g { << ?s ?p ?o >> }", "[] ?p << ?s ?p ?o >>",
        "FILTER EXISTS { << ?s ?p ?o >> ?q 1 }", "?s ?p << ?s ?p ?o >> {| :c :d |}", "<< ?s ?p ?o >> ?q 1 {| :c :d |}",
    ),
    # Annotation
    *patterns(
        "?s ?p ?o ~", "?s ?p ?o ~ ?r", "?s ?p ?o ~ []", "?s ?p ?o ~ ~ ~", "?s ?p ?o ~ :a ~ :b", "?s ?p ?o {| :a :b |}",
        "?s ?p ?o {|:a :b|}", "?s ?p ?o {| :a :b |} {| :c :d |}", "?s ?p ?o ~ :r {| :a :b |}",
        "?s ?p ?o {| :a :b |} ~ :r",
        "?s ?p ?o ~ :r {| :a :b |} ~ :s {| :c :d |}", "?s ?p ?o {| :a :b ; :c :d |}", "?s ?p ?o {| :a :b , :c ; ; |}",
        "?s ?p ?o {| :a :b {| :c :d |} |}", "?s ?p ?o {| :a [ :x :y ] |}", "?s ?p ?o {| :a (1 2) |}",
        "?s ?p ?o {| a :T |}",
        "?s ?p ?o {| :a/:b ?z |}", "?s ?p ?o {| ?q ?z |}", "?s ?p ?o {| :a :b |} , ?z {| :c :d |}",
        "1 ?p ?o {| :a :b |}",
        "?s ?p (1 2) {| :c :d |}", "?s ?p [ :a :b {| :c :d |} ]", "?s (:a) ?o ~",
    ),
    # ExprTripleTerm, TripleTermData
    *patterns(
        "BIND(<<( ?s ?p ?o )>> AS ?t)", "BIND(<<( :a a 1 )>> AS ?t)", "BIND(<<( ?s ?p <<( ?a ?b ?c )>> )>> AS ?t)",
        "FILTER(?t IN (<<( :a :b :c )>>))", "VALUES ?t { <<( :a :b :c )>> }", "VALUES ?t { <<( :a a 'c'@en--ltr )>> }",
        "VALUES ?t { <<( :a :b <<( :a :b 1 )>> )>> }", "VALUES (?t ?u) { (<<( :a :b :c )>> UNDEF) }",
    ),
    "SELECT ?t { ?s ?p ?o BIND(1 AS ?t) } ORDER BY (<<( ?s ?p ?o )>>)",
    # ConstructTemplate
    *templates(
        "<< ?s ?p ?o >> :q :z", "<< ?s ?p ?o >>", "?x :q <<( ?s ?p ?o )>>", "?s ?p ?o {| :a :b |}",
        "?s ?p ?o ~ _:b {| :a 1 |}",
        "_:b :q <<( ?s ?p _:b )>>", "?s :q <<( [] :q [] )>>", "<<( ?s ?p ?o )>> :q 1",
        "?s :q <<( <<( ?s ?p ?o )>> :q 1 )>>",
        "?s :q <<( 1 :q 1 )>>", "<< << ?s ?p ?o >> :q 1 >> :q 1", "?s :q (<< ?s ?p ?o >>)",
        "?s :q [ :p << ?s ?p ?o >> ]",
    ),
    "CONSTRUCT WHERE { << ?s ?p ?o >> :q ?z }",
    "CONSTRUCT WHERE { ?s ?p ?o {| :a ?b |} }",
    # LANG_DIR
    *patterns('?s ?p "a"@en--ltr', "?s ?p '''a'''@ar--rtl", '?s ?p "a"@en-us--ltr'),
]  # fmt: skip

REFUSED = [
    *(
        r"SELECT ?\u0061 { ?a ?b ?c }", r"\u0053ELECT * {}", r"SELECT * { ?s :\u0061 ?o }",
        r"PREFIX \u0061: <http://example.org/> SELECT * {}", r'SELECT * { ?s ?p "a"@\u0065n }',
    ),
    *patterns(
        r'?s ?p "\uD83D\uDC7E"', r'?s ?p "\uDC7E\uD83D"', r'?s ?p "\uD83D"', r'?s ?p "\uDC7E"', r'?s ?p "\U00110000"',
        r"?s ?p <http://example.org/\uD83D\uDC7E>", r"?s ?p <http://example.org/\u0020>",
        r"?s ?p <http://example.org/\u003E>",
        r'?s ?p "\u000Z"', r'?s ?p "\U0000006"', r"?s ?p <http://example.org/\u00>",
    ),
    *(f"SELECT ({e} AS ?x) {{ ?v ?p ?w }}" for e in ("--?v", "-!?v", "+!?v", "-+?v", "!")),
    *(f"{v} SELECT * {{}}" for v in ("VERSION 1.2", "VERSION", 'VERSION """1.2"""', "VERSION '''1.2'''", "VERSION :a")),
    *(f"{v} SELECT * {{}}" for v in ('VERSION "1.2"@en', 'VERSION "1.2" .', "VERSION <http://example.org/>")),
    *patterns(
        "<<( ?s ?p ?o )>>", "?x <<( ?s ?p ?o )>> ?z", "?x ?q <<( ?s [] 1 )>>", "?x ?q <<( ?s _:a 1 )>>",
        "?x ?q <<( ?s :a/:b 1 )>>", "?x ?q <<( ?s :a|:b 1 )>>", "?x ?q <<( ?s ^:a 1 )>>", "?x ?q <<( ?s :a+ 1 )>>",
        "?x ?q <<( ?s ?p (1 2) )>>", "?x ?q <<( (1) ?p 1 )>>", "?x ?q <<( ?s ?p () )>>", "?x ?q <<( () ?p ?o )>>",
        "?x ?q <<( ?s ?p [ :a :b ] )>>", "?x ?q <<( ?s ?p ?o , ?z )>>", "?x ?q <<( ?s ?p )>>",
        "?x ?q <<( ?s ?p << ?s ?p ?o >> )>>", "?x ?q <<( << ?s ?p ?o >> ?p ?o )>>", "?x ?q <<( ?s ?p ?o ~ ?r )>>",
        "?x ?q < <( ?s ?p ?o )>>", "?x ?q <<( ?s ?p ?o ) >>", "?x ?q << ( ?s ?p ?o )>>", "?x ?q <<( ?s ?p ?o )> >",
    ),
    *patterns(
        "<< ?s ?p ?o ~ 1 >>", "<< ?s ?p ?o ~ :r ~ :s >>", "<< <<( ?s ?p ?o )>> ?q 1 ", "<< () ?p 1 >> ?r 1",
        "<< ?s ?p () >> ?r 1", "<< ?s ?p (1) >> ?r 1", "<< (1) ?p 1 >> ?r 1", "<< ?s (1) 1 >> ?r 1",
        "<< ?s ?p [ :a 1 ] >> ?r 1", "<< ?s [] ?o >> ?r 1", "<< ?s _:p ?o >> ?r 1", "<< ?s :a/:b ?o >> ?r 1",
        "<< ?s :a* ?o >> ?r 1", "?x << ?s ?p ?o >> 1", "<< ?s ?p ?o , ?z >> ?r 1", "<< ?s ?p ?o ; ?q ?z >> ?r 1",
        "< < ?s ?p ?o >> ?q 1", "<< ?s ?p ?o > > ?q 1", "GRAPH << ?s ?p ?o >> { }",
    ),
    *patterns(
        "?s ?p ?o ~ 1", "?s ?p ?o {| |}", "?s ?p ?o {| :a |}", "?s ?p ?o {| _:q ?z |}", "?s :a/:b ?o {| :c :d |}",
        "?s :a/:b ?o ~", "?s :a|:b ?o ~ :r", "?s :a+ ?o {| :c :d |}", "?s :a? ?o {| :c :d |}", "?s ^:a ?o ~",
        "?s !:a ?o ~", "() {| :a :b |}", "?s ?p ?o { | :a :b |}", "?s ?p ?o {| :a :b | }",
    ),
    *patterns(
        "BIND(<<( <<( ?a ?b ?c )>> ?p ?o )>> AS ?t)", "BIND(<<( 1 ?p ?o )>> AS ?t)", "BIND(<<( _:a ?p ?o )>> AS ?t)",
        "BIND(<<( ?s ?p [] )>> AS ?t)", "BIND(<<( ?s :a/:b ?o )>> AS ?t)", "BIND(<< ?s ?p ?o >> AS ?t)",
        "BIND(<<( ?s ?p ?x+1 )>> AS ?t)", "BIND(<<( ?s ?p STR(?o) )>> AS ?t)", "BIND(TRIPLE(?s, ?p) AS ?t)",
        "VALUES ?t { <<( ?s :b :c )>> }", "VALUES ?t { <<( :a ?p :c )>> }",
        "VALUES ?t { <<( <<( :a :b :c )>> :b :c )>> }",
        "VALUES ?t { <<( 1 :b :c )>> }", "VALUES ?t { <<( _:a :b :c )>> }", "VALUES ?t { <<( :a :b [] )>> }",
        "VALUES ?t { << :a :b :c >> }", "VALUES ?t { <<( :a UNDEF :c )>> }", "VALUES ?t { <<( :a :b/:c :c )>> }",
    ),
    *templates("?s :a/:b ?o", "?s :q << ?s :a/:b ?o >>", "?s :q ?o {| :a/:b :c |}"),
    "DESCRIBE << :a :b :c >>",
    *patterns('?s ?p "a"@en--up', '?s ?p "a"@en--LTR', '?s ?p "a"@en--', '?s ?p "a"@--ltr', '?s ?p "a"--ltr'),
    *patterns('?s ?p "a"@en -- ltr', '?s ?p "a"@en--ltr--rtl'),
]  # fmt: skip


@pytest.mark.parametrize("query", READ)
def test_what_the_grammar_has_is_read(query: str) -> None:
    document = parse(PREFIX + query)
    assert parse(to_text(document)) == document


@pytest.mark.parametrize("query", REFUSED)
def test_what_the_grammar_lacks_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        parse(PREFIX + query)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (r"SELECT ?caf\u00e9 {}", "write the character itself"),
        (r"SELECT * { ?s ?p <http://example.org/\u00a0\u0020> }", "%20"),
        ('VERSION """1.2""" SELECT * {}', 'write VERSION "1.2"'),
        ("SELECT * { ?x ?q <<( ?s ?p () )>> }", "write rdf:nil"),
        ("SELECT * { << () ?p 1 >> ?q 1 }", "write rdf:nil"),
    ],
)
def test_the_hint_says_what_to_write(query: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(PREFIX + query)
    assert hint in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("query", "warning"),
    [
        ('VERSION "1.7" SELECT * {}', "'1.7' is no known version of SPARQL"),
        ("SELECT * { ?x ?q <<( 1 ?p 1 )>> }", "a literal is the subject of no triple"),
        ("SELECT * { << <<( ?s ?p ?o )>> ?q 1 >> ?r 1 }", "a triple term is the subject of no triple"),
    ],
)
def test_what_is_read_but_can_match_nothing_is_a_warning(query: str, warning: str) -> None:
    (found,) = parse(PREFIX + query).warnings
    assert warning in found.message
