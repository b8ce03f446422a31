"""How large a value may become.

A bound of the value space is the same for every engine, since the meaning of a term must not depend on the engine:
beyond it a literal has no known value (as XML Schema 1.1 part 2 §5.4 lets a processor decide), and an operation is an
error of its expression (``err:FOAR0002`` of XPath).  docs/resources.md lists these bounds with the limits of an engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from etalis_py.values.errors import SparqlError


@dataclass(frozen=True, slots=True)
class Bounds:
    """``digits``: of an integer or a decimal.  ``characters``: of a text that a function makes.  ``spans``: of a number
    in a dateTime or a duration, in digits."""

    digits: int = 10_000
    characters: int = 16_000_000
    spans: int = 18


BOUNDS = Bounds()
BITS = int(BOUNDS.digits * 3.33)  # of an integer
MICROS = 10**30  # of a duration: beyond anything that ``spans`` allows


def fitting(text: str, function: str) -> str:
    """The text a function made, or the error that it is too long."""
    check_length(len(text), function)
    return text


def check_length(length: int, function: str) -> None:
    if length > BOUNDS.characters:
        raise SparqlError(f"{function} makes a text of more than {BOUNDS.characters:,} characters")


def too_many_digits(operator: str) -> SparqlError:
    return SparqlError(f"the result of {operator} has more than {BOUNDS.digits:,} digits")
