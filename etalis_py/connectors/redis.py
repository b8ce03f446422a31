"""``redis://host:port/0?stream=ticks``: a Redis Stream, from its first entry, or with ``from=now`` from here on.

An entry with a field ``value`` alone, or with a JSON object in it, is a message with that content; so is one with the
field that ``field=…`` names.  Any other entry is a JSON object of its fields, whose texts a mapping reads like the
cells of CSV; bytes in them that are not UTF-8 become U+FFFD, and a warning says so.  The position is the id of the last
entry.
A time that an entry does not state is that of its id.  Passwords come from ``REDIS_PASSWORD``.  Needs redis: the extra
``redis``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from warnings import warn

import msgspec

from etalis_py.connectors.contracts import FARTHEST, Message, Position
from etalis_py.connectors.registry import missing
from etalis_py.events.errors import StreamError
from etalis_py.streams.retries import pauses

PORTION = 1_000
_BEFORE_ALL = "0-0"
_LEAST = 0.001  # Redis waits for ever if told to wait for 0 milliseconds


def _order(name: str | bytes) -> tuple[int, ...]:
    """By what the ids of entries are compared."""
    return tuple(map(int, (name if isinstance(name, str) else name.decode()).split("-")))


def client_of(address: str, *, sink: bool) -> tuple[Any, Any]:
    """The library, and a client for an address; the password comes from the environment."""
    try:
        import redis
    except ImportError:
        missing("redis", "redis", address, sink=sink)
    password = os.environ.get("REDIS_PASSWORD")
    return redis, redis.Redis.from_url(address, **({"password": password} if password else {}))


def failure_of(library: Any, error: Exception) -> tuple[str, str]:
    """What Redis says, and what to do."""
    if isinstance(error, library.AuthenticationError) or str(error).startswith(("HELLO", "NOAUTH")):
        return "Redis refuses the password, or wants one", "set REDIS_PASSWORD"
    return f"Redis says: {error}", "start the server, or check the address"


def name_of(address: str, stream: str) -> str:
    split = urlsplit(address)
    return f"{split.scheme}://{split.hostname or ''}:{split.port or 6379}{split.path}?stream={stream}"


class RedisStream:
    """One connection; the client opens it again when it was lost."""

    def __init__(self, address: str, stream: str, field: str | None, *, from_now: bool) -> None:
        self._redis, self._client = client_of(address, sink=False)
        self._stream, self._field = stream, field
        self.name = name_of(address, stream)
        self._from_now, self._last = from_now, _BEFORE_ALL
        self._told = False  # that entries may have been removed before they were read
        self._told_bytes = False  # that a field is no text

    def open(self, position: Position | None) -> None:
        try:
            self._client.ping()
            if position is not None:
                self._last = position
            elif self._from_now:
                newest = self._client.xrevrange(self._stream, count=1)
                self._last = newest[0][0].decode() if newest else _BEFORE_ALL
        except self._redis.RedisError as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> StreamError:
        reason, hint = failure_of(self._redis, error)
        return StreamError(reason, source=self.name, hint=hint)

    def read(self, seconds: float) -> Sequence[Message] | None:
        wait = max(1, int(max(seconds, _LEAST) * 1000))
        answer = self._answer(wait)
        if not answer:
            return []
        entries = (next(iter(answer.values())) if isinstance(answer, dict) else answer[0][1]) or []
        if entries and isinstance(entries[0], list):
            entries = [entry for part in entries for entry in part]
        messages = [self._message(name.decode(), fields) for name, fields in entries]
        if entries:
            self._last = entries[-1][0].decode()
        return messages

    def _answer(self, wait: int) -> Any:
        """What came after the last entry; a server that is away for a while is asked again."""
        problem: Exception = self._redis.ConnectionError("it does not answer")
        for pause in pauses():
            time.sleep(pause)
            try:
                return self._unread() or self._client.xread({self._stream: self._last}, count=PORTION, block=wait)
            except self._redis.AuthenticationError as error:
                raise self._failure(error) from None
            except (self._redis.ConnectionError, self._redis.TimeoutError) as error:
                problem = error
            except self._redis.RedisError as error:
                raise self._failure(error) from None
        raise self._failure(problem)

    def _unread(self) -> Any:
        """What is there after the last entry; if that is there no more, those that followed may be gone as well."""
        with self._client.pipeline() as transaction:
            transaction.xrange(self._stream, self._last, self._last)
            transaction.xread({self._stream: self._last}, count=PORTION)
            last, answer = transaction.execute()
        if not (last or self._told or self._last == _BEFORE_ALL):
            self._tell_removed(anything_left=bool(answer))
        return answer

    def _tell_removed(self, *, anything_left: bool) -> None:
        """Warn once that entries may have been trimmed away, unless the last one was deleted by its id (XDEL)."""
        if not self._client.exists(self._stream):
            return
        state, last = self._client.xinfo_stream(self._stream), _order(self._last)
        deleted = _order(state.get("max-deleted-entry-id", _BEFORE_ALL)) >= last
        came_to_its_end = not anything_left and (state["length"] or _order(state["last-generated-id"]) <= last)
        if deleted or came_to_its_end:
            return
        self._told = True
        count = state["entries-added"] - state["length"] if "entries-added" in state else None
        in_all = "" if count is None else f"; Redis has removed {count:,} of {state['entries-added']:,} entries in all"
        warn(
            f"{self.name}: entry {self._last}, which was read last, was trimmed away, and perhaps others behind it "
            f"that were not read{in_all}: read sooner, or let the stream keep more (MAXLEN or MINID of its writers)",
            stacklevel=2,
        )

    def _message(self, name: str, fields: dict[bytes, bytes]) -> Message:
        value = fields.get((self._field or "value").encode())
        is_column = self._field is None and len(fields) > 1 and not (value or b"").lstrip().startswith(b"{")
        if value is None or is_column:
            value = msgspec.json.encode(self._texts(name, fields))
        at = int(name.partition("-")[0]) * 1000
        return Message(value, f"{self.name}, entry {name}", at if at < FARTHEST else None)

    def _texts(self, entry: str, fields: dict[bytes, bytes]) -> dict[str, str]:
        """The fields of an entry; bytes of them that are no text are told once."""
        try:
            return {key.decode(): text.decode() for key, text in fields.items()}
        except UnicodeDecodeError:
            texts = {key.decode("utf-8", "replace"): text.decode("utf-8", "replace") for key, text in fields.items()}
        if not self._told_bytes:
            self._told_bytes = True
            odd = ", ".join(name for name, text in texts.items() if "\ufffd" in name + text)
            warn(
                f"{self.name}, entry {entry}: bytes that are not UTF-8 are read as U+FFFD, in {odd}; write texts in "
                "UTF-8, and binary content in Base64",
                stacklevel=2,
            )
        return texts

    def position(self) -> Position:
        return self._last

    def committed(self, position: Position) -> None:
        """Do nothing: Redis keeps entries until they are trimmed."""

    def close(self) -> None:
        self._client.close()


def open_source(address: str) -> RedisStream:
    split = urlsplit(address)
    given: dict[str, Any] = dict(parse_qsl(split.query))
    stream, field, begin = given.pop("stream", ""), given.pop("field", None), given.pop("from", "")
    if not stream or given or begin not in ("", "now"):
        wrong = "it names no stream" if not stream else f"it says {next(iter(given), f'from={begin}')!r}"
        raise StreamError(
            f"this is not the address of a Redis Stream: {wrong}",
            source=address,
            hint="write redis://host:6379/0?stream=ticks, perhaps with &from=now and &field=body",
        )
    return RedisStream(urlunsplit(split._replace(query="")), stream, field, from_now=bool(begin))
