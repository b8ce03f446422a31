"""Jelly (binary RDF) → rows, with pyjelly: an optional extra.

A grouped Jelly stream is a message log: a frame is a message.  In a flat one (or one that does not say) frames are only
packets, and the rules of a document hold.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from etalis_rules.terms import iri, is_triple_of, literal, triple

from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import parse_line, reason_of, split_lines
from etalis_py.streams.blanks import Row
from etalis_py.streams.sources import OpenedInput
from etalis_py.values.oxigraph_terms import MOST_NESTED, TOO_DEEP

_AGAIN = "fetch the file again; Jelly cannot be read on after an error"


def jelly_frames(source: OpenedInput) -> tuple[bool, Iterator[list[Row]]]:
    """Whether the stream is grouped (a frame = a message), and the rows of each frame."""
    try:
        from pyjelly import jelly
        from pyjelly.integrations.generic import generic_sink, parse
        from pyjelly.parse.ioutils import get_options_and_frames
    except ImportError:
        raise StreamError(
            "Jelly needs the package pyjelly, which is not installed",
            source=source.name,
            hint="install it with: pip install 'etalis-py[jelly]'",
        ) from None

    def spell(term: Any, depth: int = 0) -> str:
        match term:
            case generic_sink.IRI():
                return valid(iri(term._iri), source.name)
            case generic_sink.BlankNode():
                return valid(f"_:{term._identifier}", source.name)
            case generic_sink.Literal():
                return valid(literal(term._lex, term._datatype or "", term._langtag or ""), source.name)
            case generic_sink.Triple():
                if depth == MOST_NESTED:
                    raise StreamError(TOO_DEEP, source=source.name)
                return triple(*statement(term, depth + 1))
        raise StreamError(f"found {type(term).__name__}, which is not an RDF term", source=source.name, hint=_AGAIN)

    def statement(item: Any, depth: int = 0) -> tuple[str, str, str]:
        s, p, o = spell(item[0], depth), spell(item[1], depth), spell(item[2], depth)
        if not is_triple_of(s, p, o):
            raise StreamError(f"no triple has the subject {s} and the predicate {p}", source=source.name, hint=_AGAIN)
        return s, p, o

    def rows() -> Iterator[list[Row]]:
        read = parse.parse_triples_stream if triples else parse.parse_quads_stream
        number = 0
        try:
            for frame in read(frames=frames, options=options):
                number += 1
                statements: list[Row] = []
                for item in frame:
                    if isinstance(item, generic_sink.Prefix):
                        continue
                    graph = item[3] if len(item) > 3 else generic_sink.DefaultGraph
                    named = "" if graph == generic_sink.DefaultGraph else spell(graph)
                    statements.append((*statement(item), named))
                yield statements
        except StreamError:
            raise
        except Exception as error:
            # Damaged input raises many kinds of exceptions; after one the look-up tables cannot be trusted.
            raise StreamError(
                f"damaged Jelly data in frame {number + 1}: {error or type(error).__name__}",
                source=source.name,
                hint=_AGAIN,
            ) from None

    # Three bytes distinguish a delimited stream from a single frame.
    source.peek(3)
    try:
        options, frames = get_options_and_frames(_Raw(source))
    except Exception as error:
        raise StreamError(
            f"this is no Jelly stream: {error or type(error).__name__}",
            source=source.name,
            hint="is it cut off or damaged, or of another format?",
        ) from None
    triples = options.stream_types.physical_type == jelly.PHYSICAL_STREAM_TYPE_TRIPLES
    types = options.stream_types
    grouped = not types.flat and types.logical_type != jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED
    return grouped, rows()


@lru_cache(maxsize=1 << 14)
def valid(term: str, source: str) -> str:
    """The canonical spelling of a term that no RDF parser has checked yet, or an error."""
    statement = f"<urn:s> <urn:p> {term} ."
    rows = split_lines(statement)
    if len(rows) == 1 and rows[0][0]:
        return rows[0][2]
    try:
        return parse_line(statement, graphs=False)[2]
    except (SyntaxError, ValueError) as error:
        reason = f"{term!r} is not an RDF term: {reason_of(error)}"
        raise StreamError(reason, source=source, hint=_AGAIN) from None


class _Raw(io.RawIOBase):
    """The source as a raw stream, for the buffered reader that pyjelly puts on top."""

    def __init__(self, source: OpenedInput) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read_some(len(buffer))
        buffer[: len(data)] = data
        return len(data)
