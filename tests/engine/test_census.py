"""What a program asks for and no event had is told, with the nearest that one had; a right program is told nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from etalis_py import Engine, Event, compile, event, run
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.knowledge import load

PRICES = [event(":acme :price 3", 1, stream="<urn:ticks>"), event(":acme :volume 3", 2, stream="<urn:ticks>")]
SLIP = "the predicate :pirce never occurred; did you mean :price? (spelt a little differently)"
FORESEEN = SLIP.replace("the predicate :pirce never occurred", "no column gives the predicate :pirce")


def warnings(text: str, **options: object) -> tuple[str, ...]:
    matches = run(text, PRICES, **options)  # type: ignore[arg-type]
    list(matches)
    return matches.warnings


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { ?c :pirce ?x }",
        "SELECT ?x { ?c :price ?x OPTIONAL { ?c :pirce ?y } }",
        "SELECT ?x { ?c :price ?x } SEQ { ?c :pirce ?y }",
        "SELECT ?x { ?c :price ?x FILTER NOT EXISTS { ?c :pirce ?y } }",
        "SELECT ?x FROM NAMED WINDOW :w ON <urn:ticks> [RANGE PT5S] { WINDOW :w { ?c :pirce ?x } }",
    ],
)
def test_a_misspelt_predicate(text: str) -> None:
    assert warnings(text) == (SLIP,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { ?c :temperature ?x }", ("the predicate :temperature never occurred",)),
        ("SELECT ?x { ?c :price ?x OPTIONAL { ?c :temperature ?y } }", ()),
        ("SELECT ?x { ?c :price ?x MINUS { ?c :temperature ?y } }", ()),
        ("SELECT ?x { { ?c :price ?x } UNION { ?c :temperature ?x } }", ()),
        ("SELECT ?x { ?c :price ?x . ?c ?p ?y }", ()),
        ("SELECT ?x FROM NAMED WINDOW :w ON <urn:ticks> [RANGE PT5S] { WINDOW :w { ?c :price ?x } }", ()),
    ],
)
def test_a_predicate_without_likeness_is_told_where_an_answer_needs_it(text: str, expected: tuple[str, ...]) -> None:
    assert warnings(text) == expected


def test_what_a_rule_makes_occurs() -> None:
    rule = "REGISTER STREAM :high AS CONSTRUCT { ?c :high ?x } { ?c :price ?x }"
    assert list(run([rule, "SELECT ?x { ?c :high ?x }"], PRICES).warnings) == []
    matches = run([rule, "SELECT ?x { ?c :high ?x }"], PRICES)
    list(matches)
    assert matches.warnings == ()


def test_what_the_background_mentions_is_no_slip(tmp_path: Path) -> None:
    schema = tmp_path / "schema.ttl"
    schema.write_text(
        "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ":price rdfs:subPropertyOf :prices . :acme :pirce 4 ."
    )
    assert warnings("SELECT ?x { ?c :prices ?x . ?c a ?class . ?c :pirce ?y }", background=[schema]) == ()


def test_streams() -> None:
    window = "SELECT ?x FROM NAMED WINDOW :w ON <urn:tics> [RANGE PT5S] { WINDOW :w { ?c :price ?x } }"
    assert warnings(window) == (
        "no query reads the stream <urn:ticks>; the queries read <urn:tics>; did you mean <urn:tics>? "
        "(spelt a little differently): --stream NAME=SOURCE",
        "no event came of the stream <urn:tics>; did you mean <urn:ticks>? (spelt a little differently)",
    )
    two = (
        "SELECT ?x FROM NAMED WINDOW :w ON <urn:ticks> [RANGE PT5S] FROM NAMED WINDOW :v ON <urn:news> [RANGE PT5S]"
        " { WINDOW :w { ?c :price ?x } WINDOW :v { ?c :volume ?y } }"
    )
    assert warnings(two) == ("no event came of the stream <urn:news>",)


def test_columns() -> None:
    table = pa.table(
        {
            "end": pa.array([1, 2], pa.int64()),
            "start": pa.array([1, 2], pa.int64()),
            "s": ["<urn:a>", "<urn:b>"],
            "p": ["<http://example.org/price>"] * 2,
            "o": ['"1"', '"2"'],
        }
    )
    matches = run("SELECT ?x { ?c :pirce ?x }", table)
    assert (list(matches), matches.warnings) == ([], (SLIP,))


def test_nothing_is_told_of_an_empty_stream() -> None:
    census = UnseenNames(compile("SELECT ?x { ?c :pirce ?x }"))
    assert census.warnings() == ()


def test_what_the_background_had_for_a_while_is_no_slip() -> None:
    program = compile("SELECT ?x { ?c :price ?x . ?c a :Firm }")
    census, engine = UnseenNames(program), Engine(program, background=[])
    engine.update(add=[("<urn:c>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://example.org/Firm>")])
    census.see(PRICES)
    assert census.warnings(engine.knowledge) == ()


def test_event_over_events_of_one_triple_each_is_told() -> None:
    def told(query: str, given: object) -> tuple[str, ...]:
        matches = run(query, given)
        list(matches)
        return matches.warnings

    query, apart = "SELECT ?t { EVENT { ?s :temp ?t ; :hum ?h } }", [event(":s :temp 20", 1), event(":s :hum 40", 1)]
    (warning,) = told(query, apart)
    assert "no event had more than one" in warning
    flat = {"end": [1, 1], "s": ["<urn:s>"] * 2, "p": [f"<http://example.org/{p}>" for p in ("temp", "hum")]}
    table = pa.table({**flat, "o": ['"20"', '"40"']})
    (warning,) = told(query, table)
    assert "the column event" in warning
    assert [m["t"] for m in run(query, table.append_column("event", pa.array([1, 1])))] == ["20"]
    assert told(query, [event(":s :temp 20 ; :hum 40", 1)]) == ()
    assert told("SELECT ?t { EVENT { ?s :temp ?t } }", apart[:1]) == ()


def flat(events: list[Event]) -> pa.Table:
    rows = [(e.end, e.start, *triple) for e in events for triple in e.triples]
    return pa.table(dict(zip(("end", "start", "s", "p", "o"), zip(*rows, strict=True), strict=True)))


LOGINS = [event(':ann :does "login"', 1), event(":ann :tries 3", 2), event(":ann :from :Graz", 3)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'SELECT ?c { ?c :does "Login" }',
            'no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)',
        ),
        (
            'SELECT ?c { ?c :does ?what FILTER (?what = "Login") }',
            'no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)',
        ),
        (
            'SELECT ?c { { ?c :from ?x } SEQ { EVENT { ?c :does ?what FILTER ("Login" = ?what && ?c != :x) } } }',
            'no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)',
        ),
        (
            'SELECT ?c { ?c :tries "3" }',
            'no event had :tries "3"; did you mean 3? '
            "(the same text, but one is a plain string and the other an xsd:integer)",
        ),
        (
            'SELECT ?c { ?c :tries "3.0" }',
            'no event had :tries "3.0"; did you mean 3? (one is a plain string and the other an xsd:integer)',
        ),
        (
            'SELECT ?c { ?c :does ?what VALUES (?what ?n) { ("Login" 1) ("Logout" 2) } }',
            'no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)',
        ),
        (
            "SELECT ?c { ?c :tries ?n VALUES ?n { 3.0 } }",
            "no event had :tries 3.0; did you mean 3? (equal values, spelt differently; a join compares the spelling)",
        ),
        (
            'SELECT ?c { ?c :from "Graz" }',
            'no event had :from "Graz"; did you mean :Graz? (one is an IRI, the other a text)',
        ),
    ],
)
@pytest.mark.parametrize("in_columns", [False, True])
def test_a_value_in_another_case_or_of_another_type(text: str, expected: str, in_columns: bool) -> None:
    matches = run(text, flat(LOGINS) if in_columns else LOGINS)
    assert (list(matches), matches.warnings) == ([], (expected,))


@pytest.mark.parametrize(
    "text",
    [
        'SELECT ?c { ?c :does "login" }',
        'SELECT ?c { ?c :does "logout" }',  # may come
        'SELECT ?c { ?c :does "log-in" }',
        "SELECT ?c { ?c :tries 4 }",
        "SELECT ?c { ?c :tries ?n FILTER (?n = 3.0) }",  # compared by value
        "SELECT ?c { ?c :tries ?n VALUES ?n { 3.0 UNDEF } }",
        "SELECT ?c { ?c :tries ?n VALUES ?n { 3.0 3 } }",
        'SELECT ?c { ?c :does ?x OPTIONAL { ?c :does "Login" } }',
        'SELECT ?c { { ?c :does "Login" } UNION { ?c :does "login" } }',
        'SELECT ?c { ?c :does ?x FILTER (?x = "Login" || ?x = "login") }',
    ],
)
def test_a_value_that_may_come_is_left_alone(text: str) -> None:
    matches = run(text, LOGINS)
    list(matches)
    assert matches.warnings == ()


@pytest.mark.parametrize("first", ["login", "logout"])
def test_other_values_may_come_after_all_that_are_asked_for(first: str) -> None:
    some = [event(f':ann :does "{what}"', n) for n, what in enumerate((first, "login", "view", "buy"))]
    query = 'SELECT ?c { ?c :does "login" }'
    for stream in (some, flat(some)):
        matches = run(query, stream)
        assert (len(list(matches)), matches.warnings) == (2 if first == "login" else 1, ())


def test_values_of_records_in_columns() -> None:
    table = {"at": [1, 2], "card": ["a", "b"], "does": ["login", "logout"]}
    matches = run('SELECT ?c { EVENT { ?c :does "Login" ; :at ?t } }', pa.table(table), time="at", subject="card")
    list(matches)
    assert any('did you mean "login"?' in text for text in matches.warnings)


def test_values_are_compared_until_there_are_too_many() -> None:
    many = [event(f':ann :does "login {n}"', n) for n in range(600)]
    matches = run('SELECT ?c { ?c :does "Login 7" }', [*many, event(":ann :does 7", 700)])
    assert (list(matches), matches.warnings) == ([], ())


PAID = [event(':ann :paid "$120"', 1), event(":ann :paid 90", 2), event(':ann :paid "9.5"', 3)]
LETTERS = 'compares them letter by letter, so "9" comes after "10"'
CAST = "; xsd:decimal(…) makes a number of one"


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (
            "SELECT ?x { ?c :paid ?x FILTER (?x > 100) }",
            PAID,
            'some values of :paid are texts, as "$120": ?x > 100 lets none of them through',
        ),
        (
            "SELECT ?x { EVENT { ?c :paid ?x FILTER (?c != :x && 100 <= ?x) } }",
            PAID[:1],
            'all values of :paid are texts, as "$120": 100 <= ?x lets none of them through',
        ),
        (
            "SELECT ?x { ?c :paid ?x FILTER (?x * 2 + 1 > 10) }",
            PAID[2:],
            'all values of :paid are texts, as "9.5": nothing can be calculated with ?x, so the filter lets none of '
            f"them through{CAST}",
        ),
        (
            "SELECT ?c (SUM(?x) AS ?s) { ?c :paid ?x } GROUP BY ?c",
            PAID,
            'some values of :paid are texts, as "$120": SUM(?x) has no value with one of them',
        ),
        (
            "SELECT ?c (MAX(?x) AS ?s) { ?c :paid ?x } GROUP BY ?c",
            PAID,
            f'values of :paid are texts, as "9.5": MAX(?x) {LETTERS}{CAST}',
        ),
        (
            "SELECT ?x { { ?c :paid ?x } SEQ { ?c :paid ?y } FILTER (?y > ?x) }",
            PAID,
            f'values of :paid are texts, as "9.5": ?y > ?x {LETTERS}{CAST}',
        ),
        (
            'SELECT ?x { ?c :paid ?x FILTER (?x > "80") }',
            PAID[1:2],
            'all values of :paid are numbers, as 90: ?x > "80" lets none of them through; write 80 without quotes',
        ),
        (
            "SELECT ?n { { ?o :by ?c } SEQ { ?c :level ?n } }",
            [event(':o :by "Ann"', 1), event(":Ann :level 3", 2)],
            'all values of :by are texts, as "Ann": ?c is the subject of another pattern, which no literal is, so they '
            "join nothing",
        ),
        (
            "SELECT ?n { { ?o :by ?b } SEQ { ?c :level ?n } FILTER (?b = ?c) }",
            [event(":o :by 7", 1), event(":Ann :level 3", 2)],
            "all values of :by are literals, as 7: ?b = ?c lets none of them through, as ?c is a subject: no literal "
            "is one",
        ),
        (
            "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S] { WINDOW :w { ?c :paid ?x FILTER (?x > 9) } }",
            [one._replace(stream="<http://example.org/s>") for one in PAID[:1]],
            'all values of :paid are texts, as "$120": ?x > 9 lets none of them through',
        ),
    ],
)
def test_texts_where_numbers_are_needed_are_told(text: str, given: list[Event], expected: str) -> None:
    matches = run(text, given)
    list(matches)
    assert matches.warnings == (expected,)
    if not given[0].stream:
        matches = run(text, flat(given))
        list(matches)
        assert matches.warnings == (expected,)


@pytest.mark.parametrize(
    "text",
    [
        'SELECT ?x { ?c :paid ?x FILTER (?x > "a") }',
        "SELECT ?x { ?c :paid ?x FILTER (xsd:decimal(?x) > 100) }",
        "SELECT ?x { ?c :paid ?x FILTER (COALESCE(?x > 100, true)) }",
        "SELECT ?x { ?c :paid ?x FILTER (?x = 9.5) }",
        "SELECT ?c (COUNT(?x) AS ?n) { ?c :paid ?x } GROUP BY ?c",
        "SELECT ?x { ?c :paid ?x FILTER EXISTS { ?x :of ?y } }",
        "SELECT ?c { ?c :paid ?x OPTIONAL { ?c :gave ?y FILTER (?y > 100) } }",
    ],
)
def test_texts_that_are_no_trouble_are_left_alone(text: str) -> None:
    matches = run(text, PAID)
    list(matches)
    assert matches.warnings == ()


BY = "SELECT ?n { { ?o :by ?c } SEQ { ?c :level ?n } }"
ANN = [event(':o :by "Ann"', 1), event(":Ann :level 3", 2)]


@pytest.mark.parametrize(
    "rule",
    [
        "CONSTRUCT { ?o :by ?w } { ?o :written ?w }",
        "CONSTRUCT { ?o :by ?w } FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S] { WINDOW :w { ?o :written ?w } }",
        "CONSTRUCT FACT F { ?o :by ?w } (UNION (SINCE ?o :wrote ?w) (TILL ?o :left ?w))",
    ],
)
def test_rules_may_state_things_beside_literals(rule: str) -> None:
    matches = run(f"{rule} {BY}", ANN)
    list(matches)
    assert not any("so they join nothing" in text for text in matches.warnings)


def test_a_background_may_state_things_beside_literals() -> None:
    matches = run(
        BY, ANN, background=[("<http://example.org/o>", "<http://example.org/by>", "<http://example.org/Ann>")]
    )
    list(matches)
    assert matches.warnings == ()


@pytest.mark.parametrize("form", ["flat", "encoded", "literals"])
def test_things_after_the_first_events_are_seen(form: str) -> None:
    """In columns: a name that is a text 10,000 times may be an IRI later."""
    last = ':o :by "Bob"' if form == "literals" else ":o :by :Ann"
    table = flat([*(event(f':o :by "Ann {n % 7}"', n) for n in range(10_000)), event(last, 10_001)])
    if form == "encoded":
        table = table.set_column(table.schema.get_field_index("o"), "o", table["o"].dictionary_encode())
    matches = run(BY, table, executor="columns")
    list(matches)
    assert any("so they join nothing" in text for text in matches.warnings) == (form == "literals")


def test_texts_that_are_no_numbers_may_be_compared_with_one_another() -> None:
    matches = run("SELECT ?x { { ?c :in ?x } SEQ { ?c :in ?y } FILTER (?y > ?x) }", [event(':ann :in "Graz"', 1)])
    list(matches)
    assert matches.warnings == ()


ROOMS = {"http://example.org/rooms": ":s1 :in :hall . :hall :partOf :house ."}
ONTOLOGY = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
:TempSensor rdfs:subClassOf :Sensor . :temp rdfs:domain :TempSensor . :s1 :in :hall .
:partOf a owl:TransitiveProperty . :hall :partOf :house . :house :partOf :street ."""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("GRAPH :rooms { ?s :in ?r }", ()),
        ("GRAPH ?g { ?s :in ?r . ?r :partOf ?h }", ()),
        ("GRAPH :places { ?s :in ?r }", ("the background has no graph :places; it has :rooms",)),
        ("OPTIONAL { GRAPH :places { ?s :in ?r } }", ("the background has no graph :places; it has :rooms",)),
        ("FILTER NOT EXISTS { GRAPH :places { ?s :in ?r } }", ("the background has no graph :places; it has :rooms",)),
        (
            "GRAPH :room { ?s :in ?r }",
            ("the background has no graph :room; it has :rooms; did you mean :rooms? (spelt a little differently)",),
        ),
        (
            "GRAPH :rooms { ?s :inn ?r }",
            ("the graph :rooms has no predicate :inn; did you mean :in? (spelt a little differently)",),
        ),
        ("GRAPH ?g { ?s :at ?r }", ("the graphs of the background have no predicate :at",)),
    ],
)
def test_what_named_graphs_do_not_have_is_told(asked: str, expected: tuple[str, ...]) -> None:
    matches = run(f"SELECT ?s {{ ?s :temp ?t {asked} }}", [event(":s1 :temp 3", 1)], background=load([], named=ROOMS))
    list(matches)
    assert matches.warnings == expected


