"""Warnings about operations that are errors for every event; what the evaluator does says whether they are true."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, compile, event
from etalis_py.values.functions import CASTS, FUNCTIONS
from etalis_py.values.lexical import INTEGER_RANGES
from tests.compiler.warned import found
from tests.draws import length, seeds

PREFIX = f"PREFIX xsd: <{XSD}> "
NUMBERS = ("5", "-2.5", "1e3", '"7"^^xsd:int')
TEXTS = ('"a"', '""', '"a"@en', '"2026"')
TIMES = ('"2026-03-01T10:00:00Z"^^xsd:dateTime', '"2026-03-01"^^xsd:date', '"10:00:00Z"^^xsd:time', "NOW()")
DURATIONS = ('"PT5S"^^xsd:duration', '"P1M"^^xsd:yearMonthDuration', "getDURATION()")
OTHERS = ("true", "<urn:i>", '"z"^^<urn:d>', "TRIPLE(<urn:a>, <urn:b>, 5)")
CONSTANTS = NUMBERS + TEXTS + TIMES + DURATIONS + OTHERS
UNKNOWN = ("?o", "COALESCE(?o, 1)")
OPERATORS = ("+", "-", "*", "/", "<", ">=", "=", "!=")
PARTS = 40  # BINDs of a group
FORGIVING = frozenset({"COALESCE", "IF"})
WITHOUT_ARGUMENTS = frozenset({"NOW", "RAND", "UUID", "STRUUID"})
DEPENDS_ON_THE_VALUE = {"IRI", "URI", "TIMEZONE", f"{XSD}time", *(XSD + name for name in INTEGER_RANGES)} - {
    f"{XSD}integer"
}


def evaluated(expressions: Sequence[str], objects: Sequence[str] = ("5",)) -> list[tuple[bool, list[str | None]]]:
    """Of each expression: whether there is a warning about it, and its value for each object of a triple."""
    if len(expressions) > PARTS:
        return evaluated(expressions[:PARTS], objects) + evaluated(expressions[PARTS:], objects)
    before = PREFIX + "SELECT * { ?s :p ?o "
    binds = [f"BIND ({e} AS ?z{n}) " for n, e in enumerate(expressions)]
    program = compile(before + "".join(binds) + "}")
    ends, end = [], len(before)
    for bind in binds:
        end += len(bind)
        ends.append(end)
    told = {
        next(n for n, end in enumerate(ends) if w.column <= end) for w in program.warnings if w.code == "type-error"
    }
    engine = Engine(program)
    solutions = [m.bindings for n, o in enumerate(objects) for m in engine.push(event(f"<urn:s> :p {o} .", n + 1))]
    solutions += [m.bindings for m in engine.close()]
    assert len(solutions) == len(objects)
    return [(n in told, [s.get(f"z{n}") for s in solutions]) for n in range(len(expressions))]


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - FORGIVING - WITHOUT_ARGUMENTS) + sorted(CASTS))
def test_a_call_with_constants_is_told_if_it_is_an_error(name: str) -> None:
    function = CASTS[name] if name in CASTS else FUNCTIONS[name]
    called = f"<{name}>" if name in CASTS else name
    random = Random(name)
    for count in range(max(function.least, 1), (function.most or 2) + 1):
        every = list(product(CONSTANTS, repeat=count))
        chosen = every if count == 1 else random.sample(every, min(120, len(every)))
        calls = [f"{called}({', '.join(arguments)})" for arguments in chosen]
        for call, (told, values) in zip(calls, evaluated(calls), strict=True):
            is_error = values == [None]
            assert is_error or not told, call
            certain = "@en" not in call and name not in DEPENDS_ON_THE_VALUE
            if count == 1 and certain:
                assert told or not is_error, call


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operation_with_constants_is_told_only_if_it_is_an_error_or_never_equal(operator: str) -> None:
    operations = [f"{left} {operator} {right}" for left, right in product(CONSTANTS, CONSTANTS)]
    usual = 0
    for operation, (told, values) in zip(operations, evaluated(operations), strict=True):
        never = [f'"{str(operator == "!=").lower()}"^^<{XSD}boolean>']
        assert values in ([None], never if operator in ("=", "!=") else [None]) or not told, operation
        usual += told
    assert usual > 80


def drawn(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(CONSTANTS + UNKNOWN)
    kind = random.random()
    if kind < 0.4:
        function = FUNCTIONS[random.choice(sorted(FUNCTIONS))]
        count = random.randint(function.least, function.most if function.most is not None else 3)
        return f"{function.name}({', '.join(drawn(random, depth - 1) for _ in range(count))})"
    if kind < 0.6:
        return f"<{random.choice(sorted(CASTS))}>({drawn(random, depth - 1)})"
    if kind < 0.7:
        return f"{random.choice('!-+')}({drawn(random, depth - 1)})"
    operator = random.choice(OPERATORS)
    return f"({drawn(random, depth - 1)} {operator} {drawn(random, depth - 1)})"


def is_strict(expression: str) -> bool:
    """Whether an error in a part is one of the whole."""
    return not any(word in expression for word in ("COALESCE", "IF(", "=", "BOUND"))


@pytest.mark.parametrize("seed", seeds(6))
def test_nothing_is_told_of_what_may_have_a_value(seed: int) -> None:
    random = Random(seed)
    expressions = [e for e in (drawn(random, 3) for _ in range(length(400))) if is_strict(e)]
    objects = ("5", '"abc"', "<urn:o>", "true", f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>')
    of_all = evaluated(expressions, objects)
    for expression, (told, values) in zip(expressions, of_all, strict=True):
        assert not told or set(values) == {None}, expression
    assert sum(told for told, _ in of_all) > len(expressions) / 4


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("CONTAINS(?x, 5)", "5 is a number, and CONTAINS takes a text: this can only be an error", "write STR(5)"),
        ("FLOOR('5') = 5", "'5' is a text, and FLOOR takes a number", "write xsd:decimal('5')"),
        ("YEAR('2026') = 1", "'2026' is a text, and YEAR takes a date or a dateTime", "write xsd:dateTime('2026')"),
        ("REGEX(?c, 'acme')", "?c is the subject of a triple, and REGEX takes a text", "write STR(?c)"),
        ("LANG(?c) = 'en'", "?c is the subject of a triple, and LANG takes a literal", ""),
        ("HOURS('2026-03-01'^^xsd:date) = 1", "is a date, and HOURS takes a dateTime or a time", ""),
        ("xsd:date(5) = ?x", "5 is a number, and xsd:date takes a date, a dateTime or a text", ""),
        ("xsd:date('1.2.2026') < ?x", "'1.2.2026' is no xsd:date", ""),
        ("?c + 1 > 5", "?c is the subject of a triple, which cannot be calculated with", "the subject of a triple"),
        ("<urn:i> - 1 > 5", "<urn:i> is an IRI, which cannot be calculated with", ""),
        ("getENDTIME() * 2 > ?x", "* is not defined for a time and a number", ""),
        ("NOW() + ?x > NOW() + NOW()", "+ is not defined for a time and a time", ""),
        ("getENDTIME()", "getENDTIME() is a time, which is neither true nor false", ""),
        ("!?c", "?c is the subject of a triple, which is neither true nor false", ""),
        ("IF(?c, 1, 2) = 1", "?c is the subject of a triple, and IF takes a number, a text or a truth value", ""),
        ("?c < ?x", "?c is the subject of a triple, and IRIs have no order", ""),
        ("BOUND(?x) IN (1, true)", "BOUND(?x) is a truth value, 1 a number: they are never equal", ""),
        ("?x > 3 && STRLEN(?x) > 3", "?x is a number, and STRLEN takes a text", "write STR(?x)"),
        ("CONTAINS(?x, 'a') && ?x > 3", "?x is a text, 3 a number", ""),
    ],
)
def test_what_is_said_and_advised(condition: str, message: str, hint: str) -> None:
    (warning,) = found(f"{PREFIX}SELECT * {{ ?c :p ?x FILTER ({condition}) }}", "type-error")
    assert message in warning.message
    assert warning.hint.startswith(hint) if hint else not warning.hint


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("xsd:date(getENDTIME()) = '2026-03-01'^^xsd:date", "they are never equal"),
        ("xsd:time(NOW()) > '22:00:00'^^xsd:time", "this is an error if they are at most 14 hours apart"),
        ("xsd:date(getENDTIME()) = '2026-03-01Z'^^xsd:date", ""),
        ("xsd:date(?x) = '2026-03-01'^^xsd:date", ""),
        ("xsd:date('2026-03-02') = '2026-03-01'^^xsd:date", ""),
    ],
)
def test_a_zone_on_one_side_only(condition: str, message: str) -> None:
    told = found(f"{PREFIX}SELECT * {{ ?c :p ?x FILTER ({condition}) }}", "type-error")
    assert [w.message.rpartition(": ")[2] for w in told] == [message] * bool(message)


@pytest.mark.parametrize(
    "where",
    [
        "{ ?a :p ?y BIND (5 AS ?x) } UNION { ?a :q ?y BIND ('a' AS ?x) } FILTER (?x > 3)",
        "{ ?a :p ?x } UNION { ?a :q ?y BIND ('a' AS ?x) } FILTER (?x > 3)",
        "{ ?a :p ?x } UNION { ?x :q ?a } FILTER (?x > 3)",
        "{ ?x :p ?a } UNION { ?b :q <<( ?a :r ?x )>> } FILTER (?x > 3)",
        "?a :p ?x FILTER (?x > 3 || ?x > 'a')",
        "?a :p ?x FILTER (IF(ISNUMERIC(?x), ?x > 3, ?x > 'a'))",
        "{ ?a :p ?x FILTER (?x > 3) } UNION { ?a :q ?x FILTER (?x > 'a') }",
        "?a :p ?x OPTIONAL { ?a :q ?y FILTER (?y > 3) } OPTIONAL { ?a :r ?y FILTER (?y > 'a') }",
        "{ SELECT ?a { ?a :p ?z BIND ('z' AS ?x) } } ?a :q ?x FILTER (?x > 3)",
        "?a :p ?x VALUES ?x { 1 'a' } FILTER (?x > 3)",
        "?a :p ?z VALUES ?x { 1 'a' } FILTER (?x > 3)",
        "{ { ?a :p ?x FILTER (?x > 3) } NOT { ?a :q ?y FILTER (?y > 'a') } } FILTER (?a != :b)",
        "{ { ?a :p ?x FILTER (?x > 3) } REPEAT 2 BY ?a } { ?a :q ?x FILTER (?x > 'a') }",
    ],
)
def test_a_variable_that_may_be_of_several_kinds(where: str) -> None:
    assert found(f"SELECT ?a {{ {where} }}", "type-error") == []


@pytest.mark.parametrize(
    "where",
    [
        "?a :p ?z VALUES ?x { 'b' 'a' UNDEF } FILTER (?x > 3)",
        "{ ?a :p ?y BIND ('b' AS ?x) } UNION { ?a :q ?y BIND ('a' AS ?x) } FILTER (?x > 3)",
        "?a :p ?y BIND (?m + 1 AS ?n) BIND (STRLEN(?y) AS ?m) FILTER (STRLEN(?n) = 3)",
        "{ ?a :p ?x FILTER (?x > 3) } SEQ { ?a :q ?y } FILTER (?x > 'a')",
        "?a :p ?x FILTER (?x > 3) BIND (STRLEN(?x) AS ?n)",
    ],
)
def test_a_variable_that_can_only_be_of_one_kind(where: str) -> None:
    assert len(found(f"SELECT ?a {{ {where} }}", "type-error")) == 1
