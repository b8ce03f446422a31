"""Hints for words and marks of SQL: how a query says the same here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .ast.terms import Operator
from .diagnostics import Source
from .lexing import Token, words

_BETWEEN = "between two values is ?x >= 5 && ?x <= 7"
_MISSING = "a value that is missing is !BOUND(?x), one that is there BOUND(?x)"
_TEXTS = 'texts are compared with STRSTARTS(?x, "a"), CONTAINS(?x, "a"), STRENDS(?x, "a") or REGEX(?x, "^a")'
_PATTERN = "the pattern stands in braces: WHERE { EVENT { ?thing :price ?x } FILTER (?x > 5) }"
_BEFORE_A_GROUP = rf"^(?:EVENT|{'|'.join(Operator.__members__)})$"
_ORDER = "the order is WHERE, WITHIN, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET"


@dataclass(frozen=True, slots=True)
class _Habit:
    """What SQL's writers put at a place: the text there, the token before it, and what would fit here instead."""

    here: re.Pattern[str]
    fits: frozenset[str]
    advice: str
    after: re.Pattern[str] = re.compile("")


def _habit(here: str, fits: str, advice: str, after: str = "") -> _Habit:
    return _Habit(re.compile(here, re.IGNORECASE), words(fits), advice, re.compile(after, re.IGNORECASE))


# Where '&&' fits a value has just ended; where BUILTIN fits, one begins.
_HABITS = (
    _habit("<>", "&&", "'not equal' is written '!='"),
    _habit(">", "BUILTIN", "'at least' is written '>='", after="=$"),
    _habit("<", "BUILTIN", "'at most' is written '<='", after="=$"),
    _habit("~", "&&", 'a regular expression is tested with REGEX(?x, "^a")'),
    _habit(r"AND\b", "&&", "inside a condition, AND is written '&&'"),
    _habit(r"OR\b", "&&", "inside a condition, OR is written '||'"),
    _habit(r"BETWEEN\b", "&& IN", _BETWEEN),
    _habit(r"(?:I|R)?LIKE\b", "&& IN", _TEXTS),
    _habit(r"IS\b", "&&", _MISSING),
    _habit(r"NULL\b", "BUILTIN", _MISSING),
    _habit(r"CASE\b", "BUILTIN", "cases are IF(?x > 5, 1, 2)"),
    _habit("", "EXISTS", "inside a condition, NOT is written '!': !(?x > 5)", after="NOT$"),
    _habit(",", "WHERE", "selected columns are separated by spaces: SELECT ?c ?p"),
    _habit(r"TOP\s{1,9}\d", "ISTREAM", "the first five are LIMIT 5, at the end"),
    _habit(r"[\w?]", "{", _PATTERN, after="^WHERE$"),
    _habit(r"\)", "* DISTINCT", "rows are counted by COUNT(*), the values of a variable by COUNT(?x)", after=r"\($"),
    _habit(r"\?\s", "&&", "one of two values is IF(?x > 5, 1, 2)"),
    _habit(r"\{", ")", "groups stand in braces: { { … } SEQ { … } } WITHIN 10 s", after=_BEFORE_A_GROUP),
    _habit(r"\?", "AS", "a computed column is written (expression AS ?name)", after=r"\)$"),
    _habit(r"WHERE\b(?!\s{0,9}\{)", "}", "a condition is a filter: FILTER (?x > 5)"),
    _habit(r"(?:GROUP|HAVING|ORDER|LIMIT)\b", "USING OFFSET LIMIT", _ORDER),
    _habit("", "(", "the direction stands before: ORDER BY DESC(?c)", after="^(?:ASC|DESC)$"),
)
_HAVING = re.compile(r"\bHAVING\s{1,9}\w{1,99}\s{0,9}\([^()]{0,99}\)\s{0,9}\Z", re.IGNORECASE)
_DISTINCT = re.compile(r"\bSELECT\s{1,9}DISTINCT\s{0,9}\((\s{0,9}\?\w{1,99})\s{0,9}\)\s{0,9}\Z", re.IGNORECASE)
_KEYS = re.compile(r"\b(GROUP|ORDER)\s{1,9}BY\b", re.IGNORECASE)


def sql_hint(token: Token, last: Token | None, accepted: set[str], source: Source) -> str:
    """How to say what a writer of SQL meant by a token that does not fit, or the empty string."""
    previous = last.text if last else ""
    before = source.text[max(0, token.start - 400) : token.start]
    if "AS" in accepted and (distinct := _DISTINCT.search(before)):
        return f"DISTINCT takes no parentheses: SELECT DISTINCT {distinct[1].strip()}"
    if _HAVING.search(before):
        return "the condition stands in parentheses: HAVING (COUNT(*) > 5)"
    for habit in _HABITS:
        if habit.fits & accepted and habit.after.search(previous) and habit.here.match(source.text, token.start):
            return habit.advice
    if token.text == "," and "LIMIT" in accepted:
        begun = _KEYS.findall(source.text, max(0, token.start - 1_000), token.start)
        if begun:
            return f"several keys are separated by spaces: {begun[-1].upper()} BY ?c ?x"
    if token.text == "(" and "{" in accepted and last is not None and last.text.isalpha():
        return f"a pattern stands in braces: {last.text.upper()} {{ … }}"
    return ""
