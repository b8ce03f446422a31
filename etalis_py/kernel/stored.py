"""Stored state as bytes: a header with a version, a checksum, and MessagePack.

    ETALIS-STATE \\x03 | kind | 16 bytes of BLAKE2b over all but themselves | body

The kinds are S (snapshot), J (journal) and H (snapshot of an engine with a revision horizon).

Whatever happened to the bytes, reading them gives what was written or a ``SnapshotError``.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

MAGIC = b"ETALIS-STATE\x03"
SNAPSHOT, JOURNAL, HORIZON = b"S", b"J", b"H"
_SUM = 16
_NAMES = {SNAPSHOT: "snapshot", JOURNAL: "journal", HORIZON: "snapshot with a revision horizon"}


class SnapshotError(ValueError):
    """Bytes that are no snapshot or journal, or one of another program."""


def written(kind: bytes, data: Any) -> bytes:
    """The bytes of a snapshot or journal."""
    body = msgspec.msgpack.encode(data)
    return MAGIC + kind + _checksum(kind, body) + body


def read(kind: bytes, raw: bytes) -> Any:
    """What was written; raises ``SnapshotError`` for anything else."""
    head = len(MAGIC) + len(kind)
    if raw[:head] != MAGIC + kind:
        raise SnapshotError(
            f"these bytes are no {_NAMES[kind]} of this version; start without it, or replay the stream"
        )
    body = raw[head + _SUM :]
    if raw[head : head + _SUM] != _checksum(kind, body):
        raise SnapshotError(
            f"the {_NAMES[kind]} is damaged: its checksum does not match its {len(body):,} bytes; start without it, or "
            "replay the stream"
        )
    return decoded(body)


def decoded(body: bytes) -> Any:
    """MessagePack as plain data."""
    try:
        return msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SnapshotError(f"the stored state is damaged ({error}); start without it, or replay the stream") from None


def _checksum(kind: bytes, body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM, key=MAGIC + kind).digest()
