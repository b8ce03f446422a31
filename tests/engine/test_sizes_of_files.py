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

TOGETHER = SIZES | {"large together": (1 << 20, 1)}

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


def found(query: str, paths: Path | dict[str, str], executor: Any, **more: Any) -> Iterator[str]:
    mapped = any(not str(path).endswith(".nq") for path in (paths.values() if isinstance(paths, dict) else [paths]))
    options: dict[str, Any] = more | ({"mapping": MAPPING} if mapped else {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not in order of time")
        for match in run(compile(query), paths, executor=executor, **options):
            yield match.id


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "in no order"])
@pytest.mark.parametrize("format", TEXTS)
def test_the_same_is_found_in_files_of_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, in_order: bool, query: str
) -> None:
    path = tmp_path / f"s.{format}"
    path.write_text(TEXTS[format](rows(in_order=in_order)))
    found_in_all_sizes(query, path, monkeypatch)


SEVERAL = {
    "one after the other": "SELECT ?s ?x ?y { { STREAM :a { ?s :d ?x } SEQ STREAM :b { ?s :d ?y } } WITHIN PT5S }",
    "an average": "SELECT ?e (AVG(?d) AS ?m) { STREAM :b { EVENT { ?s :d ?d ; :e ?e } } } WITHIN PT4S GROUP BY ?e",
    "windows": "SELECT ?e (SUM(?d) AS ?n) FROM NAMED WINDOW :v ON :a [RANGE PT9S STEP PT2S] FROM NAMED WINDOW :w ON :b "
    "[RANGE PT5S STEP PT3S] { WINDOW :v { ?s :d ?d } WINDOW :w { ?t :e ?e } } GROUP BY ?e",
}


@pytest.mark.parametrize("query", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("formats", [("csv", "csv"), ("csv", "jsonl"), ("nq", "nq")], ids=" and ".join)
def test_the_same_is_found_in_several_files_of_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, formats: tuple[str, str], query: str
) -> None:
    """One of them is not in order."""
    paths = {}
    for name, format in zip("ab", formats, strict=True):
        paths[name] = str(tmp_path / f"{name}.{format}")
        Path(paths[name]).write_text(TEXTS[format](rows(in_order=name == "a")))
    found_in_all_sizes(query, paths, monkeypatch)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("options", [{}, {"lateness": 3_000_000}], ids=["in order", "with lateness"])
@pytest.mark.parametrize("format", TEXTS)
def test_a_run_ends_at_the_same_event_in_files_of_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, options: dict[str, Any], query: str
) -> None:
    """With lateness, events after the end may come before some that count."""
    path = tmp_path / f"s.{format}"
    swapped = [row for pair in zip(*[iter(rows(in_order=True))] * 2, strict=True) for row in reversed(pair)]
    path.write_text(TEXTS[format](swapped))
    ending = "2026-01-01T00:00:23Z" if format == "nq" else "23"
    expected = found_in_all_sizes(query, path, monkeypatch, until=ending, **options)
    assert len(expected) < len(list(found(query, path, "rows", **options)))


def found_in_all_sizes(
    query: str, paths: Path | dict[str, str], monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[str]:
    expected = list(found(query, paths, "rows", **options))
    assert expected
    for looked_at, large in (SIZES if isinstance(paths, Path) else TOGETHER).values():
        for module in (stream, reader):
            monkeypatch.setattr(module, "LOOKED_AT", looked_at)
            monkeypatch.setattr(module, "LARGE", large)
        for executor in ("rows", "columns", "auto"):
            assert list(found(query, paths, executor, **options)) == expected
    return expected
