"""After any corrections the net output is the output for the corrected input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, LimitExceeded, Limits, Match, compile, event
from etalis_py.cli.main import main
from etalis_py.events import Retraction, UnexpectedRetraction
from etalis_py.kernel import revision
from etalis_py.kernel.stored import SnapshotError
from etalis_py.streams import open_sink
from tests.draws import examples
from tests.engine.judge import answers_of, difference, engine_for
from tests.oracle import Endless, Refused, Undetermined, Unstratified, evaluation, event_strategies, strategies
from tests.oracle.compare import same
from tests.oracle.drawing import Draw
from tests.oracle.strategies import Case
from tests.windows.test_networks import NETWORKS
from tests.windows.test_networks import streams as windowed_streams

SECOND = 1_000_000
LONG = 1_000 * SECOND
EXAMPLES = examples(1 / 5)
EXECUTORS = ("auto", "rows", "columns")
Make = Callable[..., Engine]


@dataclass
class Net:
    """The matches that have been reported and not taken back."""

    ids: dict[str, Match] = field(default_factory=dict)

    def take(self, matches: Any) -> None:
        for match in matches:
            if match.retracted:
                assert match.id in self.ids, f"{match} was never reported"
                del self.ids[match.id]
            else:
                assert match.id not in self.ids, f"{match} was reported already"
                self.ids[match.id] = match


@dataclass
class Corrected:
    """The input as it is after the corrections so far, by the definition; what is older than the horizon is refused."""

    horizon: int
    newest: int = -(2**63)
    events: list[Event] = field(default_factory=list)
    refused: int = 0

    def take(self, item: Event) -> None:
        retracts = isinstance(item, Retraction)
        if (retracts or item.end < self.newest) and item.end < self.newest - self.horizon:
            self.refused += 1
        elif not retracts:
            self.newest = max(self.newest, item.end)
            self.events.append(item)
        else:
            self._withdraw(item)

    def _withdraw(self, item: Event) -> None:
        def meant(e: Event) -> bool:
            return (e.start, e.end, e.stream) == (item.start, item.end, item.stream)

        there = {t for e in self.events if meant(e) for t in e.triples}
        self.refused += any(t not in there for t in item.triples)
        gone = set(item.triples)
        kept = [
            e._replace(triples=tuple(t for t in e.triples if t not in gone)) if meant(e) else e for e in self.events
        ]
        self.events = [e for e in kept if e.triples]


@st.composite
def corrected_streams(draw: Draw[Any], events: tuple[Event, ...]) -> list[Event]:
    """The events, some of them late, some withdrawn later, some of those stated again."""
    items = list(events)
    for _ in range(draw(st.integers(0, 3))):
        if items:
            late = items.pop(draw(st.integers(0, len(items) - 1)))
            items.insert(draw(st.integers(0, len(items))), late)
    for _ in range(draw(st.integers(1, 4))):
        if not items:
            break
        chosen = draw(st.integers(0, len(items) - 1))
        said = items[chosen]
        if isinstance(said, Retraction):
            continue
        gone = draw(st.sampled_from((said.triples, said.triples[:1], said.triples[-1:])))
        place = draw(st.integers(chosen, len(items)))
        items.insert(place, Retraction(said.start, said.end, gone, said.stream))
        if draw(st.booleans()):
            again = Event(said.start, said.end, draw(st.sampled_from((said.triples, *(e.triples for e in events)))))
            items.insert(draw(st.integers(place, len(items))), again._replace(stream=said.stream))
    return items


def check(case: Case, data: Any) -> None:
    """After each step the net ids are those of a new engine over the corrected input, and in the end the oracle's."""

    def make(**options: Any) -> Engine:
        return engine_for(case, **options)

    try:
        make()
    except QueryError:
        assume(False)
    net, corrected = check_any(make, case.events, data)
    try:
        expected = evaluation(case.program, tuple(in_order(corrected)), case.background, case.policy).answers
    except (Unstratified, Refused, Endless, Undetermined):
        return
    names = [output.query for output in make().rules.outputs]
    for name, actual in answers_of(net.ids.values(), names, case.program).items():
        assert same(expected[name], actual), difference(expected[name], actual)


