"""The syntax of Allen's relations, absence, NEXT and REPEAT: how they bind, and what is said of mistakes."""

from __future__ import annotations

import re

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, QueryError, Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import compile_sources
from etalis_compiler.printer import to_text

A, B, C = "{?a :p ?x}", "{?a :q ?y}", "{?a :r ?z}"


def where(text: str) -> ast.Element:
    (query,) = parse(f"SELECT * WHERE {{ {text} }}").queries
    assert query.where is not None
    (element,) = query.where.elements
    assert parse(to_text(parse(f"SELECT * WHERE {{ {text} }}"))).queries[0] == query
    return element


def fault(text: str) -> Diagnostic:
    with pytest.raises(QueryError) as raised:
        compile_sources([Source(f"SELECT * WHERE {text}")])
    return raised.value.diagnostics[0]


@pytest.mark.parametrize("relation", ["MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "PAR", "EQUALS"])
def test_relations_bind_tighter_than_seq(relation: str) -> None:
    whole = where(f"{A} {relation} {B} SEQ {C}")
    assert isinstance(whole, ast.Combined)
    assert whole.operator is ast.Operator.SEQ
    assert isinstance(whole.left, ast.Combined)
    assert whole.left.operator.value == relation


def test_not_and_next_group_from_the_left() -> None:
    whole = where(f"{A} SEQ {B} NOT {C}")
    assert isinstance(whole, ast.Combined)
    assert whole.operator is ast.Operator.NOT
    assert isinstance(where(f"{A} NEXT {B} NEXT {C}").left, ast.Combined)  # type: ignore[union-attr]


def test_a_deadline_and_a_gap() -> None:
    deadline = where(f"{A} SEQ NOT {B} WITHIN 10 s SEQ {C}")
    assert isinstance(deadline, ast.Combined)
    assert isinstance(deadline.left, ast.SeqNot)
    assert deadline.left.bound == ast.Duration("duration", "PT10S")
    gap = where(f"{A} SEQ NOT {B} SEQ {C}")
    assert isinstance(gap, ast.SeqNot)
    assert gap.bound is None


def test_the_clauses_of_repeat_in_any_order() -> None:
    one = where(f"{A} REPEAT 2 TO 5 BY ?a WHERE (?x > PREVIOUS(?x)) NOT {B} LONGEST AS (COUNT(*) AS ?n)")
    other = where(f"{A} REPEAT 2 TO 5 AS (COUNT(*) AS ?n) LONGEST NOT {B} WHERE (?x > PREVIOUS(?x)) BY ?a")
    assert one == other


def test_words_of_the_operators_are_names_where_only_a_name_fits() -> None:
    parse("SELECT * WHERE { ?x during ?y . ?x next ?z . ?x starts ?v . ?x repeat ?w }")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (f"{{ {A}+ }}", "REPEAT 1 OR MORE"),
        (f"{{ {A}* SEQ {B} }}", "REPEAT 1 OR MORE"),
        (f"{{ {A}{{2,5}} }}", "REPEAT 2 TO 5"),
        (f"{{ {A}{{3}} }}", "REPEAT 2 TO 5"),
        (f"{{ {A} -> {B} }}", "{ A } SEQ { B }"),
        (f"{{ {A} FOLLOWED BY {B} }}", "{ A } SEQ { B }"),
        (f"{A} FOLLOWED BY {B}", "{ A } SEQ { B }"),
        (f"{{ {A} BEFORE {B} }}", "{ A } SEQ { B }"),
        (f"{{ {A} CONTAINS {B} }}", "{ B } DURING { A }"),
        (f"{{ {A} WITHOUT {B} }}", "{ A } SEQ NOT { N } WITHIN 10 SECONDS"),
        (f"{{ {A} timer:interval(10 sec) }}", "{ A } SEQ NOT { B } WITHIN 10 SECONDS"),
        (f"{{ {A} STARTED BY {B} }}", "{ B } STARTS { A }"),
        (f"{{ {A} MET BY {B} }}", "{ B } MEETS { A }"),
        (f"{A} OVERLAPPED BY {B}", "{ B } OVERLAPS { A }"),
        (f"{{ {A} FINISHED BY {B} }}", "{ B } FINISHES { A }"),
        (f"{{ {A} AND NOT {B} }}", "{ A } SEQ NOT { N } SEQ { C }"),
        (f"{{ {A} SEQ NOT {B} }}", "say until when: absence is { A } SEQ NOT { N } SEQ { C }"),
        (f"{{ {A} IMMEDIATELY FOLLOWED BY {B} }}", "{ A } NEXT { B }"),
        (f"{{ {A} 3 TIMES }}", "REPEAT 2 TO 5"),
        (f"{{ {A} REPEAT 3 TIMES }}", "REPEAT 2 TO 5"),
        ("PATTERN (A B+)", "REPEAT 1 OR MORE"),
        (f"{A} DURNG {B}", "DURING"),
        (f"{A} DUSING {B}", "did you mean DURING"),
        (f"{{ {A} DURIN {B} }}", "DURING"),
        (f"{{ {A} DRUING {B} }}", "DURING"),
        (f"{A} REPEATE 3", "REPEAT"),
        (f"{A} SEQ {B} WITHIN 5", "5 SECONDS"),
        (f"{A} SEQ NOT {B} WITHIN 5", "5 SECONDS"),
    ],
)
def test_what_is_said_otherwise_elsewhere(text: str, hint: str) -> None:
    assert hint in fault(text).hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{A} REPEAT 0", "REPEAT 0 would match nothing"),
        (f"{A} REPEAT 5 TO 2", "not a number of times"),
        (f"{A} REPEAT 2 BY ?u", "BY [?]u, which its group does not bind"),
        (f"{A} REPEAT 2 BY ?a BY ?a", "has BY twice"),
        (f"{A} REPEAT 2 WHERE (?y > 1)", "[?]y is not bound by the group"),
        (f"{A} REPEAT 2 WHERE (EXISTS {B})", "EXISTS is not allowed in the WHERE of REPEAT"),
        (f"{A} REPEAT 2 WHERE (COUNT(?y) > 1)", "[?]y is not bound by the group"),
        (f"{A} REPEAT 2 AS (?x AS ?v)", "AS takes what is counted"),
        (f"{A} REPEAT 2 BY ?a AS (COUNT(*) AS ?a)", "has a value already"),
        (f"{A} FILTER (PREVIOUS(?x) > 1)", r"PREVIOUS\(\) is not allowed here"),
        (f"{A} SEQ NOT {B} WITHIN PT0S", "absent for no time"),
        (f"{A} SEQ NOT {B} WITHIN 3 EVENTS", "cannot bound a group"),
        (f"{A} SEQ {B} WITHIN 3 EVENTS", "aggregates nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    found = fault(text)
    assert re.search(message, found.message)
    assert found.hint
