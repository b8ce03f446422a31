"""Functions on terms ([SPARQL 1.1 Query] §17.4.2): their kinds, parts and making."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from typing import Any

from etalis_rules.terms import RDF, XSD, iri_value, is_triple_of, literal, parts, triple_parts
from etalis_rules.terms import triple as spelled

from etalis_py.values.bounds import fitting
from etalis_py.values.codec import decode
from etalis_py.values.errors import SparqlError, Unbound, type_error
from etalis_py.values.functions.iris import resolve
from etalis_py.values.oxigraph_terms import MOST_NESTED, TOO_DEEP
from etalis_py.values.types import NUMERIC, BlankValue, IriValue, LangString, TripleValue

_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_STRING = IriValue(f"{XSD}string")
_LANG_STRING = IriValue(f"{RDF}langString")
_DIR_LANG_STRING = IriValue(f"{RDF}dirLangString")
_NO_LITERALS = (IriValue, BlankValue, TripleValue)
_UNBOUND = "an unbound variable has no value; test it with BOUND or COALESCE"


def _first(term: str) -> str:
    if not term:
        raise Unbound(_UNBOUND)
    return term[0]


def is_iri(term: str) -> bool:
    return _first(term) == "<" and term[1] != "<"


def is_blank(term: str) -> bool:
    return _first(term) == "_"


def is_literal(term: str) -> bool:
    return _first(term) == '"'


def is_numeric(value: Any) -> bool:
    """Whether the value is a number; an ill-formed literal of a numeric datatype is not."""
    return value.__class__ in NUMERIC


def str_(term: str) -> str:
    """STR: the lexical form of a literal as it was written, or the IRI."""
    first = _first(term)
    if first == '"':
        return parts(term)[0]
    if first == "<" and term[1] != "<":
        return iri_value(term)
    raise type_error("STR", decode(term))


def lang(value: Any) -> str:
    """LANG: the language tag in lower case, "" for a literal without one."""
    if value.__class__ is LangString:
        return value.language.partition("--")[0]
    if value.__class__ in _NO_LITERALS:
        raise type_error("LANG", value)
    return ""


def lang_dir(value: Any) -> str:
    """LANGDIR: the base direction, "" for a literal without one ([SPARQL 1.2 Query] §17.4.2)."""
    if value.__class__ is LangString:
        return value.language.partition("--")[2]
    if value.__class__ in _NO_LITERALS:
        raise type_error("LANGDIR", value)
    return ""


def has_lang(value: Any) -> bool:
    """hasLANG: whether it is a string with a language."""
    return value.__class__ is LangString


def has_lang_dir(value: Any) -> bool:
    """hasLANGDIR: whether it is a string with a language and a base direction."""
    return value.__class__ is LangString and "--" in value.language


def str_lang_dir(lexical: Any, language: Any, direction: Any) -> LangString:
    """STRLANGDIR: the literal with this text, language tag and base direction (``ltr`` or ``rtl``)."""
    text = strlang(lexical, language)
    if direction.__class__ is not str or direction not in ("ltr", "rtl"):
        raise SparqlError(f'{direction!r} is not a base direction; write "ltr" or "rtl"')
    return LangString(text.text, f"{text.language}--{direction}")


# ---- triple terms ([SPARQL 1.2 Query] §17.4.6) ---------------------------------------------------------------------


def triple(subject: str, predicate: str, object: str) -> str:
    """TRIPLE: the triple term of three terms; an error where no triple could have them."""
    if not (subject and predicate and object):
        raise Unbound(_UNBOUND)
    if not is_triple_of(subject, predicate, object):
        raise SparqlError(
            f"TRIPLE({subject}, {predicate}, {object}): a subject is an IRI or a blank node, a predicate an IRI"
        )
    if object.count("<<(") >= MOST_NESTED:
        raise SparqlError(TOO_DEEP)
    return fitting(spelled(subject, predicate, object), "TRIPLE")


def is_triple(term: str) -> bool:
    return _first(term) == "<" and term[1] == "<"


def _part(name: str, place: int) -> Callable[[str], str]:
    def part(term: str) -> str:
        if not is_triple(term):
            raise type_error(name, decode(term))
        return triple_parts(term)[place]

    return part


subject_of, predicate_of, object_of = _part("SUBJECT", 0), _part("PREDICATE", 1), _part("OBJECT", 2)


def datatype(term: str) -> IriValue:
    """DATATYPE: xsd:string for a plain literal, rdf:langString for one with a language."""
    if _first(term) != '"':
        raise type_error("DATATYPE", decode(term))
    _, name, language = parts(term)
    if language:
        return _DIR_LANG_STRING if "--" in language else _LANG_STRING
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
        raise SparqlError(f'{language!r} is not a language tag; write one such as "en" or "en-GB"')
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


# ---- seeded by the match: the same seed, call and arguments give the same answer again ----------------------------


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
    """BNODE() and BNODE(name): the latter gives the same node for the same name within a solution, in every call."""
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
