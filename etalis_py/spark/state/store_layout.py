"""The state of a shard in Spark's state store.

========= ============ ===========================================================================================
state     kind         holds
========= ============ ===========================================================================================
head      value        version, mark, the digest of the job, the sizes and checksums of what is stored beside it
job       value        what the state belongs to, as ``checkpoint_match`` has it
snapshot  list         the engine's snapshot in pieces
journal   list         one entry a batch: the version and mark it leads to, the mark it starts from, the journal
waiting   list         events and withdrawals whose instant is not over, as MessagePack
========= ============ ===========================================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

SIZES = "snapshot_bytes long, snapshot_sum long, journal_bytes long, waiting_sum long"
HEAD = f"version long, mark string, job string, {SIZES}"
PIECES = "data binary"
JOURNAL = "version long, mark string, base string, checksum long, data binary"


class States(NamedTuple):
    """The states of the current group."""

    head: Any
    job: Any
    snapshot: Any
    journal: Any
    waiting: Any


def declared(handle: Any) -> States:
    """Declare the states to Spark."""
    return States(
        handle.getValueState("head", HEAD),
        handle.getValueState("job", PIECES),
        handle.getListState("snapshot", PIECES),
        handle.getListState("journal", JOURNAL),
        handle.getListState("waiting", PIECES),
    )


__all__ = ["States", "declared"]
