"""Text to AST.

>>> document = parse("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y } FILTER (?y > ?x)")
>>> document.queries[0].where.elements[0].operator
<Operator.SEQ: 'SEQ'>
"""

from __future__ import annotations

from collections.abc import Mapping

from .ast import Document
from .automaton import TooDeep, Unexpected, run
from .building import SyntaxBuilder
from .diagnostics import QueryError, Source
from .lexing import AGGREGATES, tokens
from .static_checks import check_document
from .tables import load

MAX_SIZE = 1_000_000  # characters of a text
MAX_DEPTH = 128  # groups, brackets and operators inside one another


def keywords() -> frozenset[str]:
    """The words of the language in capitals, without the names of functions."""
    return AGGREGATES.union(word for word in load().literals if word.isalpha() and word.isupper())


def parse(text: str, *, source: str = "<query>", base: str = "", prefixes: Mapping[str, str] | None = None) -> Document:
    """The queries of a text.

    ``base`` and ``prefixes`` act as if they were declared before the text.  Without any, the empty prefix, bare
    names and relative IRIs belong to ``http://example.org/``; ``rdf: rdfs: owl: xsd: prov: dul:`` need no declaration.
    Raises ``QueryError``, and nothing else, for a text that is not a query.
    """
    origin = Source(text, source)
    if len(text) > MAX_SIZE:
        raise origin.error(
            "limit",
            f"the text has {len(text):,} characters; a program may have {MAX_SIZE:,}",
            MAX_SIZE,
            MAX_SIZE + 1,
            hint="split it into several files",
        )
    tables = load()
    builder = SyntaxBuilder(origin, base, dict(prefixes or {}))
    stream = tokens(origin, tables.literals)
    try:
        document = run(tables, stream, builder, len(text), MAX_DEPTH)
    except Unexpected as unexpected:
        from .syntax_hints import explain  # most texts are right, and a start is quick

        raise explain(unexpected, origin, tables.literals) from None
    except TooDeep as deep:
        raise origin.error(
            "limit",
            f"more than {MAX_DEPTH} groups, brackets or operators inside one another",
            deep.token.start,
            deep.token.end,
            hint="use IN (…) or VALUES for long alternatives, and sub-queries or several rules for deep patterns",
        ) from None
    if not document.queries:
        raise origin.error("empty", "the text holds no query", 0, 0, hint="write SELECT, CONSTRUCT, ASK or DESCRIBE")
    return check_document(document)


__all__ = ["MAX_DEPTH", "MAX_SIZE", "QueryError", "parse"]
