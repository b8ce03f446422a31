"""Warnings about patterns, flags and replacements in the text of a query that REGEX and REPLACE refuse.

Such a call is an error for every text, so its FILTER lets nothing through and its BIND binds nothing, silently.  It is
judged by the functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, Source
from etalis_rules.terms import is_literal, parts

from etalis_py.values.functions import RegexError
from etalis_py.values.functions.regex import regex, replace

_CALLS: dict[str, Callable[..., Any]] = {"REGEX": regex, "REPLACE": replace}
_ANY = ("x", "x", "")  # a pattern, a replacement and flags that are refused by nobody


def refused_patterns(texts: Iterable[tuple[ast.Document | ast.Query, Source]]) -> Iterator[Diagnostic]:
    """A warning for each call of REGEX or REPLACE that no text can make succeed."""
    for syntax, source in texts:
        for node in ast.walk(syntax):
            if isinstance(node, ast.Call) and (refusal := _refusal(node)):
                message = f"this {node.name} is an error, whatever the text: {refusal}"
                hint = "a FILTER with an error lets nothing through; change what is refused"
                yield source.diagnostic("warning", "regex", message, node.span.start, node.span.end, hint=hint)


def _refusal(call: ast.Call) -> str:
    """Why the call is an error, judging by its arguments that are constants; nothing if it need not be one."""
    if call.name not in _CALLS:
        return ""
    unknown = _ANY if call.name == "REPLACE" else _ANY[::2]
    given = [_text(argument) for argument in call.arguments[1:]]
    if len(given) == len(unknown) and given[-1] is None:
        return ""  # with the flag q, whatever is written is plain text
    texts = [stands_in if text is None else text for text, stands_in in zip(given, unknown, strict=False)]
    try:
        _CALLS[call.name]("", *texts)
    except RegexError as error:
        return str(error)
    return ""


def _text(argument: ast.Expression) -> str | None:
    """The text that a constant argument is; None if it is something else."""
    if not (isinstance(argument, ast.Term) and is_literal(argument.spelling)):
        return None
    text, datatype, language = parts(argument.spelling)
    return None if datatype or language else text
