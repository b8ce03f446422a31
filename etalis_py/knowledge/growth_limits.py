"""How far a document may grow while it is read: a few hundred bytes can ask for all memory.

A compressed file is unpacked up to a limit.  The entities that an XML document declares are added up before a parser
sees it.  Long terms, which a prefix can make of a few letters, are added up while it is parsed.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Container, Iterable

from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits, take_unpacked

LONG = 1_000
"""Terms of more characters are added up."""
FACTOR = 10
"""A document may grow by so many times its size in any case."""
_ENTITY = re.compile(rb"""<!ENTITY\s*(?:%\s*)?(\S+)\s+(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(rb"[&%]([^&;<]+);")


def unpacked(data: bytes, source: str, limits: Limits) -> bytes:
    """The content of a file, which may be compressed; raises what ``gzip`` raises if it is damaged."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return take_unpacked(file.read, limits)
    except LimitExceeded as error:
        raise KnowledgeError(
            f"the file {error}",
            source=source,
            hint="unpack it first if that is what it should have, or raise Limits(unpacked_bytes=…)",
        ) from None


def allowance(data: bytes, limits: Limits) -> int:
    """How many bytes a document may grow by."""
    return max(limits.expanded_bytes, FACTOR * len(data))


def check_entities(data: bytes, source: str, limits: Limits) -> None:
    """Refuse an XML document whose entities grow too far, without expanding any.

    >>> laughs = b'<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;"> <r>&c;</r>'
    >>> check_entities(laughs, "r.rdf", Limits(expanded_bytes=20))
    >>> check_entities(laughs * 2, "r.rdf", Limits(expanded_bytes=20, term_characters=10))
    Traceback (most recent call last):
    etalis_py.knowledge.errors.KnowledgeError: r.rdf: the entity c stands for 18 bytes, more than the 10 of a term
      write the text where it belongs, or raise Limits(term_characters=…)
    """
    if b"<!ENTITY" not in data:
        return
    sizes: dict[bytes, int] = {}
    for match in _ENTITY.finditer(data):
        name, value = match[1], match[2] or match[3] or b""
        inner = (name for name in _REFERENCE.findall(value) if name in sizes)
        size = len(value) + sum(sizes[name] - len(name) - len(b"&;") for name in inner)
        if size > limits.term_characters:
            raise KnowledgeError(
                f"the entity {name.decode(errors='replace')} stands for {size:,} bytes, more than the "
                f"{limits.term_characters:,} of a term",
                source=source,
                hint="write the text where it belongs, or raise Limits(term_characters=…)",
            )
        sizes[name] = max(size, sizes.get(name, 0))
    left = allowance(data, limits)
    for match in _REFERENCE.finditer(data):
        left -= sizes.get(match[1], 0)
        if left < 0:
            raise _too_far("entities", data, source, limits)


def _too_far(what: str, data: bytes, source: str, limits: Limits) -> KnowledgeError:
    return KnowledgeError(
        f"its {what} make this document of {len(data):,} bytes longer by more than {allowance(data, limits):,}",
        source=source,
        hint="write it without them if that is what it should say, or raise Limits(expanded_bytes=…)",
    )


class Growth:
    """Adds up the long terms of one document; those in ``known`` have been seen before."""

    def __init__(self, data: bytes, source: str, limits: Limits, known: Container[str]) -> None:
        self._data, self._source, self._limits, self._known = data, source, limits, known
        self._left = len(data) + allowance(data, limits)

    def take(self, terms: Iterable[str]) -> None:
        for term in terms:
            if len(term) <= LONG or term in self._known:
                continue
            if len(term) > self._limits.term_characters:
                raise KnowledgeError(
                    f"a term of {len(term):,} characters, more than {self._limits.term_characters:,}: {term[:40]}…",
                    source=self._source,
                    hint="keep the text in a file of its own and its address here, or raise Limits(term_characters=…)",
                )
            self._left -= len(term)
            if self._left < 0:
                raise _too_far("prefixes or entities", self._data, self._source, self._limits)
