"""Builds the AST from the reductions of the grammar: one method for each arrow of ``grammar.lark``.

``SyntaxBuilder`` resolves names and literals at once, because a prologue only acts on the text after it.  It reports
errors that the grammar alone cannot find: unknown prefixes, wrong numbers of arguments, malformed durations.  The rules
of SPARQL that need a whole query (scopes, aggregates) are in ``static_checks``.
"""

from .queries import SyntaxBuilder

__all__ = ["SyntaxBuilder"]
