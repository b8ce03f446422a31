"""Stored state as bytes: a header with a version, a checksum, and MessagePack.

    ETALIS-STATE \\x04 | kind | 16 bytes of BLAKE2b over all but themselves | body

The kinds are S (snapshot), J (journal) and H (snapshot of an engine with a revision horizon).  An Arrow table in the
body is an extension of MessagePack.  Version 3, which had no tables, can be read as well.

Whatever has happened to the bytes, reading them gives what was written or raises ``SnapshotError``.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

MAGIC = b"ETALIS-STATE\x04"
BEFORE = b"ETALIS-STATE\x03"
SNAPSHOT, JOURNAL, HORIZON = b"S", b"J", b"H"
_SUM = 16
_TABLE = 1
"""The code of the extension for tables."""
_NAMES = {SNAPSHOT: "snapshot", JOURNAL: "journal", HORIZON: "snapshot with a revision horizon"}


class SnapshotError(ValueError):
    """The bytes are not a snapshot or journal, or belong to another program."""


def written(kind: bytes, data: Any) -> bytes:
    """The bytes of a snapshot or journal."""
    body = msgspec.msgpack.encode(data, enc_hook=_extension)
    return MAGIC + kind + _checksum(MAGIC + kind, body) + body


def read(kind: bytes, raw: bytes) -> Any:
    """What was written; raises ``SnapshotError`` for anything else."""
    head = len(MAGIC) + len(kind)
    if raw[:head] not in (MAGIC + kind, BEFORE + kind):
        raise SnapshotError(
            f"these bytes are no {_NAMES[kind]} of this version; start without it, or replay the stream"
        )
    body = raw[head + _SUM :]
    if raw[head : head + _SUM] != _checksum(raw[:head], body):
        raise SnapshotError(
            f"the {_NAMES[kind]} is damaged: its checksum does not match its {len(body):,} bytes; start without it, or "
            "replay the stream"
        )
    return decoded(body)


def decoded(body: bytes) -> Any:
    """MessagePack as plain data."""
    try:
        return msgspec.msgpack.decode(body, ext_hook=_of_extension)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SnapshotError(f"the stored state is damaged ({error}); start without it, or replay the stream") from None


def _extension(value: Any) -> msgspec.msgpack.Ext:
    from etalis_py.kernel.goals import written_table  # loads Arrow, which is loaded already if there is a table

    return msgspec.msgpack.Ext(_TABLE, written_table(value))


def _of_extension(code: int, data: memoryview) -> Any:
    from etalis_py.kernel.goals import read_table  # loads Arrow, which takes a while

    if code != _TABLE:
        raise SnapshotError(f"the stored state has an extension of the unknown code {code}; replay the stream")
    return read_table(data)


def _checksum(head: bytes, body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM, key=head).digest()
