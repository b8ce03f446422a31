"""Warnings about patterns that nothing connects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from etalis_py import compile
from tests.compiler.warned import found, tokens
from tests.work import growth


@pytest.mark.parametrize(
    "test", ["?y = ?x", "?x > 3 && ?y = ?x * 2", "?y IN (?x)", "sameTerm(STR(?x), STR(?y))", "?d = ?c"]
)
@pytest.mark.parametrize(
    "pattern",
    [
        "?c :p ?x . ?d :q ?y FILTER (#)",
        "EVENT { ?c :p ?x . ?d :q ?y FILTER (#) }",
        "{ ?c :p ?x } SEQ { ?d :q ?y } FILTER (#)",
        "{ ?c :p ?x } AND { ?d :q ?y } FILTER (#)",
        "{ ?c :p ?x } OPTIONAL { ?d :q ?y FILTER (#) }",
    ],
)
def test_what_an_equality_connects_is_no_cross_product(pattern: str, test: str) -> None:
    """It is looked up by its value, as ``explain`` says."""
    text = f"SELECT * {{ {{ {pattern.replace('#', test)} }} WITHIN 5 s }}"
    assert not found(text, "cross-product")
    assert "on nothing: a cross product" not in str(compile(text).explain())


@pytest.mark.parametrize(
    "test", ["?y > ?x", "?y = ?x || ?y = 3", "?y != ?x", "?y NOT IN (?x)", "?y = 3", "?y = ?x + ?y"]
)
def test_another_comparison_leaves_a_cross_product(test: str) -> None:
    assert found(f"SELECT * {{ {{ ?c :p ?x }} SEQ {{ ?d :q ?y }} FILTER ({test}) }} WITHIN 5 s", "cross-product")
    assert found(f"SELECT * {{ ?c :p ?x . ?d :q ?y FILTER ({test}) }} WITHIN 5 s", "cross-product")


@pytest.mark.parametrize(
    "operator", ["SEQ", "AND", "PAR", "EQUALS", "MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "NEXT"]
)
def test_the_warning_agrees_with_the_plan(operator: str) -> None:
    text = f"SELECT * {{ {{ {{ ?c :p ?x }} {operator} {{ ?d :q ?y }} FILTER (?x = ?y) }} WITHIN 5 s }}"
    assert bool(found(text, "cross-product")) == ("on nothing: a cross product" in str(compile(text).explain()))


def test_what_is_next_is_decided_before_its_equalities() -> None:
    assert found("SELECT * { { ?c :p ?x } NEXT { ?d :q ?y } FILTER (?y = ?x) } WITHIN 5 s", "cross-product")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT * { ?c :p ?x } SEQ { ?d :q ?y }", ["{ ?d :q ?y }"]),
        ("SELECT * { ?c :p ?x } EQUALS { ?d :q ?y }", ["{ ?d :q ?y }"]),
        ("SELECT * { { ?c :p ?x } SEQ OPTIONAL { ?c :r ?z } SEQ { ?d :q ?y } }", ["{ ?d :q ?y }"]),
        ("SELECT * { ?a :p ?b . ?c :p ?d . ?e :p ?f }", ["?c :p ?d", "?e :p ?f"]),
        ("SELECT * { ?a :p ?b . ?c :p ?d . ?b :q ?d }", []),
        ("SELECT * { ?a :p ?b OPTIONAL { ?c :q ?d } }", ["OPTIONAL { ?c :q ?d }"]),
        ("SELECT * { ?a :p ?b VALUES ?c { 1 2 } }", ["VALUES ?c { 1 2 }"]),
        ("SELECT * { ?a :p ?b BIND (?b AS ?c) ?d :q ?c }", []),
        ("SELECT * { :a :p 1 } SEQ { ?d :q ?y }", []),
        ("SELECT * { ?a :p ?b } UNION { ?c :p ?d }", []),
        ("SELECT * { ?a :p _:x . _:x :q ?c . [ :r ?c ] :s ?d }", []),
        ("SELECT * { ?a :p ?b {| :w ?c |} . << ?a :q ?d >> :by ?e }", []),
        ("SELECT * { ?a :p ?b BIND (?unbound + 1 AS ?c) }", []),
        ("SELECT * { ?a :p ?b BIND (?b + 1 AS ?c) ?d :q ?e }", ["?d :q ?e"]),
    ],
)
def test_cross_products(text: str, places: list[str]) -> None:
    assert tokens(text, "cross-product") == places


def test_the_work_grows_with_the_text() -> None:
    """What is compared in the whole query is looked for once, not at each of its groups."""

    def checked(steps: int) -> Callable[[], object]:
        chain = " SEQ ".join(f"{{ ?c :p{i} ?x{i} }}" for i in range(steps))
        program = compile(f"SELECT * {{ {{ {chain} }} WITHIN 1 h FILTER (?x0 = ?x1) }}")
        return program.check

    assert growth(checked, 40) < 6


@pytest.mark.parametrize(
    ("where", "variable"),
    [
        ("{ ?k :s ?x } SEQ { ?k :t ?y . ?z :limit ?x }", "?x"),
        ("{ ?k :t ?y . ?z :limit ?x } SEQ { ?m :s ?x ; :u ?y }", "?x"),
        ("{ ?k :s ?x } SEQ { ?k :t ?y . ?z :limit ?w }", ""),
        ("?k :t ?y . ?z :limit ?x", ""),
    ],
)
def test_the_hint_names_what_other_braces_share(where: str, variable: str) -> None:
    (warning,) = found(f"SELECT * {{ {{ {where} }} WITHIN 5 s }}", "cross-product")
    assert ("background knowledge" in warning.hint) == bool(variable)
    assert variable in warning.hint
