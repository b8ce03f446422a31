"""The contract of an executor, by one that is written from its page: it counts the triples of each instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from etalis_rules import program as ir

from etalis_py.events import Event
from etalis_py.kernel.batch import Batch
from etalis_py.kernel.instants import Stage
from etalis_py.kernel.kernel import Kernel
from etalis_py.kernel.options import Options
from etalis_py.kernel.protocol import Executor, StateSize
from etalis_py.kernel.shapes import Shape

SILENCE = 10


class Counting:
    """Counts triples; says "0" when there has been silence for ten microseconds.  Derives ``<urn:n> <urn:is> n``."""

    form: Literal["rows", "columns"] = "rows"
    reads: Literal["rows", "columns"] = "rows"

    def __init__(self, name: str) -> None:
        self.shapes = [Shape(ir.Output(name, "select", None, None, ("n",)), ("n",), (2,), lambda t: t)]
        self.reports: list[Any] = []
        self.derived: list[Event] = []
        self.feeding = False
        self.batches: list[int] = []
        self.starts: list[int | None] = []
        self.last: int | None = None

    def begin(self, t: int) -> None:
        self.reports.append((0, t, [(t, t, "begun")]))

    def started(self, t: int | None) -> None:
        self.starts.append(t)

    def take(self, batch: Batch) -> None:
        self.batches.append(len(batch))
        instants = [(t, sum(len(e.triples) for e in events)) for t, events in batch.instants()]
        for t, n in instants:
            self.fall_due(t - 1)
            self.reports.append((0, t, [(t, t, str(n))]))
            if self.feeding:
                self.derived.append(Event(t, t, (("<urn:n>", "<urn:is>", f'"{n}"'),)))
            self.last = t
        self.fall_due(batch.through)

    def fall_due(self, t: int) -> None:
        due = self.next_due()
        if due is not None and due <= t:
            self.reports.append((0, due, [(due, due, "0")]))
            self.last = None

    def next_due(self) -> int | None:
        return None if self.last is None else self.last + SILENCE

    horizon = next_due

    def close(self, t: int) -> None:
        self.reports.append((0, t, [(t, t, "ended")]))

    def dispatch(self) -> None:
        return None

    def dump(self) -> dict[str, Any]:
        return {"last": self.last}

    def load(self, state: Mapping[str, Any], *, fitted: bool = False) -> None:
        self.last = state["last"]

    def journal(self) -> list[Any]:
        return [self.last]

    def replay(self, entries: Sequence[Any], *, fitted: bool = False) -> None:
        (self.last,) = entries

    def forget_journal(self) -> None: ...

    def journaling(self, on: bool) -> None: ...

    entries = 0

    def kept(self) -> StateSize:
        return StateSize()


def kernel(*executors: Counting, lockstep: bool = False, **options: Any) -> Kernel:
    made = Kernel(Options(**options))
    stages: list[Executor] = list(executors)
    made._arrange(
        [Stage(executor, (n,)) for n, executor in enumerate(stages)],
        [shape for executor in executors for shape in executor.shapes],
        lockstep=lockstep,
    )
    for executor in executors[:-1]:
        executor.feeding = True
    return made


def at(t: int, triples: int = 1) -> Event:
    return Event(t, t, tuple(("<urn:s>", "<urn:p>", f'"{n}"') for n in range(triples)))


def said(matches: Any) -> list[str]:
    return [f"{m.query}{m.end}:{m.bindings['n']}" for m in matches if m.bindings["n"] not in ("begun", "ended")]


EVENTS = [at(1), at(1, 2), at(1, 2), at(5), at(20), at(22, 3)]
ANSWER = ["a1:3", "a5:1", "a15:0", "a20:1", "a22:3", "a32:0"]


def whole(make: Callable[[], Kernel], events: list[Event]) -> list[str]:
    engine = make()
    return said(engine.push_all(events)) + said(engine.close())


def test_instants_are_complete_and_in_order_and_equal_events_are_one() -> None:
    assert whole(lambda: kernel(Counting("a")), EVENTS) == ANSWER
    assert whole(lambda: kernel(Counting("a"), lateness=30), EVENTS[::-1]) == ANSWER
    engine = kernel(Counting("a"))
    assert [x for e in EVENTS for x in said(engine.push(e))] + said(engine.close()) == ANSWER


def test_a_batch_spans_many_instants() -> None:
    executor = Counting("a")
    kernel(executor).push_all(EVENTS)
    assert executor.batches == [4]  # one of the six is a duplicate, one waits in the open instant


def test_the_start_is_told_once_before_the_first_instant() -> None:
    """It is the least start of the events that end first, for every stage, or the time that is given."""
    stages = Counting("a"), Counting("b")
    engine = kernel(*stages)
    engine.push_all([Event(3, 4, at(4).triples), Event(2, 4, at(4, 2).triples), Event(0, 9, at(9).triples), at(12)])
    assert [stage.starts for stage in stages] == [[2], [2]]
    given = Counting("a")
    kernel(given, start=1).push_all([at(3), at(5)])
    assert given.starts == [1]


def test_what_a_stage_derives_the_next_one_sees_in_the_same_instant() -> None:
    for lockstep in (False, True):
        answer = whole(lambda: kernel(Counting("a"), Counting("b"), lockstep=lockstep), EVENTS)  # noqa: B023
        assert answer == [
            *("a1:3", "b1:4", "a5:1", "b5:2", "a15:0", "b15:0"),
            *("a20:1", "b20:2", "a22:3", "b22:4", "a32:0", "b32:0"),
        ]


def test_the_kernel_says_what_is_due_and_refuses_what_is_late() -> None:
    engine = kernel(Counting("a"))
    engine.push(at(5))
    assert engine.next_due() == 5
    assert said(engine.advance(6)) == ["a5:1"]
    assert engine.next_due() == 15
    engine.push(at(6))
    assert engine.dead_letters == [at(6)]
    assert said(engine.advance(40)) == ["a15:0"]
    assert engine.next_due() is None
