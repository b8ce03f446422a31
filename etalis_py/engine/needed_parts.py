"""The parts of a pattern without which it has no solution.

>>> from etalis_py import compile
>>> query = compile("SELECT ?x { { ?c :p ?x } SEQ { ?c :q ?y } OPTIONAL { ?c :r ?z } }").compilation.queries[0]
>>> [triple.predicate.term for part in needed_parts(query.algebra.pattern) for triple in getattr(part, "triples", ())]
['<http://example.org/p>', '<http://example.org/q>']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from etalis_rules import algebra as alg


def needed_parts(pattern: alg.Pattern) -> Iterator[alg.Pattern]:
    """These parts, parents first; triple patterns and filters inside EVENT have the stream of the event."""
    yield pattern
    match pattern:
        case alg.Record(inner, stream):
            for part in needed_parts(inner):
                if isinstance(part, alg.BGP):
                    yield replace(part, stream=stream)
                elif isinstance(part, alg.Filter):
                    yield part
            return
        case alg.Union() | alg.Known():
            return
    for inside in alg.parts(pattern):
        if inside.role in (alg.Role.SIDE, alg.Role.MEMBER):
            yield from needed_parts(inside.pattern)


__all__ = ["needed_parts"]
