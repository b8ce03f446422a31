"""The HTTP server inside a run, for its figures and for readers of its matches."""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit, urlunsplit

PATIENCE = 20.0  # seconds


class Server(ThreadingHTTPServer):
    """A server whose clients may go away at any time: that is no error of the run."""

    daemon_threads = True

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        super().__init__(place, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers requests; a client that for ``PATIENCE`` sends or takes nothing is disconnected, as it holds a thread.

    ``HEAD`` gets what ``GET`` does, without the body.
    """

    timeout = PATIENCE
    error_content_type, error_message_format = "text/plain", "%(message)s\n"

    def parse_request(self) -> bool:
        readable = super().parse_request()
        if readable and not self.path.startswith("/"):  # the whole address, as a client of a proxy writes it
            parts = urlsplit(self.path)
            self.path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        return readable

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        raise NotImplementedError

    def answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log: readers come and go, and probes come every few seconds."""


__all__ = ["Handler", "Server"]