@pytest.mark.parametrize(
    ("asked", "background", "expected"),
    [
        (
            "GRAPH :rooms { ?s :in ?r }",
            None,
            "GRAPH :rooms {…} asks the background, and there is none: --background FILE, in Python background=; the "
            "graph of an event is EVENT :rooms {…}",
        ),
        (
            "EVENT { ?s :temp ?t GRAPH ?g { ?s :in ?r } }",
            ONTOLOGY,
            "GRAPH ?g {…} asks graphs with a name, and the background has none: ask without GRAPH, or give TriG or "
            "N-Quads; the graph of an event is EVENT ?g {…}",
        ),
        (
            "?s a :Sensr",
            ONTOLOGY,
            "no event and nothing in the background had rdf:type :Sensr; did you mean :Sensor? "
            "(spelt a little differently)",
        ),
        (
            "?s :in :Hall",
            ONTOLOGY,
            "no event and nothing in the background had :in :Hall; did you mean :hall? "
            "(differs in upper and lower case only)",
        ),
        (
            "?s :in ?r . ?r :partOf :street",
            ONTOLOGY,
            "the background says owl:TransitiveProperty of :partOf, which has no effect under the entailment rdfs: "
            "--entailment owlrl",
        ),
    ],
)
def test_what_the_background_cannot_answer_is_told(asked: str, background: str | None, expected: str) -> None:
    matches = run(
        f"SELECT ?s {{ ?s :temp ?t . {asked} }}",
        [event(":s1 :temp 3", 1)],
        background=None if background is None else load([background]),
    )
    assert list(matches) == []
    assert matches.warnings == (expected,)


