"""``--metrics [HOST:]PORT``: how a run is doing, for Prometheus (``/metrics``) and for probes (``/health``).

The thread of the run writes the figures of the engine down between two steps; the thread that answers only reads them,
so it never looks into an engine that is at work.  Plain numbers of the reader and the keeper are read as they are.
"""

from __future__ import annotations

import json
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etalis_py.cli.errors import UsageError
from etalis_py.connectors.http_server import Handler, Server
from etalis_py.containers.metrics import TYPE, family
from etalis_py.durable.keeper import Keeper
from etalis_py.engine.driver import Step
from etalis_py.engine.engine import Engine
from etalis_py.streams import DeadLetters, Stream

EVERY = 1.0  # seconds between two counts of the goals
_SLACK = 30.0  # seconds that a checkpoint may be overdue

_FAMILIES = (
    ("etalis_events_total", "counter", "Events that the engine has taken.", "events"),
    ("etalis_matches_total", "counter", "Matches so far.", "matches"),
    ("etalis_late_events_total", "counter", "Events that came too late.", "late"),
    ("etalis_refused_total", "counter", "Parts of the input that could not be read.", "refused"),
    ("etalis_dead_letters_total", "counter", "Entries that this process wrote to the dead letters.", "letters"),
    ("etalis_goals", "gauge", "Open goals.", "goals"),
    ("etalis_event_time_seconds", "gauge", "The newest end of an event, in seconds since the epoch.", "newest"),
    ("etalis_lag_seconds", "gauge", "The wall clock minus the newest end of an event.", "lag"),
    ("etalis_sink_seconds_total", "counter", "Time spent waiting for the sink.", "waited"),
    ("etalis_checkpoint_timestamp_seconds", "gauge", "When the last checkpoint was written.", "checkpoint_at"),
    ("etalis_checkpoint_bytes", "gauge", "The size of the last checkpoint.", "checkpoint_bytes"),
    ("etalis_checkpoint_seconds", "gauge", "How long the last checkpoint took.", "checkpoint_seconds"),
    ("etalis_checkpoints_total", "counter", "Checkpoints that this process wrote.", "checkpoints"),
    ("etalis_memory_bytes", "gauge", "The most memory that the process had.", "memory"),
    ("etalis_resident_memory_bytes", "gauge", "The memory that the process has now.", "resident"),
)


class Telemetry:
    """The figures of a run, and the server that shows them.  ``port`` 0 takes a free one."""

    def __init__(self, address: str, engine: Engine, stream: Stream, letters: DeadLetters | None) -> None:
        self._engine, self._stream, self._letters = engine, stream, letters
        self.keeper: Keeper | None = None
        self._waited, self._counted, self._goals = 0.0, -EVERY, 0
        self._figures: dict[str, float] = {}
        self._newest: int | None = None
        host, port = parse_address(address)
        try:
            self._server = Server((host, port), _handler(self))
        except OSError as error:
            raise UsageError(f"--metrics {address}: {error.strerror or error}: name another port") from None
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        self.note(None)

    def note(self, step: Step | None, waited: float = 0.0) -> None:
        """Write down how the run stands after a step; ``waited``: the seconds that its sink has taken."""
        self._waited += waited
        now = time.monotonic()
        if step is not None and step.newest is not None:
            self._newest = step.newest
        if now - self._counted >= EVERY:
            self._goals, self._counted = self._engine.count().goals, time.monotonic()
        counters = self._engine.counters
        figures: dict[str, float] = {
            "events": counters.events,
            "matches": counters.matches,
            "late": counters.late,
            "goals": self._goals,
        }
        self._figures = figures

    def metrics(self) -> str:
        figures = self._figures | self._beside_steps() | _memory()
        if self._newest is not None:
            figures["newest"] = self._newest / 1e6
            if self._stream.clock.kind == "datetime":
                figures["lag"] = time.time() - self._newest / 1e6
        return "".join(f"{line}\n" for line in self._lines(figures))

    def _beside_steps(self) -> dict[str, float]:
        """What changes between two steps as well: the reader skips input, and the keeper writes checkpoints."""
        letters = 0 if self._letters is None else self._letters.count
        figures = {"refused": self._stream.counters.errors, "letters": letters, "waited": self._waited}
        kept = None if self.keeper is None else self.keeper.figures
        if kept is not None and kept.at is not None:
            figures |= {"checkpoint_at": kept.at, "checkpoint_bytes": kept.bytes, "checkpoints": kept.count}
            figures |= {"checkpoint_seconds": kept.seconds, "waited": self._waited + kept.waited}
        return figures

    def _lines(self, figures: dict[str, float]) -> Iterator[str]:
        for name, kind, about, key in _FAMILIES:
            if key in figures:
                yield from family(name, kind, about, [("", figures[key])])

    def health(self) -> tuple[int, dict[str, Any]]:
        """200 while the run works; 503 if a checkpoint is overdue, for example because a sink does not answer."""
        overdue = 0.0 if self.keeper is None else self.keeper.overdue()
        if overdue > _SLACK:
            return 503, {"status": "late", "why": f"a checkpoint has been due for {overdue:.0f} seconds"}
        return 200, {"status": "running", "events": int(self._figures["events"])}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _memory() -> dict[str, float]:
    """The memory of the process, in bytes: the most, and that of now.

    Where the system does not list them, only the most is known; it counts the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("VmHWM:", "VmRSS:")))
    most, now = (int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS"))  # given in kB
    return {"memory": most, "resident": now}


def parse_address(text: str) -> tuple[str, int]:
    """
    >>> parse_address("9100"), parse_address("0.0.0.0:9100"), parse_address("[::1]:9100")
    (('127.0.0.1', 9100), ('0.0.0.0', 9100), ('::1', 9100))
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"--metrics {text}: write a port, as 9100, or an address and a port, as 0.0.0.0:9100")
    return host.strip("[]") or "127.0.0.1", int(port)


def _handler(telemetry: Telemetry) -> type[Handler]:
    class Figures(Handler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    self.answer(200, TYPE, telemetry.metrics())
                case "/health":
                    code, body = telemetry.health()
                    self.answer(code, "application/json", json.dumps(body) + "\n")
                case _:
                    self.answer(404, "text/plain", "there are /metrics and /health\n")

    return Figures
