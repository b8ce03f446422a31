"""Answer-set programs that read events: what they offer, and when; snapshots and journals of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from etalis_py import Engine, compile, event
from etalis_py.knowledge.asp_interface import INCONSISTENT
from tests.engine.test_background import PREFIX, rows, write

ALARMS = """\
%! prefix : <http://example.org/>
%! reads next(R, S) from R :nextTo S
%! event alarm(A, R) from A :alarmIn R within PT10S over slot(A), room(R)
%! slots 4
%! offers risk(R) as R a :AtRisk
room(R) :- next(R,_).
double(R) :- alarm(A,R), alarm(B,R), A < B.
risk(S) :- double(R), next(R,S).
"""
ROOMS = ":r1 :nextTo :r2 . :r2 :nextTo :r3 . :r3 :nextTo :r1 ."


@pytest.fixture
def alarms(tmp_path: Path):
    (tmp_path / "alarms.lp").write_text(ALARMS)
    background = [write(tmp_path, "rooms.ttl", ROOMS), tmp_path / "alarms.lp"]
    return lambda query="SELECT ?r {?r a :AtRisk}", **options: Engine(
        compile(PREFIX + query), background=background, **options
    )


def test_what_a_program_offers_occurs_at_the_instant_that_it_reads(alarms):
    engine = alarms()
    stream = [(":s1 :alarmIn :r1", 1), (":s2 :alarmIn :r1", 5), (":s3 :alarmIn :r3", 9), (":s4 :alarmIn :r3", 30)]
    found = [*engine.push_all(event(t, n) for t, n in stream), *engine.close()]
    # At 9 the two alarms of room 1 still count; at 30 all are over.
    assert rows(found) == [("r=r2", 5, 5), ("r=r2", 9, 9)]


def test_what_a_program_does_not_read_changes_nothing(alarms):
    engine = alarms()
    stream = [(":s1 :alarmIn :r1", 1), (":s2 :alarmIn :r1", 5), (":x :other :y", 6), (":x :other :z", 7)]
    assert rows([*engine.push_all(event(t, n) for t, n in stream), *engine.close()]) == [("r=r2", 5, 5)]


def test_offered_triples_join_events_and_derive(alarms):
    engine = alarms("SELECT ?r ?w {{?w :watches ?r} SEQ {?r a :AtRisk}}")
    stream = [(":ann :watches :r2", 1), (":s1 :alarmIn :r1", 2), (":s2 :alarmIn :r1", 3)]
    assert rows([*engine.push_all(event(t, n) for t, n in stream), *engine.close()]) == [("r=r2 w=ann", 1, 3)]


def test_events_outside_what_a_program_allows_are_counted(alarms):
    engine = alarms()
    engine.push(event(":s1 :alarmIn :nowhere", 1))
    engine.close()
    assert engine.counters.ignored == 1


def test_a_snapshot_has_the_events_that_still_count(alarms):
    first, second = alarms(), alarms()
    first.push(event(":s1 :alarmIn :r1", 1))
    first.advance(1_000_000)
    second.restore(first.snapshot())
    assert rows([*second.push(event(":s2 :alarmIn :r1", 5)), *second.close()]) == [("r=r2", 5, 5)]


def test_journals_tell_what_became_true_and_what_ended(tmp_path):
    (tmp_path / "shut.lp").write_text(
        "%! prefix : <http://example.org/>\n%! event shut(X) from X :is :shut until X :is :open over slot(X)\n"
        "%! event asks(X) from X :asks :it within PT5S over slot(X)\n%! slots 100\n"
        "%! offers both(X, Y) as X :sees Y\nboth(X,Y) :- asks(X), shut(Y).\n"
    )

    def engine():
        query = compile(PREFIX + "SELECT ?x ?y {?x :sees ?y}")
        return Engine(query, background=[tmp_path / "shut.lp"], journal=True)

    leader, follower = engine(), engine()
    sizes = []
    for n in range(1, 41):
        leader.push(event(f":d{n:02} :is :shut", n))
        leader.advance(n * 1_000_000)
        journal = leader.take_journal()
        sizes.append(len(journal))
        follower.apply_journal(journal)
    assert max(sizes) <= min(sizes) + 8
    for n in range(3, 41):
        leader.push(event(f":d{n:02} :is :open", 50 + n))
    leader.push(event(":a :asks :it . :d90 :is :shut", 92))
    leader.push(event(":b :asks :it", 93))
    leader.push(event(":d02 :is :open . :a :asks :it", 94))
    leader.advance(94_000_000)
    snapshot = leader.snapshot()
    follower.apply_journal(leader.take_journal())
    third = engine()
    third.restore(snapshot)
    leader.push(event(":d90 :is :open", 95))
    leader.advance(95_000_000)
    journal = leader.take_journal()
    for other in (follower, third):
        other.apply_journal(journal)
    expected = [("x=a y=d01", 99, 99), ("x=a y=d99", 99, 99)]  # b asked more than five seconds before
    for any_engine in (leader, follower, third):
        assert rows([*any_engine.push(event(":d99 :is :shut", 99)), *any_engine.close()]) == expected


def test_a_new_version_of_the_background_is_read(alarms):
    engine = alarms(changes=True)
    engine.push(event(":s1 :alarmIn :r1", 1))
    r = "<http://example.org/{}>".format
    engine.update(add=[(r("r1"), r("nextTo"), r("r9"))])
    found = [*engine.push(event(":s2 :alarmIn :r1", 5)), *engine.close()]
    assert rows(found) == [("r=r2", 5, 5), ("r=r9", 5, 5)]


def test_a_program_says_nothing_at_a_triple_that_it_does_not_read(tmp_path):
    """Another triple of a predicate that it reads is none of its events; one that says an event again is."""
    (tmp_path / "on.lp").write_text(
        "%! prefix : <http://example.org/>\n%! event on(X) from X :is :on until X :is :off over slot(X)\n%! slots 3\n"
        "%! offers lit(X) as X :lights :up\nlit(X) :- on(X).\n"
    )
    engine = Engine(compile(PREFIX + "SELECT ?x { ?x :lights :up }"), background=[tmp_path / "on.lp"])
    stream = [(":a :is :on", 1), (":b :is :old", 2), (":a :is :on", 3), (":b :is :off", 4), (":a :is :off", 5)]
    found = [*engine.push_all(event(t, n) for t, n in stream), *engine.close()]
    assert rows(found) == [("x=a", 1, 1), ("x=a", 3, 3), ("x=a", 4, 4)]


def test_a_program_without_an_answer_set_is_an_event_and_counted(tmp_path):
    (tmp_path / "one.lp").write_text(
        "%! prefix : <http://example.org/>\n%! event on(X) from X :is :on until X :is :off over slot(X)\n%! slots 3\n"
        "%! offers only(X) as X :is :alone\nonly(X) :- on(X).\n:- on(X), on(Y), X < Y.\n"
    )
    query = f"SELECT ?x ?what {{ {{ ?x :is :alone BIND('alone' AS ?what) }} UNION {{ ?x a {INCONSISTENT} }} }}"
    engine = Engine(compile(PREFIX + query), background=[tmp_path / "one.lp"])
    stream = [(":a :is :on", 1), (":b :is :on", 2), (":a :is :off", 3)]
    found = [*engine.push_all(event(t, n) for t, n in stream), *engine.close()]
    assert rows(found) == [
        ('what="alone" x=a', 1, 1),
        ('what="alone" x=b', 3, 3),
        ("x=<urn:etalis:program:one.lp", 2, 2),
    ]
    assert engine.counters.inconsistent == 1


ON = "%! event on(X) from X :is :on until X :is :off over slot(X)\n"
LEVEL = "%! event level(X, N:0..9) from X :level N within PT5S over slot(X)\n"
ROUNDS = "%! rounds 3 of look until done\n#program look(k).\ndone(k).\nhigh(X) :- level(X,5).\n"


@pytest.mark.parametrize(
    ("lines", "stream", "found"),
    [
        (  # an atom of two declarations
            f"{ON}%! event on(X) from X :rings :now within PT9S over slot(X)\n%! offers on(X) as X :seen :here\n",
            [":a :is :on", ":a :rings :now", ":a :is :off"],
            [("x=a", 1, 1), ("x=a", 4, 4), ("x=a", 7, 7)],
        ),
        (  # equal integers
            f"{LEVEL}%! offers high(X) as X :seen :here\nhigh(X) :- level(X,5).\n",
            [":a :level 5", ":a :level 05", ":a :level 7", ":a :level 7"],
            [("x=a", 1, 1), ("x=a", 4, 4), ("x=a", 7, 7)],
        ),
        (  # the same in rounds
            f"{LEVEL}%! offers high(X) as X :seen :here\n{ROUNDS}",
            [":a :level 5", ":a :level 05", ":a :level 7", ":a :level 7"],
            [("x=a", 1, 1), ("x=a", 4, 4), ("x=a", 7, 7)],
        ),
        (  # an atom that rules derive, too
            f"{ON}%! event ill(X) from X :is :ill over slot(X)\n%! offers on(X) as X :seen :here\non(X) :- ill(X).\n",
            [":a :is :on", ":b :is :ill", ":a :is :off"],
            [("x=a", 1, 1), ("x=a", 4, 4), ("x=b", 4, 4)],
        ),
        (  # an atom that the background has, too
            "%! reads on(X) from X :is :on\n%! event on(X) from X :is :set until X :is :off over known(X)\n"
            "%! event asks(X) from X :asks :it over known(X)\n%! offers both(X) as X :seen :here\n"
            "both(X) :- on(X), asks(X).\n%! reads at(X) from X :at :home\n",
            [":a :is :set", ":b :is :set", ":a :asks :it . :b :asks :it", ":b :is :off . :b :asks :it"],
            [("x=a", 7, 7), ("x=b", 7, 7)],
        ),
    ],
)
def test_an_atom_is_true_while_anything_makes_it_true(lines, stream, found, tmp_path):
    (tmp_path / "p.lp").write_text(f"%! prefix : <http://example.org/>\n%! slots 5\n{lines}")
    background = [write(tmp_path, "known.ttl", ":a :is :on ; :at :home . :b :at :home ."), tmp_path / "p.lp"]
    engine = Engine(compile(PREFIX + "SELECT ?x { ?x :seen :here }"), background=background)
    events = [event(text, 1 + 3 * n) for n, text in enumerate(stream)]
    assert rows([*engine.push_all(events), *engine.close()]) == found
    assert engine.counters.ignored == 0
