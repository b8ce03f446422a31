"""Warnings about runs and absence that mean something else than they seem to."""

from __future__ import annotations

import pytest

from etalis_py import compile
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

RUN = "{ ?m :temp ?t ; :of ?k } REPEAT 3 BY ?m WHERE "
ABSENT = "{ ?m :on ?y } SEQ NOT { ?m :temp ?t } WITHIN 20 s"


def warned(where: str, code: str) -> list[str]:
    return [str(w) for w in compile(f"SELECT * {{ {where} }}").warnings if w.code == code]


@pytest.mark.parametrize("condition", ["?t > 90", "?k = :hot", "?t > PREVIOUS(?t) && ?k = :hot", "?t + ?t > 90"])
def test_a_condition_on_the_new_element_alone_is_told(condition: str) -> None:
    [warning] = warned(f"{RUN}({condition})", "first-element")
    part = condition.split(" && ")[-1]
    assert f"{part} is asked of each element but the first" in warning
    assert f"write FILTER ({part}) into {{ ?m :temp ?t ; :of ?k }}" in warning


@pytest.mark.parametrize(
    "condition",
    [
        "?t > PREVIOUS(?t)",
        "?t > 90 && PREVIOUS(?t) > 90",
        "?t > 90 && FIRST(?t) > 90",
        "SUM(?t) < 90",
        "?m = :a",
        "COALESCE(?t > PREVIOUS(?t, 2), true)",
    ],
)
def test_other_conditions_of_runs_are_not(condition: str) -> None:
    assert warned(f"{RUN}({condition})", "first-element") == []


def test_what_the_hint_writes_asks_the_first_element_too() -> None:
    events = [at(t, f"a temp {v}") for t, v in enumerate((80, 91, 92, 93, 70, 94), 1)]
    for condition, rows in (
        ("?t > 90", [("", 1, 3), ("", 2, 4)]),
        ("PREVIOUS(?t) > 90 && ?t > 90", [("", 2, 4)]),
    ):
        query = f"SELECT ?x {{ {{ ?m :temp ?t }} REPEAT 3 BY ?m WHERE ({condition}) }}"
        assert run(query, *events) == rows
        assert in_rows_and_columns(query, *events) == [rows, rows]


@pytest.mark.parametrize(
    ("where", "name", "word"),
    [
        (f"?t :is ?x . {ABSENT}", "?t", "NOT"),
        ("?m a :Machine { { START } SEQ NOT { ?m :temp ?t } WITHIN 20 s }", "?m", "NOT"),
        ("{ { { ?m :on ?y } SEQ { ?m :off ?z } } NOT { ?m :temp ?t } } . ?t :is ?x", "?t", "NOT"),
        ("?t :is ?x { { ?m :temp ?t } REPEAT 3 BY ?m } WITHIN 9 s", "?t", "REPEAT"),
        ("{ ?m :temp ?t } REPEAT 3 BY ?m NOT { ?m :off ?z } . ?z :is ?x", "?z", "REPEAT"),
    ],
)
def test_a_variable_that_only_looks_shared_is_told(where: str, name: str, word: str) -> None:
    [warning] = warned(where, "not-shared")
    assert f"this {name} is another one than the {name} beside the {word}" in warning


def test_what_is_absent_of_each_since_the_start_is_said_with_a_rule() -> None:
    [warning] = warned("VALUES ?m { :a :b } { START } SEQ NOT { ?m :temp ?t } WITHIN 20 s", "not-shared")
    rule = "CONSTRUCT { ?m :expected true } AT END WHERE { { START } ?m a :Machine }"
    assert warning.endswith(rule)
    assert not compile(f"{rule} SELECT ?m {{ {{ ?m :expected true }} SEQ NOT {{ ?m :temp ?t }} WITHIN 20 s }}").warnings


@pytest.mark.parametrize(
    "where",
    [
        ABSENT,
        f"?m a :Machine {ABSENT}",
        f"?y :is ?x . {ABSENT}",
        "?m :is ?x { ?m :temp ?t } REPEAT 3 BY ?m AS (LAST(?t) AS ?last)",
        "{ { ?m :temp ?t } REPEAT 3 BY ?m } { { ?m :temp ?t } REPEAT 2 BY ?m }",
        "?x :is ?z { ?m :temp ?t } REPEAT 3 BY ?m UNTIL { ?m :off ?z }",
    ],
)
def test_variables_that_are_shared_are_not(where: str) -> None:
    assert warned(where, "not-shared") == []


