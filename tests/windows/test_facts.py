"""Facts: SINCE, TILL, CURRENT and EVERY of TEF-SPARQL, beside windows and rules."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile
from etalis_py.events import Event
from tests.draws import examples
from tests.windows.small import EX, SECOND, evaluations, item, run, show

FACT = "CONSTRUCT FACT Stay { ?who :in ?room } (UNION (SINCE ?who :enter ?room) (TILL ?who :leave ?room)) "
WHERE = "SELECT ?who ?room REPORT PERIODIC PT1S WHERE { CURRENT { ?who :in ?room } }"


def moves(*seen: str) -> list[Event]:
    """``3 axel enter red``: one item for each line."""
    return [item(int(t), f":{s} :{p} :{o}") for t, s, p, o in map(str.split, seen)]


def test_entering_twice_is_being_there_once() -> None:
    stream = moves("1 a enter r", "2 a enter r", "5 a leave r", "6 a leave r", "7 a enter r", "9 a leave r")
    assert run(FACT, stream) == ["a in r @[1, 5]", "a in r @[7, 9]"]


def test_who_leaves_and_enters_at_once_is_there() -> None:
    stream = [*moves("1 a enter r"), item(4, ":a :leave :r . :a :enter :r"), *moves("6 a leave r")]
    assert run(FACT, stream) == ["a in r @[1, 4]", "a in r @[4, 6]"]


def test_what_ends_has_held_since_an_earlier_instant() -> None:
    assert run(FACT, [item(3, ":a :enter :r . :a :leave :r")]) == []
    assert evaluations(FACT + WHERE, [item(3, ":a :enter :r . :a :leave :r")])[-1] == (3, ["room=r who=a"])


def test_an_interval_reaches_from_the_start_of_since_to_the_end_of_till() -> None:
    stream = [item((1, 2), ":a :enter :r"), item((4, 7), ":a :leave :r")]
    assert run(FACT, stream) == ["a in r @[1, 7]"]


def test_till_may_say_less_than_since() -> None:
    """Closing time: everybody leaves the room; logging out: one leaves every room."""
    text = """CONSTRUCT FACT Stay { ?who :in ?room }
        (UNION (SINCE ?who :enter ?room) (TILL :door :closes ?room) (TILL ?who :is :out) (TILL :all :is :out))"""
    stream = moves("1 a enter r", "1 b enter r", "1 a enter s", "1 c enter s", "2 door closes r")
    stream += moves("3 a is out", "4 b enter r", "5 all is out")
    assert run(text, stream) == [
        "a in r @[1, 2]",
        "b in r @[1, 2]",
        "a in s @[1, 3]",
        "c in s @[1, 5]",
        "b in r @[4, 5]",
    ]


def test_only_the_variables_of_the_fact_tell_facts_apart() -> None:
    """Two badges: without the badge in the fact any of them ends the visit; with it the one that began it."""
    text = """CONSTRUCT FACT Visit { ?who :in :house }
        (UNION (SINCE ?who :gets ?badge) (TILL { ?who :gives ?badge }))"""
    stream = moves("1 a gets b1", "2 a gets b2", "4 a gives b2", "6 a gives b1")
    assert run(text, stream) == ["a in house @[1, 4]"]
    assert run(text.replace(":in :house", ":inWith ?badge"), stream) == ["a inWith b2 @[2, 4]", "a inWith b1 @[1, 6]"]


def test_filters_and_several_triples_in_braces() -> None:
    text = """CONSTRUCT FACT Hot { ?s :is :hot }
        (UNION (SINCE { ?o :of ?s ; :value ?v FILTER(?v > 30) }) (TILL { ?o :of ?s ; :value ?v FILTER(?v < 25) }))"""
    values = ((1, 20), (2, 31), (3, 27), (4, 40), (5, 24), (6, 31))
    assert run(text, [item(t, f":o{t} :of :s1 ; :value {v}") for t, v in values]) == ["s1 is hot @[2, 5]"]


def test_facts_are_occurrences_for_rules_and_windows() -> None:
    """They re-enter the default stream, or the stream that REGISTER STREAM names."""
    text = f"""{FACT}
        REGISTER QUERY met AS SELECT ?room {{ ?x :in ?room }} EQUALS {{ ?y :in ?room }} FILTER(?x != ?y)
        REGISTER STREAM :visits AS CONSTRUCT FACT {{ ?who :visited ?room }}
            (UNION (SINCE ?who :enter ?room) (TILL ?who :leave ?room))
        REGISTER QUERY counts AS SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :visits [RANGE 10]
            {{ WINDOW :w {{ ?x :visited ?r }} }}"""
    stream = moves("1 a enter r", "1 b enter r", "2 c enter r", "4 a leave r", "4 b leave r", "5 c leave r")
    engine = Engine(text)
    found = [*engine.push_all(stream), *engine.close()]
    assert [show(m) for m in found if m.query == "met"] == ["room=r @[1, 4]"] * 2
    assert [show(m) for m in found if m.query == "counts"] == ["n=3 @[0, 10]"]


def test_facts_of_what_rules_and_windows_make() -> None:
    """A rule says who entered; windows say which rooms are full, a fact since when."""
    text = """
        CONSTRUCT { ?who :enter ?room } { ?who :at ?room } SEQ { ?who :badge ?room }
        CONSTRUCT FACT Stay { ?who :in ?room } (UNION (SINCE ?who :enter ?room) (TILL ?who :leave ?room))
        REGISTER STREAM :loads AS CONSTRUCT { ?room :load ?n } FROM NAMED WINDOW :w ON :s [RANGE 1]
            REPORT PERIODIC PT2S
            { { SELECT ?room (COUNT(*) AS ?n) { CURRENT { ?who :in ?room } } GROUP BY ?room } }
        CONSTRUCT FACT Full { ?room :is :full } (UNION (SINCE { ?room :load ?n FILTER(?n > 1) })
            (TILL { ?room :load ?n FILTER(?n < 2) }))"""
    stream = moves("1 a at r", "2 b at r", "3 a badge r", "4 b badge r", "7 a leave r", "9 b leave r")
    engine = Engine(text)
    found = [show(m) for m in [*engine.push_all(stream), *engine.close()]]
    assert [f for f in found if " in " in f] == ["a in r @[1, 7]", "b in r @[2, 9]"]
    assert [f for f in found if "full" in f] == ["r is full @[4, 8]"]


def test_current_beside_windows_and_stored_graphs() -> None:
    query = """SELECT ?who ?t FROM NAMED WINDOW :w ON :s [RANGE 5]
        { WINDOW :w { ?room :temperature ?t FILTER(?t > 30) } CURRENT { ?who :in ?room } }"""
    stream = [*moves("1 a enter r", "2 b enter s", "3 a leave r", "4 c enter r"), item(4, ":r :temperature 31")]
    assert run(FACT + query, stream) == ["a in r @[1, 3]", "t=31 who=c @[0, 5]"]


def test_a_report_on_content_change_hears_of_beginnings_and_ends() -> None:
    query = "SELECT ISTREAM ?who WHERE { CURRENT { ?who :in :r } }"
    stream = moves("1 a enter r", "2 b enter r", "3 x likes y", "4 a leave r", "5 a enter r")
    found = [row for row in run(FACT + query, stream) if " in " not in row]
    assert found == ["who=a @[1, 1]", "who=b @[1, 2]", "who=a @[2, 5]"]
    away = [row for row in run(FACT + query.replace("ISTREAM", "DSTREAM"), stream) if " in " not in row]
    assert away == ["who=a @[2, 4]"]


def test_without_aggregate() -> None:
    text = FACT + 'SELECT ?who AS WHO (WHERE (CURRENT ?who :in :r) EVERY "PT2S"^^xsd:duration)'
    assert [r for r in run(text, moves("1 a enter r", "3 b enter r")) if "WHO" in r] == [
        "WHO=a @[1, 2]",
        "WHO=a @[1, 4]",
        "WHO=b @[1, 4]",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHERE, "no fact of the program makes such a triple"),
        (FACT + WHERE.replace(":in ", ":isIn "), "no fact of the program makes such a triple"),
        (FACT.replace("?who :in", "?other :in"), r"\?other of the fact has no value in this SINCE"),
        (FACT.replace("{ ?who :in ?room }", "{ [] :in ?room }"), "without blank nodes"),
        (FACT.replace("(TILL ?who :leave ?room)", ""), "the fact has no TILL"),
        (FACT.replace("?who :leave ?room", "{ ?who :leave ?room MATCH { {} } }"), "in one stream item"),
        (FACT.replace("UNION ", ""), "unexpected .*; expected UNION"),
        (FACT.replace("TILL", "UNTIL"), "unexpected 'UNTIL'; expected SINCE or TILL"),
        (FACT + "SELECT ?a AS A (COUNT ?a WHERE (CURRENT ?a :in ?b) EVERY PT3S)", "expected WHERE or AGGREGATE"),
        (FACT + "SELECT ?who { CURRENT { WINDOW :w { ?who :in ?r } } }", "a pattern over facts alone"),
        (FACT + "SELECT ?a AS A (AGGREGATE ?b WHERE (CURRENT ?a :in ?b) EVERY PT3S)", "not among what AGGREGATE makes"),
        (
            "CONSTRUCT FACT { ?x :in ?y } (UNION (SINCE ?x :in ?y) (TILL ?x :leave ?y))",
            "feed one another in a circle",
        ),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        compile(text)
    assert caught.value.diagnostics[0].hint


def test_explain_and_why() -> None:
    program = compile(FACT + WHERE)
    assert program.explain().windows.splitlines() == [
        "Stay: a fact for each ?room, ?who, from a SINCE until the next TILL",
        "q2: RSTREAM of SELECT ?who ?room",
        "  window: what holds now of Stay",
        "  evaluated every PT1S",
        "  each evaluation looks at the whole content",
    ]
    engine = Engine(program)
    (fact,) = [m for m in [*engine.push_all(moves("1 a enter r", "3 a leave r")), *engine.close()] if m.query == "Stay"]
    assert str(fact.why()) == "Stay held from the SINCE that began at 1 until the TILL that ended at 3"
    assert fact.to_dict()["start"] == 1


stays = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from("ab"), st.sampled_from(["enter", "leave"]), st.sampled_from("rs")),
    max_size=14,
    unique=True,
).map(sorted)


@settings(max_examples=examples(1))
@given(stays, st.integers(0, 14))
def test_facts_are_their_definition(seen: list[tuple[int, str, str, str]], cut: int) -> None:
    """A fact holds in (t, u] when there is an entering at t and no leaving after t and before u; the rows say the
    longest such times, and CURRENT what holds at each second.  A snapshot anywhere changes nothing."""

    def holds(who: str, room: str, t: int) -> bool:
        entered = [x for x, *move in seen if x <= t and move == [who, "enter", room]]
        left = [x for x, *move in seen if x <= t and move == [who, "leave", room]]
        return bool(entered) and (not left or max(entered) >= max(left))

    stream = [item(t, f":{who} :{what} :{room}") for t, who, what, room in seen]
    first, second = Engine(FACT + WHERE), Engine(FACT + WHERE)
    found = list(first.push_all(stream[:cut]))
    second.restore(first.snapshot())
    found += [*second.push_all(stream[cut:]), *second.close()]
    now: dict[int, set[tuple[str, str]]] = {}
    ended: list[tuple[str, str, int, int]] = []
    for m in found:
        if m.query == "Stay":
            ((who, _, room),) = m.triples
            ended.append((who, room, m.start, m.end))
        else:
            now.setdefault(m.end, set()).add((m.bindings["who"], m.bindings["room"]))
    last = max((t for t, *_ in seen), default=0)
    first_time = min((t for t, *_ in seen), default=0)
    for t in range(first_time, last + 1):
        expected = {(f"<{EX}{a}>", f"<{EX}{r}>") for a in "ab" for r in "rs" if holds(a, r, t)}
        assert now.get(t, set()) == expected
    expected_rows = []
    for a in "ab":
        for r in "rs":
            since = None
            for t in range(last + 1):
                left = (t, a, "leave", r) in seen
                if since is not None and left:
                    expected_rows.append((f"<{EX}{a}>", f"<{EX}{r}>", since, t))
                    since = None
                if since is None and (t, a, "enter", r) in seen:
                    since = t
    assert sorted(ended) == sorted(expected_rows)


def test_state_is_what_holds() -> None:
    engine = Engine(FACT)
    for t in range(1, 2000, 2):
        engine.push(item(t, f":p{t % 7} :enter :r"))
        engine.push(item(t + 1, f":p{t % 7} :leave :r"))
    assert engine.count().items <= 2
    engine.advance(3000 * SECOND)
    assert engine.count().items == 0
    for t in range(3001, 4000):
        engine.push(item(t, ":x :likes :y"))
    engine.advance(4000 * SECOND)
    assert engine.count().items == 0
