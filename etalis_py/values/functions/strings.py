"""Functions on strings and hashes ([SPARQL 1.1 Query] §17.4.3 and §17.4.6).

A *string literal* is a plain string or one with a language; functions that cut a string keep its language.  Positions
and lengths count Unicode characters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import isnan
from typing import Any
from urllib.parse import quote

from etalis_py.values.bounds import check_length, fitting
from etalis_py.values.errors import SparqlError, type_error
from etalis_py.values.functions.numbers import round_
from etalis_py.values.types import NUMERIC, LangString, to_double


def text_of(value: Any, function: str) -> str:
    """The text of a string literal; an error for anything else."""
    if value.__class__ is str:
        return value
    if value.__class__ is LangString:
        return value.text
    raise type_error(function, value)


def like(original: Any, text: str) -> Any:
    """The text with the language of the original."""
    return text if original.__class__ is str else LangString(text, original.language)


def utf8(text: str, function: str) -> bytes:
    """The text in UTF-8; lone surrogates have no encoding."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SparqlError(f"{function} of a text with a lone surrogate, which is not a Unicode character") from None


def strlen(value: Any) -> int:
    return len(text_of(value, "STRLEN"))


def substr(source: Any, start: Any, length: Any = None) -> Any:
    """SUBSTR(source, start) and SUBSTR(source, start, length): the first character has position 1 (fn:substring).

    >>> substr("foobar", 4), substr("foobar", 0, 3)
    ('bar', 'fo')
    """
    text = text_of(source, "SUBSTR")
    if start.__class__ not in NUMERIC or (length is not None and length.__class__ not in NUMERIC):
        raise type_error("SUBSTR", source, start, length)
    first = to_double(round_(start))
    end = len(text) + 1.0 if length is None else first + to_double(round_(length))
    if isnan(first) or isnan(end):
        return like(source, "")
    low, high = max(first, 1), min(end, len(text) + 1)
    return like(source, text[int(low) - 1 : int(high) - 1] if low < high else "")


def ucase(value: Any) -> Any:
    return like(value, fitting(text_of(value, "UCASE").upper(), "UCASE"))


def lcase(value: Any) -> Any:
    return like(value, fitting(text_of(value, "LCASE").lower(), "LCASE"))


def _compatible(a: Any, b: Any, function: str) -> tuple[str, str]:
    """The texts of two string literals; the second must have no language or that of the first (§17.4.3.1.2)."""
    left, right = text_of(a, function), text_of(b, function)
    if b.__class__ is LangString and (a.__class__ is not LangString or a.language != b.language):
        raise type_error(function, a, b)
    return left, right


def strstarts(a: Any, b: Any) -> bool:
    left, right = _compatible(a, b, "STRSTARTS")
    return left.startswith(right)


def strends(a: Any, b: Any) -> bool:
    left, right = _compatible(a, b, "STRENDS")
    return left.endswith(right)


def contains(a: Any, b: Any) -> bool:
    left, right = _compatible(a, b, "CONTAINS")
    return right in left


def strbefore(a: Any, b: Any) -> Any:
    """STRBEFORE: the part before the first occurrence; a plain "" when there is none.

    >>> strbefore(LangString("abc", "en"), "b"), strbefore(LangString("abc", "en"), "z")
    (LangString(text='a', language='en'), '')
    """
    left, right = _compatible(a, b, "STRBEFORE")
    at = left.find(right)
    return "" if at < 0 else like(a, left[:at])


def strafter(a: Any, b: Any) -> Any:
    """STRAFTER: the part after the first occurrence; a plain "" when there is none."""
    left, right = _compatible(a, b, "STRAFTER")
    at = left.find(right)
    return "" if at < 0 else like(a, left[at + len(right) :])


def concat(*values: Any) -> Any:
    """CONCAT: with the language of its arguments when they all have the same one."""
    texts = [text_of(value, "CONCAT") for value in values]
    check_length(sum(map(len, texts)), "CONCAT")
    text = "".join(texts)
    if values and values[0].__class__ is LangString:
        language = values[0].language
        if all(value.__class__ is LangString and value.language == language for value in values):
            return LangString(text, language)
    return text


def encode_for_uri(value: Any) -> str:
    """ENCODE_FOR_URI: everything but letters, digits and ``-_.~`` in percent-encoding."""
    return fitting(quote(utf8(text_of(value, "ENCODE_FOR_URI"), "ENCODE_FOR_URI"), safe=""), "ENCODE_FOR_URI")


def _hash(name: str) -> Callable[[Any], str]:
    function = name.upper()

    def digest(value: Any) -> str:
        if value.__class__ is not str:
            raise type_error(function, value)
        return hashlib.new(name, utf8(value, function), usedforsecurity=False).hexdigest()

    return digest


md5, sha1, sha256, sha384, sha512 = map(_hash, ("md5", "sha1", "sha256", "sha384", "sha512"))
