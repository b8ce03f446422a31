"""Expressions of Spark as text.

Every PySpark function that makes a column calls the JVM a dozen times, so the plan of a small program took half a
second; a text takes a single call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_HARMLESS = re.compile(r"[\w .:,;/#<>?=&()+*\"^@~%!|{}\[\]-]*", re.ASCII)


def text(value: str) -> str:
    """A string as an expression; one that a parser could misread is written in hexadecimal digits.

    >>> print(text("q1"), text("it's"))
    'q1' CAST(X'69742773' AS STRING)
    """
    return f"'{value}'" if _HARMLESS.fullmatch(value) else f"CAST(X'{value.encode().hex()}' AS STRING)"


def one_of(column: str, values: Iterable[str]) -> str:
    return f"{column} IN ({', '.join(map(text, values))})"


def all_of(tests: Iterable[str]) -> str:
    return f"({' AND '.join(f'({test})' for test in tests)})"


def any_of(tests: Iterable[str]) -> str:
    """Whether any test passes; false if there are none.  Patterns share tests: each is stated once."""
    return f"({' OR '.join(f'({test})' for test in dict.fromkeys(tests)) or 'FALSE'})"


__all__ = ["all_of", "any_of", "one_of", "text"]
