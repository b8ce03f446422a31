"""One run: its process, which is ended and started again, and what ``/metrics`` says of it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.lasting.sinks import Sink
from benchmarks.lasting.sources import Source
from etalis_py.durable.folder import Folder
from tests.durable.services import free_port

_FIGURES = {
    "events": "etalis_events_total",
    "matches": "etalis_matches_total",
    "late": "etalis_late_events_total",
    "goals": "etalis_goals",
    "lag": "etalis_lag_seconds",
    "memory": "etalis_resident_memory_bytes",
    "checkpoint": "etalis_checkpoint_bytes",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of a run at one time, in seconds since the beginning; ``process``: which of its processes it was."""

    run: str
    at: float
    process: int
    events: float
    matches: float
    late: float
    goals: float
    lag: float
    memory: float
    checkpoint: float

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Run:
    """``etalis run`` from a source to a sink.  ``seconds``: the processor time of the processes that have ended."""

    name: str
    source: Source
    sink: Sink
    folder: Path
    starts: int = 0
    seconds: float = 0.0
    readings: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: psutil.Process | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        command = [sys.executable, "-m", "etalis_py.cli.main", "run", "q.rq", *self.source.options, "-o",
                   self.sink.address, "--checkpoint", f"run-{self.name}", "--idle", "60s",
                   "--metrics", str(self.port)]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self._watched = psutil.Process(self._process.pid)
        self.starts += 1

    def end(self, how: signal.Signals) -> None:
        """End the process; a run that ends by itself, or with a failure, is an error."""
        assert self._process is not None
        assert self._watched is not None
        self.check()
        times = self._watched.cpu_times()
        self._process.send_signal(how)
        code = self._process.wait(120)
        self.seconds += times.user + times.system
        if code != (-how if how == signal.SIGKILL else 0):
            raise RuntimeError(f"{self.name} ended with {code} after {how.name}:\n{self.log.read_text()[-2000:]}")

    def newest(self) -> int | None:
        """The time of the newest event that a checkpoint has."""
        last = Folder(self.folder / f"run-{self.name}").newest()
        return None if last is None else last["driver"].get("newest")

    def check(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} has ended:\n{self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def processor(self) -> float:
        """The processor time of all its processes so far."""
        if self._watched is None or not self._watched.is_running():
            return self.seconds
        times = self._watched.cpu_times()
        return self.seconds + times.user + times.system

    def read(self, at: float) -> Reading | None:
        """What ``/metrics`` says; nothing while the process has yet to answer or to get an event."""
        self.check()
        with suppress(OSError):
            text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5).read().decode()
            found = {name: re.search(rf"^{metric} (\S+)$", text, re.M) for name, metric in _FIGURES.items()}
            if found["lag"] is not None:
                values = {name: float(one[1]) if one else 0.0 for name, one in found.items()}
                self.readings.append(Reading(self.name, at, self.starts, **values))
                return self.readings[-1]
        return None

    def has(self, expected: set[str], patience: float) -> bool:
        """Wait until the sink holds these matches."""
        end = time.monotonic() + patience
        while not expected <= {*self.sink.ids()}:
            self.check()
            if time.monotonic() > end:
                return False
            time.sleep(2)
        return True
