"""``redis://host:port/0?stream=alerts`` as a sink: each match an entry of a Redis Stream, exactly once.

The entries of one portion and the number of the portion change in one transaction (``MULTI``); the number is in the key
``etalis:{alerts}:RUN``.  A Redis that loses what it has confirmed (``appendfsync everysec`` and a loss of power) may
fall behind: by one portion, which is written again, or by more, which is refused.

An entry has the fields ``id`` and ``value``, the match as JSON.  ``&maxlen=N`` keeps about the newest N entries.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from etalis_py.connectors.plain import plain_record
from etalis_py.connectors.redis import client_of, failure_of, name_of
from etalis_py.connectors.registry import Request
from etalis_py.connectors.tokens import Numbered
from etalis_py.events.errors import SinkError
from etalis_py.streams.sinks import Match


class RedisSink(Numbered):
    """One connection.  The stream and the key of the run lie in the same slot of a cluster."""

    def __init__(self, address: str, stream: str, longest: int | None) -> None:
        super().__init__(name_of(address, stream))
        self._redis, self._client = client_of(address, sink=True)
        self._stream, self._longest = stream, longest

    def _key(self) -> str:
        return f"etalis:{{{self._stream}}}:{self.run}"

    def _failure(self, error: Exception) -> SinkError:
        reason, hint = failure_of(self._redis, error)
        return SinkError(reason, target=self.name, hint=hint)

    def at(self) -> int:
        try:
            return int(self._client.get(self._key()) or 0)
        except self._redis.RedisError as error:
            raise self._failure(error) from None

    def record_of(self, match: Match) -> Any:
        return [match.id, msgspec.json.encode(plain_record(match.to_dict())).decode()]

    def put(self, records: list[Any], number: int) -> None:
        try:
            with self._client.pipeline(transaction=True) as transaction:
                transaction.watch(self._key())  # if it changes from here on, nothing is written
                self.check_free(int(transaction.get(self._key()) or 0), number)
                transaction.multi()
                for name, value in records:
                    fields = {"id": name, "value": value}
                    transaction.xadd(self._stream, fields, maxlen=self._longest, approximate=True)
                transaction.set(self._key(), number)
                transaction.execute()
        except self._redis.WatchError as error:
            if str(error).startswith("Watched variable changed"):  # otherwise the connection was lost
                self.check_free(self.at(), number)
            raise self._failure(error) from None
        except self._redis.RedisError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        self._client.close()


def open_sink(address: str, request: Request) -> RedisSink:
    split = urlsplit(address)
    given: dict[str, Any] = dict(parse_qsl(split.query))
    stream, longest = given.pop("stream", ""), given.pop("maxlen", "")
    if not stream or given or (longest and not (longest.isdecimal() and int(longest))):
        wrong = "it names no stream" if not stream else f"it says {next(iter(given), f'maxlen={longest}')!r}"
        raise SinkError(
            f"this is not the address of a Redis Stream: {wrong}",
            target=address,
            hint="write redis://host:6379/0?stream=alerts, perhaps with &maxlen=100000",
        )
    return RedisSink(urlunsplit(split._replace(query="")), stream, int(longest) if longest else None)
