"""Members that withdraw others, or come late, in a program of the server."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from etalis_py.cli.server_programs import EngineRunner, Runners
from etalis_py.containers import withdrawals
from etalis_py.containers.graphs import Base
from etalis_py.containers.match_graphs import MemberNames
from etalis_py.containers.messages import Message, Push, Step
from etalis_py.containers.runners import MatchLike
from etalis_py.containers.transaction import StoredMember
from etalis_py.containers.withdrawals import REMEMBERED, Remembered
from etalis_py.containers.worker import _Program
from etalis_py.events import Event, Retraction

SECOND = 1_000_000
SITE = "http://site/"
PAIRS = "SELECT ?v ?w WHERE { { ?x <urn:v> ?v } SEQ { ?y <urn:v> ?w } FILTER (?v + 1 = ?w) }"


def member(number: int, text: str, at: int | None = None) -> StoredMember:
    body = text.format(me=f"<{SITE}s/{number}>").encode()
    return StoredMember(number, 1, "/s/", str(number), (number if at is None else at) * SECOND, 1, 1, body)


def reading(number: int) -> StoredMember:
    return member(number, f'{{me}} <urn:v> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .')


def withdrawal(number: int, of: int) -> StoredMember:
    return member(number, f"{{me}} <urn:etalis:retracts> <{SITE}s/{of}> .")


@pytest.fixture(autouse=True)
def unlimited() -> Iterator[None]:
    """Take back what a program allows its process, which here is the one that runs all tests."""
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


class Sizes(MemberNames):
    """Notes how many matches it remembers."""

    most = 0

    def of(self, match: MatchLike) -> tuple[str, str]:
        found = super().of(match)
        Sizes.most = max(Sizes.most, len(self.state()))
        return found


def program(revise: int, output: str = "") -> tuple[EngineRunner, Callable[[list[StoredMember]], int]]:
    """A program, and what gives it members; that returns how many matches it has reported."""
    runner = Runners(None, "unrestricted", revise)(PAIRS, f"<{SITE}s/>")
    work = _Program(runner, Base(SITE, SITE))

    def give(members: list[StoredMember]) -> int:
        sent: list[Message] = []
        taken = 0
        while taken < len(members):
            work.step(Push(output, "", "", 10_000, 10_000, 10.0, 0, members[taken:]), sent.append)
            taken = sum(step.taken for step in sent if isinstance(step, Step))
        return sum(step.found for step in sent if isinstance(step, Step))

    return runner, give


def test_a_backlog_of_withdrawals_is_one_replay() -> None:
    runner, give = program(3_600 * SECOND)
    give([reading(number) for number in range(400)])
    backlog = [withdrawal(400 + number, of=number) for number in range(100, 300)]
    assert give(backlog) == 201, "the pairs of what was withdrawn are taken back"
    assert runner._engine.counters.corrections == 1


def test_matches_that_were_taken_back_are_forgotten_when_they_can_change_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each reading is withdrawn four seconds later; only those within the horizon may come back under another name."""
    monkeypatch.setattr("etalis_py.containers.worker.MemberNames", Sizes)
    _, give = program(10 * SECOND, "/out/")
    for number in range(2, 200):
        before = f"{{me}} <urn:etalis:retracts> <{SITE}s/{number - 4}> ."
        give([reading(number), *([member(1000 + number, before, number)] if number > 5 else [])])
    assert 5 <= Sizes.most <= 40


def test_withdrawals_between_other_members_are_one_replay_too() -> None:
    runner, give = program(3_600 * SECOND)
    give([reading(number) for number in range(100)])
    mixed = [one for n in range(100, 150) for one in (reading(2 * n), withdrawal(2 * n + 1, of=n - 50))]
    assert give(mixed) == 49, "the last pair was not reported before"
    assert runner._engine.counters.corrections == 1


def test_a_member_may_be_withdrawn_by_one_of_the_same_backlog() -> None:
    _, give = program(3_600 * SECOND)
    assert give([reading(1), reading(2), withdrawal(3, of=2), reading(4), reading(5), reading(6)]) == 1, "4 and 5"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_remembered_is_the_last_events_that_were_not_withdrawn(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawals, "REMEMBERED", 50)
    draw, remembered, kept = Random(seed), Remembered(), []
    for number in range(500):
        graph = f"<urn:g{number if draw.random() < 0.9 else draw.randrange(number + 1)}>"  # some names come twice
        if draw.random() < 0.1:
            names = {f"<urn:g{draw.randrange(number + 1)}>" for _ in range(draw.randrange(1, 4))}
            event = Event(number, number, tuple((graph, "<urn:etalis:retracts>", name) for name in names), "", graph)
            gone = [other for other in kept if other.graph in names]
            assert remembered.take(event) == [Retraction._make(one) for one in gone or [event]]
            kept = [other for other in kept if other.graph not in names]
        else:
            event = Event(number, number, (("<urn:s>", "<urn:p>", "<urn:o>"),), "", graph)
            assert remembered.take(event) == [event]
            kept = [*kept, event][-50:]
    assert remembered.events() == kept


def test_a_graph_that_withdraws_ten_thousand_costs_a_moment() -> None:
    remembered = Remembered()
    triples = [("<urn:s>", "<urn:p>", "<urn:o>")]
    for number in range(REMEMBERED):
        remembered.take(Event(number, number, tuple(triples), "", f"<urn:g{number}>"))
    names = reversed(range(REMEMBERED))
    event = Event(0, 0, tuple(("<urn:w>", "<urn:etalis:retracts>", f"<urn:g{n}>") for n in names), "", "<urn:w>")
    begin = time.thread_time()
    assert len(remembered.take(event)) == REMEMBERED
    assert time.thread_time() - begin < 1
