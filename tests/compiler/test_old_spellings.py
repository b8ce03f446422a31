"""Spellings of windows in public query collections: taken, or refused with what to write instead."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.parser import parse


def window(clause: str) -> object:
    where = "WINDOW :w { ?x :p ?y }" if "WINDOW :w" in clause else "?x :p ?y"
    (dataset,) = parse(f"SELECT ?x FROM NAMED {clause} WHERE {{ {where} }}").queries[0].dataset
    return dataset


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STREAM :s [NOW - 1 S SLIDE 1 S]", "STREAM :s [NOW - 1 S TO NOW SLIDE 1 S]"),
        ("STREAM :s [NOW- 4 S]", "STREAM :s [NOW - 4 S TO NOW]"),
        ("STREAM :s [NOW-4S]", "STREAM :s [NOW - 4 S TO NOW]"),
        ("STREAM :s [FROM NOW - 4 S SLIDE 1 S]", "STREAM :s [NOW - 4 S TO NOW SLIDE 1 S]"),
        ("STREAM :s [NOW-10m TO NOW-5m SLIDE 1m]", "STREAM :s [NOW - 10m TO NOW - 5m SLIDE 1m]"),
        ("STREAM :s [RANGE 1h STEP 1h]", "STREAM :s [RANGE PT1H SLIDE PT1H]"),
        ("WINDOW :w ON STREAM :s [RANGE PT1H STEP PT1H]", "WINDOW :w ON :s [RANGE PT1H STEP PT1H]"),
        ("WINDOW :w [RANGE PT1H STEP PT1H] ON STREAM :s", "WINDOW :w ON :s [RANGE PT1H STEP PT1H]"),
        ("WINDOW :w [RANGE PT1H, SLIDE PT1H] ON :s", "WINDOW :w ON :s [RANGE PT1H STEP PT1H]"),
        ("WINDOW :w ON :s [RANGE PT1H, STEP PT1H]", "WINDOW :w ON :s [RANGE PT1H STEP PT1H]"),
    ],
)
def test_an_old_spelling_means_the_same(old: str, new: str) -> None:
    assert window(old) == window(new)


@pytest.mark.parametrize(
    ("clause", "advice"),
    [
        ("STREAM :s [ROWS 10]", "[RANGE TRIPLES 10]"),
        ("STREAM :s [LAST 5 MINUTES]", "[RANGE 5m SLIDE 1m]"),
        ("WINDOW :w ON :s [SLIDING 5m]", "[RANGE 5m SLIDE 1m]"),
        ("WINDOW :w ON :s [ELEMENTS 5]", "[RANGE TRIPLES 10]"),
        ("WINDOW :w ON :s [UNBOUNDED]", "[ALL]"),
    ],
)
def test_what_is_not_taken_says_what_to_write(clause: str, advice: str) -> None:
    with pytest.raises(QueryError) as caught:
        window(clause)
    assert advice in caught.value.diagnostics[0].hint


def test_a_name_may_begin_with_now() -> None:
    (pattern,) = parse("SELECT ?x { ?x now-playing ?y }").queries[0].where.elements[0].patterns  # type: ignore[union-attr]
    assert pattern.predicate.spelling == "<http://example.org/now-playing>"
