"""The options of ``matches`` and of ``run_on_spark``: each a frozen value, and the same names as keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict

from etalis_rules.durations import seconds
from pyspark.sql import DataFrame, Observation

from etalis_py.events.clock import Length
from etalis_py.spark.errors import SparkError
from etalis_py.spark.output.typed import Typing
from etalis_py.streams.updates import Updates
from etalis_py.values.limits import LIMITS, Limits


class MatchOptions(TypedDict, total=False):
    """The keywords of ``matches``; see ``Matching``."""

    shards: int | None
    slices: int | None
    lateness: Length | None
    revise: Length
    typed: Typing
    background: Any
    entailment: str
    policy: str | None
    metrics: bool
    observe: str | Observation | None
    ordered: bool
    report: Mapping[str, Any] | None
    duplicates: bool
    queries: DataFrame | None
    updates: DataFrame | None
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The settings of ``matches`` beside its program.

    ``shards``: the number of shards for parts with a key (default: the number of shuffle partitions, and for a batch at
    most two per core).  ``slices``: for batches, the number of slices of time for every part that reaches back a
    bounded time, with or without a key (1: nothing is cut; default: parts without a key or with a hot one are cut into
    as many slices as shards, if the source can be read by time).  ``lateness``: for streams, how late
    events may be, as ``"5 seconds"``, a ``timedelta`` or a number of microseconds; None: as the watermark of the
    DataFrame says, and if it has none, not at all.  ``revise``: for streams, how far back, as such a
    length, the input may still be corrected, by events that are later than the lateness and by those with a true
    ``retract``; matches may then be taken back (``retracted``).  A batch is always corrected as a whole.
    ``background``, ``entailment``, ``policy``: as for ``Engine``.

    ``typed``: a column for each selected variable instead of ``bindings``, and times as timestamps; or the SQL types of
    some variables by name, if these are not to be strings (see ``spark.output.typed``).

    ``metrics``: also a row of kind ``metric`` for each shard and batch.  ``observe``: have Spark count the matches and
    the late events (with ``metrics`` also the live goals and the bytes of state) under this name.  ``ordered``: have
    matches state their place in the order of the embedded engine, for ``results.order_columns``.

    ``report``, ``duplicates``: as for ``Engine``, for the windowed queries.

    ``queries``: queries that are added and removed while the job runs: a DataFrame, streaming if the events are, with
    the columns ``name``, ``text`` (null: the query is removed) and ``end``, the time from which the row holds (null or
    missing: from the first instant that is not over yet).

    ``updates``: changes of the background, which reach every shard at their time: a DataFrame, streaming if the events
    are, with the columns ``end``, ``add`` and ``remove`` (Turtle; may be null), and optionally ``graph`` and
    ``arrived`` (which orders updates of the same time).

    ``limits``: those of the engine of each shard, and of the background, as for ``Engine``.
    """

    shards: int | None = None
    slices: int | None = None
    lateness: Length | None = None
    revise: Length = 0
    typed: Typing = False
    background: Any = None
    entailment: str = "rdfs"
    policy: str | None = None
    metrics: bool = False
    observe: str | Observation | None = None
    ordered: bool = False
    report: Mapping[str, Any] | None = None
    duplicates: bool = False
    queries: DataFrame | None = None
    updates: DataFrame | None = None
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        _check_limits(self.limits)
        for name in ("metrics", "ordered"):
            given = getattr(self, name)
            if not isinstance(given, bool):
                raise SparkError(f"{name}={given!r}: it is True or False")


class RunOptions(TypedDict, total=False):
    """The keywords of ``run_on_spark``; see ``JobSettings``."""

    shards: int | None
    background: Any
    entailment: str
    policy: str | None
    lateness: Length | None
    revise: Length
    checkpoint: str | Path | None
    render: Callable[[int], int | str]
    updates: Updates | None
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """The settings of a run beside its program and its session.

    ``shards``, ``background``, ``entailment``, ``policy``: as for ``matches``.  ``lateness``: how late an event may be,
    as for ``Engine``: ``"5 seconds"``, a ``timedelta`` or microseconds; None puts the events of one call in order,
    whatever their order was.  ``revise``: how far back the input may be corrected, as for ``Engine``.  ``checkpoint``:
    the folder of a run that continues where the last call ended.  ``render``: how times are shown.  ``updates`` of the
    background, in order of time: a file of JSON lines or dicts, as for ``run``; with a checkpoint only the new ones,
    like the events.  ``reading``: how rows became the events, if the caller knows, which a checkpoint must match.
    ``limits``: as for ``matches``.
    """

    shards: int | None = None
    background: Any = None
    entailment: str = "rdfs"
    policy: str | None = None
    lateness: Length | None = None
    revise: Length = 0
    checkpoint: str | Path | None = None
    render: Callable[[int], int | str] = seconds
    updates: Updates | None = None
    reading: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        _check_limits(self.limits)
        given = self.checkpoint
        if given is not None and (not isinstance(given, (str, PathLike)) or given == ""):
            raise SparkError(f"checkpoint={given!r}: name a folder, or one to be made")

    def matching(self, shards: int | None, lateness: int | None = 0) -> MatchOptions:
        """The options of ``matches`` for this run."""
        return {
            "shards": shards,
            "lateness": lateness,
            "revise": self.revise,
            "background": self.background,
            "entailment": self.entailment,
            "policy": self.policy,
            "ordered": True,
            "limits": self.limits,
        }


def _check_limits(given: object) -> None:
    if not isinstance(given, Limits):
        raise SparkError(f"limits={given!r}: give Limits(…), of etalis_py, such as Limits(goals=100_000)")
