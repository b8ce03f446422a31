"""Limits on connections that have not finished the handshake of TLS: how many from one address, and for how long.

asyncio hands a connection to its protocol when the handshake is done; before that it waits for a minute and counts
nothing.  So the socket that listens counts them here, from ``accept`` until the handshake is done or the connection is
closed, and closes at once what is too much.  The loop gives up a handshake that takes too long.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

from .limits import Limits

Peer = tuple[Any, ...]
"""An address and a port, as of ``socket.accept``."""


class Handshakes:
    """The connections whose handshake is not finished."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._peers: set[Peer] = set()
        self._of_address: Counter[str] = Counter()

    def begin(self, peer: Peer) -> bool:
        """Count one more, unless a limit is reached."""
        limits, address = self.limits, peer[0]
        if len(self._peers) >= limits.connections or self._of_address[address] >= limits.connections_per_address:
            return False
        self._peers.add(peer)
        self._of_address[address] += 1
        return True

    def end(self, peer: Peer) -> None:
        """It is finished, or the connection is closed; often both, one after the other."""
        if peer in self._peers:
            self._peers.remove(peer)
            self._of_address[peer[0]] -= 1
            if not self._of_address[peer[0]]:
                del self._of_address[peer[0]]


class Listener(socket.socket):
    """A socket that listens, and accepts no more than so many unfinished handshakes."""

    def __init__(self, listener: socket.socket, handshakes: Handshakes) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=listener.detach())
        self._handshakes = handshakes

    def accept(self) -> tuple[socket.socket, Peer]:
        """The next connection; one too many is closed, and ConnectionAbortedError tells asyncio to look again later."""
        accepted, peer = super().accept()
        if not self._handshakes.begin(peer):
            accepted.close()
            raise ConnectionAbortedError(f"too many handshakes of {peer[0]} are not finished")
        return _Accepted(accepted, peer, self._handshakes), peer


class _Accepted(socket.socket):
    """A connection that tells when it is closed."""

    def __init__(self, accepted: socket.socket, peer: Peer, handshakes: Handshakes) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._peer, self._handshakes = peer, handshakes

    def close(self) -> None:
        self._handshakes.end(self._peer)
        super().close()


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait so many seconds for a handshake."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", self._seconds)
        return await super().create_server(*arguments, **options)
