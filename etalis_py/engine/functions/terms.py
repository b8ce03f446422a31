"""Functions on terms ([SPARQL 1.1 Query] §17.4.2): their kinds, parts and making."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Any

from etalis_rules.terms import RDF, XSD, iri_value, literal, parts

from etalis_py.engine.functions.iris import resolve
from etalis_py.engine.values.codec import decode
from etalis_py.engine.values.errors import SparqlError, Unbound, type_error
from etalis_py.engine.values.types import NUMERIC, BlankValue, IriValue, LangString

_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_STRING = IriValue(f"{XSD}string")
_LANG_STRING = IriValue(f"{RDF}langString")
_UNBOUND = "an unbound variable has no value; test it with BOUND or COALESCE"


def _first(term: str) -> str:
    if not term:
        raise Unbound(_UNBOUND)
    return term[0]


def is_iri(term: str) -> bool:
    return _first(term) == "<"


def is_blank(term: str) -> bool:
    return _first(term) == "_"


def is_literal(term: str) -> bool:
    return _first(term) == '"'


def is_numeric(value: Any) -> bool:
    """Whether the value is a number; an ill-formed literal of a numeric datatype is none."""
    return value.__class__ in NUMERIC


def str_(term: str) -> str:
    """STR: the lexical form of a literal as it was written, or the IRI."""
    first = _first(term)
    if first == '"':
        return parts(term)[0]
    if first == "<":
        return iri_value(term)
    raise type_error("STR", decode(term))


def lang(value: Any) -> str:
    """LANG: the language tag in lower case, "" for a literal without one."""
    if value.__class__ is LangString:
        return value.language
    if value.__class__ is IriValue or value.__class__ is BlankValue:
        raise type_error("LANG", value)
    return ""


def datatype(term: str) -> IriValue:
    """DATATYPE: xsd:string for a plain literal, rdf:langString for one with a language."""
    if _first(term) != '"':
        raise type_error("DATATYPE", decode(term))
    _, name, language = parts(term)
    if language:
        return _LANG_STRING
    return IriValue(name) if name else _STRING


def iri(base: str, value: Any) -> IriValue:
    """IRI and URI: the IRI named by a string, relative to the base."""
    if value.__class__ is IriValue:
        return value
    if value.__class__ is str:
        return IriValue(resolve(value, base))
    raise type_error("IRI", value)


def strdt(lexical: Any, name: Any) -> Any:
    """STRDT: the literal with this lexical form and datatype."""
    if lexical.__class__ is not str or name.__class__ is not IriValue:
        raise type_error("STRDT", lexical, name)
    return literal(lexical, name)


def strlang(lexical: Any, language: Any) -> LangString:
    """STRLANG: the literal with this text and language tag."""
    if lexical.__class__ is not str or language.__class__ is not str:
        raise type_error("STRLANG", lexical, language)
    if not _LANGUAGE_TAG.fullmatch(language):
        raise SparqlError(f'{language!r} is no language tag; write one such as "en" or "en-GB"')
    return LangString(lexical, language.lower())


def lang_matches(tag: Any, language_range: Any) -> bool:
    """LANGMATCHES: basic filtering of RFC 4647 §3.3.1.

    >>> lang_matches("en-gb", "EN"), lang_matches("", "*"), lang_matches("eng", "en")
    (True, False, False)
    """
    if tag.__class__ is not str or language_range.__class__ is not str:
        raise type_error("LANGMATCHES", tag, language_range)
    if language_range == "*":
        return tag != ""
    tag, language_range = tag.lower(), language_range.lower()
    return bool(tag == language_range or tag.startswith(language_range + "-"))


# ---- seeded by the match (DESIGN §4.12): the same seed, call and arguments give the same answer again -------------


def _digest(seed: bytes | str, index: int, purpose: bytes, text: str = "") -> bytes:
    state = hashlib.blake2b(purpose, digest_size=16)
    for part in (
        seed if isinstance(seed, bytes) else seed.encode(),
        str(index).encode(),
        text.encode("utf-8", "surrogatepass"),
    ):
        state.update(len(part).to_bytes(8, "big") + part)
    return state.digest()


def bnode(seed: bytes | str, index: int, name: Any = None) -> BlankValue:
    """BNODE() and BNODE(name): the latter gives one node for one name within a solution, whichever call asks."""
    if name is None:
        return BlankValue("_:b" + _digest(seed, index, b"bnode").hex())
    if name.__class__ is not str:
        raise type_error("BNODE", name)
    return BlankValue("_:b" + _digest(seed, 0, b"named bnode", name).hex())


def rand(seed: bytes | str, index: int) -> float:
    """RAND: an xsd:double in [0, 1) with 53 random bits."""
    return (int.from_bytes(_digest(seed, index, b"rand")[:8], "big") >> 11) / (1 << 53)


def struuid(seed: bytes | str, index: int) -> str:
    """STRUUID: a UUID of version 4."""
    return str(uuid.UUID(bytes=_digest(seed, index, b"uuid"), version=4))


def uuid_iri(seed: bytes | str, index: int) -> IriValue:
    """UUID: ``urn:uuid:`` and a UUID of version 4."""
    return IriValue("urn:uuid:" + struuid(seed, index))
