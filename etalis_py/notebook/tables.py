"""Matches as a table: numbers and texts bare, IRIs by their prefixes, wide tables with a scroll bar of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from etalis_rules.spelling import PREFIXES
from etalis_rules.terms import is_literal

from etalis_py.streams.write_table import show_term

SHOWN = 100
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 10px;text-align:left;max-width:28em;overflow-wrap:anywhere;vertical-align:top"
_NUMBER = _CELL.replace("left", "right")


def matches_html(matches: Iterable[Any], count: int, shapes: Sequence[Any] = ()) -> str:
    """The first ``SHOWN`` matches, a table for each query; ``shapes`` have the columns and prefixes of the queries."""
    shown = list(islice(matches, SHOWN))
    known = {shape.query: shape for shape in shapes}
    queries = list(dict.fromkeys(match.query for match in shown))
    tables = [_table([m for m in shown if m.query == query], query, known.get(query)) for query in queries]
    of = f"<p>the first {len(shown)} of {count:,} matches</p>" if count > len(shown) else ""
    return f'<div style="overflow-x:auto;max-width:100%">{of}{"".join(tables) or "<p>no matches</p>"}</div>'


def _table(matches: list[Any], query: str, shape: Any) -> str:
    prefixes = PREFIXES if shape is None else shape.prefixes
    if matches[0].triples is not None:
        names, heads = [], ["triples"]  # type: ignore[var-annotated]
    elif matches[0].boolean is not None:
        names, heads = [], ["answer"]
    else:
        bound = {name for match in matches for name in match.bindings}
        given = [] if shape is None else [name for name in shape.output.variables if name in bound]
        names = [*given, *sorted(bound.difference(given))]
        heads = [f"?{name}" for name in names]
    timed = any(match.start is not None for match in matches)
    taken_back = any(match.retracted for match in matches)
    titles = [*heads, *(["start", "end"] if timed else []), *(["taken back"] if taken_back else [])]
    rows = []
    for match in matches:
        cells = _cells(match, names, prefixes)
        if timed:
            cells += [
                _cell("" if time is None else str(time), isinstance(time, int)) for time in (match.start, match.end)
            ]
        if taken_back:
            cells.append(_cell("yes" if match.retracted else "", False))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in titles)
    caption = f'<caption style="text-align:left">{escape(query)}</caption>'
    return f'<table style="{_TABLE}">{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _cells(match: Any, names: list[str], prefixes: Mapping[str, str]) -> list[str]:
    if match.triples is not None:
        triples = " . ".join(" ".join(show_term(term, prefixes) for term in triple) for triple in match.triples)
        return [_cell(triples, False)]
    if match.boolean is not None:
        return [_cell("yes" if match.boolean else "no", False)]
    bindings = match.bindings
    return [_cell(show_term(t, prefixes), _is_number(t)) for t in (bindings.get(name, "") for name in names)]


def _is_number(term: str) -> bool:
    return is_literal(term) and term.endswith(("integer>", "decimal>", "double>", "float>"))


def _cell(text: str, number: bool) -> str:
    return f'<td style="{_NUMBER if number else _CELL}">{escape(text)}</td>'