def check_any(make: Make, events: tuple[Event, ...], data: Any) -> tuple[Net, list[Event]]:
    horizon = data.draw(st.sampled_from((LONG, LONG, 2 * SECOND)), label="horizon")
    items = data.draw(corrected_streams(events), label="items")
    with points_apart(data.draw(st.sampled_from((1, 2, revision.FEWEST)), label="events between two points")):
        return check_items(make, data, items, horizon)


def in_order(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda e: e.end)


@contextmanager
def points_apart(events: int) -> Iterator[None]:
    """Take points as often as that, whatever it costs."""
    usual = revision.FEWEST, revision.SPARE
    revision.FEWEST, revision.SPARE = events, LONG
    try:
        yield
    finally:
        revision.FEWEST, revision.SPARE = usual


def check_items(make: Make, data: Any, items: list[Event], horizon: int) -> tuple[Net, list[Event]]:
    executors = st.sampled_from(EXECUTORS)
    engine = make(revise=horizon, executor=data.draw(executors, label="executor"))
    net, corrected = Net(), Corrected(horizon)
    while items:
        size = data.draw(st.integers(1, len(items)), label="size")
        some, items = items[:size], items[size:]
        for item in some:
            corrected.take(item)
        net.take(engine.push_all(some) if size > 1 else engine.push(some[0]))
        if data.draw(st.integers(1, 5), label="restored") == 1:
            state = engine.snapshot()
            engine = make(revise=horizon, executor=data.draw(executors, label="executor after that"))
            engine.restore(state)
        assert net.ids.keys() == fresh(make, corrected.events, engine.closed_at).keys()
        assert engine.counters.late == corrected.refused
    net.take(engine.close())
    assert net.ids.keys() == fresh(make, corrected.events, None).keys()
    return net, corrected.events


def fresh(make: Make, events: list[Event], closed_at: int | None) -> dict[str, Match]:
    """What an engine that knows no corrections says of the corrected input."""
    engine = make()
    matches = [*engine.push_all(in_order(events))]
    if closed_at is None:
        matches += engine.close()
    elif closed_at > -(2**63):
        matches += engine.advance(closed_at)
    return {match.id: match for match in matches}


ANY = st.one_of(strategies.core(), strategies.negation(), strategies.policies(), strategies.several_streams())


@settings(max_examples=EXAMPLES)
@given(ANY, st.data())
def test_patterns(case: Case, data: Any) -> None:
    check(case, data)


TIMED = st.one_of(strategies.timed(), strategies.timed_policies(), strategies.timed_stratified(), strategies.paths())


@settings(max_examples=EXAMPLES)
@given(TIMED, st.data())
def test_allen_absence_and_runs(case: Case, data: Any) -> None:
    check(case, data)


@settings(max_examples=EXAMPLES)
@given(st.one_of(strategies.aggregates(), strategies.stratified(), strategies.recursion()), st.data())
def test_aggregates_and_rules(case: Case, data: Any) -> None:
    check(case, data)


@settings(max_examples=EXAMPLES)
@given(st.one_of(*(make() for make in event_strategies.ALL.values())), st.data())
def test_events_asked_one_by_one(case: Case, data: Any) -> None:
    """A withdrawal takes its triples out of every event of that interval and stream, and leaves the events whole."""
    check(case, data)


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(NETWORKS), windowed_streams, st.data())
def test_windows_and_rules_in_chains(text: str, events: list[Event], data: Any) -> None:
    program = compile(text)
    check_any(lambda **options: Engine(program, **options), tuple(events), data)


# --- small traces ----------------------------------------------------------------------------------------------

RISE = "SELECT ?c ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }"


def price(value: int, time: int, retract: bool = False) -> Event:
    return event(f":a :price {value}", time, retract=retract)


