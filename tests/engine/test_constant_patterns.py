"""What REGEX and REPLACE refuse in the text of a query is told when it is compiled."""

from __future__ import annotations

import pytest

from etalis_py import compile


def told(call: str, form: str = "SELECT ?y {{ ?x :p ?y FILTER ({}) }}") -> list[str]:
    return [warning.message for warning in compile(form.format(call)).warnings if warning.code == "regex"]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("REGEX(?y, 'a(')", "missing )"),
        ("REGEX(?y, '[a-z-[x]]')", "class subtraction is not supported"),
        (r"REGEX(?y, '(a)\\1')", "back-references are not supported"),
        ("REGEX(?y, 'a', 'g')", "flag 'g' is unknown"),
        ("REGEX(?y, ?x, 'g')", "flag 'g' is unknown"),
        ("!REGEX(STR(?y), 'a(')", "missing )"),
        ("REPLACE(?y, 'x*', '-') = '-'", "matches the empty string"),
        ("REPLACE(?y, STR(?x), '$') = '-'", "$ needs the number of a group"),
    ],
)
def test_a_call_that_is_always_an_error_is_told(call: str, why: str) -> None:
    (message,) = told(call)
    assert message.startswith(f"this {'REPLACE' if 'REPLACE' in call else 'REGEX'} is an error, whatever the text: ")
    assert why in message


@pytest.mark.parametrize(
    "call",
    [
        "REGEX(?y, 'a.c', 'qi')",
        "REGEX(?y, 'a(', 'q')",
        "REGEX(?y, 'a(', STR(?x))",  # which may be q
        "REGEX(?y, STR(?x))",
        "REGEX(?y, ?x, 'smixq')",
        "REPLACE(?y, 'x+', '$0') = 'x'",
        "REPLACE(?y, STR(?x), STR(?x)) = 'x'",
        "REPLACE(?y, 'x*', '-', STR(?x)) = 'x'",
    ],
)
def test_one_that_may_succeed_is_not(call: str) -> None:
    assert told(call) == []


@pytest.mark.parametrize(
    "form",
    [
        "SELECT ?y ?z {{ ?x :p ?y BIND ({} AS ?z) }}",
        "SELECT ?y {{ EVENT {{ ?x :p ?y FILTER ({}) }} }}",
        "SELECT ?y {{ ?x :p ?y FILTER EXISTS {{ ?x :q ?y FILTER ({}) }} }}",
        "SELECT ?y FROM NAMED WINDOW :w ON :s [RANGE PT5M] {{ WINDOW :w {{ ?x :p ?y FILTER ({}) }} }}",
        "CONSTRUCT {{ ?x :z ?y }} {{ ?x :p ?y FILTER ({}) }}",
    ],
)
def test_wherever_it_stands(form: str) -> None:
    assert len(told("REGEX(?y, 'a(')", form)) == 1


def test_a_family_tells_it_once() -> None:
    texts = [f"SELECT ?y {{ ?x :p{i} ?y FILTER REGEX(?y, 'a(') }}" for i in range(6)]
    assert [warning.code for warning in compile(texts).warnings] == ["regex"]