@pytest.mark.parametrize("asked", ["WINDOW :w { GRAPH ?g { ?s :price ?x } }", "GRAPH :w { ?s :price ?x }"])
def test_the_graphs_of_a_window_are_not_those_of_the_background(asked: str) -> None:
    matches = run(f"SELECT ?x FROM NAMED WINDOW :w ON <urn:ticks> [RANGE PT5S] {{ {asked} }}", PRICES)
    list(matches)
    assert matches.warnings == ()


@pytest.mark.parametrize("entailment", ["rdfs", "rdfs-full", "owlrl"])
def test_what_follows_from_the_background_is_no_slip(entailment: str) -> None:
    text = "SELECT ?s { ?s :temp ?t . ?s a :Sensor . ?s :in :hall . ?r :partOf ?h }"
    plain = ONTOLOGY.replace(":partOf a owl:TransitiveProperty .", "")
    background = load([plain], entailment=entailment)
    matches = run(text, [event(":s1 :temp 3", 1)], background=background)
    assert len(list(matches)) == 2
    assert matches.warnings == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { ?c :price ?x FILTER (?x > 1) }", ()),
        ("SELECT ?x { ?c :pirce ?x }", (FORESEEN,)),
        (
            "SELECT ?c { ?row :row ?c }",
            (
                "no column gives the predicate :row: the column row is the subject of its rows, "
                "as in { ?row :name ?value }",
            ),
        ),
        (
            "SELECT (SUM(?n) AS ?all) { ?c :name ?n }",
            (
                ":name is a column of texts: SUM(?n) has no value with one of them; xsd:decimal(…) makes a number "
                "of one",
            ),
        ),
        (
            'SELECT ?x { ?c :price ?x FILTER (?x < "9") }',
            (':price is a column of numbers: ?x < "9" lets none of them through; write 9 without quotes',),
        ),
        (
            "SELECT ?x FROM NAMED WINDOW :w ON <urn:tics> [RANGE PT5S] { WINDOW :w { ?c :price ?x } }",
            (
                "no query reads the stream <urn:ticks>; the queries read <urn:tics>; did you mean <urn:tics>? "
                '(spelt a little differently): name their stream, as stream="…"',
                "no event came of the stream <urn:tics>; did you mean <urn:ticks>? (spelt a little differently)",
            ),
        ),
    ],
)
def test_what_is_known_of_the_columns_is_told_before_any_event(text: str, expected: tuple[str, ...]) -> None:
    price, name = (f"<http://example.org/{p}>" for p in ("price", "name"))
    given = {"predicates": [price, name], "texts": [name], "numbers": [price], "subjects": ["row"]}
    assert UnseenNames(compile(text)).foreseen(given | {"streams": ["<urn:ticks>"]}) == expected


def test_a_background_may_state_things_beside_a_column_of_texts() -> None:
    name = "<http://example.org/name>"
    given = {"predicates": [name], "texts": [name], "numbers": [], "subjects": []}
    text = "SELECT ?c { ?c :name ?n . ?n :name ?m }"
    known = Engine(background=":ann :name :smith .").knowledge
    assert [len(UnseenNames(compile(text)).foreseen(given, knowledge)) for knowledge in (None, known)] == [1, 0]