def shown(matches: Any) -> list[tuple[bool, int, int]]:
    return [(m.retracted, m["x"], m["y"]) for m in matches]


def test_a_wrong_price_is_withdrawn_and_corrected() -> None:
    engine = Engine(RISE, revise=60 * SECOND)
    assert shown(engine.push_all([price(10, 1), price(90, 2), price(12, 3), price(5, 4)])) == [
        (False, 10, 90),
        (False, 10, 12),
    ]
    assert shown(engine.push_all([price(90, 2, retract=True), price(11, 2)])) == [
        (True, 10, 90),
        (False, 10, 11),
        (False, 11, 12),
    ]
    assert (engine.counters.corrections, engine.counters.events) == (1, 4)


def test_what_is_older_than_the_horizon_stays_so_when_the_newest_event_is_withdrawn() -> None:
    engine = Engine(RISE, revise=2 * SECOND)
    engine.push_all([price(10, 19), price(10, 19, retract=True)])
    assert not engine.push_all([price(5, 7), price(6, 23)])
    assert not engine.close()
    assert [letter.end for letter in engine.dead_letters] == [7 * SECOND]
    engine = Engine(RISE, revise=2 * SECOND)
    engine.push_all([price(10, 19), price(10, 19, retract=True)])
    assert not engine.push(price(5, 7))
    assert shown([*engine.push_all([price(5, 18), price(6, 23)]), *engine.close()]) == [(False, 5, 6)]


def test_what_is_taken_back_has_the_id_of_what_was_said() -> None:
    engine = Engine(RISE, revise=60 * SECOND)
    [said] = engine.push_all([price(10, 1), price(12, 2), price(1, 3)])
    [back] = engine.push(price(10, 1, retract=True))
    assert back.id == said.id
    assert back.to_dict() == said.to_dict() | {"retracted": True}
    assert "retracted" not in said.to_dict()
    assert back != said


def test_a_late_event_within_the_horizon_corrects() -> None:
    engine = Engine(RISE, revise=5 * SECOND)
    engine.push_all([price(10, 1), price(9, 10)])
    assert shown(engine.push(price(11, 8))) == [(False, 10, 11)]
    assert shown(engine.push(price(12, 9))) == [(False, 10, 12), (False, 11, 12)]
    assert shown(engine.push(price(99, 2))) == []
    assert [e.end for e in engine.dead_letters] == [2 * SECOND]


def test_what_is_exactly_as_old_as_the_horizon_may_be_corrected() -> None:
    engine = Engine(RISE, revise=5 * SECOND)
    engine.push_all([price(10, 1), price(9, 10)])
    assert shown(engine.push(price(11, 5))) == [(False, 10, 11)]
    assert not engine.dead_letters


def test_a_correction_of_what_never_was_is_a_dead_letter() -> None:
    engine = Engine(RISE, revise=60 * SECOND)
    engine.push_all([price(10, 1), price(12, 2)])
    assert shown(engine.push(price(11, 1, retract=True))) == []
    [letter] = engine.dead_letters
    assert isinstance(letter, Retraction)
    assert engine.counters.late == 1


def test_an_event_that_ends_before_it_starts_is_an_error_among_events_in_order() -> None:
    engine = Engine("SELECT ?x { ?x :p ?y }", revise="10 s")
    first, second, third = (event(f":{name} :p 1", n) for n, name in enumerate("abc", 1))
    with pytest.raises(ValueError, match="an event starts at 3000000 and ends before, at 2000000"):
        engine.push_all([first, second._replace(start=3 * SECOND), third])
    assert [match.start for match in (*engine.push_all([]), *engine.close())] == [1, 3]


def test_without_a_horizon_a_correction_is_refused() -> None:
    for engine in (
        Engine(RISE),
        Engine("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }"),
    ):
        with pytest.raises(UnexpectedRetraction, match="Engine"):
            engine.push(price(10, 1, retract=True))


