"""Errors and warnings about the windows of a plan."""

from __future__ import annotations

from typing import Any

from etalis_rules.durations import duration_text

from .. import ast
from ..diagnostics import Diagnostic, Source
from .plan import Identity, Landmark, Sliding, WindowPlan
from .shapes import MAX_OVERLAP


def check_closing(plan: WindowPlan, source: Source, query: ast.Query) -> None:
    """Refuse windows that report when they close and slide so often that they would close all the time."""
    closing = {s.window for s in plan.report if s.kind == "WC"}
    for window in plan.windows:
        shape = window.shape
        if not isinstance(shape, Sliding) or not closing & {"", window.name}:
            continue
        if shape.width // shape.slide > MAX_OVERLAP:
            raise source.error(
                "limit",
                f"the window {window.name} is {shape.width // shape.slide:,} times as long as it slides, and would "
                "report each time",
                query.span.start,
                query.span.end,
                hint="let it slide further (SLIDE), or report on content change: REPORT ON CONTENT CHANGE",
            )


def doubtful_windows(plan: WindowPlan, source: Source, query: ast.Query) -> list[Diagnostic]:
    """Warnings about windows that show more, or less, than is probably meant."""
    return [*_unread(source, query), *_unbounded(plan, source, query), *_with_gaps(plan, source, query)]


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
