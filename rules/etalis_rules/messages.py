"""Text from elsewhere in messages: a message is read in a terminal, and must not control it."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and newline, and those that turn the direction of writing or end a line."""


def printable(text: str) -> str:
    r"""The text with its control characters written as escapes.

    >>> print(printable("\x1b[31mred\x9b0m, two\nlines"))
    \x1b[31mred\x9b0m, two
    lines
    """
    return _CONTROLS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


__all__ = ["printable"]
