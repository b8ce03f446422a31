"""Parts of the command line that are easier to see without a process: names of streams, pictures, Ctrl-C, pacing."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path
from xml.dom import minidom

import pytest
from etalis_rules.terms import literal

from etalis_py import BrokenEngine, Engine, Match, compile, event, run
from etalis_py.cli.errors import UsageError
from etalis_py.cli.interrupt import Interrupt
from etalis_py.cli.options import speed
from etalis_py.cli.paced_steps import drive, paced
from etalis_py.cli.picture import SHOWN, Picture
from etalis_py.cli.progress import Progress
from etalis_py.cli.sources import split_name
from etalis_py.engine.driver import Driver, Step
from etalis_py.events.clock import render_datetime
from etalis_py.streams import Punctuation


@pytest.mark.parametrize(
    ("text", "name", "source"),
    [
        ("ticks.nq", "", "ticks.nq"),
        ("prices=ticks.nq", "<http://example.org/prices>", "ticks.nq"),
        ("urn:s=ticks.nq", "<urn:s>", "ticks.nq"),
        ("<urn:s?a=1>=ticks.nq", "", "<urn:s?a=1>=ticks.nq"),
        ("http://h/s=data/a=b.nq", "<http://h/s>", "data/a=b.nq"),
        ("http://h/c/?after=3", "", "http://h/c/?after=3"),
        ("data/a=b.nq", "", "data/a=b.nq"),
    ],
)
def test_a_stream_may_have_a_name(text: str, name: str, source: str) -> None:
    assert split_name(text) == (name, source)


def test_a_name_without_a_source_is_no_stream() -> None:
    with pytest.raises(UsageError, match="NAME=SOURCE"):
        split_name("prices=")


def test_speeds() -> None:
    assert (speed("10x"), speed("0.5x"), speed("real"), speed("max")) == (10.0, 0.5, 1.0, None)
    for text in ("10", "0x", "-1x", "nanx", "x", "fast"):
        with pytest.raises(argparse.ArgumentTypeError, match="a speed is 10x"):
            speed(text)


def test_pacing_waits_as_the_stream_does_and_closes_what_is_over() -> None:
    began = time.monotonic()
    items = list(paced([event(":a :p 1", 1), event(":a :p 1", 1), event(":a :p 2", 3)], 10.0))
    assert time.monotonic() - began > 0.15
    assert [type(item).__name__ for item in items] == ["Event", "Event", "Punctuation", "Event"]
    assert items[2] == Punctuation(2_999_999)


def test_control_c_is_heard_after_what_must_not_be_cut() -> None:
    steps = []
    with Interrupt() as interrupt:
        with interrupt.deferred():
            signal.raise_signal(signal.SIGINT)
            steps.append("done")
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt), interrupt.deferred():
            signal.raise_signal(signal.SIGINT)  # the second one waits for nothing
    assert steps == ["done"]


def test_control_c_ends_a_wait_at_once() -> None:
    with Interrupt() as interrupt, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert interrupt.asked


def test_a_timeline_keeps_the_first_matches_and_counts_the_rest(tmp_path: Path) -> None:
    engine = Engine(compile("SELECT ?x ?y WHERE { ?c :p ?x } SEQ { ?c :p ?y }"), explain=True)
    timeline = Picture(tmp_path / "t.svg")
    for match in engine.push_all(event(f":a :p {i}", i) for i in range(12)) + engine.close():
        timeline.add(match)
    assert (timeline.count, len(timeline.matches)) == (66, SHOWN)
    bar, events = timeline.matches[0]
    assert (bar.label, bar.start, bar.end) == ("q1: x=0 y=1", 0, 1)
    assert [(e.lane, e.label, e.end) for e in events] == [("p", "a 0", 0), ("p", "a 1", 1)]
    timeline.draw()
    assert "<svg" in (tmp_path / "t.svg").read_text()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (r"a $\bad{ of $5", r"a $\bad{ of $5"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("two\nlines", "two⏎lines"),
        ("<script>", "&lt;script&gt;"),
    ],
    ids=["a formula", "control characters", "lines", "markup"],
)
def test_a_timeline_shows_any_text(tmp_path: Path, text: str, label: str) -> None:
    """A dollar begins a formula in matplotlib, and XML has no control characters."""
    timeline = Picture(tmp_path / "t.svg")
    for match in run("SELECT ?x { ?c :p ?x }", [event(f":c :p {literal(text)}", 1)], explain=True):
        timeline.add(match)
    timeline.draw()
    picture = (tmp_path / "t.svg").read_text()
    minidom.parseString(picture)
    assert f"x={label} -->" in picture


@pytest.mark.parametrize("years", [("9998", "12000"), ("-0044", "0001"), ("2025", "2026")])
def test_a_timeline_shows_years_that_datetimes_of_python_do_not_have(tmp_path: Path, years: tuple[str, str]) -> None:
    engine = Engine("SELECT ?c { { ?c :p 0 } SEQ { ?c :p 1 } }", render=render_datetime, explain=True)
    times = [f"{year}-01-01T00:00:00Z" for year in years]
    timeline = Picture(tmp_path / "t.svg")
    for match in engine.push_all(event(f":c :p {n}", at) for n, at in enumerate(times)) + engine.close():
        timeline.add(match)
    assert timeline.count == 1
    timeline.draw()
    picture = (tmp_path / "t.svg").read_text()
    assert ("<!-- year -->" in picture) == (years[0] != "2025")


def test_a_timeline_strikes_out_what_is_taken_back(tmp_path: Path) -> None:
    engine = Engine("SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } }", explain=True, revise=10**9)
    wrong = event(":a :p 2", 2)
    timeline = Picture(tmp_path / "t.svg")
    states = []
    for items in (
        [event(":a :p 1", 1), wrong, event(":b :p 3", 3)],
        [back := event(":a :p 2", 2, retract=True)],
        [wrong],
    ):
        for match in engine.push_all(items):
            timeline.add(match)
        states.append((timeline.count, sorted(timeline.retracted)))
    assert states == [(1, []), (0, [0]), (1, [])]
    timeline.add(next(iter(engine.push(back))))
    timeline.draw()
    assert (tmp_path / "t.svg").stat().st_size > 1000


def test_a_timeline_without_matches_says_so(tmp_path: Path) -> None:
    Picture(tmp_path / "t.png").draw()
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"


def test_a_second_ctrl_c_within_a_step_ends_the_run_without_an_answer() -> None:
    """What an interrupted engine would report at the end of the stream is unknown."""
    engine = Engine("SELECT ?c { ?c :p ?x } SEQ NOT { ?c :r ?z } SEQ { ?c :q ?y }")
    matches: list[Match] = []

    def take(step: Step) -> None:
        matches.extend(step.matches)

    def stopping(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    engine.push(event(":c :p 1", 1))
    engine._run_instant = stopping  # type: ignore[method-assign]
    with Interrupt() as interrupt, pytest.raises(KeyboardInterrupt):
        drive(Driver(engine, [event(":c :q 1", 2)], live=True, interrupt=interrupt), take)
    assert matches == []
    with pytest.raises(BrokenEngine, match="KeyboardInterrupt"):
        engine.close()


def test_a_second_ctrl_c_while_the_last_matches_are_taken_ends_the_run() -> None:
    """The engine is closed by then, so there is nothing else that it could be asked."""

    def take(step: Step) -> None:
        if step.ended:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with Interrupt() as interrupt, pytest.raises(KeyboardInterrupt):
        drive(Driver(Engine("SELECT ?x { ?c :p ?x }"), [event(":c :p 1", 1)], interrupt=interrupt), take, interrupt)


def test_the_summary_of_a_run_that_read_nothing_says_so() -> None:
    engine = Engine("SELECT ?x { ?c :p ?x }")
    assert Progress(engine, lambda: "", shown=False).summary().endswith("0 goals left, no event yet")
    assert Progress(engine, lambda: "5", shown=False).summary().endswith("event time 5")
