"""Generated code in a traceback: its lines are shown, and forgotten with the code."""

from __future__ import annotations

import gc
import linecache
import traceback
from collections.abc import Callable

import pytest
from etalis_rules import algebra as alg

from etalis_py import Engine, event
from etalis_py.values import expressions
from etalis_py.values.generated import CompiledText

QUERY = "SELECT ?x { { ?x :p ?y FILTER (?y * 7 > 3) } SEQ { ?x :q ?z } }"


def known_names() -> set[str]:
    """The names of generated texts whose lines can be shown."""
    gc.collect()
    return {name for name in linecache.cache if name.startswith("<")}


def lines_of(crash: Callable[[], object]) -> list[str]:
    """The source lines in the traceback of a crash."""
    with pytest.raises(ZeroDivisionError) as caught:
        crash()
    return [frame.line or "" for frame in traceback.extract_tb(caught.value.__traceback__)]


def fail(*_: object) -> None:
    raise ZeroDivisionError


def test_a_crash_in_the_code_of_rules_shows_its_line() -> None:
    engine = Engine(QUERY, executor="rows")
    (_, executor) = engine._rule_stages[0]
    scope = executor.runtime.scope
    scope["mul"] = fail
    engine.push(event(":a :p 1", 1))
    assert any("mul(" in line and "7" in line for line in lines_of(engine.close))


def test_a_crash_in_the_code_of_an_expression_shows_its_line() -> None:
    """The expression is one that no other test compiles, so that its code can be changed."""
    double = expressions.term.__wrapped__(alg.Apply("*", (alg.Var("crash"), alg.Const('"7"'))))
    double.__globals__["mul"] = fail
    assert any("return encode(" in line for line in lines_of(lambda: double({"crash": '"8"'}, 0, 0, None)))


def test_texts_of_the_same_kind_are_told_apart() -> None:
    first, second = {}, {}
    CompiledText("def f():\n    return 1 // 0  # first\n", "test").run(first)
    CompiledText("def f():\n    return 1 // 0  # second\n", "test").run(second)
    assert lines_of(first["f"])[-1].endswith("# first")
    assert lines_of(second["f"])[-1].endswith("# second")


def test_lines_go_when_the_code_goes() -> None:
    before = known_names()
    scope: dict[str, Callable[[], int]] = {}
    CompiledText("def f():\n    return 1\n", "test").run(scope)  # type: ignore[arg-type]
    f = scope.pop("f")
    assert len(known_names() - before) == 1
    assert f() == 1
    del f, scope
    assert not known_names() - before


def test_engines_that_come_and_go_leave_no_lines() -> None:
    """Code is kept for the next engine of the same program, but only for a limited number of programs."""
    kept = 2 * 64  # of rules, and of the identities of matches
    before = known_names()
    for n in range(kept + 64):
        engine = Engine(f"SELECT ?x {{ ?x :p{n} ?y }}", executor="rows")
        engine.push(event(f":a :p{n} 1", 1))
        assert len(engine.close()) == 1
    del engine
    assert len(known_names() - before) <= kept
