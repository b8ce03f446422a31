"""Texts that are in lower or upper case only, beside a constant that is not."""

from __future__ import annotations

import pytest

from etalis_py import Engine, compile, event
from tests.compiler.warned import found


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("LANG(?x) = 'en-US'", "LANG(?x) is in lower case, so 'en-US' is never equal to it", 'write "en-us", or LANGM'),
        ("'EN' != LANG(?x)", "so 'EN' is never equal to it", 'write "en"'),
        ("LANG(?x) IN ('de', 'en-US')", "so 'en-US' is never equal to it", 'write "en-us"'),
        ("STRSTARTS(LANG(?x), 'EN')", "LANG(?x) is in lower case, so 'EN' is never a part of it", 'write "en"'),
        ("LCASE(?x) = 'Acme'", "LCASE(?x) is in lower case", 'write "acme"'),
        ("CONTAINS(UCASE(STR(?x)), 'acme')", "UCASE(STR(?x)) is in upper case", 'write "ACME"'),
        ("MD5(?x) = 'D41D8CD98F00B204E9800998ECF8427E'", "MD5(?x) is in lower case", 'write "d41d8cd98f00b204'),
    ],
)
def test_a_constant_in_other_letters_is_told(condition: str, message: str, hint: str) -> None:
    (warning,) = found(f"SELECT ?x {{ ?c :p ?x FILTER ({condition}) }}", "letters")
    assert message in warning.message
    assert warning.hint.startswith(hint)


@pytest.mark.parametrize(
    "condition",
    [
        "LANG(?x) = 'en-us'",
        "LANGMATCHES(LANG(?x), 'en-US')",
        "LANG(?x) = STR(?c)",
        "LCASE(?x) = LCASE('Acme')",
        "UCASE(?x) IN ('ACME', '42', 5)",
        "CONTAINS(?x, LCASE('A'))",
        "STR(?x) = 'Acme'",
    ],
)
def test_other_comparisons_are_not(condition: str) -> None:
    assert found(f"SELECT ?x {{ ?c :p ?x FILTER ({condition}) }}", "letters") == []


@pytest.mark.parametrize(("tag", "matches"), [("en-US", 0), ("en-us", 1)])
def test_what_is_told_is_so(tag: str, matches: int) -> None:
    program = compile(f"SELECT ?x {{ ?c :p ?x FILTER (LANG(?x) = '{tag}') }}")
    assert bool(program.warnings) != bool(matches)
    engine = Engine(program)
    assert len([*engine.push(event(':c :p "colour"@en-US', 1)), *engine.close()]) == matches
