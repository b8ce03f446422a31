"""Solutions that stand for several with the same end, as an aggregate over a window of time sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from etalis_py.values import decode
from etalis_py.values.functions import Accumulator, add_several, pack_int, remove_several, unpack_int

Solution = tuple[Any, ...]
Amount = tuple[int, int, tuple[Any, str] | None]
"""For an aggregate: how many arguments there are, their sum, and the value and term of the extreme that counts."""


class Several(tuple[Any, ...]):
    """A solution over the hull of several, how many they are, and what they amount to for each aggregate."""

    weight: int
    amounts: tuple[Amount, ...]

    @classmethod
    def of(cls, x: Iterable[Any], weight: int, amounts: Iterable[Amount]) -> Several:
        made = cls(x)
        made.weight, made.amounts = weight, tuple(amounts)
        return made


def count_several(accumulators: Iterable[Accumulator], x: Solution, *, add: bool) -> None:
    """Add them to the accumulators of their group, or take them out."""
    assert isinstance(x, Several)
    for accumulated, (given, whole, extreme) in zip(accumulators, x.amounts, strict=True):
        (add_several if add else remove_several)(accumulated, given, x.weight - given, whole, extreme)


def packed(x: Solution, width: int) -> Solution:
    """Plain data: the first items of a solution; then, if it stands for several, how many, and their amounts."""
    if not isinstance(x, Several):
        return x[:width]
    amounts = [
        [pack_int(given), pack_int(whole), "" if extreme is None else extreme[1]] for given, whole, extreme in x.amounts
    ]
    return (*x[:width], pack_int(x.weight), amounts)


def unpacked(stored: Sequence[Any], width: int, rebuild: Callable[[Solution], Solution]) -> Solution:
    """The solution again; ``rebuild`` decodes the values that it carries."""
    x = rebuild(tuple(stored[:width]))
    if len(stored) == width:
        return x
    weight, amounts = stored[width:]
    read: Iterable[Amount] = (
        (unpack_int(given), unpack_int(whole), (decode(term), term) if term else None) for given, whole, term in amounts
    )
    return Several.of(x, unpack_int(weight), read)
