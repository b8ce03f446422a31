"""Interrupts the steps of engines between two instructions, and looks whether an answer is ever another.

``python -m tests.kernel.interrupting 2000`` draws as many interrupts as that.
"""

from __future__ import annotations

import dis
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import etalis_py
from etalis_py import BrokenEngine, Engine, Event, compile, event, garbage
from etalis_py.engine.inputs import columns_of
from etalis_py.events import Retraction
from etalis_py.kernel.kernel import Kernel
from etalis_py.kernel.matches import Matches
from etalis_py.kernel.stored import SnapshotError
from etalis_py.streams.columns.flat_form import batch_of

SECOND = 1_000_000
Step = Callable[[Engine], Matches | None]

_PACKAGE = str(Path(etalis_py.__file__).parent)
_LOCKING = garbage.__file__
_ENTRIES: frozenset[CodeType] = frozenset(
    {Kernel.push.__code__, Kernel.push_all.__code__}  # every step has the code of the latter
)


@dataclass
class Interrupt:
    """Raises an error before the ``at``-th instruction of a call; counts the instructions."""

    error: type[BaseException]
    at: int
    passed: int = 0
    _last: dict[int, str] = field(default_factory=dict)

    def __call__(self, frame: FrameType, kind: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        if kind == "opcode" and self._may_come(frame):
            self.passed += 1
            if self.passed == self.at:
                raise self.error
        return self

    def _may_come(self, frame: FrameType) -> bool:
        """Anywhere in the package and in generated code.

        Where a step is over, and around a lock, it may only come where Python looks for signals: what comes after the
        step is the caller's, and a lock is released between two of these places.
        """
        file = frame.f_code.co_filename
        if not file.startswith((_PACKAGE, "<")):
            return False
        if frame.f_code not in _ENTRIES and file != _LOCKING:
            return True
        here = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        before, self._last[id(frame)] = self._last.get(id(frame), ""), here
        return here != "RETURN_VALUE" and before.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))


def instructions(step: Step, engine: Engine) -> int:
    """The number of instructions of a step at which it may be interrupted."""
    counter = Interrupt(KeyboardInterrupt, 0)
    traced(counter, step, engine)
    return counter.passed


def traced(interrupt: Interrupt, step: Step, engine: Engine) -> Matches | None:
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        return step(engine)
    finally:
        sys.settrace(before)


@dataclass
class Case:
    """Engines of one kind, and the steps that they take."""

    make: Callable[[], Engine]
    steps: list[Step]

    def answers(self) -> list[str]:
        engine = self.make()
        return [name for step in self.steps for name in shown(step(engine))]

    def answers_interrupted(self, where: int, error: type[BaseException], draw: random.Random) -> tuple[list[str], str]:
        """The answers when one step is interrupted somewhere, and what was done about it."""
        found: list[str] = []
        engine, done = self.make(), "not interrupted"
        for number, step in enumerate(self.steps):
            if number != where:
                found += shown(step(engine))
                continue
            kept = engine.snapshot()
            rehearsal = self.make()
            for earlier in self.steps[:number]:
                earlier(rehearsal)
            at = draw.randint(1, max(1, instructions(step, rehearsal)))
            try:
                found += shown(traced(Interrupt(error, at), step, engine))
                continue
            except (error, SnapshotError):  # a snapshot of an earlier version that needs too much memory is damaged
                pass
            if engine.broken is None:
                done = "the step was not taken"
            else:
                done, engine = self._restored(engine, step, kept)
            found += shown(step(engine))
        return found, done

    def _restored(self, engine: Engine, step: Step, kept: bytes) -> tuple[str, Engine]:
        """An engine at the place before the step: the same one, if that is possible."""
        try:
            step(engine)
        except BrokenEngine as broken:
            if "make a new engine with" in str(broken):
                engine = self.make()
                engine.restore(kept)
                return "a new engine was made", engine
        else:
            raise AssertionError("a broken engine has taken a step")
        engine.restore(kept)
        return "the engine was restored", engine


def shown(matches: Matches | None) -> list[str]:
    return [] if matches is None else [f"{'-' * m.retracted}{m.id}" for m in matches]


# --- cases -----------------------------------------------------------------------------------------------------------

RULES = [
    "SELECT ?c ?x ?y { ?c :p ?x } SEQ { ?c :q ?y } FILTER (?y > ?x) WITHIN 4 SECONDS",
    "SELECT ?c { ?c :p ?x } SEQ NOT { ?c :r ?z } SEQ { ?c :q ?y } WITHIN 6 SECONDS",
    "SELECT ?c (COUNT(?x) AS ?n) (SUM(?x) AS ?s) { ?c :p ?x } GROUP BY ?c",
    "SELECT ?c ?x ?z { { ?c :p ?x } OPTIONAL { ?c :r ?z } }",
    "SELECT ?c ?y { ?c :q ?y } USING POLICY recent",
    "ASK { ?c :r ?z }",
]
COLUMNAR = [*RULES[:1], RULES[3]]
WINDOWS = """
REGISTER STREAM <http://example.org/high> AS CONSTRUCT { ?c :high ?x } WHERE { ?c :p ?x FILTER (?x > 3) }
REGISTER QUERY counted AS SELECT ?c (COUNT(?x) AS ?n) FROM NAMED WINDOW :w ON :high [RANGE PT3S STEP PT2S]
WHERE { WINDOW :w { ?c :high ?x } } GROUP BY ?c
"""
ENTAILED = "SELECT ?c { ?c a :Thing } SEQ { ?c :q ?y }"


