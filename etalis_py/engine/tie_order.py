"""What orders events of one time: the source, or the values of a column (``ties``).

An event has the values of a column as objects of its property, so an engine goes by the predicate of that property:

    ties="source"       source
    ties="seq"          <http://example.org/seq>   (the predicate that the mapping gives the column, else :seq)
    ties="<urn:seq>"    <urn:seq>

>>> tie_order("Trade No", {"": "http://example.org/"})
'<http://example.org/Trade_No>'
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from etalis_rules.messages import closest
from etalis_rules.spelling import PREFIXES
from etalis_rules.terms import iri, is_iri

from etalis_py.engine.program import Given, program_from
from etalis_py.events import SOURCE_ORDER
from etalis_py.kernel.options import Options, TiesError
from etalis_py.streams.draft import local_names
from etalis_py.streams.stream import Stream


def tie_order(ties: str | None, prefixes: Mapping[str, str], stream: Any = None) -> str | None:
    """``ties`` as an engine takes it, or else what the mappings of the stream say of it.

    A column that no mapping of the stream knows is refused.
    """
    if ties is None and isinstance(stream, Stream):
        return _of_mappings(stream.ties)
    if ties is None or ties == SOURCE_ORDER:
        return ties
    made = stream.properties if isinstance(stream, Stream) else None
    if made is None:
        return _predicate(ties, prefixes)
    of_column = {predicate for predicate, columns in made.items() if ties in columns}
    if len(of_column) > 1:
        raise TiesError(
            f"ties={ties!r}: the mappings give this column the predicates {' and '.join(sorted(of_column))}; give it "
            "the same in all of them"
        )
    predicate = next(iter(of_column), None) or _predicate(ties, prefixes)
    if predicate not in made:
        raise TiesError(f"ties={ties!r}: {_unknown(ties, made, stream)}")
    return predicate


def in_tie_order(program: Given | None, options: Options) -> tuple[Given | None, Options]:
    """What an engine is given, with the predicate that orders events of one time by the prefixes of its program."""
    if options.ties is None or options.ties == SOURCE_ORDER:
        return program, options
    compiled = None if program is None else program_from(program)
    ties = tie_order(options.ties, PREFIXES if compiled is None else compiled.prefixes)
    return compiled, replace(options, ties=ties)


def _of_mappings(said: Set[str]) -> str | None:
    """What all mappings of a stream say (``""``: that of one of its sources says nothing, or it has none)."""
    if len(said) > 1:
        each = " and ".join(sorted(f"ties={one!r}" if one else "none" for one in said))
        raise TiesError(
            f"ties hold for a whole run, and the sources have {each}: give all mappings the same, or the run ties=…, "
            "which counts in place of theirs"
        )
    return next(iter(said), "") or None


def refuse_other_ties(said: Set[str], ties: str | None, reason: str) -> None:
    """Refuse mappings that say something else than ``ties``, by which events are taken here; ``reason``: why so."""
    for other in sorted(said - {"", ties}):
        raise TiesError(f"the mapping has ties={other!r}, and {reason}: leave it out of the mapping")


def _predicate(name: str, prefixes: Mapping[str, str]) -> str:
    """The predicate of a name: an IRI, a name with a prefix, or that of a column."""
    if is_iri(name):
        return name
    prefix, colon, local = name.partition(":")
    if not colon:
        return iri(prefixes[""] + local_names([name])[name])
    if prefix in prefixes:
        return iri(prefixes[prefix] + local)
    raise TiesError(f"ties={name!r}: the program has no prefix {prefix}:; declare it, or write <…> around an IRI")


def _unknown(name: str, made: Mapping[str, frozenset[str]], stream: Stream) -> str:
    if name in stream.subjects:
        return "this column says what its rows are about; a mapping can make a property of it as well"
    columns = sorted({column for several in made.values() for column in several})
    near = closest(name, columns)
    hint = f"; did you mean {near}?" if near else ""
    return f"no row has a property of this name; the columns that have one are {', '.join(columns) or 'none'}{hint}"
