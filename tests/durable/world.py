"""A world in which everything can fail, by seed: the disk, the source, the sink, the clock and the power.

Each process of a run gets a number of calls after which the power fails; what the disk holds then decides how the next
one begins.  An honest disk keeps what was synchronised, and any part of what was being written.  A lying disk may also
have lost its last writes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

from etalis_py import compile
from etalis_py.connectors import Message, connect
from etalis_py.connectors.contracts import Sink
from etalis_py.connectors.files import DurableFile, DurableFolder
from etalis_py.connectors.held import HeldText
from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.folder import Folder
from etalis_py.durable.keeper import Keeper, Parts
from etalis_py.engine.driver import Driver
from etalis_py.engine.engine import Engine
from etalis_py.streams import SinkError, StreamError
from etalis_py.streams.updates import updates_of
from etalis_py.streams.write_rows import JsonLines
from etalis_py.testing.connectors import Memory

PROGRAMS = [
    compile("SELECT ?c ?x ?y { { { ?c :p ?x } SEQ { ?c :p ?y } } WITHIN PT5S FILTER (?y > ?x) }\n"),
    compile("SELECT ?c ?x { { ?c :p ?x } SEQ NOT { ?c :q ?y } WITHIN 3 SECONDS }\n"),
    compile("SELECT ?c (SUM(?x) AS ?s) { ?c :p ?x } WITHIN PT4S GROUP BY ?c\n"),
    compile("SELECT ?c ?x ?k { ?c :p ?x GRAPH ?g { ?c :kind ?k } }\n"),
]
LONG = 1e6  # seconds: nobody waits so long, so no time passes by the wall clock


class PowerLoss(BaseException):
    """The process is gone: nothing of it runs any more."""


class World:
    """What outlives a process.  ``step`` is called at everything that can fail."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.calls_left = 0
        self.files: dict[Path, bytes] = {}
        self.before: list[dict[Path, bytes]] = []  # the last states of a disk that lies
        self.now = 1e9
        self.lies = self.draw.random() < 0.2
        self.losses = 0
        self.forgot = False  # the disk has lost what it had confirmed
        self.anew = False  # so much that a run began again, beside what it had written

    def step(self) -> None:
        self.calls_left -= 1
        if self.calls_left <= 0:
            raise PowerLoss

    def clock(self) -> float:
        """A clock that jumps, in both directions."""
        self.now += self.draw.choice([0.0, 0.1, 5.0, 20.0, -3.0, 1e5, -1e5])
        return self.now

    def lose_power(self) -> None:
        """What a lying disk held back is lost."""
        self.losses += 1
        if self.lies and self.before and self.draw.random() < 0.3:
            self.files = self.draw.choice(self.before[-4:])
            self.forgot = True
        self.before.clear()

    def written(self) -> None:
        if self.lies:
            self.before.append(dict(self.files))