def stream(draw: random.Random, size: int = 60) -> list[Event]:
    """Events in order, several to an instant now and then."""
    time, events = 1, []
    for _ in range(size):
        time += draw.choice((0, 1, 1, 2))
        subject, predicate = draw.choice((":a", ":b", ":c")), draw.choice((":p", ":q", ":r"))
        events.append(event(f"{subject} {predicate} {draw.randint(1, 9)}", time))
    return events


def pushed(events: list[Event]) -> list[Step]:
    return [*(lambda engine, e=e: engine.push(e) for e in events), lambda engine: engine.close()]


def in_batches(events: list[Event], size: int) -> list[Step]:
    pieces = [events[i : i + size] for i in range(0, len(events), size)]
    return [*(lambda engine, p=piece: engine.push_all(p) for piece in pieces), lambda engine: engine.close()]


def in_columns(events: list[Event], size: int) -> list[Step]:
    pieces = [columns_of(batch_of(events[i : i + size])) for i in range(0, len(events), size)]
    return [*(lambda engine, p=piece: engine.push_all(p) for piece in pieces), lambda engine: engine.close()]


def corrected(events: list[Event], draw: random.Random) -> list[Step]:
    """Batches with events that come late and withdrawals, and an update of the past."""
    steps = in_batches(events, 8)[:-1]
    for at in (2, 4, 6):
        gone = draw.choice(events[8 * (at - 1) : 8 * at])
        back = event(":a :p 7", gone.end // SECOND)
        withdrawn = Retraction(*gone)
        steps.insert(at + 1, lambda engine, w=withdrawn, b=back: engine.push_all([w, b]))
    steps += [lambda engine: engine.advance(events[-1].end + SECOND), lambda engine: engine.close()]
    return steps


def updated(events: list[Event]) -> list[Step]:
    def update(engine: Engine, add: Any = (), remove: Any = ()) -> Matches:
        engine.update("", add, remove)
        return engine.push_all([])  # the matches of the instant that the update has closed; no snapshot has them

    steps = in_batches(events, 10)
    steps.insert(1, lambda engine: update(engine, [thing("a")]))
    steps.insert(4, lambda engine: update(engine, remove=[thing("a")]))
    return steps


def thing(name: str) -> tuple[str, str, str]:
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    return f"<http://example.org/{name}>", kind, "<http://example.org/Thing>"


def cases(draw: random.Random) -> Iterator[tuple[str, Case]]:
    """A case of each kind, over a new stream."""
    rules, columnar, windows, entailed = compile(RULES), compile(COLUMNAR), compile(WINDOWS), compile(ENTAILED)
    events = stream(draw)
    yield "push", Case(lambda: Engine(rules), pushed(events))
    yield "push_all", Case(lambda: Engine(rules), in_batches(events, 16))
    yield "columns", Case(lambda: Engine(columnar, executor="columns"), in_columns(events, 16))
    yield "windows", Case(lambda: Engine(windows), in_batches(events, 8))
    yield "lateness", Case(lambda: Engine(rules, lateness=2 * SECOND), pushed(shuffled(events, draw)))
    yield "revise", Case(lambda: Engine(rules, revise=600 * SECOND), corrected(events, draw))
    yield "update", Case(lambda: Engine(entailed, background=[thing("z")]), updated(events))


def shuffled(events: list[Event], draw: random.Random) -> list[Event]:
    return [e for _, e in sorted((e.end + draw.choice((0, SECOND)), e) for e in events)]


def draw_one(seed: int, kind: str) -> tuple[list[str], list[str], str]:
    """The answers of a case, the answers with an interrupt, and what was done about it."""
    draw = random.Random(seed)
    case = dict(cases(draw))[kind]
    where, error = draw.randrange(len(case.steps)), draw.choice((KeyboardInterrupt, MemoryError))
    found, done = case.answers_interrupted(where, error, draw)
    return case.answers(), found, done


KINDS = ("push", "push_all", "columns", "windows", "lateness", "revise", "update")


def main(size: int, first: int = 0) -> None:
    from collections import Counter

    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + size):
        kind = KINDS[seed % len(KINDS)]
        wanted, found, done = draw_one(seed, kind)
        seen[kind, done] += 1
        if wanted != found:
            print(f"seed {seed}, {kind}: {done}, and the answers differ: {len(wanted)} wanted, {len(found)} found")
    for (kind, done), number in sorted(seen.items()):
        print(f"{kind:10} {done:26} {number}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
