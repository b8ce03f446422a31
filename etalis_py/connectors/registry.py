"""Which connector an address belongs to: a table of schemes, to which other packages add theirs by entry points.

[project.entry-points."etalis_py.sinks"]
influx = "etalis_influx:open_sink"      # a function of the address and of ``Request``, which gives a ``Sink``

[project.entry-points."etalis_py.sources"]
nats = "etalis_nats:open_source"        # a function of the address, which gives a ``Source``
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urlsplit

from etalis_py.connectors.contracts import Sink, Source
from etalis_py.events.errors import SinkError, StreamError, check_no_password, without_password
from etalis_py.streams.lake_tables import is_lake_table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SINKS = {
    "postgresql": "etalis_py.connectors.postgres:open_sink",
    "postgres": "etalis_py.connectors.postgres:open_sink",
    "kafka": "etalis_py.connectors.kafka:open_sink",
    "redis": "etalis_py.connectors.redis_sink:open_sink",
    "rediss": "etalis_py.connectors.redis_sink:open_sink",
    "mqtt": "etalis_py.connectors.mqtt_sink:open_sink",
    "mqtts": "etalis_py.connectors.mqtt_sink:open_sink",
    "sse": "etalis_py.connectors.sse_sink:open_sink",
    "ws": "etalis_py.connectors.websocket_sink:open_sink",
    "wss": "etalis_py.connectors.websocket_sink:open_sink",
    "delta": "etalis_py.connectors.lake_sinks:open_sink",
    "iceberg": "etalis_py.connectors.lake_sinks:open_sink",
    "webhook": "etalis_py.connectors.webhook:open_sink",
    "webhook+http": "etalis_py.connectors.webhook:open_sink",
    "webhook+https": "etalis_py.connectors.webhook:open_sink",
}
_PATHS = {"delta", "iceberg"}  # schemes before what is no host
_NO_ADDRESS = "this is not an address: {}"
_WRITE = "write scheme://host:port/…, with a port up to 65535, and an IPv6 address in brackets: [::1]"
_BETWEEN_NAMES = re.compile("[,:]")
SOURCES = {
    "redis": "etalis_py.connectors.redis:open_source",
    "rediss": "etalis_py.connectors.redis:open_source",
    "mqtt": "etalis_py.connectors.mqtt:open_source",
    "mqtts": "etalis_py.connectors.mqtt:open_source",
    "sse+http": "etalis_py.connectors.sse:open_source",
    "sse+https": "etalis_py.connectors.sse:open_source",
    "ws": "etalis_py.connectors.websocket:open_source",
    "wss": "etalis_py.connectors.websocket:open_source",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What a sink may need to know of the run: the variables of each query, and whether matches may be taken back."""

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    revised: bool = False


def taken_from(query: str, name: str) -> tuple[str | None, str]:
    """A connector's own option in the query of an address, and all else, which belongs to the address as it is spelled.

    >>> taken_from("tag=a&as=json&tag=b&sig=%2B&flag", "as"), taken_from("tag=", "as")
    (('json', 'tag=a&tag=b&sig=%2B&flag'), (None, 'tag='))
    """
    parts = query.split("&")
    own = [part for part in parts if part.partition("=")[0] == name]
    return (own[-1].partition("=")[2] if own else None), "&".join(part for part in parts if part not in own)


def scheme_of(address: str) -> str:
    """
    >>> scheme_of("kafka://host/topic"), scheme_of("delta:s3://bucket/matches"), scheme_of("C:matches.jsonl")
    ('kafka', 'delta', '')
    """
    if is_lake_table(address):
        return address.partition(":")[0]
    return address.partition("://")[0].lower() if "://" in address else ""


def _found(scheme: str, own: Mapping[str, str], group: str) -> Callable[..., Any] | None:
    if scheme in own:
        module, _, name = own[scheme].partition(":")
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    for entry in _entries(group):
        if entry.name == scheme:
            return entry.load()  # type: ignore[no-any-return]
    return None


def _entries(group: str) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # takes a while to import

    return entry_points(group=group)


def schemes(own: Mapping[str, str], group: str) -> list[str]:
    return sorted({*own, *(entry.name for entry in _entries(group))})


def other_sources(address: str) -> str:
    """What to give instead of an address of which nothing can be read."""
    if address.startswith("file:"):
        return f"give the path alone: {unquote(urlsplit(address).path)}"
    known = ", ".join(f"{scheme}://" for scheme in schemes(SOURCES, "etalis_py.sources"))
    return (
        f"known are files, patterns, -, http(s)://, tcp://, kafka://, s3://, gs://, hdfs://, delta:, iceberg:, {known}"
    )


def is_sink(address: str) -> bool:
    return _is_known(scheme_of(address), SINKS, "etalis_py.sinks")


def is_source(address: str) -> bool:
    return _is_known(scheme_of(address), SOURCES, "etalis_py.sources")


def _is_known(scheme: str, own: Mapping[str, str], group: str) -> bool:
    """Whether there is a connector; other packages are only asked about schemes that nobody here knows."""
    return scheme in own or (scheme not in ("", "http", "https", "tcp", "s3") and scheme in schemes(own, group))


def open_sink(address: str, request: Request | None = None) -> Sink:
    """The sink of an address; one that nobody knows is an error that names those that are known."""
    made = _found(scheme_of(address), SINKS, "etalis_py.sinks")
    if made is None:
        known = ", ".join(f"{scheme}:" + "//" * (scheme not in _PATHS) for scheme in schemes(SINKS, "etalis_py.sinks"))
        raise SinkError(
            "no connector writes to this kind of address",
            target=without_password(address),
            hint=f"known are files, folders, http(s)://, {known}",
        )
    check_no_password(address, sink=True)
    try:
        _check_hosts(address)
        return made(address, request or Request())  # type: ignore[no-any-return]
    except StreamError as error:  # of what reads such addresses as well
        reason = error.reason if error.source in ("", without_password(address)) else f"{error.source}: {error.reason}"
        raise SinkError(reason, target=address, hint=error.hint) from None
    except ValueError as error:
        raise SinkError(_NO_ADDRESS.format(error), target=address, hint=_WRITE) from None


def open_source(address: str) -> Source:
    made = _found(scheme_of(address), SOURCES, "etalis_py.sources")
    if made is None:
        known = ", ".join(f"{scheme}://" for scheme in schemes(SOURCES, "etalis_py.sources"))
        raise StreamError(
            "no connector reads this kind of address", source=without_password(address), hint=f"known are {known}"
        )
    check_no_password(address)
    try:
        _check_hosts(address)
        return made(address)  # type: ignore[no-any-return]
    except StreamError:
        raise
    except ValueError as error:
        raise StreamError(_NO_ADDRESS.format(error), source=address, hint=_WRITE) from None


def _check_hosts(address: str) -> None:
    """ValueError if no name of a host can be looked up; there may be several, with commas between them."""
    for name in _BETWEEN_NAMES.split(urlsplit(address).netloc.rpartition("@")[2]):
        try:
            name.encode("idna")
        except UnicodeError:
            raise ValueError(f"{name!r} is no name of a host") from None


def missing(package: str, extra: str, address: str, *, sink: bool) -> NoReturn:
    """Refuse an address whose library is not installed."""
    address = without_password(address)
    reason, hint = f"needs the package {package}, which is not installed", f"pip install 'etalis-py[{extra}]'"
    if sink:
        raise SinkError(f"this sink {reason}", target=address, hint=hint)
    raise StreamError(f"this source {reason}", source=address, hint=hint)
