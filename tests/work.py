"""How much work a call takes, counted in the calls of functions that it makes: the same on a busy machine as on any."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """How many functions some work calls, those written in C included."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> Any:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times the calls of a size what is four times this size takes."""
    work(2)()  # what is loaded once
    return calls_of(work(4 * size)) / calls_of(work(size))
