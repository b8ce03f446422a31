"""Messages: text from elsewhere, which must not control the terminal that shows it, and what a slip was meant to be."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and newline, and those that turn the direction of writing or end a line."""
INTO_UTF8 = "save it in UTF-8, or convert it: iconv -f UTF-16 -t UTF-8 FILE"
"""What to do with a text in UTF-16, as some programs of Windows write it."""
FROM_LATIN1 = "save it in UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE"
"""What to do with a text whose bytes are not UTF-8: mostly it is in the encoding of Western Europe."""
_LONGEST, _CHOICES = 40, 300  # limits on comparisons to find a misspelling


def into_utf8(data: bytes) -> str:
    """What to do with a text that begins with these bytes and is not UTF-8."""
    return INTO_UTF8 if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else FROM_LATIN1


def query_text(data: bytes, name: str) -> str:
    """The text of a query; ``name`` is where it stands."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{name}, line {line}: a query is UTF-8 text, this is not; {into_utf8(data)}") from None


def in_characters(text: str) -> str:
    r"""The text with escapes for bytes of a file name that are not UTF-8, which Python keeps as halves of pairs.

    >>> print(in_characters("caf\udce9.rq"))
    caf\udce9.rq
    """
    return text.encode("utf-8", "backslashreplace").decode()


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


def closest(word: str, choices: Iterable[str]) -> str:
    """The choice that ``word`` is probably a misspelling of, or the empty string.

    Long words, and more than a few hundred choices, are not compared: they are unlikely to be typing errors.
    """
    if len(word) > _LONGEST:
        return ""
    lowered = {c.lower(): c for c in islice(choices, _CHOICES) if len(c) <= _LONGEST}
    matches = get_close_matches(word.lower(), lowered, n=1, cutoff=0.7)
    return lowered[matches[0]] if matches else ""


def how_many(count: int, one: str, more: str = "") -> str:
    """A number of things, in words for people.

    >>> how_many(1, "match", "matches"), how_many(2_500, "event")
    ('1 match', '2,500 events')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


__all__ = ["closest", "how_many", "into_utf8", "printable"]
