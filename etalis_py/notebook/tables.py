"""Matches as a table: numbers and texts bare, IRIs by their prefixes, wide tables with a scroll bar of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from etalis_rules.spelling import PREFIXES
from etalis_rules.terms import is_literal

from etalis_py.notebook.timeline import timeline_of
from etalis_py.streams.write_table import show_term

SHOWN = 100
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 10px;text-align:left;max-width:28em;overflow-wrap:anywhere;vertical-align:top"
_NUMBER = _CELL.replace("left", "right")


def matches_html(matches: Iterable[Any], count: int, shapes: Sequence[Any] = ()) -> str:
    """The first ``SHOWN`` matches, a table for each query; ``shapes`` have the columns and prefixes of the queries."""
    shown = list(islice(matches, SHOWN))
    return _shown_html(shown, f"the first {len(shown)} of {count:,} matches" if count > len(shown) else "", shapes)


def first_matches_html(matches: Iterable[Any], most: int, shapes: Sequence[Any] = ()) -> str:
    """The first ``most`` matches, of which there may be any number."""
    some = list(islice(matches, most + 1))
    more = f"the first {most} matches: iterate over it, or take all with .collect() or .to_pandas()"
    return _shown_html(some[:most], more if len(some) > most else "", shapes)


def text_html(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _shown_html(shown: list[Any], of: str, shapes: Sequence[Any]) -> str:
    """A table for each query, then a picture of these matches over time, folded up."""
    known = {shape.query: shape for shape in shapes}
    queries = list(dict.fromkeys(match.query for match in shown))
    tables = [_table([m for m in shown if m.query == query], query, known.get(query)) for query in queries]
    parts = [f"<p>{escape(of)}</p>" * bool(of), *(tables or ["<p>no matches</p>"])]
    if any(match.start is not None for match in shown):
        parts.append(f"<details><summary>over time</summary>{timeline_of(shown).svg}</details>")
    return f'<div style="overflow-x:auto;max-width:100%">{"".join(parts)}</div>'


def matches_text(matches: Iterable[Any], most: int, shapes: Sequence[Any] = ()) -> str:
    """The first ``most`` matches as lines of text, a table for each query; "" if there are none."""
    some = list(islice(matches, most + 1))
    shown = some[:most]
    known = {shape.query: shape for shape in shapes}
    queries = list(dict.fromkeys(match.query for match in shown))
    tables = [_lines([m for m in shown if m.query == query], query, known.get(query)) for query in queries]
    more = [["… and more: iterate over it, or take all with .collect() or .to_pandas()"]] if len(some) > most else []
    return "\n".join(line for lines in (*tables, *more) for line in lines)


def _lines(matches: list[Any], query: str, shape: Any) -> list[str]:
    prefixes = PREFIXES if shape is None else shape.prefixes
    names, titles, timed, taken_back = _columns(matches, shape)
    rows = [titles]
    for match in matches:
        row = [text for text, _ in _values(match, names, prefixes)]
        row += ["" if time is None else str(time) for time in (match.start, match.end)] if timed else []
        rows.append([*row, *(["yes" if match.retracted else ""] if taken_back else [])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = [" | ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [f"# {query}", head, "-+-".join("-" * width for width in widths), *body]


def _columns(matches: list[Any], shape: Any) -> tuple[list[str], list[str], bool, bool]:
    """The variables, the titles of all columns, whether there are times, and whether matches are taken back."""
    names: list[str] = []
    if matches[0].triples is not None:
        heads = ["triples"]
    elif matches[0].boolean is not None:
        heads = ["answer"]
    else:
        bound = {name for match in matches for name in match.bindings}
        given = [] if shape is None else [name for name in shape.output.variables if name in bound]
        names = [*given, *sorted(bound.difference(given))]
        heads = [f"?{name}" for name in names]
    timed = any(match.start is not None for match in matches)
    taken_back = any(match.retracted for match in matches)
    return (
        names,
        [*heads, *(["start", "end"] if timed else []), *(["taken back"] if taken_back else [])],
        timed,
        taken_back,
    )


def _table(matches: list[Any], query: str, shape: Any) -> str:
    prefixes = PREFIXES if shape is None else shape.prefixes
    names, titles, timed, taken_back = _columns(matches, shape)
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
    return [_cell(*value) for value in _values(match, names, prefixes)]


def _values(match: Any, names: list[str], prefixes: Mapping[str, str]) -> list[tuple[str, bool]]:
    """The texts of a match, each with whether it is a number."""
    if match.triples is not None:
        return [(" . ".join(" ".join(show_term(term, prefixes) for term in triple) for triple in match.triples), False)]
    if match.boolean is not None:
        return [("yes" if match.boolean else "no", False)]
    bindings = match.bindings
    return [(show_term(t, prefixes), _is_number(t)) for t in (bindings.get(name, "") for name in names)]


def _is_number(term: str) -> bool:
    return is_literal(term) and term.endswith(("integer>", "decimal>", "double>", "float>"))


def _cell(text: str, number: bool) -> str:
    return f'<td style="{_NUMBER if number else _CELL}">{escape(text)}</td>'
