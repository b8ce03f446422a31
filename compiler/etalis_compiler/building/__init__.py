"""From reductions of the grammar to the AST: one method for each arrow of ``grammar.lark``.

``SyntaxBuilder`` resolves names and literals as it goes (prologues act on what follows them) and reports what the
grammar alone cannot: unknown prefixes, wrong numbers of arguments, malformed durations.  The rules of SPARQL that need
a whole query (scopes, aggregates) are in ``static_checks``.
"""

from .queries import SyntaxBuilder

__all__ = ["SyntaxBuilder"]
