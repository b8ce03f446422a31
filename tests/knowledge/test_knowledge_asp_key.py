"""Programs by key: each value of the key has a program of its own.

The definition is written down with programs without a key: for each value one of them, which is given the triples that
concern this value, and of which only the offers about it count.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile, event
from etalis_py.knowledge import Graph, KnowledgeError, LiveProgram, parse_program
from etalis_py.knowledge.asp_border import match
from tests.draws import examples
from tests.engine.test_background import PREFIX, rows, write

HEAD = """\
%! prefix : <urn:>
%! reads next(R, S) from R :to S
%! key K
%! slots 3
room(R) :- next(R, _).
"""
COUNTS = (
    HEAD
    + """\
%! event seen(A, K) from A :seenIn K within PT2S over slot(A), room(K)
%! event shut(K) from K :is :shut until K :is :open over room(K)
%! offers crowded(K, S) as S :relieves K
double(K) :- seen(A, K), seen(B, K), A < B.
crowded(K, S) :- double(K), next(K, S).
:- shut(K), double(K).
"""
)
SLOTTED = (
    HEAD
    + """\
%! event at(K, R) from K :enters R until K :leaves R over slot(K), room(R)
%! offers safe(K, R) as K :safeIn R
%! offers lost(K) as K :is :lost
1 { safe(K, R) : next(S, R) } 1 :- at(K, S).
:~ safe(K, R), at(K, R). [1, K]
lost(K) :- at(K, R), at(K, S), R < S.
"""
)
ACROSS = (
    HEAD
    + """\
%! event up(K, V) from V :up K over room(K), room(V)
%! event down(K, V) from K :down V within PT1S over room(K), room(V)
%! offers meets(K) as K :meets :both
%! offers everywhere(K) as K :is :a_room
meets(K) :- up(K, V), down(K, W), V != W.
everywhere(K) :- room(K).
"""
)
ROUNDS = (
    HEAD
    + """\