class FailingDisk:
    """The contract of ``durable.disk.Disk`` in a world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def put(self, path: Path, data: bytes) -> None:
        self.world.written()
        try:
            self.world.step()
        except PowerLoss:
            case = self.world.draw.randrange(3)
            if case == 1:
                torn = data[: self.world.draw.randrange(len(data) + 1)]
                self.world.files[path.with_name(f".{path.name}.tmp")] = torn
            elif case == 2:
                self.world.files[path] = data
            raise
        self.world.files[path] = data

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        self.world.written()
        before = self.world.files.get(path, b"")
        try:
            self.world.step()
        except PowerLoss:
            if self.world.draw.randrange(3):
                torn = data[: self.world.draw.randrange(len(data) + 1)]
                self.world.files[path] = before[:offset] + torn
            raise
        assert len(before) >= offset, "a hole in the file"
        self.world.files[path] = before[:offset] + data

    def size(self, path: Path) -> int | None:
        return len(self.world.files[path]) if path in self.world.files else None

    def read(self, path: Path, start: int = 0, length: int = -1) -> bytes:
        data = self.world.files[path][start:]
        return data if length < 0 else data[:length]

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in self.world.files if path.parent == folder)

    def make(self, folder: Path) -> None:
        self.world.step()

    def remove(self, path: Path) -> None:
        self.world.step()
        if self.world.draw.random() < 0.8:  # else it comes back
            self.world.files.pop(path, None)

    def lock(self, path: Path) -> IO[bytes] | None:
        return io.BytesIO()


class FailingSource(Memory):
    """Messages in portions of any size, after stalls, until the connection breaks; a reader may get the same again."""

    def __init__(self, world: World, values: Sequence[bytes]) -> None:
        super().__init__(values)
        self.world = world

    def read(self, seconds: float) -> Any:
        self.world.step()
        chance = self.world.draw.random()
        if chance < 0.2:
            return []
        if chance < 0.23:
            raise StreamError("the connection was lost")
        self._portion = self.world.draw.randrange(1, 9)
        return super().read(seconds)


class Database:
    """A sink with transactions of its own: rows, and the number of the run's last token, change together."""

    guarantee = "exactly once"

    def __init__(self, world: World, kept: dict[str, Any]) -> None:
        self.world, self._kept = world, kept
        self._held: list[str] = []
        self._number = 0

    def recover(self, token: Any) -> None:
        if token is None:  # a run of its own, with its own numbers
            self.world.anew = self.world.anew or bool(self._kept["rows"])
            self._kept["number"] = 0
        else:
            if self._kept["number"] > token[0]:
                raise SinkError("the database is ahead of the checkpoint")
            if self._kept["number"] < token[0] - 1:
                raise SinkError("the database is behind the checkpoint")
            self.commit(token)

    def write(self, matches: Iterable[Any]) -> None:
        self._fail()
        self._held += (json.dumps(match.to_dict()) for match in matches)

    def _fail(self) -> None:
        self.world.step()
        if self.world.draw.random() < 0.02:
            raise SinkError("the database does not answer")

    def prepare(self) -> Any:
        self._fail()
        held, self._held = self._held, []
        return [self._number + 1, held]

    def commit(self, token: Any) -> None:
        self._fail()
        if self._kept["number"] < token[0]:
            self._kept["rows"] = [*self._kept["rows"], *token[1]]
            self._kept["number"] = token[0]
        self._number = token[0]
        self._fail()

    def abort(self) -> None:
        self._held.clear()

    def close(self) -> None:
        self.abort()


