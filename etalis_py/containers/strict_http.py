"""The heads of requests, read strictly: where two readers of HTTP could disagree, the request is refused.

h11 reads some heads leniently.  It takes a bare line feed for the end of a line, joins folded lines, and where both are
given prefers Transfer-Encoding to Content-Length.  All of this is allowed (RFC 9112 §2.2, §5.2, §6.3), but a proxy that
chooses otherwise sees other requests than this server does, and its rules can be passed by.
"""

from __future__ import annotations

from typing import Never

from h11 import RemoteProtocolError
from h11._receivebuffer import ReceiveBuffer

_LENGTH, _ENCODING = b"content-length:", b"transfer-encoding:"


class HeadLines(ReceiveBuffer):
    """What has arrived and is not read yet; ``fault`` says why a head was refused."""

    def __init__(self) -> None:
        super().__init__()
        self._checked = 0
        self.fault = ""

    def _extract(self, count: int) -> bytearray:
        self._checked = 0
        taken: bytearray = super()._extract(count)
        return taken

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head (or of the trailer of a body) up to an empty one, if that has arrived."""
        self._check_line_feeds()
        if self._data[:2] != b"\r\n" and b"\r\n\r\n" not in self._data:
            return None
        lines: list[bytearray] = super().maybe_extract_lines() or []
        self._check_lines(lines)
        return lines

    def _check_line_feeds(self) -> None:
        """Every line feed of the head follows a carriage return; each byte is looked at once."""
        end = self._data.find(b"\r\n\r\n", max(0, self._checked - 3))
        until = len(self._data) if end < 0 else end
        at = self._data.find(b"\n", self._checked, until)
        while at >= 0:
            if not at or self._data[at - 1] != 0x0D:
                self._refuse("a line of the request's head ends with a line feed alone; lines end with CR LF")
            at = self._data.find(b"\n", at + 1, until)
        self._checked = until

    def _check_lines(self, lines: list[bytearray]) -> None:
        names = [bytes(line).lower() for line in lines]
        if any(line[:1] in (b" ", b"\t") for line in names):
            self._refuse("a header goes on in a second line; send it in one")
        encoded = any(line.startswith(_ENCODING) for line in names)
        if encoded and any(line.startswith(_LENGTH) for line in names):
            self._refuse("the request has a Content-Length and a Transfer-Encoding; send one of them")
        if encoded and names[0].endswith(b"http/1.0"):
            self._refuse("a request of HTTP/1.0 has a Transfer-Encoding; send it with a Content-Length")

    def _refuse(self, fault: str) -> Never:
        self.fault = fault
        raise RemoteProtocolError(fault)
