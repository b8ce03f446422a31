"""What a run on several cores does on them: reading, matching, both, or neither, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from etalis_py.engine.cores.crew import can_fork
from etalis_py.engine.cores.driver import AheadDriver, SharedDriver
from etalis_py.engine.cores.shared_engine import SharedEngine
from etalis_py.engine.cores.ways import Way, way_of
from etalis_py.engine.driver import Driver
from etalis_py.engine.engine import Engine
from etalis_py.engine.executor_choice import choose
from etalis_py.engine.program import Program
from etalis_py.kernel.options import Options
from etalis_py.streams import Stream
from etalis_py.streams.sources import FORMATS, IN_BLOCKS


@dataclass(frozen=True, slots=True)
class Sharing:
    """``readers``: the number of processes that read ahead; ``way``: how matching is shared out, if it is.

    ``ahead``: a thread reads ahead, on another core.  ``reading`` and ``matching`` say why they are not shared.
    """

    readers: int = 0
    way: Way | None = None
    reading: str = ""
    matching: str = ""
    ahead: bool = False

    def __str__(self) -> str:
        if self.reading and self.reading == self.matching:
            return f"this run uses one core: {self.reading}"
        reading = f"reads on one core ({self.reading})" if self.reading else "reads on all cores"
        if self.ahead:
            reading = "reads ahead on another core"
        matching = f"matches on one core ({self.matching})" if self.matching else f"matches {self.way} on all cores"
        return f"this run {reading} and {matching}"

    @property
    def is_any(self) -> bool:
        """Whether there is something to do for more than one core."""
        return bool(self.readers or self.way or self.ahead)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to one core."""
        return bool(self.readers and self.way)


def sharing(engine: Engine, stream: object, cores: int, given: object = None, *, kept: bool = False) -> Sharing:
    """What the cores can do for an engine over a stream.

    ``given``: what the stream was opened from.  ``kept``: another process can go on with the run.
    """
    nowhere = "" if can_fork() else "several cores are used on Linux only"
    if kept:
        nowhere = "the run is kept in a folder"
    if nowhere:
        return Sharing(reading=nowhere, matching=nowhere)
    reading = _reading(stream)
    way = _matching(engine, stream, given)
    readers = 0 if reading else cores
    if not isinstance(way, str):
        return Sharing(readers, way, reading)
    if (
        isinstance(stream, Stream)
        and stream.is_large
        and engine.reads_columns
        and (reading or _is_quick(stream, cores))
    ):
        return Sharing(matching=way, ahead=True)
    return Sharing(readers, None, reading, way)


def _is_quick(stream: object, cores: int) -> bool:
    """Whether a thread reads as fast as two processes, which also hand over what they have read.

    To cut lines at commas takes no longer than that.
    """
    origin = stream.origin if isinstance(stream, Stream) else None
    return cores == 2 and origin is not None and origin.format == "csv"


def _reading(stream: object) -> str:
    """Why a stream is read on one core, "" if it is not."""
    if isinstance(stream, Stream) and stream.in_blocks:
        return ""
    origin = stream.origin if isinstance(stream, Stream) else None
    if origin is None or origin.kind != "file":
        return "its input is no single file of CSV, JSON lines or N-Quads"
    if origin.format not in IN_BLOCKS:
        return f"its input is {FORMATS.get(origin.format, 'of another format')}, not CSV, JSON lines or N-Quads"
    if origin.format == "nq":
        return "its input is less than 16 MB, or packed, or its times are not next to the graphs"
    return "its input is less than 16 MB, or packed, or CSV without a mapping"


def engine_on_cores(engine: Engine, shared: Sharing, cores: int, program: Program) -> Engine:
    """The engine for this sharing: the given one, or another of the same program and options."""
    if shared.way is None:
        return engine
    options: dict[str, Any] = {one.name: getattr(engine.options, one.name) for one in fields(Options)}
    options |= {"background": engine.knowledge, "named": None}
    return SharedEngine(program, shared.way, cores, **options)


def driver_on_cores(shared: Sharing, engine: Engine, stream: Any, **how: Any) -> Driver:
    """The driver for this sharing."""
    if shared.ahead:
        return AheadDriver(engine, stream, **how)
    if not shared.is_any:
        return Driver(engine, stream, **how)
    return SharedDriver(engine, stream, readers=shared.readers, **how)


def _matching(engine: Engine, stream: object, given: object) -> Way | str:
    """The way to share out matching; a text says why it is left to one core."""
    options = engine.options
    obstacles = {
        "the stream is no file or table in memory, which each process could read": not is_rereadable(stream, given),
        "late events are waited for": bool(options.lateness),
        "the input may be corrected": bool(options.revise),
        "every push closes its instant": options.eager,
        "explanations are kept": options.explain,
        "events of one time have an order": options.ties is not None,
        "nodes report their solutions": options.nodes,
        "a journal is kept": options.journal,
        "the background changes while it runs": options.changes,
    }
    if reason := next((reason for reason, there in obstacles.items() if there), ""):
        return reason
    way = way_of(engine)
    if isinstance(way, str) or not in_kernels(engine):
        return way
    return "in compiled loops it takes less time than handing out the events"


def in_kernels(engine: Engine) -> bool:
    """Whether large batches run in compiled loops alone."""
    division = choose((), engine.rules, engine.options, engine.knowledge).rules
    return division is not None and division.is_whole and not (division.by_row or division.by_value)


def is_rereadable(stream: object, given: object) -> bool:
    """Whether a forked process can read a stream by itself: files, tables in memory, lists."""
    if not isinstance(stream, Stream):
        return isinstance(stream, (list, tuple))
    tables = given.values() if isinstance(given, Mapping) else (given,)
    kinds = {"file", "given"} if all(map(_is_held, tables)) else {"file"}
    return stream.idle is None and all(
        leaf.is_file and leaf.origin is not None and leaf.origin.kind in kinds for leaf in stream.leaves
    )


def _is_held(table: object) -> bool:
    """Whether it is a table in memory, and not what computes or fetches one."""
    kind = type(table)
    module = kind.__module__.partition(".")[0]
    return module in ("pyarrow", "pandas", "polars") and kind.__name__ in ("Table", "RecordBatch", "DataFrame")


__all__ = ["Sharing", "driver_on_cores", "engine_on_cores", "in_kernels", "is_rereadable", "sharing"]