%! event start(K) from K :starts :here over room(K)
%! event block(K, R) from K :blocks R until K :clears R over room(K), room(R)
%! rounds 9 of step until done
%! offers far(K, R) as K :reaches R
far(K, K) :- start(K).
#program step(k).
new(R, k) :- far(_, S), next(S, R), not block(_, R).
far(K, R) :- new(R, k), start(K).
busy(k) :- new(R, k), not old(R, k).
old(R, k) :- new(R, k-1).
old(R, k) :- old(R, k-1).
done(k) :- not busy(k).
"""
)
GRAPH = Graph((f"<urn:{a}>", "<urn:to>", f"<urn:{b}>") for a, b in ("ab", "bc", "ca", "ac"))
NAMES = ("a", "b", "x", "y")
VERBS = {  # and what stands behind them
    COUNTS: {"seenIn": ("a", "b", "z"), "is": ("shut", "open", "old")},
    SLOTTED: {"enters": ("a", "b", "c", "z"), "leaves": ("a", "b", "c")},
    ACROSS: {"up": NAMES, "down": NAMES},
    ROUNDS: {"starts": ("here",), "blocks": ("a", "b", "c"), "clears": ("a", "b", "c")},
}


def n(name: str) -> str:
    return f"<urn:{name}>"


@st.composite
def streams(draw: st.DrawFn, text: str) -> list[list[tuple[str, str, str]]]:
    """The triples of each second."""
    said = st.sampled_from([(verb, thing) for verb, things in VERBS[text].items() for thing in things])
    triples = st.tuples(st.sampled_from(NAMES), said).map(lambda t: (n(t[0]), n(t[1][0]), n(t[1][1])))
    return draw(st.lists(st.lists(triples, max_size=4), max_size=12))


class OneByOne:
    """A program for each value of the key, without a key: the definition."""

    def __init__(self, text: str) -> None:
        self.keyed = parse_program(text, "rooms.lp")
        self.alone = replace(self.keyed, key="")
        self.programs: dict[str, LiveProgram] = {}

    def concerns(self, triple: tuple[str, str, str]) -> set[str]:
        found = (match(pattern, triple) for pattern in self.keyed.patterns)
        return {values["K"] for values in found if values is not None}

    def step(self, time: int, triples: list[tuple[str, str, str]]) -> tuple[set, set, int]:
        offered, without, ignored = set(), set(), 0
        for key in sorted(set().union(*map(self.concerns, triples))):
            live = self.programs.setdefault(key, LiveProgram(self.alone, GRAPH))
            own = [t for t in triples if key in self.concerns(t)]
            outcome = live.step(time, own)
            ignored += outcome.ignored
            if outcome.inconsistent:
                without.add(key)
            for declared in self.keyed.offers:
                for triple in outcome.triples:
                    values = match(declared.pattern, triple)
                    if values is not None and values["K"] == key:
                        offered.add(triple)
        return offered, without, ignored


@pytest.mark.parametrize("text", [COUNTS, SLOTTED, ACROSS, ROUNDS], ids=["counts", "slotted", "across", "rounds"])
@settings(max_examples=examples(4 / 15))
@given(data=st.data(), cut=st.integers(0, 12))
def test_each_value_of_the_key_has_a_program_of_its_own(text: str, data: st.DataObject, cut: int) -> None:
    """Also where another engine goes on with the state, and where two engines divide the keys."""
    stream = data.draw(streams(text))
    program = parse_program(text, "rooms.lp")
    whole, definition = LiveProgram(program, GRAPH), OneByOne(text)
    shares = [LiveProgram(replace(program, share=(number, 2)), GRAPH) for number in range(2)]
    for time, triples in enumerate(stream):
        if time == cut:
            other = LiveProgram(program, GRAPH)
            other.restore(whole.snapshot())
            whole = other
        offered, without, ignored = definition.step(time * 1_000_000, triples)
        outcome = whole.step(time * 1_000_000, triples)
        assert (set(outcome.triples), set(outcome.without), outcome.ignored) == (offered, without, ignored)
        assert outcome.inconsistent == bool(without)
        parts = [live.step(time * 1_000_000, triples) for live in shares]
        assert sorted(t for part in parts for t in part.triples) == sorted(offered)
        assert sorted(key for part in parts for key in part.without) == sorted(without)
        assert sum(part.ignored for part in parts) == ignored


def test_a_triple_may_begin_events_of_two_keys() -> None:
    text = HEAD + (
        "%! event left(K, V) from K :beats V over room(K), room(V)\n"
        "%! event right(K, V) from V :beats K over room(K), room(V)\n"
        "%! offers won(K) as K :is :won\n%! offers lost(K) as K :is :lost\n"
        "won(K) :- left(K, _), not right(_, _).\nlost(K) :- right(K, _), not left(_, _).\n"
    )
    live = LiveProgram(parse_program(text), GRAPH)
    outcome = live.step(1, [(n("a"), n("beats"), n("b"))])
    assert set(outcome.triples) == {(n("a"), n("is"), n("won")), (n("b"), n("is"), n("lost"))}


def test_each_key_has_its_own_slots_and_they_go_with_its_atoms() -> None:
    live = LiveProgram(parse_program(COUNTS), GRAPH)
    crowd = [(n(f"{room}{person}"), n("seenIn"), n(room)) for room in "abc" for person in range(3)]
    assert {t[2] for t in live.step(0, crowd).triples} == {n("a"), n("b"), n("c")}
    with pytest.raises(KnowledgeError, match="all 3 slots are taken"):
        live.step(1, [(n("a3"), n("seenIn"), n("a"))])
    live = LiveProgram(parse_program(SLOTTED), GRAPH)
    for person in range(100):  # each for itself, though there are three slots
        assert [t[0] for t in live.step(person, [(n(f"p{person}"), n("enters"), n("b"))]).triples] == [n(f"p{person}")]


def test_what_is_kept_for_a_key_goes_with_its_last_atom() -> None:
    live = LiveProgram(parse_program(COUNTS), GRAPH)
    for time in range(50):
        live.step(time * 10_000_000, [(n(f"s{time}"), n("seenIn"), n("abc"[time % 3])), (n("s"), n("seenIn"), n("z"))])
    assert len(live._groups) == 1
    assert live.snapshot() == [(0, [n("s49"), n("b")], 492_000_000)]


@pytest.fixture
def rooms(tmp_path: Path):
    (tmp_path / "rooms.lp").write_text(COUNTS.replace("<urn:>", "<http://example.org/>"))
    background = [write(tmp_path, "rooms.ttl", ":a :to :b . :b :to :a ."), tmp_path / "rooms.lp"]
    query = "SELECT ?k ?what { { ?what :relieves ?k } UNION { ?what <urn:etalis:inconsistentFor> ?k } }"
    return lambda: Engine(compile(PREFIX + query), background=background, journal=True)


def test_a_key_without_an_answer_set_is_told_and_stops_no_other(rooms) -> None:
    engine = rooms()
    stream = [
        (":p :seenIn :a . :q :seenIn :b", 1),
        (":q :seenIn :a . :b :is :shut", 2),
        (":p :seenIn :b", 3),
        (":r :seenIn :a", 3),
    ]
    found = [*engine.push_all(event(t, second) for t, second in stream), *engine.close()]
    assert rows(found) == [("k=a what=b", 2, 2), ("k=a what=b", 3, 3), ("k=b what=<urn:etalis:program:rooms.lp", 3, 3)]
    assert engine.counters.inconsistent == 1


def test_snapshots_and_journals_have_the_atoms_of_all_keys(rooms) -> None:
    leader, follower, third = rooms(), rooms(), rooms()
    leader.push(event(":p :seenIn :a . :q :seenIn :b", 1))
    leader.advance(1_000_000)
    third.restore(leader.snapshot())
    follower.apply_journal(leader.take_journal())
    for engine in (leader, follower, third):
        found = [*engine.push(event(":q :seenIn :a . :b :is :shut . :q :seenIn :b", 2)), *engine.close()]
        assert rows(found) == [("k=a what=b", 2, 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%! key x\n", "expected: %! key X"),
        ("%! key K\n%! key L\n", "there is a key already"),
        (
            "%! prefix : <urn:>\n%! key K\n%! offers o(K) as K :is :o\no(1).\n",
            "the program has a key but reads no events",
        ),
        (
            "%! prefix : <urn:>\n%! key K\n%! event e(K) from K :is :e\n%! offers o(X) as X :is :o\no(X) :- e(X).\n",
            r"line 4: the key K is no argument of offers o\(X\)",
        ),
        (
            "%! prefix : <urn:>\n%! key K\n%! event e(K) from K :is :e until :e :ends :now\n"
            "%! offers o(K) as K :is :o\no(X) :- e(X).\n",
            r"line 3: the key K is not in a pattern of event e\(K\)",
        ),
        (
            "%! prefix : <urn:>\n%! key K\n%! event e(X, K:0..9) from X :is K\n%! offers o(K) as K :is :o\n"
            "o(1) :- e(_,_).\n",
            r"line 3: the key K of event e\(X,K\) is an integer",
        ),
    ],
)
def test_what_a_key_cannot_be(text: str, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        parse_program(text)
