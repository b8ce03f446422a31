"""The HTTP server inside a run, for its figures and for readers of its matches."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0  # seconds


class Server(ThreadingHTTPServer):
    """A server whose clients may go away at any time: that is no error of the run."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers requests; a client that for ``PATIENCE`` sends or takes nothing is disconnected, as it holds a thread."""

    timeout = PATIENCE

    def answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log: readers come and go, and probes come every few seconds."""


__all__ = ["Handler", "Server"]
