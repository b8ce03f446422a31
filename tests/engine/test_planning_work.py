"""Planning takes work in proportion to the program: four times the queries take about four times the calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from etalis_compiler import ast
from etalis_compiler.shards import shard_plan

from etalis_py import Engine, compile
from tests.work import growth


def pairs(n: int) -> list[str]:
    """Queries that differ in their predicates, so that they are no family."""
    return [f"SELECT ?c {{ {{ ?c :p{i} ?x }} SEQ {{ ?c :q{i} ?y }} }}" for i in range(n)]


def chains(n: int) -> list[str]:
    return [f"SELECT ?c {{ {{ ?c :p{i} ?x }} SEQ {{ ?c :q{i} ?y }} SEQ {{ ?c :r{i} ?z }} }}" for i in range(n)]


@pytest.mark.parametrize("queries", [pairs, chains])
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_an_engine_for_different_queries(queries: Callable[[int], list[str]], executor: str) -> None:
    def engine(n: int) -> Callable[[], object]:
        program = compile(queries(n))
        return lambda: Engine(program, executor=executor)

    assert growth(engine, 25) < 5


def union(n: int) -> list[str]:
    return [f"SELECT ?c {{ {' UNION '.join(f'{{ ?c :p{i} ?x }}' for i in range(n))} }}"]


def rules(n: int) -> list[str]:
    """Rules each of which reads what the one before derives."""
    return [f"CONSTRUCT {{ ?c :p{i + 1} ?x }} {{ ?c :p{i} ?x . ?c :q{i} ?y }}" for i in range(n)]


def circle(n: int) -> list[str]:
    """Rules each of which reads what the one before derives, and the first what the last does."""
    return [f"CONSTRUCT {{ ?c :p{(i + 1) % n} ?x }} {{ ?c :p{i} ?x . ?c :q{i} ?y }}" for i in range(n)]


@pytest.mark.parametrize("queries", [pairs, union, rules, circle])
def test_the_shards_of_a_program(queries: Callable[[int], list[str]]) -> None:
    def plan(n: int) -> Callable[[], object]:
        program = compile(queries(n)).rules()
        return lambda: shard_plan(program)

    assert growth(plan, 25) < 6


def test_the_warnings_of_a_long_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step keeps something for ever; the place that the warning names is found without a look at all steps."""
    looked: list[object] = []
    word_of = ast.word_of
    monkeypatch.setattr(ast, "word_of", lambda node: looked.append(node) or word_of(node))
    program = compile(f"SELECT ?c {{ {' SEQ '.join(f'{{ ?c :p{i} ?x }}' for i in range(100))} }}")
    assert program.check()
    assert 0 < len(looked) < 2_000