class AtOnce:
    """Passes matches on as they come: at least once."""

    guarantee = "at least once"

    def __init__(self, world: World, rows: list[str]) -> None:
        self.world, self.rows = world, rows

    def write(self, matches: Iterable[Any]) -> None:
        for match in matches:
            self.world.step()
            self.rows.append(json.dumps(match.to_dict()))

    def prepare(self) -> Any:
        self.world.step()
        return None

    def recover(self, token: Any) -> None: ...
    def commit(self, token: Any) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Lines:
    """An output that keeps lines."""

    name = "lines"

    def __init__(self, world: World, rows: list[str]) -> None:
        self.world, self.rows = world, rows

    def write(self, text: str) -> None:
        for line in text.splitlines():
            self.world.step()
            self.rows.append(line)

    def flush(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    def full(self) -> bool:
        return False


@dataclass
class Story:
    """One run through a world: what it reads, by which program, and where its matches go."""

    seed: int
    world: World = field(init=False)
    refused: str = ""

    def __post_init__(self) -> None:
        draw = Random(~self.seed)
        self.world = World(self.seed)
        self.program = draw.choice(PROGRAMS)
        self.revise = draw.choice([0, 0, 4_000_000])
        self.lateness = 0 if self.revise else draw.choice([0, 2_000_000])
        self.messages = _messages(draw, bool(self.revise), bool(self.lateness))
        times = sorted(draw.sample(range(60), 4))
        self.updates = [
            {"time": at, "add": f":c{draw.randrange(3)} :kind {at} .", "graph": "urn:g"} for at in times
        ] * draw.randrange(2)
        if self.program is PROGRAMS[3]:
            self.updates = self.updates or [{"time": 5, "add": ":c0 :kind 5 .", "graph": "urn:g"}]
        self.kind = draw.choice(["file", "folder", "database", "at once"])
        self.rows: list[str] = []
        self.base: dict[str, Any] = {"number": 0, "rows": []}
        self.every = draw.choice([0.0, 10.0, 50.0])

    def told(self) -> list[str]:
        """The lines in the sink, after as many processes as it takes."""
        for attempt in range(200):
            honest = attempt > 12  # then the power stays on, so that it comes to an end
            self.world.calls_left = (
                10**9 if honest else self.world.draw.randrange(1, self.world.draw.choice([6, 20, 60]))
            )
            try:
                self._process()
                return self._content()
            except PowerLoss:
                self.world.lose_power()
            except CheckpointError as error:
                self.refused = str(error)
                return []
            except SinkError as error:
                if "does not answer" not in str(error):
                    self.refused = str(error)
                    return []
            except StreamError as error:
                if "the connection was lost" not in str(error):
                    raise
        raise AssertionError(f"seed {self.seed}: the run comes to no end")

    def plain(self) -> list[str]:
        """The lines of a run that nothing interrupts."""
        world = World(0)
        world.calls_left = 10**9
        engine, stream = self._engine(), connect(Memory(self.messages, 7), "memory://", idle=LONG)
        driver = Driver(engine, stream, updates=updates_of(self.updates))
        return [json.dumps(match.to_dict()) for step in driver.steps() for match in step.matches]

    def _engine(self) -> Engine:
        background = [] if self.updates else None
        return Engine(
            self.program,
            lateness=self.lateness,
            revise=self.revise,
            background=background,
            changes=bool(self.updates),
        )

    def _process(self) -> None:
        world = self.world
        engine = self._engine()
        stream = connect(FailingSource(world, self.messages), "memory://", idle=LONG)
        identity = {"program": [{"name": "q", "digest": "q"}], "options": {}, "sources": [], "sink": self.kind}
        folder = Folder(Path("/run"), FailingDisk(world))  # type: ignore[arg-type]
        parts = Parts(engine, stream, self._sink(), identity)
        keeper = Keeper(folder, parts, every=self.every, clock=world.clock, wall=world.clock)
        try:
            keeper.begin()
            if keeper.ended:
                return
            driver = Driver(engine, stream, updates=updates_of(self.updates))
            driver.keep_by(keeper)
            for step in driver.steps():
                keeper.write(step.matches)
        finally:
            keeper.close()

    def _sink(self) -> Sink:
        disk = FailingDisk(self.world)
        makers: dict[str, Callable[[], Sink]] = {
            "file": lambda: DurableFile("/out.jsonl", JsonLines(), disk),
            "folder": lambda: DurableFolder("/parts/", "jsonl", JsonLines(), disk),
            "database": lambda: Database(self.world, self.base),
            "at once": lambda: (
                HeldText(JsonLines(), Lines(self.world, self.rows)) if self.revise else AtOnce(self.world, self.rows)
            ),
        }
        return makers[self.kind]()

    def _content(self) -> list[str]:
        if self.kind in ("file", "folder"):
            parts = [data for path, data in sorted(self.world.files.items()) if path.name[:3] in ("out", "par")]
            return b"".join(parts).decode().splitlines()
        return self.rows if self.kind == "at once" else self.base["rows"]


def _messages(draw: Random, revise: bool, late: bool) -> list[bytes]:
    """One message for each event, about one a second, some of them late, some withdrawn later on."""
    messages: list[bytes] = []
    for at in range(60):
        for _ in range(draw.randrange(3)):
            time = max(0, at - draw.randrange(3)) if late or revise else at
            triples = f":c{draw.randrange(3)} {draw.choice([':p', ':p', ':q'])} {draw.randrange(9)} ."
            messages.append(json.dumps({"time": time, "triples": triples}).encode())
            if revise and draw.random() < 0.3:
                earlier = json.loads(draw.choice(messages[-4:]))
                messages.append(json.dumps(earlier | {"retract": True}).encode())
    return messages


def net(lines: Iterable[str], *, once: bool = True) -> dict[str, Any]:
    """What has not been taken back, by id; ``once``: nothing may come twice."""
    kept: dict[str, Any] = {}
    for record in map(json.loads, lines):
        name = record["id"]
        if record.get("retracted"):
            assert name in kept or not once, f"{name} is taken back, and was never there"
            kept.pop(name, None)
        else:
            assert name not in kept or not once, f"{name} comes twice"
            kept[name] = record
    return kept


__all__ = ["Message", "Story", "net"]
