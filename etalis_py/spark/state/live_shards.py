"""The live shards of a worker process: a cache of what is in the store, and when it is useless.

An engine process (``spark.processes``) has the shards of some partitions.  Without such processes each worker gets to
hold each shard of its executor, because Spark gives a shard to any of them: as many copies of a goal as the executor
has cores.  A copy saves its worker from restoring the shard, which takes 1.5 µs a goal; it catches up by the journals
of the batches that it missed.  Three kinds of copies are dropped: those from before the shard's last snapshot, because
the journals begin there; those of an earlier run that the current one has gone on from; and the oldest, where a process
holds too many or too large ones.
"""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from etalis_py.spark.session_kinds import ENGINES
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.state.executor_folder import executor_folder

MOST_SHARDS = 256
MOST_BYTES = 512 << 20
"""The most that a process keeps: shards, and bytes of them in the store.  The newest one stays, whatever its size."""

Key = tuple[str, int]
"""A run and a slot."""


class Live(NamedTuple):
    """A shard at a version of the store; ``size``: the bytes of its snapshot and journals there."""

    version: int
    mark: str
    shard: Shard
    size: int = 0


class LiveShards(OrderedDict[Key, Live]):
    """The cache, the shard that was used longest ago first."""

    def keep(self, key: Key, live: Live) -> None:
        """Keep a shard, and drop what is useless or too much."""
        self[key] = live
        if (folder := executor_folder()) is not None:
            for other in [other for other, held in self.items() if held.version < _begin_of(folder, other)]:
                del self[other]
        while len(self) > 1 and (len(self) > MOST_SHARDS or sum(held.size for held in self.values()) > MOST_BYTES):
            (run, slot), held = self.popitem(last=False)
            if run == key[0] and held.size:
                warnings.warn(
                    f"the live shards of this process have more than {MOST_BYTES >> 20} MiB in the store, or are more "
                    f"than {MOST_SHARDS}: that of slot {slot} is dropped, and restored when its next events come, in "
                    f"about 1.5 µs a goal; take more executors, or more engine processes in each ({ENGINES})",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def drop_replaced(self, key: Key, marks: Collection[str]) -> None:
        """Drop the copies of a shard that other runs left at one of these marks of the store."""
        for other in [other for other, held in self.items() if other != key and held.mark in marks]:
            del self[other]


def journals_begin(key: Key, version: int) -> None:
    """Tell the other workers that the journals of a shard begin at this version."""
    if (folder := executor_folder()) is not None:
        file = _file_of(folder, key)
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(str(version), encoding="ascii")
        fresh.replace(file)


def _begin_of(folder: Path, key: Key) -> int:
    try:
        return int(_file_of(folder, key).read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0


def _file_of(folder: Path, key: Key) -> Path:
    run, slot = key
    return folder / f"etalis-{run.replace('/', '-')}-{slot}"


__all__ = ["Live", "LiveShards", "journals_begin"]
