"""Sends the background to the executors, once to each, however many shards and batches need it.

A large background would travel with the operator to every task of every batch; Spark would turn an operator above 1 MB
into a broadcast variable, which it refuses in a stream.  So the bytes are a separate broadcast variable.  The operator
holds a reference that is only followed where the bytes are needed: they are not available on the driver, where Spark
unpacks the operator to ask for its schema.

Spark Connect has no broadcast variables, and the workers of its streams do not see the files of a session (artifacts).
There the bytes travel with the operator, whatever their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from pyspark.core.broadcast import Broadcast, _from_id
from pyspark.sql import SparkSession

from etalis_py.spark.session_kinds import is_connect

LARGE = 1 << 16  # far below the 1 MB above which Spark would broadcast the operator itself


@dataclass(frozen=True, slots=True)
class Shipped:
    """A reference to broadcast bytes; two are equal if the bytes are."""

    digest: str
    variable: Any
    """The broadcast variable; on an executor its number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shipped) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Callable[..., Shipped], tuple[str, int]]:
        """As Spark does: a broadcast variable is registered when it is pickled, and found again by its number."""
        _, (number,) = self.variable.__reduce__()
        return Shipped, (self.digest, number)

    @property
    def data(self) -> bytes:
        variable = self.variable if isinstance(self.variable, Broadcast) else _from_id(self.variable)
        return bytes(variable.value)


def ship(spark: SparkSession, data: bytes) -> bytes | Shipped:
    """The bytes themselves, or a reference to them if they are many."""
    if len(data) < LARGE or is_connect(spark):
        return data
    return Shipped(blake2s(data).hexdigest(), spark.sparkContext.broadcast(data))


def arrived(data: bytes | Shipped) -> bytes:
    return data.data if isinstance(data, Shipped) else data


__all__ = ["LARGE", "Shipped", "arrived", "ship"]
