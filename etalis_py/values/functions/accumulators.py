"""The running state of an aggregate, and how it is packed."""

from __future__ import annotations

from typing import Any, Protocol

State = list[Any]
"""Lists, strings, 64-bit integers and ``None`` only, so that every encoding can hold it."""


class Accumulator(Protocol):
    """One aggregate of one group, over a multiset of solutions that may shrink again.

    ``add`` and ``remove`` take the value of the aggregated expression and its term; ``fail`` and ``unfail`` stand for
    a solution whose expression is an error.  Added values may be removed, in any order; after that ``result`` is as if
    they had never been added, without accumulated rounding errors.
    """

    def add(self, value: Any, term: Any) -> None: ...

    def remove(self, value: Any, term: Any) -> None: ...

    def fail(self) -> None: ...

    def unfail(self) -> None: ...

    def result(self) -> str:
        """The term of the result; raises ``SparqlError`` when the aggregate is an error."""
        ...

    def state(self) -> State:
        """``[name, …]``; ``restore_accumulator`` makes an equal accumulator of it."""
        ...

    def load(self, state: State) -> None:
        """Takes over the ``state`` of an accumulator of the same kind."""
        ...


class Failing:
    """Counts the solutions whose expression is an error."""

    __slots__ = ("_failures",)

    _failures: int

    def fail(self) -> None:
        self._failures += 1

    def unfail(self) -> None:
        self._failures -= 1
        if self._failures < 0:
            raise not_added("an error")


def pack_int(number: int) -> int | str:
    """The integer itself when 64 bits hold it, else in hexadecimal (which has no limit on digits)."""
    return number if -(1 << 63) <= number < 1 << 63 else hex(number)


def unpack_int(packed: int | str) -> int:
    return int(packed, 16) if isinstance(packed, str) else packed


def not_added(term: Any) -> ValueError:
    """The error of a caller that removes what it has not added."""
    return ValueError(f"an aggregate was asked to remove {term!r}, which it does not hold")
