"""Chooses the class of the shards that a part runs in."""

from __future__ import annotations

from etalis_py.spark.input.query_changes import StandingShard
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.shard.time_slices import SlicedShard
from etalis_py.spark.shard.updates_in_shard import ChangingShard


def shard_kind(spec: ProgramSpec, part: ShardPart) -> type[Shard]:
    """The class of shards with standing queries, with a changing background, or of all others."""
    if part.standing:
        return StandingShard
    return ChangingShard if spec.updates else Shard


def batch_shard(spec: ProgramSpec, part: ShardPart, number: int) -> Shard:
    """A shard that takes a batch."""
    if part.begins:
        return SlicedShard(spec, part, number)
    return shard_kind(spec, part)(spec, part, number, corrected=not part.standing)


__all__ = ["batch_shard", "shard_kind"]
