"""What may be in an event, and how it is spelled.

Engines compare terms by their spelling, so an event has canonical ones.  Spellings that were found canonical are
remembered by their places, and looked up the next time.
"""

from __future__ import annotations

import re
from operator import index
from typing import Any

from etalis_rules.terms import iri, is_blank, is_iri

from etalis_py.events.clock import MAX_TIME, MIN_TIME
from etalis_py.events.spelling import PATTERNS, spell_term

SUBJECTS: set[str] = set()
PREDICATES: set[str] = set()
OBJECTS: set[str] = set()
NAMES: set[str] = {""}
"""Canonical terms by their places: subjects, predicates, objects, names of streams and graphs."""

_MOST = 1 << 16  # terms that are remembered
_PLACES = (("s", SUBJECTS), ("p", PREDICATES), ("o", OBJECTS))
_USUAL = {name: re.compile(PATTERNS[name]) for name in "spo"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_EX = "http://example.org/"
_SHAPE = "an event has a tuple of triples, each of three terms, as (('<urn:a>', '<urn:p>', '\"1\"'),)"


def checked(start: Any, end: Any, triples: Any, stream: Any, graph: Any) -> tuple[Any, ...]:
    """The fields of an event in canonical form; raises TypeError or ValueError for what cannot be one."""
    return (
        _time(start, "start"),
        _time(end, "end"),
        _triples(triples),
        name_of(stream, "stream"),
        name_of(graph, "graph"),
    )


def _time(value: Any, name: str) -> int:
    try:
        time = None if isinstance(value, bool) else index(value)
    except TypeError:
        time = None
    if time is None:
        raise TypeError(
            f"the {name} of an event is a whole number of microseconds, not {value!r} ({type(value).__name__}); "
            "event(':a :price 3', TIME) takes seconds, dates and datetimes"
        )
    if not MIN_TIME <= time <= MAX_TIME:
        raise ValueError(
            f"the {name} of an event, {time}, is more than 146,000 years from 1970: it is in microseconds, so convert "
            "other units before"
        )
    return time


def _triples(triples: Any) -> tuple[tuple[str, str, str], ...]:
    if isinstance(triples, str) or not hasattr(triples, "__iter__"):
        raise TypeError(f"{_SHAPE}, not {triples!r}; Turtle text is taken by event(':a :price 3', 5)")
    return tuple(map(_triple, triples))


def _triple(triple: Any) -> tuple[str, str, str]:
    if isinstance(triple, str) or not hasattr(triple, "__len__") or len(triple) != 3:
        alone = "; for a single triple write ((s, p, o),)" if isinstance(triple, str) else ""
        raise TypeError(f"{_SHAPE}; {triple!r} is no triple{alone}")
    s, p, o = (_term(term, name, known) for term, (name, known) in zip(triple, _PLACES, strict=True))
    return s, p, o


def _term(term: Any, name: str, known: set[str]) -> str:
    if not isinstance(term, str):
        raise TypeError(
            f"{term!r} ({type(term).__name__}) is no term in N-Triples spelling: write <http://example.org/acme>, "
            '"text" or "12"^^<http://www.w3.org/2001/XMLSchema#integer>; Turtle is taken by event(\':a :price 3\', 5)'
        )
    if term in known:
        return term
    spelled = str(term) if _USUAL[name].fullmatch(term) else spell_term(characters_of(term), name)
    if len(known) < _MOST:
        known.add(spelled)
    return spelled


def is_usual(term: Any) -> bool:
    """Whether an object is certainly canonical; most values are new, so this is quicker than ``checked``."""
    if term.__class__ is not str or _USUAL["o"].fullmatch(term) is None:
        return False
    if len(OBJECTS) < _MOST:
        OBJECTS.add(term)
    return True


def characters_of(text: str) -> str:
    """The text; half of a surrogate pair is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{text!a} holds half of a surrogate pair, {text[error.start]!a}, which is no character: decode it with "
            "errors='replace', or leave it out"
        ) from None
    return text


def name_of(name: Any, place: str) -> str:
    """The name of a stream or a graph as a term, or ``""``; an IRI may stand without brackets, ``:x`` is as in Turtle.

    >>> name_of("http://example.org/s", "stream"), name_of(":s", "stream")
    ('<http://example.org/s>', '<http://example.org/s>')
    """
    if name is None or name == "":
        return ""
    if not isinstance(name, str):
        raise TypeError(f'the {place} of an event is named by an IRI, such as "http://example.org/x", not {name!r}')
    if name in NAMES:
        return name
    characters_of(name)
    if is_iri(name) or (is_blank(name) and place == "graph"):
        spelled = spell_term(name, place)
    elif name.startswith(":"):
        spelled = iri(_EX + name[1:])
    elif _SCHEME.match(name):
        spelled = iri(name)
    else:
        raise ValueError(
            f'{name!r} is no IRI, and the {place} of an event is named by one: write "http://example.org/{name}", or '
            f'":{name}", which is short for it'
        )
    if place == "stream" and len(NAMES) < _MOST:
        NAMES.add(spelled)
    return spelled


def named_stream(name: str) -> str:
    """The name of a stream as it is given beside its source: as in ``name_of``, or ``s``, which is short for ``:s``.

    >>> named_stream("s"), named_stream(":s"), named_stream("urn:s")
    ('<http://example.org/s>', '<http://example.org/s>', '<urn:s>')
    """
    return name_of(name if ":" in name else f":{name}", "stream")
