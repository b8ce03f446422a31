"""One line about an engine: its queries, its place in the stream and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from etalis_rules.messages import how_many

from etalis_py.kernel.position import NEVER, Counters, Position

_FEW = 20
"""The number of queries that are shown by name."""


def summary(
    queries: Sequence[str], at: Position, counters: Counters, render: Callable[[int], int | str], windows: bool
) -> str:
    """What ``repr`` shows of an engine."""
    kept = counters.kept()
    held = [how_many(kept.goals, "goal")] + [how_many(kept.items, "item in windows", "items in windows")] * windows
    running = ", ".join(queries) or "no queries"
    if len(queries) > _FEW:
        running = f"{queries[0]}, {queries[1]}, … {queries[-1]} ({len(queries):,} queries)"
    now = f" at {render(at.now)}" if at.now > NEVER and not at.finished else ", ended" * at.finished
    seen = f"{how_many(counters.events, 'event')}, {how_many(counters.matches, 'match', 'matches')}"
    return f"<Engine{now}: {running}; {seen}, {', '.join(held)}>"
