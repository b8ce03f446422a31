"""The HTTP server inside a run, for its figures and for readers of its matches."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """A server whose clients may go away at any time: that is no error of the run."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


__all__ = ["Server"]
