"""One line about an engine: its queries, its place in the stream, what it holds; and one about what comes too late."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from etalis_compiler.pipeline import CompiledQuery
from etalis_rules import algebra as alg
from etalis_rules.messages import how_many

from etalis_py.engine.program import Program
from etalis_py.engine.query_families import GatheredQueries
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


def warn_of_missed_start(program: Program, at: Position) -> None:
    """Warn that a program with START comes after the beginning, which nothing else would tell."""
    compilation = program.compilation
    if not at.begun or not any(map(_has_start, compilation.kinds)):
        return
    samples = compilation.samples if isinstance(compilation, GatheredQueries) else compilation
    late = ", ".join(query.name for query in samples.queries if _has_start(query))
    warnings.warn(
        f"{late}: the stream began before this was added, so what follows START never matches: add it before the first "
        "event, or run it over the stream from its beginning",
        stacklevel=4,
    )


def _has_start(query: CompiledQuery) -> bool:
    return alg.has_start(query.algebra.pattern)
