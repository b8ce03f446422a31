"""How a function is called: what generated code has to pass, and what it gets back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Takes = Literal["value", "term", "thunk"]
Gives = Literal["value", "term"]
Context = Literal["", "base", "instant", "seed"]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """One built-in function or cast.

    ``call``     the Python callable
    ``least``    the least number of arguments
    ``most``     the greatest number, ``None`` for no limit
    ``takes``    what each argument is: a value, a term, or a thunk (a callable without arguments that gives a value and
                 may raise: the function decides what an error means)
    ``gives``    whether ``call`` returns a value or a term
    ``context``  what is passed before the arguments: nothing; the base IRI (``str``); the instant (``int``
                 microseconds); or the seed (``bytes``) and the index (``int``) of the call in the query
    """

    name: str
    call: Callable[..., Any]
    least: int
    most: int | None
    takes: Takes = "value"
    gives: Gives = "value"
    context: Context = ""

    def accepts(self, count: int) -> bool:
        """Whether the function can be called with ``count`` arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def volatile(self) -> bool:
        """Whether two calls in one query may differ, so that a call must be neither shared nor moved."""
        return self.context == "seed"

    @property
    def arity(self) -> str:
        """The number of arguments in words, for messages."""
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least == self.most:
            return "no argument" if not self.least else f"{self.least} argument{'s' if self.least > 1 else ''}"
        return f"{self.least} to {self.most} arguments"


class UnknownFunction(LookupError):
    """No such function, or not with this number of arguments; the message says what to write instead."""
