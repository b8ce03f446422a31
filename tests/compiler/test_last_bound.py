"""A WITHIN or SKIP behind the last group of a sequence belongs to that group (DESIGN §4.7, §4.23), and it is told."""

from __future__ import annotations

import pytest

from etalis_py import compile
from tests.oracle.traces import at, run

A, B, C = "{ ?a :p ?x }", "{ ?a :q ?y }", "{ ?a :r ?z }"


def bounds(where: str) -> list[str]:
    return [str(w) for w in compile(f"SELECT * {{ {where} }}").warnings if w.code == "last-bound"]


@pytest.mark.parametrize(
    ("before", "last"),
    [
        (f"{A} SEQ {B} SEQ", C),
        (f"{A} NEXT", B),
        (f"{A} SEQ NOT {B} SEQ", C),
        (f"{A} SEQ OPTIONAL {B} SEQ", C),
        (f"{A} NOT", B),
        (f"{A} SEQ {B} DURING", C),
        (f"{A} SEQ", "EVENT { ?a :q ?y ; :r ?z }"),
        (f"{A} SEQ", "STREAM :s { ?a :q ?y }"),
        (f"{A} SEQ", "{ ?a :q ?y FILTER (?y > 3) BIND (?y + 1 AS ?u) }"),
    ],
)
def test_a_bound_of_a_single_event_is_told_with_both_readings(before: str, last: str) -> None:
    [warning] = bounds(f"{before} {last} WITHIN 10 s")
    assert f"this WITHIN 10 s bounds {last} alone" in warning
    whole, alone = f"{{ {before} {last} }} WITHIN 10 s", f"{before} {{ {last} WITHIN 10 s }}"
    assert f"to bound all of it, write {whole}; if the last group is meant, write {{ {last} WITHIN 10 s }}" in warning
    assert bounds(whole) == bounds(alone) == []


@pytest.mark.parametrize("clause", ["DISJOINT BY ?a", "THROTTLE 1 h", "SKIP PAST (?y)", "WITHIN 10 s DISJOINT"])
def test_what_keeps_a_single_event_is_told_too(clause: str) -> None:
    [warning] = bounds(f"{A} SEQ {B} {clause}")
    assert f"this {clause} is about {B} alone" in warning
    whole, alone = f"{{ {A} SEQ {B} }} {clause}", f"{A} SEQ {{ {B} {clause} }}"
    assert f"for all of it, write {whole}; if the last group is meant, write {{ {B} {clause} }}" in warning
    assert bounds(whole) == bounds(alone) == []


@pytest.mark.parametrize(
    "where",
    [
        f"{{ {A} SEQ {B} }} DISJOINT",
        f"{A} SEQ {{ {B} SEQ {C} }} DISJOINT",
        f"{A} THROTTLE 10 s",
        f"{{ {A} SEQ {B} }} WITHIN 10 s",
        f"{A} SEQ {{ {B} WITHIN 10 s }}",
        f"{A} SEQ {{ {B} SEQ {C} }} WITHIN 10 s",
        f"{A} SEQ {{ ?a :q ?y ; :r ?z }} WITHIN 10 s",
        f"{A} SEQ {{ ?a :q+ ?y }} WITHIN 10 s",
        f"{A} SEQ {B} WITHIN 5 s SEQ {C} WITHIN 10 s",
        f"{A} SEQ NOT {B} WITHIN 10 s",
        f"{A} SEQ OPTIONAL {B} WITHIN 10 s",
        f"{A} UNION {B} WITHIN 10 s",
        f"{A} WITHIN 10 s",
    ],
)
def test_other_bounds_are_not(where: str) -> None:
    assert bounds(where) == []


def test_behind_the_where_clause_it_bounds_the_whole() -> None:
    assert not compile(f"SELECT * WHERE {A} SEQ {B} WITHIN 10 s").warnings
    assert not compile(f"SELECT * WHERE {{ {A} SEQ {B} }} WITHIN 10 s").warnings


def test_the_meaning_is_that_of_the_text() -> None:
    events = at(1, "a p 1"), at(20, "a q 2"), at((30, 45), "a q 3")
    assert run(f"SELECT ?y {{ {A} SEQ {B} WITHIN 10 s }}", *events) == [("y=2", 1, 20)]
    assert run(f"SELECT ?y {{ {{ {A} SEQ {B} }} WITHIN 10 s }}", *events) == []
