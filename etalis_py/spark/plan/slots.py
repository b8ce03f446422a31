"""Slots: the numbers by which rows are grouped, one for each shard of each part.

Spark puts a group into the partition ``pmod(murmur3(slot), partitions)``.  Slots are chosen so that the shards of a
part are spread evenly over the partitions; with the plain numbers of the shards, two of them would often share a
partition while another stays empty.  So slots depend on the numbers of shards and of partitions, and a checkpoint fixes
both: see ``checkpoint_match``.
"""

from __future__ import annotations

from collections.abc import Iterable

from etalis_py.spark.errors import SparkError
from etalis_py.spark.plan.parts import ShardPart

# A slot is part · MOST_SHARDS + shard; a multiple of _STEP is added to bring it into the partition that is wanted.
MOST_SHARDS = 1024
_STEP = 1 << 20
_MASK = 0xFFFFFFFF


def check_shards(count: object) -> None:
    """Refuse what is no number of shards."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_SHARDS:
        raise SparkError(
            f"the number of shards is {count!r}: choose 1 to {MOST_SHARDS}, about one or two for each core"
        )


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column (Murmur3, 32 bits, signed)."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    k = k * 0x1B873593 & _MASK
    h = seed ^ k
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def slots_of(part: ShardPart, partitions: int) -> tuple[int, ...]:
    """The slots of the shards of a part.

    >>> from etalis_py.spark.plan.parts import ShardPart
    >>> slots = slots_of(ShardPart(0, 0, 4, (), ()), 4)
    >>> sorted(murmur3(slot) % 4 for slot in slots)
    [0, 1, 2, 3]
    """
    base = part.number * MOST_SHARDS
    first = murmur3(base) % partitions
    slots = [base]
    for shard in range(1, part.shards):
        wanted = (first + shard) % partitions
        candidates = (base + shard + k * _STEP for k in range(2048))
        slots.append(next((c for c in candidates if murmur3(c) % partitions == wanted), base + shard))
    return tuple(slots)


def numbers_of(slot: int) -> tuple[int, int]:
    """The numbers of the part and of the shard that a slot stands for.

    >>> from etalis_py.spark.plan.parts import ShardPart
    >>> [numbers_of(slot) for slot in slots_of(ShardPart(1, 0, 3, (), ()), 2)]
    [(1, 0), (1, 1), (1, 2)]
    """
    return divmod(slot % _STEP, MOST_SHARDS)


def by_slot(parts: Iterable[ShardPart], partitions: int) -> dict[int, tuple[ShardPart, int]]:
    """slot → the part and the number of the shard."""
    return {slot: (part, shard) for part in parts for shard, slot in enumerate(slots_of(part, partitions))}