@pytest.mark.parametrize(
    ("where", "effect"),
    [
        (
            "{ { START } UNION { ?s :b ?x } } SEQ NOT { ?n :n ?y FILTER (?y > ?x) } WITHIN 4 s",
            "{ START } of UNION leaves ?x unbound, so no { ?n :n ?y FILTER (?y > ?x) } counts there",
        ),
        ("{ { ?s :a ?z } UNION { ?s :b ?x } } FILTER (?x > 3)", "this filter lets nothing of it through"),
        ("{ { { ?s :a ?z } UNION { ?s :b ?x } } SEQ { ?s :c ?y } } FILTER (?y > ?x)", "lets nothing of it through"),
        ("{ { ?s :b ?x } UNION { ?s :a ?z } } NEXT EVENT { ?s :c ?y FILTER (?y > ?x) }", "counts there"),
        (
            "{ { ?s :b ?x } UNION { ?s :a ?z } } OPTIONAL { ?s :c ?y FILTER (?y > ?x) }",
            "this OPTIONAL adds nothing there",
        ),
    ],
)
def test_a_condition_on_what_one_branch_leaves_unbound_is_told(where: str, effect: str) -> None:
    [warning] = warned(where, "never")
    assert "the branch {" in warning
    assert effect in warning
    assert "write FILTER (!BOUND(?x) || " in warning


@pytest.mark.parametrize(
    "where",
    [
        "{ { ?s :a ?z } UNION { ?s :b ?x } } FILTER (!BOUND(?x) || ?x > 3)",
        "{ { ?s :a ?x } UNION { ?s :b ?x } } FILTER (?x > 3)",
        "{ { ?s :a ?z } UNION { ?s :b ?x } } ?s :c ?x FILTER (?x > 3)",
        "{ { { ?s :a ?z } UNION { ?s :b ?x } } NEXT { ?s :c ?x FILTER (?x > 3) } }",
        "?s :a ?z OPTIONAL { ?s :b ?x } FILTER (?x > 3)",
        "{ ?s :a ?z } UNION { ?s :b ?x FILTER (?x > 3) }",
    ],
)
def test_other_conditions_beside_a_union_are_not(where: str) -> None:
    assert warned(where, "never") == []


def test_what_the_hint_writes_lets_the_branch_count() -> None:
    where = "{ { START } UNION { ?s :b ?x } } SEQ NOT { ?n :n ?y FILTER (%s?y > ?x) } WITHIN 4 s"
    events = [at(1, "s b 3"), at(2, "s n 2"), at(3, "s n 5")]
    for condition, rows in (("", [("", 1, 5)]), ("!BOUND(?x) || ", [])):
        query = f"SELECT ?x {{ {where % condition} }}"
        assert run(query, *events) == rows
        assert in_rows_and_columns(query, *events) == [rows, rows]


def test_a_date_without_quotes_is_a_difference() -> None:
    [warning] = warned("?m :on ?d FILTER (?d > 2026-01-31)", "type-error")
    assert "2026-01-31 is a number here" in warning
    assert 'a date is written "2026-01-31"^^xsd:date' in warning
    assert warned('?m :on ?d ; :temp ?t FILTER (?d > "2026-01-31"^^xsd:date && ?t > 2026-1)', "type-error") == []


@pytest.mark.parametrize("condition", ['?m = "acme"', '"acme" != ?m', "?m > 5"])
def test_a_subject_is_never_equal_to_a_text_or_a_number(condition: str) -> None:
    [warning] = warned(f"{{ ?m :temp ?t }} SEQ {{ ?m :temp ?u }} FILTER ({condition})", "type-error")
    assert "the subject of a triple" in warning
    assert "write :acme for <http://example.org/acme>" in warning


@pytest.mark.parametrize(
    "where",
    [
        "?m :temp ?t . ?n :temp ?t FILTER (?m = :acme && ?m != ?n)",
        '?m :temp ?t FILTER (STR(?m) = "acme")',
        '{ ?m :temp ?t } UNION { ?n :of ?m } FILTER (?m = "acme")',
        '?m :of* ?n FILTER (?m = "acme")',
        'VALUES ?m { "acme" } FILTER (?m = "acme") FILTER NOT EXISTS { ?m :temp ?t }',
    ],
)
def test_what_may_be_a_text_is_none(where: str) -> None:
    assert warned(where, "type-error") == []


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT ?m ?t { { ?m :temp ?t } REPEAT 3 BY ?m }", "AS (LAST(?t) AS ?last)"),
        ("CONSTRUCT { ?m :last ?t } { { ?m :temp ?t } REPEAT 3 BY ?m }", "AS (LAST(?t) AS ?last)"),
        ("SELECT ?m { m :temp ?t }", "did you mean ?m instead of the name :m?"),
        ("SELECT ?temp { ?m :temp ?tempe }", "did you mean ?tempe?"),
    ],
)
def test_a_column_without_a_value_is_told_with_what_is_meant(query: str, hint: str) -> None:
    [warning] = compile(query).warnings
    assert (warning.code, hint in warning.hint) == ("unbound", True)


def test_a_bind_before_what_it_reads_is_told_so() -> None:
    [warning] = warned("BIND (?t + 1 AS ?u) ?m :temp ?t", "never")
    assert "?t gets its value behind this BIND, so ?u stays unbound" in warning
    assert "move the BIND behind the pattern that binds ?t" in warning
    assert warned("BIND (COALESCE(?t, 1) AS ?u) ?m :temp ?t", "never") == []
    assert warned("?m :temp ?t BIND (?t + 1 AS ?u)", "never") == []