def test_windows_and_rules_that_feed_them() -> None:
    program = [
        "CONSTRUCT { ?c :rise ?y } { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }",
        "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT10S] { WINDOW :w { ?c :rise ?y } }",
    ]
    program[0] = f"REGISTER STREAM :s AS {program[0]}"
    engine, net = Engine(program, revise=60 * SECOND), Net()
    stream = [price(10, 1), price(12, 2), price(14, 3), price(1, 25)]
    net.take(engine.push_all(stream))
    net.take(engine.push(price(12, 2, retract=True)))
    net.take(engine.close())
    expected = Net()
    plain = Engine(program)
    expected.take(plain.push_all([stream[0], *stream[2:]]))
    expected.take(plain.close())
    assert net.ids.keys() == expected.ids.keys()


def test_windows_go_back_to_what_they_held() -> None:
    """What waits in a window for its time is no part of an earlier state."""
    text = "SELECT ?c FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?c :price ?y } }"
    engine = Engine(text)
    before = engine.save()
    stream = [price(1, 1), price(2, 2), price(3, 17)]
    engine.push_all(stream)
    engine.go_back(before)
    assert [m.end for m in engine.push_all([*stream[1:], price(4, 29)])] == [5, 20]


def test_the_background_as_it_was() -> None:
    query = "SELECT ?c { ?c :price ?x . ?c :in :index }"
    member = ("<http://example.org/a>", "<http://example.org/in>", "<http://example.org/index>")
    engine = Engine(query, background=[], revise=60 * SECOND)
    assert len(engine.push_all([price(1, 1), price(2, 5), price(3, 9), price(4, 10)])) == 0
    engine.update("", [member], at=4 * SECOND)
    assert [m.end for m in engine.push(price(5, 11))] == [5, 9, 10]


def test_a_lateness_puts_in_order_first() -> None:
    engine = Engine(RISE, revise=60 * SECOND, lateness=5 * SECOND)
    engine.push_all([price(10, 1), price(12, 3), price(11, 2)])
    engine.push(price(12, 3, retract=True))
    assert shown(engine.push(price(0, 30))) == []
    assert shown(engine.push(price(0, 40))) == [(False, 10, 11)]
    assert engine.counters.corrections == 0
    assert shown(engine.push(price(20, 4))) == [(False, 10, 20), (False, 11, 20)]
    assert engine.counters.corrections == 1


def test_what_still_waits_is_withdrawn_without_a_correction() -> None:
    engine = Engine(RISE, revise=60 * SECOND, lateness=5 * SECOND)
    engine.push_all([price(10, 1), price(10, 1, retract=True), price(12, 20)])
    assert shown(engine.close()) == []
    assert not engine.dead_letters


def test_what_waits_is_released_only_by_a_time_that_is_not_earlier() -> None:
    engine = Engine(RISE, revise=60 * SECOND, lateness=5 * SECOND)
    engine.push(price(12, 10))
    engine.advance(5 * SECOND)
    engine.push(price(10, 7))
    assert shown(engine.close()) == [(False, 10, 12)]
    assert engine.counters.corrections == 0


def test_the_memory_of_a_horizon_is_bounded() -> None:
    engine = Engine(RISE, revise=LONG, limits=Limits(horizon=10))
    with pytest.raises(LimitExceeded, match="revision horizon"):
        engine.push_all([price(1, t) for t in range(11)])


def test_points_bound_what_is_replayed() -> None:
    engine = Engine("SELECT ?x { ?c :price ?x FILTER (?x > 5) }", revise=4_000 * SECOND)
    engine.push_all([price(1, t) for t in range(20_000)])
    assert shown_x(engine.push(price(9, 19_990))) == [9]
    assert 0 < engine.counters.replayed < 3_000


