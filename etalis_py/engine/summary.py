"""One line about an engine: its queries, its place in the stream and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from etalis_py.kernel.position import NEVER, Counters, Position

_FEW = 20
"""The number of queries that are shown by name."""


def summary(
    queries: Sequence[str], at: Position, counters: Counters, render: Callable[[int], int | str], windows: bool
) -> str:
    """What ``repr`` shows of an engine."""
    kept = counters.kept()
    held = [f"{kept.goals:,} goals"] + [f"{kept.items:,} items in windows"] * windows
    running = ", ".join(queries) or "no queries"
    if len(queries) > _FEW:
        running = f"{queries[0]}, {queries[1]}, … {queries[-1]} ({len(queries):,} queries)"
    now = f" at {render(at.now)}" if at.now > NEVER and not at.finished else ", ended" * at.finished
    return f"<Engine{now}: {running}; {counters.events:,} events, {counters.matches:,} matches, {', '.join(held)}>"
