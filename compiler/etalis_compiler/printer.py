"""AST to text, in strict syntax: braces around every group, parentheses around every computed column.

Parsing the text gives the same AST again (``parse(to_text(d)) == d``), for every document that came from the parser.

>>> from etalis_compiler.parser import parse
>>> print(to_text(parse("SELECT ?c WHERE { ?c p ?x } SEQ { ?c p ?y } FILTER (?y > ?x)").queries[0]))
SELECT ?c
WHERE {
  { ?c <http://example.org/p> ?x . }
  SEQ
  { ?c <http://example.org/p> ?y . }
  FILTER (?y > ?x)
}
"""

from __future__ import annotations

from collections.abc import Mapping

from .ast import Document, Query, children
from .diagnostics import Diagnostic, QueryError
from .printing.queries import QueryPrinter

MAX_PRINTED_DEPTH = 400  # levels of nodes and tuples; the parser builds at most about 260


def to_text(printed: Document | Query, *, prefixes: Mapping[str, str] | None = None) -> str:
    """The text of a document or of one query.

    IRIs are shortened by the document's own prefixes, or by those given for a single query.
    """
    _limit_depth(printed)
    if isinstance(printed, Query):
        return "\n".join(QueryPrinter(prefixes or {}).query(printed))
    names = dict(printed.prefixes)
    printer = QueryPrinter(names | dict(prefixes or {}))
    head = [f"BASE <{printed.base}>"] if printed.base else []
    head += [f"PREFIX {prefix}: <{namespace}>" for prefix, namespace in names.items()]
    pieces = ["\n".join(head)] if head else []
    pieces += ["\n".join(printer.query(query)) for query in printed.queries]
    return "\n\n".join(pieces) + "\n"


def _limit_depth(node: Document | Query) -> None:
    """Refuse a tree deeper than the parser would allow, before recursion fails."""
    level: list[object] = [node]
    for _ in range(MAX_PRINTED_DEPTH):
        level = [below for item in level for below in children(item)]
        if not level:
            return
    message = f"the query is nested more than {MAX_PRINTED_DEPTH} levels deep and cannot be printed"
    raise QueryError([Diagnostic("error", "limit", message, "split it into several rules")])


__all__ = ["MAX_PRINTED_DEPTH", "to_text"]