def test_a_correction_replays_little_more_than_what_came_since() -> None:
    horizon = 8_000
    engine = Engine("SELECT ?x { ?c :price ?x FILTER (?x > 5) }", revise=horizon * SECOND)
    before = 0
    for n in range(20):
        engine.push_all([price(1, t) for t in range(1_000 * n, 1_000 * (n + 1))])
        since = (997 * n) % min(horizon, 1_000 * n + 1)
        assert shown_x(engine.push(price(9, 1_000 * (n + 1) - 1 - since))) in ([9], [])
        replayed, before = engine.counters.replayed - before, engine.counters.replayed
        assert replayed <= since + horizon // 4 + 2 * revision.FEWEST, n


def shown_x(matches: Any) -> list[int]:
    return [m["x"] for m in matches]


@pytest.mark.parametrize("format", ["jsonl", "csv", "table", "json", "trig"])
def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    query, stream, letters = tmp_path / "rise.rq", tmp_path / "ticks.jsonl", tmp_path / "letters.jsonl"
    query.write_text(RISE + "\n")
    lines = [
        {"time": 1, "triples": ":a :price 10 ."},
        {"time": 2, "triples": ":a :price 90 ."},
        {"time": 3, "triples": ":a :price 9 ."},
        {"punctuate": 3},
        {"time": 2, "triples": ":a :price 90 .", "retract": True},
        {"time": 7, "triples": ":a :price 1 .", "retract": True},
    ]
    stream.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = ["run", str(query), "--stream", str(stream), "--format", format, "--dead-letters", str(letters)]
    assert main([*run, "--revise", "1min"]) == 0
    said = capsys.readouterr()
    assert "withdrew what never was" in said.err
    assert {
        "jsonl": '"retracted":true}\n',
        "csv": "http://example.org/a,10,90,1,2,true\r\n",
        "table": "| yes\n",
        "json": "\n]}}\n",
        "trig": "<urn:etalis:retracted> true",
    }[format] in said.out
    assert format != "json" or "90" not in said.out
    assert json.loads(letters.read_text())["retract"] is True
    assert main(run) == 1
    assert "the stream withdraws" in capsys.readouterr().err


def test_a_table_shows_the_net_state(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "matches.sqlite"
    engine = Engine(RISE, revise=60 * SECOND)
    with open_sink("sqlite", path, revised=True) as sink:
        for matches in (
            engine.push_all([price(10, 1), price(90, 2), price(12, 3), price(1, 4)]),
            engine.push(price(90, 2, retract=True)),
        ):
            for match in matches:
                sink.write(match)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT x, y FROM q1").fetchall() == [(10, 12)]


def test_as_a_table() -> None:
    engine = Engine(RISE, revise=60 * SECOND)
    engine.push_all([price(10, 1), price(12, 2), price(1, 3)])
    table = engine.push_all([price(12, 2, retract=True), price(11, 2)]).to_arrow()
    assert table.select(["x", "y", "retracted"]).to_pylist() == [
        {"x": 10, "y": 12, "retracted": True},
        {"x": 10, "y": 11, "retracted": False},
    ]


def test_a_journal_beside_a_horizon_is_its_input() -> None:
    def make(journal: bool = True) -> Engine:
        return Engine(
            "SELECT ?x { ?c :price ?x . ?c :in :i }", revise=LONG, journal=journal, background=[], changes=True
        )

    member = ("<http://example.org/a>", "<http://example.org/in>", "<http://example.org/i>")
    engine, other = make(), make()
    other.restore(engine.snapshot())
    engine.push_all([price(10, 1), price(90, 3), price(12, 5)])
    engine.update("", [member], at=2 * SECOND)
    engine.push(price(90, 3, retract=True))
    other.apply_journal(engine.take_journal())
    engine.advance(5 * SECOND)
    assert engine.journal_entries == 1
    other.apply_journal(engine.take_journal())
    answers = [[m["x"] for m in (*e.push(price(7, 4)), *e.push(price(1, 9)), *e.close())] for e in (engine, other)]
    assert answers == [[7, 1]] * 2
    assert engine.counters.corrections == other.counters.corrections == 3
    with pytest.raises(SnapshotError, match="another horizon"):
        Engine(RISE, journal=True).apply_journal(make().take_journal())
