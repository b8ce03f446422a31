"""``tcp://host:port``: data from a connection, as one stream; it ends when the sender closes it."""

from __future__ import annotations

import contextlib
import re
import socket

from etalis_py.events.errors import StreamError

PATIENCE = 10.0  # seconds within which a connection must be made
LAST_PORT = 65_535
_ADDRESS = re.compile(r"tcp://(?P<host>\[[\da-fA-F:.%]+\]|[^\s:/?#@\[\]]+)(?::(?P<port>[^/?#]*))?/?")
_EXAMPLE = "write tcp://host:port, as tcp://localhost:9999"


def is_socket(source: str) -> bool:
    """
    >>> is_socket("tcp://localhost:9999"), is_socket("ticks.nq")
    (True, False)
    """
    return source.startswith("tcp://")


def parse_address(url: str) -> tuple[str, int]:
    """The host and the port of an address.

    >>> parse_address("tcp://localhost:9999"), parse_address("tcp://[::1]:9999")
    (('localhost', 9999), ('::1', 9999))
    """
    address = _ADDRESS.fullmatch(url)
    if address is None:
        raise StreamError("this is not the address of a socket", source=url, hint=_EXAMPLE)
    host, port = address["host"].strip("[]"), address["port"]
    if not port:
        raise StreamError("this address has no port", source=url, hint=_EXAMPLE)
    if not (port.isdecimal() and 0 < int(port) <= LAST_PORT):
        raise StreamError(f"a port is a number from 1 to {LAST_PORT}, found {port!r}", source=url, hint=_EXAMPLE)
    return host, int(port)


class Connection:
    """The bytes of a connection, as they arrive."""

    def __init__(self, url: str) -> None:
        host, port = parse_address(url)
        try:
            self._socket = socket.create_connection((host, port), PATIENCE)
        except socket.gaierror as error:
            reason = f"there is no host {host} ({error.strerror})"
            raise StreamError(reason, source=url, hint="check the name of the host") from None
        except TimeoutError:
            reason = f"there was no answer within {PATIENCE:g} seconds"
            raise StreamError(reason, source=url, hint="check the address, and what lies between") from None
        except ConnectionRefusedError:
            hint = f"start the sender first, as {{ cat ticks.jsonl; cat; }} | nc -l {port}"
            raise StreamError("nobody listens there", source=url, hint=hint) from None
        except OSError as error:
            raise StreamError(f"no connection: {error.strerror or error}", source=url) from None
        self._socket.settimeout(None)
        # The system notices after a while if a sender has disappeared without closing the connection.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def read1(self, size: int) -> bytes:
        """At most ``size`` bytes, as soon as there are some; empty when the sender has closed the connection."""
        try:
            return self._socket.recv(size)
        except OSError as error:
            raise OSError(f"the connection was lost ({error.strerror or error})") from None

    read = read1

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the sender may have closed it already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in read1
        self._socket.close()
