"""Matches in columns → JSON lines and CSV, with no object per match: every distinct term is rendered once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.events.clock import ClockRender
from etalis_py.streams.columns.results import Results, text_of
from etalis_py.streams.json_terms import json_term

_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def _rendered(column: pa.Array, render: Callable[[Any], str]) -> pa.Array:
    """Each distinct value of a column as text; null stays null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [None if value is None else render(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _json(value: Any) -> str:
    return _encode(value).decode()


def _datetimes(one: Results, column: pa.Array) -> pa.Array | None:
    """Times as a clock of dateTimes renders them, all at once; None where that is another clock, or the years have not
    four digits.
    """
    clock = one.render.clock() if isinstance(one.render, ClockRender) else None
    bounds = pc.min_max(column)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if clock is None or clock.kind != "datetime" or least is None or not _YEAR_1 <= least <= most < _YEAR_10000:
        return None
    texts = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")  # with six digits behind the point
    return pc.binary_join_element_wise(pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), "."), "Z", "")


def _time(one: Results, column: pa.Array) -> pa.Array:
    texts = _datetimes(one, column)
    if texts is None:
        return pc.fill_null(_rendered(column, lambda us: _json(one.render(us))), "null")
    return pc.fill_null(pc.binary_join_element_wise('"', texts, '"', ""), "null")


def json_lines(one: Results) -> str:
    """The lines of ``Match.to_dict`` for each match of a SELECT or CONSTRUCT."""
    return "".join(_json_objects(one, json_term, "}\n").to_pylist()) if len(one) else ""


def json_objects(one: Results, binding: Callable[[str], Any] = json_term) -> list[str]:
    """The JSON of each match of a SELECT or CONSTRUCT; ``binding`` is what it has for a term."""
    return _json_objects(one, binding, "}").to_pylist() if len(one) else []


def _json_objects(one: Results, binding: Callable[[str], Any], end: str) -> pa.Array:
    query = f'{{"query":{_json(one.query)},"id":"'
    if one.triples is not None:
        written = [_json([f"{s} {p} {o} ." for s, p, o in triples]) for triples in one.triples]
        body = ['","triples":', pa.array(written, pa.string())]
    else:
        body = ['","bindings":{', _bindings(one, binding), "}"]
    times = [',"start":', _time(one, one.start), ',"end":', _time(one, one.end), end]
    return pc.binary_join_element_wise(query, one.ids, *body, *times, "")


def _bindings(one: Results, binding: Callable[[str], Any]) -> pa.Array:
    """The text between the braces: the bound variables in alphabetical order."""
    parts: list[Any] = []
    for name, terms in sorted(zip(one.variables, one.terms, strict=True), key=lambda pair: pair[0]):
        key = f",{_json(name)}:"
        parts.append(pc.fill_null(_rendered(terms, partial(_bound, key, binding)), ""))
    if not parts:
        return pa.array([""] * len(one), pa.string())
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)


def _bound(key: str, binding: Callable[[str], Any], term: str) -> str:
    return key + _json(binding(term))


def csv_lines(one: Results, variables: tuple[str, ...], *, named: bool) -> str:
    """The lines of SPARQL 1.1 results CSV for each match of a SELECT; ``named``: its name comes first."""
    if not len(one):
        return ""
    terms = dict(zip(one.variables, one.terms, strict=True))
    parts: list[Any] = [_cell(one.query) + ","] if named else []
    for name in variables:
        column = terms.get(name)
        parts += ["" if column is None else pc.fill_null(_rendered(column, lambda term: _cell(text_of(term))), ""), ","]
    for column in (one.start, one.end):
        texts = _datetimes(one, column)
        if texts is None:
            texts = _rendered(column, lambda us: _cell(str(one.render(us))))
        parts += [pc.fill_null(texts, ""), ","]
    parts[-1] = "\r\n"
    return "".join(pc.binary_join_element_wise(*parts, "").to_pylist())


def _cell(text: str) -> str:
    """A cell as the csv module would write it."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
