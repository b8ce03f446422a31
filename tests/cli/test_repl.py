"""``etalis repl``: what each typed line makes it say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from etalis_py import Engine, LimitExceeded, Matches
from etalis_py.cli.session import Session
from tests.cli.conftest import Folder
from tests.test_docs import traced


def said(*lines: str, session: Session | None = None) -> list[str]:
    made = session or Session([], "rdfs", "unrestricted")
    return [text for line in lines for text in made.take(line)]


QUERY = ("SELECT ?c ?x", "WHERE { ?c :price ?x } SEQ { ?c :price ?y }", "")


def test_a_match_is_shown_as_soon_as_its_last_event_is_typed() -> None:
    assert said(*QUERY, "1 :a :price 10 .", "3 :a :price 12", "3 :b :price 1") == [
        "q1 runs",
        "q1 [1, 3]  ?c = :a  ?x = 10",
    ]


def test_events_may_have_intervals_dates_and_prefixes() -> None:
    lines = (
        "PREFIX ex: <http://ex/>",
        "SELECT ?c WHERE { ?c ex:in ?r }",
        "",
        "[2026-01-01T00:00:00Z, 2026-01-01T01:00:00Z] :ann ex:in ex:room .",
    )
    assert said(*lines) == ["q1 runs", "q1 [2026-01-01T00:00:00Z, 2026-01-01T01:00:00Z]  ?c = :ann"]


def test_rules_ask_and_what_is_known_at_the_end() -> None:
    session = Session([], "rdfs", "unrestricted")
    lines = ("CONSTRUCT { ?c :up ?x } WHERE { ?c :price ?x }", "", "ASK { ?c :down ?x }", "", "1 :a :price 10")
    assert said(*lines, session=session) == ["q1 runs", "q2 runs", "q1 [1, 1]  :a :up 10"]
    assert list(session.end()) == ["q2  no"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["hello"], "'hello' is not an event, background, query or command; .help tells what is"),
        ([".nix"], "there is no command .nix; .help lists them"),
        (
            ["2 :a :p 1", "1 :a :p 1"],
            "this event is earlier than one before it: it came too late and was left out",
        ),
        (["1 :a p 1"], "this is not Turtle: p is not a valid predicate"),
        (["[3, 1] :a :p 1"], "the interval [3, 1] ends before it starts"),
        (["1 :a :p 1", "2026-01-01T00:00:00Z :a :p 1"], "the times so far are numbers, 2026-01-01T00:00:00Z is not"),
        ([".why"], "no match yet"),
        ([".queries"], "no queries yet"),
        ([".rules"], "no queries yet"),
        ([".remove q7"], "there is no query q7; running: none"),
    ],
)
def test_what_is_wrong_is_said_and_the_session_goes_on(lines: Iterable[str], expected: str) -> None:
    session = Session([], "rdfs", "unrestricted")
    assert said(*lines, session=session)[-1] == expected
    assert said(*QUERY, "5 :z :price 1", "6 :z :price 2", session=session)[-1] == "q1 [5, 6]  ?c = :z  ?x = 1"


def test_a_fault_in_a_query_is_pointed_at() -> None:
    text = said("SELECT ?c WHERE { ?c", "")[0]
    assert "<query>:1:21: error" in text
    assert "^" in text


def test_commands() -> None:
    session = Session([], "rdfs", "unrestricted")
    said(*QUERY, "1 :a :price 10 .", "3 :a :price 12", session=session)
    assert said(".queries", session=session)[0].startswith("q1 (program1): SELECT ?c ?x WHERE")
    assert said(".goals", session=session) == ["goals: 2, events: 2, matches: 1"]
    assert "event :a :price 10" in said(".why", session=session)[0]
    assert ":= join(seq" in said(".rules", session=session)[0]
    assert said(".remove q1", ".queries", session=session) == ["q1 stopped", "no queries yet"]
    assert said(".time 30", "29 :a :price 1", session=session)[0].startswith("this event is earlier")


def test_queries_get_names_of_their_own() -> None:
    assert said("ASK {:a :b :c}", "", "ASK {:a :b :d}", "") == ["q1 runs", "q2 runs"]


def test_a_session_can_be_piped_in(folder: Folder) -> None:
    text = "SELECT ?x WHERE { ?c :price ?x }\n\n1 :a :price 10 .\nASK { ?c :down ?x }\n"
    assert folder.etalis("repl", input=text).stdout.splitlines() == [
        "q1 runs",
        "q1 [1, 1]  ?x = 10",
        "q2 runs",
        "q2  no",
    ]


FROM = ("SELECT ?c ?s FROM <sectors.ttl>", "WHERE { ?c :price ?x . ?c :sector ?s }", "")


def test_from_loads_a_file_beside_the_session(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("sectors.ttl", "@prefix : <http://example.org/> . :a :sector :tools .")
    folder.write("firms.ttl", "@prefix : <http://example.org/> . :a :sector :firms .")
    monkeypatch.chdir(folder.path)
    session = Session(["firms.ttl"], "rdfs", "unrestricted")
    assert said("4 :a :price 10", *FROM, "3 :a :price 9", "4 :a :price 10", session=session) == [
        "q1 runs",
        "this event is earlier than one before it: it came too late and was left out",
        "q1 [4, 4]  ?c = :a  ?s = :tools",
    ]
    other = said(FROM[0].replace("sectors", "firms"), *FROM[1:], session=session)[0]
    assert "this program has other FROM clauses than those that run already" in other
    assert sorted(said(*FROM, "5 :a :price 10", session=session)) == [
        "q1 [5, 5]  ?c = :a  ?s = :tools",
        "q3 [5, 5]  ?c = :a  ?s = :tools",
        "q3 runs",
    ]
    said(".remove q1", ".remove q3", session=session)
    assert said("SELECT ?s { ?c :price ?x . ?c :sector ?s }", "", "6 :a :price 1", session=session) == [
        "q1 runs",
        "q1 [6, 6]  ?s = :firms",
    ]


def test_from_of_a_file_that_is_not_there_or_bad_is_said(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    session = Session([], "rdfs", "unrestricted")
    assert "no graph <http://example.org/sectors.ttl> is loaded" in said(*FROM, session=session)[0]
    folder.write("sectors.ttl", "@prefix : <http://example.org/> .\n:a :sector .")
    assert said(*FROM, session=session)[0].startswith("sectors.ttl, line 2, column ")
    folder.write("sectors.ttl", "@prefix : <http://example.org/> . :a :sector :tools .")
    assert said(*FROM, "1 :a :price 1", session=session)[-1] == "q1 [1, 1]  ?c = :a  ?s = :tools"


WINDOWED = (
    "SELECT ?r (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 10]",
    "{ WINDOW :w { ?x :in ?r } } GROUP BY ?r",
    "",
)


def test_queries_with_windows_answer_when_time_moves_on() -> None:
    session = Session([], "rdfs", "unrestricted")
    assert said(*WINDOWED, "1 :ann :in :lab", "4 :bob :in :lab", session=session) == ["q1 runs"]
    assert said("12 :ann :in :hall", ".why", session=session) == [
        "q1 [0, 10]  ?r = :lab  ?n = 2",
        "q1 was evaluated at 10 over\n  <http://example.org/w>: after 0, until 10",
    ]
    assert said(".time 20", ".goals", session=session) == [
        "q1 [10, 20]  ?r = :hall  ?n = 1",
        "goals: 0, events: 3, matches: 0, items in windows: 0",
    ]
    assert said("19 :ann :in :hall", session=session) == [
        "this event is earlier than one before it: it came too late and was left out"
    ]
    assert said("23 :bob :in :hall", ".quit", session=session) == ["q1 [20, 30]  ?r = :hall  ?n = 1"]


def test_windows_beside_rules() -> None:
    session = Session([], "rdfs", "unrestricted")
    said(*QUERY, *WINDOWED, session=session)
    assert said(".queries", session=session) == [
        "q1 (program1): SELECT ?c ?x WHERE { ?c :price ?x } SEQ { ?c :price ?y }",
        "q2 (windows): " + " ".join(WINDOWED).strip(),
    ]
    assert "window :w on stream :s" in said(".rules", session=session)[1]
    assert said("1 :a :price 1", "2 :a :price 2", "3 :a :in :lab", "11 :a :price 3", session=session) == [
        "q1 [1, 2]  ?c = :a  ?x = 1",
        "q1 [1, 11]  ?c = :a  ?x = 1",
        "q1 [2, 11]  ?c = :a  ?x = 2",
        "q2 [0, 10]  ?r = :lab  ?n = 1",
    ]
    assert said(".remove q2", ".remove q2", session=session) == [
        "q2 stopped",
        "there is no query q2; running: q1",
    ]


def test_streams_facts_and_networks_in_a_session() -> None:
    session = Session([], "rdfs", "unrestricted")
    lines = (
        "CONSTRUCT FACT Stay { ?x :in ?r } (UNION (SINCE ?x :enter ?r) (TILL ?x :leave ?r))",
        "SELECT ?x ?t FROM NAMED WINDOW :w ON :heat [RANGE 5] FROM NAMED WINDOW :v ON :noise [RANGE 5]",
        "{ WINDOW :w { ?r :is ?t } CURRENT { ?x :in ?r } }",
        "",
    )
    assert said(*lines, "1 :ann :enter :lab", "2 @:heat :lab :is 31", "2 @:noise :lab :is 60", session=session) == [
        "q1, Stay runs"
    ]
    assert said("6 :ann :leave :lab", "7 @ex:s :a :b :c", session=session) == [
        "q1 [0, 5]  ?x = :ann  ?t = 31",
        "the prefix ex: is not declared; write PREFIX ex: <…> first",
    ]
    assert said("8 @<http://example.org/heat> :lab :is 32", session=session) == ["Stay [1, 6]  :ann :in :lab"]


def test_mistakes_in_windowed_queries_are_said() -> None:
    (wrong,) = said("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5]", "{ WINDOW :v { ?x :in ?r } }", "")
    assert "no window is declared as" in wrong


def test_turtle_without_a_time_is_background() -> None:
    session = Session([], "rdfs", "unrestricted")
    lines = (
        "SELECT ?c ?s { ?c :price ?x . ?c :sector ?s }",
        "",
        ":acme :sector :tools .",
        "1 :acme :price 10",
        ":bolt a :Firm ;",
        "      :sector :nuts .",
        "2 :bolt :price 7",
    )
    assert said(*lines, session=session) == [
        "q1 runs",
        "1 triple of background",
        "q1 [1, 1]  ?c = :acme  ?s = :tools",
        "2 triples of background",
        "q1 [2, 2]  ?c = :bolt  ?s = :nuts",
    ]
    assert said(":acme :sector", session=session)[0].startswith("this is not Turtle: ")


def test_typed_background_is_known_to_queries_with_windows_and_with_from(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("sectors.ttl", "@prefix : <http://example.org/> . :a :sector :tools .")
    monkeypatch.chdir(folder.path)
    asked = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 10] { WINDOW :w { ?x :in ?r } ?r :on :first }"
    assert said(":lab :on :first .", asked, "", "1 :ann :in :lab", ".time 20") == [
        "1 triple of background",
        "q1 runs",
        "q1 [0, 10]  ?x = :ann",
    ]
    # FROM says what the background of a query is.
    assert said(":b :sector :nuts .", *FROM, "1 :a :price 1", "2 :b :price 1")[2:] == [
        "q1 [1, 1]  ?c = :a  ?s = :tools"
    ]


def test_an_event_of_the_same_time_corrects_what_was_shown() -> None:
    asked = "SELECT ?x ?v { ?c :price ?x } EQUALSOPTIONAL { ?c :volume ?v }"
    assert said(asked, "", "1 :acme :price 10", "1 :acme :volume 500", "1 :acme :low 9", "2 :acme :price 11") == [
        "q1 runs",
        "q1 [1, 1]  ?x = 10",
        "✗ q1 [1, 1]  ?x = 10",
        "q1 [1, 1]  ?x = 10  ?v = 500",
        "q1 [2, 2]  ?x = 11",
    ]


@pytest.mark.parametrize("word", ["exit", "quit", ".exit", ".quit"])
def test_how_a_session_is_left(word: str) -> None:
    session = Session([], "rdfs", "unrestricted")
    said("ASK { ?c :down ?x }", "", word, session=session)
    assert session.done


DOCS = Path(__file__).parents[2] / "docs"
LANGUAGE = [DOCS / "language.md", DOCS / "sparql.md"]


@pytest.mark.parametrize(("query", "background", "trace", "matches"), list(traced(LANGUAGE)))
def test_every_example_of_the_language_can_be_typed(query: str, background: str, trace: str, matches: str) -> None:
    """Its query, then its background, then its trace; the matches are those that the page prints."""
    session = Session([], "rdfs", "unrestricted")
    lines = [*query.splitlines(), "", *background.splitlines(), *trace.splitlines(), "exit"]
    answers = [re.fullmatch(r"(✗ )?\w+ (.*)", line) for line in said(*lines, session=session)]
    shown = Counter[str]()
    for answer in answers:
        if answer is not None and not answer[2].endswith(("runs", "of background")):
            shown[answer[2].strip()] += -1 if answer[1] else 1
    assert +shown == Counter(line.removeprefix("timeless").strip() for line in matches.splitlines())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LimitExceeded("more than 5 solutions")])
def test_a_line_that_is_interrupted_or_goes_beyond_a_limit_is_left_out(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session([], "rdfs", "unrestricted")
    said(
        *QUERY,
        "SELECT ?c {",
        "?c :prize",
        "",
        "1 :a :price 10",
        "SELECT ?c",
        "WHERE { ?c :in ?r }",
        "",
        session=session,
    )

    def interrupted(engine: Engine) -> Matches:
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(Engine, "_matches", interrupted)
    left_out = "this was left out; all that was typed before it holds"
    assert said("3 :a :price 12", session=session) == [*filter(None, [str(error)]), left_out]
    assert said("4 :a :price 13 ; :in :r", session=session) == ["q1 [1, 4]  ?c = :a  ?x = 10", "q2 [4, 4]  ?c = :a"]
