"""Text to tokens: the terminals of SPARQL 1.2 (§19.8) and of the extensions.

One compiled regular expression finds the next token; dictionaries classify words.  A word that is a keyword
in one place and a plain name in another (``range``, ``first``, ``count``) gets the keyword's type here; the automaton
takes it as a name if only a name fits (``readings``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from etalis_rules import durations
from etalis_rules.terms import unescape

from .ast import OF_THE_PAPER
from .diagnostics import Source


class Token(NamedTuple):
    """A piece of the text; ``start`` and ``end`` are offsets into the original text."""

    type: str
    text: str
    start: int
    end: int


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# name of a built-in function: fewest and most arguments (None: any number)
BUILTINS: dict[str, tuple[int, int | None]] = {
    "STR": (1, 1),
    "LANG": (1, 1),
    "LANGMATCHES": (2, 2),
    "DATATYPE": (1, 1),
    "BOUND": (1, 1),
    "IRI": (1, 1),
    "URI": (1, 1),
    "BNODE": (0, 1),
    "RAND": (0, 0),
    "ABS": (1, 1),
    "CEIL": (1, 1),
    "FLOOR": (1, 1),
    "ROUND": (1, 1),
    "CONCAT": (0, None),
    "STRLEN": (1, 1),
    "UCASE": (1, 1),
    "LCASE": (1, 1),
    "ENCODE_FOR_URI": (1, 1),
    "CONTAINS": (2, 2),
    "STRSTARTS": (2, 2),
    "STRENDS": (2, 2),
    "STRBEFORE": (2, 2),
    "STRAFTER": (2, 2),
    "SUBSTR": (2, 3),
    "REPLACE": (3, 4),
    "REGEX": (2, 3),
    "YEAR": (1, 1),
    "MONTH": (1, 1),
    "DAY": (1, 1),
    "HOURS": (1, 1),
    "MINUTES": (1, 1),
    "SECONDS": (1, 1),
    "TIMEZONE": (1, 1),
    "TZ": (1, 1),
    "NOW": (0, 0),
    "UUID": (0, 0),
    "STRUUID": (0, 0),
    "MD5": (1, 1),
    "SHA1": (1, 1),
    "SHA256": (1, 1),
    "SHA384": (1, 1),
    "SHA512": (1, 1),
    "COALESCE": (0, None),
    "IF": (3, 3),
    "STRLANG": (2, 2),
    "STRDT": (2, 2),
    "SAMETERM": (2, 2),
    "ISIRI": (1, 1),
    "ISURI": (1, 1),
    "ISBLANK": (1, 1),
    "ISLITERAL": (1, 1),
    "ISNUMERIC": (1, 1),
    "TRIPLE": (3, 3),
    "SUBJECT": (1, 1),
    "PREDICATE": (1, 1),
    "OBJECT": (1, 1),
    "ISTRIPLE": (1, 1),
    "LANGDIR": (1, 1),
    "HASLANG": (1, 1),
    "HASLANGDIR": (1, 1),
    "STRLANGDIR": (3, 3),
    "GETDURATION": (0, 0),
    "GETSTARTTIME": (0, 0),
    "GETENDTIME": (0, 0),
}
# how the papers write the functions of EP-SPARQL
CAMEL = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
AGGREGATES = words("SUM MIN MAX AVG SAMPLE")

# words of SPARQL and of the temporal operators that are never plain names
_HARD = words(
    """BASE PREFIX SELECT CONSTRUCT DESCRIBE ASK DISTINCT REDUCED FROM NAMED WHERE GRAPH OPTIONAL MINUS FILTER
    BIND VALUES SERVICE SILENT GROUP GROUPBY BY HAVING ORDER ORDERBY LIMIT OFFSET AS UNDEF TRUE FALSE IN NOT EXISTS
    WITHIN"""
) | {operator.value for operator in OF_THE_PAPER}
_NO_WORDS = words("PNAME_LN PNAME_NS BLANK $END")

_BASE = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
_BASE += "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_U = _BASE + "_"
_MORE = "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = _U + r"\-" + _MORE
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = rf"(?:[{_U}:0-9]|{_PLX})(?:\.*+(?:[{_CHARS}:]|{_PLX}))*+"
_PREFIX = rf"[{_BASE}](?:\.*+[{_CHARS}])*+"
_CODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_ESC = rf"\\[tbnrf\\\"']|{_CODE}"
_EXP = r"[eE][+-]?[0-9]+"
_NUMBER = rf"[0-9]+\.[0-9]*{_EXP}|\.[0-9]+{_EXP}|[0-9]+{_EXP}|[0-9]*\.[0-9]+"

PIECE = re.compile(
    rf"""(?P<SKIP>(?:[ \t\r\n]++|\#[^\r\n]*+)++)
    |(?P<IRIREF><(?>(?:[^<>"{{}}|^`\\\x00-\x20]|{_CODE})*)>)
    |(?P<VAR>[?$][{_U}0-9][{_U}{_MORE}]*)
    |(?P<BLANK>_:[{_U}0-9](?:\.*+[{_CHARS}])*+)
    |(?P<PNAME_LN>(?:{_PREFIX})?:(?:{_LOCAL}))
    |(?P<PNAME_NS>(?:{_PREFIX})?:)
    |(?P<DURATION>{durations.PATTERN}(?![{_CHARS}]))
    |(?P<WORD>[{_U}][{_CHARS}]*)
    |(?P<SIGNED>[+-](?:{_NUMBER}|[0-9]+))
    |(?P<NUMBER>{_NUMBER})
    |(?P<INTEGER>[0-9]+)
    |(?P<LONG>\"\"\"(?>(?:\"{{0,2}}(?:[^\"\\]|{_ESC}))*)\"\"\"|'''(?>(?:'{{0,2}}(?:[^'\\]|{_ESC}))*)''')
    |(?P<STRING>"(?>(?:[^"\\\r\n]|{_ESC})*)"|'(?>(?:[^'\\\r\n]|{_ESC})*)')
    |(?P<LANGTAG>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?)
    |(?P<MARK>\^\^|\|\||&&|!=|<=|>=|<<\(|\)>>|<<|>>|{{\||\|}}|[{{}}()\[\].,;*/|^!?+=<>~-])
    """.replace("\n    ", ""),
)
_CODE_POINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_IRIS = frozenset('<>"{}|^`\\') | set(map(chr, range(0x21)))


def tokens(source: Source, literals: dict[str, str]) -> Iterator[Token]:
    """The tokens of the text; ``literals`` gives the type of each keyword and mark of the grammar.

    Code point escapes (``\\u00e9``) belong to the tokens of IRIs and strings and stand nowhere else ([SPARQL 1.2 Query]
    §19.2; SPARQL 1.1 replaced them before it looked for tokens, so that ``"\\u0022"`` was a string without an end).
    They are replaced here in an IRI; those of a string are replaced with its other escapes, by ``terms.unescape``.
    """
    data, match = source.text, PIECE.match
    if bad := _SURROGATE.search(data):
        message = "the text holds half of a surrogate pair, which is no character"
        raise source.error("character", message, bad.start(), bad.end())
    place, size = (1 if data[:1] == "\ufeff" else 0), len(data)  # a byte order mark is not part of the text
    while place < size:
        token = match(data, place)
        if token is None:
            raise _unreadable(source, place)
        end = token.end()
        kind = token.lastgroup or ""
        if kind != "SKIP":
            piece = token[0]
            if kind == "WORD":
                if piece[:4].upper() == "NOW-" and not piece[4:5].isalpha():  # SPARQLstream: [NOW- 4 S], [NOW-4s]
                    end, piece = place + 3, piece[:3]
                kind = _word(piece, literals)
            elif kind == "MARK":
                kind = literals.get(piece, "MARK")
            elif kind == "STRING" and len(piece) == 2 and data[end : end + 1] == piece[0]:
                raise _unreadable(source, place)  # three quotes that are never closed
            elif "\\" in piece and kind in ("IRIREF", "STRING", "LONG"):
                _check_escapes(source, place, end, kind)
                piece = unescape(piece) if kind == "IRIREF" else piece
            yield Token("STRING" if kind == "LONG" else kind, piece, place, end)
        place = end


def _check_escapes(source: Source, start: int, end: int, kind: str) -> None:
    """Refuse escapes of code points that are no characters, or none that an IRI may hold."""
    for escape in _CODE_POINT.finditer(source.text, start, end):
        if digits := escape[1] or escape[2]:
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise source.error("character", f"{escape[0]} is no character", escape.start(), escape.end())
            if kind == "IRIREF" and chr(code) in _NOT_IN_IRIS:
                message = f"an IRI may not hold {chr(code)!r} (U+{code:04X}), not even as an escape"
                hint = "write it percent-encoded: " + "".join(f"%{byte:02X}" for byte in chr(code).encode())
                raise source.error("character", message, escape.start(), escape.end(), hint=hint)


def _word(word: str, literals: dict[str, str]) -> str:
    if word == "a":
        return literals["a"]
    upper = word.upper()
    if upper in literals:
        return literals[upper]
    if upper in BUILTINS:
        return "BUILTIN"
    if upper in AGGREGATES:
        return "AGGREGATE"
    return "NAME"


def readings(token: Token) -> tuple[str, ...]:
    """The other types that a word can have if its first one does not fit: a function, a plain name."""
    text = token.text
    if not (text[:1].isalpha() or text[:1] == "_") or text == "a" or token.type in _NO_WORDS:
        return ()
    upper = text.upper()
    if upper in _HARD or (token.type == "DURATION" and "." in text):
        return ()
    return ("BUILTIN", "NAME") if upper in BUILTINS else ("NAME",)


def _unreadable(source: Source, place: int) -> Exception:
    """The error for a character at which no token begins."""
    char = source.text[place]
    hint = ""
    if char in "\"'":
        message = "this string is not closed, or holds an unknown escape"
        hint = "close it on the same line, or use three quotes for a text of several lines; "
        hint += "a backslash is written \\\\ and escapes are \\t \\b \\n \\r \\f \\\" \\' \\u00e9 \\U000000e9"
    elif char == "&":
        message, hint = "a single '&' means nothing here", "logical and is written '&&'"
    elif char == "@":
        message = "'@' begins a language tag, which must be letters, as in \"chat\"@fr"
    elif char == "\\" and (escape := _CODE_POINT.match(source.text, place)) and (escape[1] or escape[2]):
        message, hint = "a code point escape can stand only inside a string or an IRI", "write the character itself"
    elif char == "\\":
        message = "a backslash can stand only inside a string or a local name"
    elif char in "“”„‟‘’‚‛«»":
        message = f"{char} (U+{ord(char):04X}) is no quote of a query"
        hint = "a text stands between straight quotes, as \"acme\" or 'acme'"
    else:
        message = f"the character {char!r} (U+{ord(char):04X}) means nothing in a query"
        hint = "the remainder of ?x by 2 is ?x - 2 * FLOOR(?x / 2)" if char == "%" else ""
    return source.error("syntax", message, place, place + 1, hint=hint)
