"""The nesting depth of a document, measured before any parser sees it.

RDF parsers fail on deep documents: ten thousand open braces of JSON-LD (150 kB) take gigabytes, and a hundred thousand
nested triple terms overflow the stack.
"""

from __future__ import annotations

import re
from itertools import accumulate

from .graphs import JSON, JSONLD, NDJSON
from .problems import Problem

# Parts whose brackets do not count: strings, IRIs, comments.  The expression never backtracks.
_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_TURTLE_TEXT = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*+"""'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    rb'|"(?:[^"\\\r\n]|\\.)*+"'
    rb"|'(?:[^'\\\r\n]|\\.)*+'"
    rb'|<[^\x00-\x20<>"{}|^`\\]*+>'
    rb"|#[^\r\n]*+"
    rb"|\\.",
    re.DOTALL,
)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]()<>"))
_STEPS = {byte: 1 if chr(byte) in "{[(<" else -1 for byte in b"{}[]()<>"}


def depth(data: bytes, media_type: str) -> int:
    """The deepest nesting of brackets outside of strings, IRIs and comments."""
    text = _JSON_TEXT if media_type in (JSONLD, JSON, NDJSON) else _TURTLE_TEXT
    brackets = text.sub(b" ", data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def check_depth(data: bytes, media_type: str, most: int) -> None:
    """Refuse documents that nest deeper than ``most``."""
    # A document of no more bytes than that cannot nest deeper, and needs no second look.
    if len(data) > most and (nested := depth(data, media_type)) > most:
        raise Problem("too-large", f"the body nests {nested} brackets deep; at most {most} are taken (document_depth)")
