"""How much work a call takes, counted in calls of functions or in lines: the same on a busy machine as on any."""

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


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python some work goes through: what it does in loops without a call counts, too."""
    lines = 0

    def count(frame: object, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def growth(
    work: Callable[[int], Callable[[], object]], size: int, count: Callable[[Callable[[], object]], int] = calls_of
) -> float:
    """How many times the calls (or lines) of a size what is four times this size takes."""
    work(2)()  # what is loaded once
    return count(work(4 * size)) / count(work(size))
