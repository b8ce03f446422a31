"""The size of a file decides how it is read and put in order, and never what is found in it."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etalis_py import compile, run
from etalis_py.streams import reader, stream

SIZES = {"small": (1 << 20, 1 << 21), "middling": (1, 1 << 21), "large": (1, 1)}
"""The bytes from which a file is put in order by its column reader, and from which it is read in columns."""

QUERIES = {
    "columns of a row": "SELECT ?s ?d ?e { EVENT { ?s :d ?d ; :e ?e } FILTER (?d > 2) }",
    "one column": "SELECT ?s ?d { ?s :d ?d FILTER (?d < 3) }",
    "an optional column": 'SELECT ?s ?d ?e { EVENT { ?s :d ?d OPTIONAL { ?s :e ?e FILTER (?e = "y") } } }',
    "a sequence": "SELECT ?s ?x ?y { { EVENT { ?s :d ?x ; :e ?e } SEQ EVENT { ?s :d ?y ; :e ?e } } WITHIN PT5S }",
    "an aggregate": "SELECT ?e (SUM(?d) AS ?n) { EVENT { ?s :d ?d ; :e ?e } } WITHIN PT4S GROUP BY ?e",
}
NAMES = ("at", "s", "d", "e")
MAPPING = {"time": "{at}", "subject": ":{s}", "rest": True}
TEXTS = {
    "csv": lambda rows: "at,s,d,e\n" + "".join(f"{t},{s},{d},{e}\n" for t, s, d, e in rows),
    "jsonl": lambda rows: "".join(
        json.dumps(dict(zip(["at", "s", "d", "e"], row, strict=True))) + "\n" for row in rows
    ),
    "nq": lambda rows: "".join(map(_quads, enumerate(rows))),
}


def _quads(numbered: tuple[int, tuple[int, str, int, str]]) -> str:
    """The graph of a row and its time; ``:`` is ``http://example.org/``."""
    number, (at, s, d, e) = numbered
    ex = "<http://example.org/"
    typed = '"{}"^^<http://www.w3.org/2001/XMLSchema#{}>'
    time = typed.format(f"2026-01-01T00:00:{at:02}Z", "dateTime")
    graph = f"{ex}g{number}>"
    return (
        f"{ex}{s}> {ex}d> {typed.format(d, 'integer')} {graph} .\n"
        f'{ex}{s}> {ex}e> "{e}" {graph} .\n'
        f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
    )


def rows(*, in_order: bool) -> list[tuple[int, str, int, str]]:
    draw = random.Random(7)
    made = [(t, draw.choice("abc"), draw.randrange(6), draw.choice("xy")) for t in range(40)]
    if not in_order:
        draw.shuffle(made)
    return made


def found(query: str, path: Path, executor: Any) -> Iterator[str]:
    options: dict[str, Any] = {} if path.suffix == ".nq" else {"mapping": MAPPING}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not in order of time")
        for match in run(compile(query), path, executor=executor, **options):
            yield match.id


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "in no order"])
@pytest.mark.parametrize("format", TEXTS)
def test_the_same_is_found_in_files_of_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, in_order: bool, query: str
) -> None:
    path = tmp_path / f"s.{format}"
    path.write_text(TEXTS[format](rows(in_order=in_order)))
    expected = list(found(query, path, "rows"))
    assert expected
    for looked_at, large in SIZES.values():
        for module in (stream, reader):
            monkeypatch.setattr(module, "LOOKED_AT", looked_at)
            monkeypatch.setattr(module, "LARGE", large)
        for executor in ("rows", "columns", "auto"):
            assert list(found(query, path, executor)) == expected
