"""How two terms differ, from the most likely slip to no similarity at all.

>>> differing('"10"^^<http://www.w3.org/2001/XMLSchema#integer>', '"10"').text
'the same text, but one is an xsd:integer and the other a plain string'
>>> differing("<urn:acme>", "<urn:ACME>").text
'differs in upper and lower case only'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher

from etalis_rules.terms import RDF, XSD, iri_value, is_blank, is_iri, is_literal, parts

from etalis_py.values import SparqlError, decode, eq

NEAR = 1.0
"""Differences below this are likely to be slips."""

_ALIKE = 0.75  # share of two spellings that must agree for one to be a slip of the other
_LONGEST = 200
_TRUTH_WORDS = {"true": ("true", "yes", "y", "on", "t", "1"), "false": ("false", "no", "n", "off", "f", "0")}


@dataclass(frozen=True, slots=True)
class Difference:
    """``rank``: 0 for the same term, below ``NEAR`` for a likely slip, 2 for a different term altogether."""

    rank: float
    text: str


def differing(one: str, other: str) -> Difference:
    """What is different between two terms."""
    if one == other:
        return Difference(0.0, "the same term")
    if is_blank(one) or is_blank(other):
        return Difference(2.0, "another term")
    if is_iri(one) and is_iri(other):
        return _iris(iri_value(one), iri_value(other))
    if is_iri(one) or is_iri(other):
        iri, literal = (one, other) if is_iri(one) else (other, one)
        text, names = parts(literal)[0], (iri_value(iri), local_name(iri_value(iri)))
        if text.casefold() in map(str.casefold, names):
            return Difference(0.29 if text in names else 0.3, "one is an IRI, the other a text")
        return Difference(2.0, "another term")
    return _literals(one, other)


def nearest(term: str, among: Iterable[str]) -> tuple[str, Difference] | None:
    """The term in ``among`` most similar to another, which it is not."""
    ranked = ((differing(term, other), other) for other in among if other != term)
    best = min(ranked, key=lambda item: (item[0].rank, item[1]), default=None)
    return None if best is None else (best[1], best[0])


def slip_of(term: str, among: Iterable[str]) -> tuple[str, Difference] | None:
    """The term in ``among`` of which ``term`` is likely a slip."""
    closest = nearest(term, among)
    return closest if closest is not None and closest[1].rank < NEAR else None


def did_you_mean(term: str, among: Iterable[str], spell: Callable[[str], str]) -> str:
    """The end of a message that names the term of which ``term`` is likely a slip; empty if there is none.

    >>> did_you_mean("<urn:pirce>", ["<urn:price>", "<urn:volume>"], str)
    '; did you mean <urn:price>? (spelt a little differently)'
    """
    slip = slip_of(term, among) if term else None
    return "" if slip is None else f"; did you mean {spell(slip[0])}? ({slip[1].text})"


def local_name(iri: str) -> str:
    """The part after the last ``/``, ``#`` or ``:``."""
    return max((iri.rpartition(mark)[2] for mark in "/#:"), key=lambda name: (bool(name), -len(name)))


def _iris(one: str, other: str) -> Difference:
    if one.casefold() == other.casefold():
        return Difference(0.1, "differs in upper and lower case only")
    if one.rstrip("/#") == other.rstrip("/#"):
        return Difference(0.1, f"differs in the last {(one + other)[-1]!r} only".replace("'", "“", 1).replace("'", "”"))
    if one.removeprefix("https").removeprefix("http") == other.removeprefix("https").removeprefix("http"):
        return Difference(0.1, "differs in http and https only")
    own, theirs = local_name(one), local_name(other)
    if own and own == theirs:
        return Difference(0.2, "the same name in another namespace")
    if own and own.casefold() == theirs.casefold():
        return Difference(0.25, "the same name in another case and namespace")
    within = one[: len(one) - len(own)] == other[: len(other) - len(theirs)]
    return _spelling(own, theirs) if within else Difference(2.0, "another term")


def _literals(one: str, other: str) -> Difference:
    text, kind, language = parts(one)
    text2, kind2, language2 = parts(other)
    if text == text2:
        return Difference(
            0.1, f"the same text, but one is {_kind(kind, language)} and the other {_kind(kind2, language2)}"
        )
    try:
        if eq(decode(one), decode(other)):
            return Difference(0.1, "equal values, spelt differently; a join compares the spelling")
    except SparqlError:
        pass  # two terms that cannot be compared are not equal
    if (kind, language) != (kind2, language2):
        if is_truth_word(one, text2) or is_truth_word(other, text):
            return Difference(0.2, f"one is {_kind(kind, language)} and the other {_kind(kind2, language2)}")
        if text.strip() == text2.strip() or _one_number(text, text2):
            return Difference(0.2, f"one is {_kind(kind, language)} and the other {_kind(kind2, language2)}")
        return Difference(2.0, "another term")
    if text.casefold() == text2.casefold():
        return Difference(0.1, "differs in upper and lower case only")
    if "".join(text.split()) == "".join(text2.split()):
        return Difference(0.1, "differs in white space only")
    return Difference(2.0, "another value") if kind else _spelling(text, text2)


def _one_number(one: str, other: str) -> bool:
    """Whether two texts spell one number, as "5" and "5.0E0" do."""
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def is_truth_word(boolean: str, text: str) -> bool:
    """Whether a text, or number, probably means this xsd:boolean: "True", "yes" or 1 for true."""
    lexical, kind, _ = parts(boolean)
    return kind == XSD + "boolean" and text.strip().casefold() in _TRUTH_WORDS.get(lexical, ())


def two_kinds(one: str, other: str) -> str:
    """The kinds of two literals, in words; empty if they have one kind, or are not literals."""
    if not (is_literal(one) and is_literal(other)):
        return ""
    kinds = [_kind(datatype, language) for _, datatype, language in (parts(one), parts(other))]
    return "" if kinds[0] == kinds[1] else f"one is {kinds[0]} and the other {kinds[1]}"


def _kind(datatype: str, language: str) -> str:
    if language:
        return f"a text in “{language}”"
    if not datatype:
        return "a plain string"
    for prefix, namespace in (("xsd", XSD), ("rdf", RDF)):
        if datatype.startswith(namespace):
            name = f"{prefix}:{datatype.removeprefix(namespace)}"
            return f"an {name}"
    return f"a <{datatype}>"


def _spelling(one: str, other: str) -> Difference:
    share = SequenceMatcher(None, one[:_LONGEST].casefold(), other[:_LONGEST].casefold()).ratio()
    if share >= _ALIKE and not (one.isdigit() and other.isdigit()) and not _numbered(one, other):
        return Difference(1.0 - share / 2 - 0.01, "spelt a little differently")
    return Difference(2.0 - share / 2, "another term")


def _numbered(one: str, other: str) -> bool:
    """Whether the two differ only in a number, like ``room7`` and ``room8``: then they are two things, not a slip."""
    return one.rstrip("0123456789") == other.rstrip("0123456789") and one != other and one[-1:].isdigit()
