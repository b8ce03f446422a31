"""Errors and warnings about the windows of a plan."""

from __future__ import annotations

from typing import Any

from etalis_rules.durations import duration_text

from .. import ast
from ..diagnostics import Diagnostic, Source
from .plan import Identity, Landmark, Sliding, WindowPlan
from .shapes import MANY_OVERLAPS, MAX_OVERLAP

_SELDOM = "let it slide further (SLIDE), or report on content change: REPORT ON CONTENT CHANGE"


def check_closing(plan: WindowPlan, source: Source, query: ast.Query) -> None:
    """Refuse windows that report when they close and slide so often that they would close all the time."""
    for window, times in _overlaps(plan):
        if times > MAX_OVERLAP:
            raise source.error(
                "limit",
                f"the window {window} is {times:,} times as long as it slides, and would report each time",
                query.span.start,
                query.span.end,
                hint=_SELDOM,
            )


def _overlaps(plan: WindowPlan) -> list[tuple[str, int]]:
    """The windows that report when they close, each with the number of times it does so for one item."""
    closing = {s.window for s in plan.report if s.kind == "WC"}
    return [
        (window.name, shape.width // shape.slide)
        for window in plan.windows
        if isinstance(shape := window.shape, Sliding) and closing & {"", window.name}
    ]


def doubtful_windows(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about windows that show more, or less, than is probably meant."""
    return [
        *_unread(source, query),
        *_unbounded(plan, source, query),
        *_with_gaps(plan, source, query),
        *_restless(plan, source, query),
    ]


def _unread(source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about named windows that no pattern reads, if there is a pattern that might be meant to.

    What stands outside of WINDOW asks the background.
    """
    declared = [clause for clause in query.dataset if clause.kind == "window" and clause.named]
    if not _asks_background(query):
        return []
    read = {clause.nested for clause in query.dataset}
    for node in (*ast.walk(query.where), *ast.walk(query.events)):
        if isinstance(node, ast.WindowGroup) and isinstance(node.window, ast.Var):
            return []  # of all windows
        if isinstance(node, ast.Term):
            read.add(node.spelling)
    return [
        source.diagnostic(
            "warning",
            "unread-window",
            f"no pattern reads the window {clause.iri.spelling}: a pattern outside of WINDOW asks the background alone",
            clause.span.start,
            clause.span.end,
            hint=f"write WINDOW {_written(clause.iri, source)} {{ … }} around the pattern",
        )
        for clause in declared
        if clause.iri.spelling not in read
    ]


def _asks_background(query: ast.Query) -> bool:
    """Whether a pattern names nothing that it asks."""
    pending: list[Any] = [query.where]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.TriplePattern):
            return True
        if not isinstance(node, str | int | None | ast.WindowGroup | ast.Current | ast.GraphGroup):
            pending += ast.children(node)
    return False


def _written(node: ast.Term, source: Source) -> str:
    return source.excerpt(node.span.start, node.span.end)


def _with_gaps(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about windows that slide further than they reach."""
    return [
        source.diagnostic(
            "warning",
            "gap",
            f"the window {window.name} of {plan.name} is {duration_text(0, shape.width)} long and slides by "
            f"{duration_text(0, shape.slide)}, so it never shows what comes between",
            query.span.start,
            query.span.start + 1,
            hint="swap RANGE and SLIDE, unless a sample is meant",
        )
        for window in plan.windows
        if isinstance(shape := window.shape, Sliding) and shape.slide > shape.width
    ]


def _restless(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about windows that report very often what has hardly changed."""
    return [
        source.diagnostic(
            "warning",
            "overlap",
            f"the window {window} of {plan.name} is {times:,} times as long as it slides, so it reports each item that "
            "often",
            query.span.start,
            query.span.start + 1,
            hint=_SELDOM,
        )
        for window, times in _overlaps(plan)
        if MANY_OVERLAPS < times <= MAX_OVERLAP
    ]


def _unbounded(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about windows that keep everything."""
    return [
        source.diagnostic(
            "warning",
            "unbounded",
            f"the window {window.name} of {plan.name} keeps every item of its stream as long as the query runs",
            query.span.start,
            query.span.start + 1,
            hint="bound it where that is meant: [RANGE PT1H SLIDE PT1M], [RANGE 1000 EVENTS]",
        )
        for window in plan.windows
        if isinstance(window.shape, Identity | Landmark)
    ]
