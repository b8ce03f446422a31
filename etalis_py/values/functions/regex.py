r"""REGEX and REPLACE ([SPARQL 1.1 Query] §17.4.3.14 and 15) on a linear-time engine.

The pattern language is that of XPath (fn:matches, fn:replace), translated to RE2, whose time grows with the length of
the text times the length of the pattern, never exponentially.  What RE2 cannot do (back-references, look-around, class
subtraction, block escapes) is refused when the pattern is compiled, with the construct named.

- flags: ``i`` without case, ``s`` the dot takes newlines, ``m`` ``^`` and ``$`` at every line, ``x`` white space in
  the pattern is left out (but in classes), ``q`` the pattern is plain text.
- ``\d \s \i \c`` are as in XPath.  ``\w`` is a letter, mark, decimal digit or connecting punctuation such as ``_``;
  XML Schema leaves ``_`` out and takes ``+`` in, which no SPARQL processor does.
- ``\b \B \A \z`` and ``(?i)`` are accepted too: XPath has no meaning for them.
- REPLACE: ``$1`` is the first group, ``$0`` the match, ``\$`` and ``\\`` the characters; a pattern that matches the
  empty string is an error, as in XPath.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from etalis_py.values.bounds import check_length
from etalis_py.values.errors import SparqlError, type_error
from etalis_py.values.functions.strings import like, text_of, utf8

CACHED_PATTERNS = 128
LONGEST_PATTERN = 10_000

_WHITE = "\t\n\r "
_WORD = r"\p{L}\p{M}\p{Nd}\p{Pc}"
_NOT_WORD = r"\p{Nl}\p{No}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\p{S}\p{Z}\p{C}"
_NAME_START = (
    r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}"
    r"\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}"
)
_NAME = _NAME_START + r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}"

# What an escape means inside a class; outside, the same in brackets (capital letters: the complement).
_CLASSES = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": _WORD,
    "W": _NOT_WORD,
    "s": r" \t\n\r",
    "S": r"\x00-\x08\x0B\x0C\x0E-\x1F!-\x{10FFFF}",
    "i": _NAME_START,
    "c": _NAME,
}
_COMPLEMENTS = {"D": r"\P{Nd}", "W": f"[^{_WORD}]", "S": r"[^ \t\n\r]", "I": f"[^{_NAME_START}]", "C": f"[^{_NAME}]"}
_PLAIN_ESCAPES = frozenset("nrt\\|.?*+(){}-[]^$/ #&~")
_ANCHORS = frozenset("bBAz")
_GROUP_REFUSALS = (
    ("(?=", "look-ahead"),
    ("(?!", "look-ahead"),
    ("(?<=", "look-behind"),
    ("(?<!", "look-behind"),
    ("(?>", "an atomic group"),
    ("(?(", "a conditional group"),
)


class RegexError(SparqlError):
    """A pattern, flags or replacement that cannot be used; the message names the place."""


def _refuse(pattern: str, at: int, what: str) -> RegexError:
    return RegexError(f"regular expression {pattern!r}, character {at + 1}: {what}")


def _escape_at(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    """The translation of the escape whose backslash stands at ``at``, and where it ends."""
    letter = pattern[at + 1 : at + 2]
    if not letter:
        raise _refuse(pattern, at, "nothing follows the backslash; write \\\\ for the character itself")
    if letter in _CLASSES and in_class:
        return _CLASSES[letter], at + 2
    if letter in _COMPLEMENTS and not in_class:
        return _COMPLEMENTS[letter], at + 2
    if letter in _CLASSES:
        return f"[{_CLASSES[letter]}]", at + 2
    if letter in "pP":
        close = pattern.find("}", at)
        if pattern[at + 2 : at + 3] != "{" or close < 0:
            raise _refuse(pattern, at, f"\\{letter} needs a category in braces, such as \\{letter}{{Lu}}")
        if pattern[at + 3 : at + 5] == "Is":
            raise _refuse(pattern, at, "Unicode blocks are not supported; write a category, a script or a range")
        return pattern[at : close + 1], close + 1
    if letter.isdigit():
        raise _refuse(pattern, at, "back-references are not supported: they have no linear-time matching")
    if letter in _ANCHORS and not in_class:
        return pattern[at : at + 2], at + 2
    if letter in _PLAIN_ESCAPES:
        return (pattern[at : at + 2] if letter not in " /#&~" else f"[{letter}]" if not in_class else letter), at + 2
    raise _refuse(pattern, at, f"\\{letter} has no meaning here")


def _class_at(pattern: str, start: int) -> tuple[str, int]:
    """The translation of the character class whose bracket stands at ``start``, and where it ends."""
    pieces, at = ["["], start + 1
    if pattern[at : at + 1] == "^":
        pieces.append("^")
        at += 1
    first = at
    while at < len(pattern):
        character = pattern[at]
        if character == "]" and at > first:
            return "".join([*pieces, "]"]), at + 1
        if character == "\\":
            piece, at = _escape_at(pattern, at, in_class=True)
            pieces.append(piece)
            continue
        if character == "[":
            raise _refuse(pattern, at, "class subtraction is not supported; write \\[ for the character itself")
        pieces.append("\\]" if character == "]" else character)
        at += 1
    raise _refuse(pattern, start, "the character class is not closed by ]")


def _pieces(pattern: str, extended: bool) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            piece, at = _escape_at(pattern, at, in_class=False)
            yield piece
        elif character == "[":
            piece, at = _class_at(pattern, at)
            yield piece
        else:
            if character == "(":
                for opening, name in _GROUP_REFUSALS:
                    if pattern.startswith(opening, at):
                        raise _refuse(pattern, at, f"{name} is not supported: it has no linear-time matching")
            if not (extended and character in _WHITE):
                yield character
            at += 1


def translate(pattern: str, flags: str = "") -> str:
    r"""The RE2 pattern of an XPath pattern and its flags.

    >>> translate("a b.", "xi"), translate("a.b", "q")
    ('(?i)ab.', 'a\\.b')
    """
    unknown = next((flag for flag in flags if flag not in "smixq"), None)
    if unknown is not None:
        raise RegexError(f"regular expression flag {unknown!r} is unknown; the flags are s, m, i, x and q")
    if len(pattern) > LONGEST_PATTERN:
        raise RegexError(f"regular expression of {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed")
    if "q" in flags:
        return ("(?i)" if "i" in flags else "") + str(re2.escape(pattern))
    inline = "".join(flag for flag in "ims" if flag in flags)
    return (f"(?{inline})" if inline else "") + "".join(_pieces(pattern, "x" in flags))


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=CACHED_PATTERNS)
def compile_regex(pattern: str, flags: str = "") -> Any:
    """The compiled pattern, from a bounded cache; raises ``RegexError``. Constant patterns are checked with it."""
    try:
        return re2.compile(translate(pattern, flags), _OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise RegexError(f"regular expression {pattern!r}: {text}") from None
    except UnicodeEncodeError:
        raise RegexError(f"regular expression {pattern!r} holds a lone surrogate") from None


def _checked(function: str, text: Any, *strings: Any) -> str:
    if any(value.__class__ is not str for value in strings):
        raise type_error(function, text, *strings)
    plain = text_of(text, function)
    if not plain.isascii():
        utf8(plain, function)
    return plain


def regex(text: Any, pattern: Any, flags: Any = "") -> bool:
    """REGEX: whether the pattern matches somewhere in the text."""
    plain = _checked("REGEX", text, pattern, flags)
    return compile_regex(pattern, flags).search(plain) is not None


Replacement = tuple[str | int, ...]


@lru_cache(maxsize=CACHED_PATTERNS)
def compile_replacement(replacement: str, groups: int, literal: bool = False) -> Replacement:
    r"""The replacement as texts and group numbers; a number takes as many digits as there are groups for.

    >>> compile_replacement(r"[$1]\$", 1), compile_replacement("$12", 1), compile_replacement("$3", 1)
    (('[', 1, ']', '$'), (1, '2'), (3,))
    """
    if literal:
        return (replacement,)
    pieces: list[str | int] = []
    at, text = 0, ""
    while at < len(replacement):
        character, after = replacement[at], replacement[at + 1 : at + 2]
        if character == "\\":
            if after not in ("\\", "$"):
                raise RegexError(f"replacement {replacement!r}: a backslash stands only before $ or another backslash")
            pieces += [text, after] if text else [after]
            text, at = "", at + 2
        elif character == "$":
            if not (after.isascii() and after.isdigit()):
                raise RegexError(
                    f"replacement {replacement!r}: $ needs the number of a group; write \\$ for the character"
                )
            number, at = int(after), at + 2
            while (
                at < len(replacement)
                and replacement[at] in "0123456789"
                and number * 10 + int(replacement[at]) <= groups
            ):
                number, at = number * 10 + int(replacement[at]), at + 1
            pieces += [text, number] if text else [number]
            text = ""
        else:
            text, at = text + character, at + 1
    return (*pieces, text) if text else tuple(pieces)


def replace(source: Any, pattern: Any, replacement: Any, flags: Any = "") -> Any:
    """REPLACE: every match, from the left and without overlap, by the replacement."""
    text = _checked("REPLACE", source, pattern, replacement, flags)
    compiled = compile_regex(pattern, flags)
    if compiled.search("") is not None:
        raise RegexError(f"REPLACE: the pattern {pattern!r} matches the empty string; replace * by + in it")
    groups = compiled.groups
    pieces = [p.encode() if isinstance(p, str) else p for p in compile_replacement(replacement, groups, "q" in flags)]
    data = text.encode()  # re2 counts characters from the start for every match of a str, but not of bytes
    done: list[bytes] = []
    end = length = 0
    for match in compiled.finditer(data):
        put = [data[end : match.start()]]
        for piece in pieces:
            if isinstance(piece, bytes):
                put.append(piece)
            elif piece <= groups:
                put.append(match.group(piece) or b"")
        length += sum(map(len, put))
        check_length(length, "REPLACE")
        done += put
        end = match.end()
    done.append(data[end:])
    return like(source, b"".join(done).decode())
