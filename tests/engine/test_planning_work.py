"""Planning takes work in proportion to the program: four times the queries take about four times the calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pytest
from etalis_compiler import ast
from etalis_compiler.rsp.network import ANYTHING, Unit, stages_of
from etalis_compiler.shards import shard_plan
from etalis_rules import algebra as alg

from etalis_py import Engine, Program, compile
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


def events(n: int) -> list[str]:
    """Rules each of which reads events that the one before derives."""
    return [f"CONSTRUCT {{ ?c :p{i + 1} ?x }} {{ EVENT {{ ?c :p{i} ?x . ?c :q{i} ?y }} }}" for i in range(n)]


def classes(n: int) -> list[str]:
    """Rules that derive triples of one predicate, told apart by their objects."""
    return [f"CONSTRUCT {{ ?c :is :k{i + 1} }} {{ ?c :is :k{i} . ?c :q{i} ?y }}" for i in range(n)]


def streams(n: int) -> list[str]:
    """Rules that derive triples of one predicate, told apart by their streams."""
    return [
        f"REGISTER STREAM :s{i + 1} AS CONSTRUCT {{ ?c :p ?x }} {{ STREAM :s{i} {{ ?c :p ?x }} }}" for i in range(n)
    ]


@pytest.mark.parametrize("queries", [events, classes, streams])
@pytest.mark.parametrize(
    "work",
    [
        lambda program: program.check(),
        lambda program: str(program.explain()),
        lambda program: Engine(program, executor="columns"),
    ],
    ids=["check", "explain", "engine"],
)
def test_rules_that_feed_one_another(queries: Callable[[int], list[str]], work: Callable[[Program], object]) -> None:
    def planned(n: int) -> Callable[[], object]:
        program = compile(queries(n))
        return lambda: work(program)

    assert growth(planned, 25) < 5


def test_the_order_of_windows_that_feed_one_another() -> None:
    """Each window reads what a rule derives from the one before, so that no two of them are of one stage."""

    def stages(n: int) -> Callable[[], object]:
        units = []
        for i in reversed(range(n)):
            read, made = ("", f"<p{i}>", ""), ("", f"<q{i}>", "")
            units.append(Unit(f"w{i}", "windows", ((f"s{i}", ANYTHING),), f"r{i}", (read,)))
            units.append(Unit(f"r{i}", "rules", ((f"r{i}", read),), f"s{i + 1}", (made,)))
        return lambda: stages_of(units)

    assert growth(stages, 25) < 5


def test_the_code_of_rules_that_derive_what_many_sequences_begin_with() -> None:
    """Each rule may insert a goal for each SEQ."""

    def lines(n: int) -> int:
        rules = [f"CONSTRUCT {{ ?c :d ?x }} {{ ?c :p{i} ?x }}" for i in range(n)]
        sequences = [f"SELECT ?c {{ {{ ?c :d ?x }} SEQ {{ ?c :q{i} ?y }} }}" for i in range(n)]
        return Engine(compile([*rules, *sequences]), executor="rows").source.count("\n")

    assert lines(100) < 5 * lines(25)


def counts(n: int) -> list[str]:
    return [f"SELECT ?c (COUNT(*) AS ?n) {{ ?c :p{i} ?x }} GROUP BY ?c" for i in range(n)]


def test_an_engine_for_many_aggregates() -> None:
    """What the end of the stream brings for each is looked for once."""

    def engine(n: int) -> Callable[[], object]:
        return lambda: Engine(compile(counts(n)), executor="rows")

    assert growth(engine, 40) < 5


def test_all_patterns_of_a_deep_one() -> None:
    """They are listed without a look at each of those around it, and in the order in which they are written."""
    steps = [alg.BGP((alg.Triple(alg.Var("c"), alg.Const(f"<p{i}>"), alg.Var("x")),)) for i in range(200)]

    def deep(n: int) -> alg.Pattern:
        return reduce(alg.Union, steps[:n])

    assert growth(lambda n: lambda: list(alg.subpatterns(deep(n))), 50) < 5
    assert [pattern for pattern in alg.subpatterns(deep(9)) if pattern in steps] == steps[:9]


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


NESTED = {
    "OPTIONAL": "{{ {inner} }} OPTIONAL {{ ?c :q{n} ?y{n} }}",
    "MINUS": "{{ {inner} }} MINUS {{ ?c :q{n} ?y{n} }}",
    "SEQ NOT": "{inner} SEQ NOT {{ ?c :n{n} ?z{n} }} SEQ {{ ?c :q{n} ?y{n} }}",
    "NEXT": "{inner} NEXT {{ ?c :q{n} ?y{n} }}",
}


@pytest.mark.parametrize("pattern", NESTED.values(), ids=NESTED)
def test_groups_inside_one_another(pattern: str) -> None:
    def compiled(depth: int) -> Callable[[], object]:
        text = reduce(lambda inner, n: pattern.format(inner=inner, n=n), range(depth), "{ ?c :p ?x }")
        return lambda: compile(f"SELECT * {{ {text} }}")

    assert growth(compiled, 25) < 5.7


def conditions(n: int) -> str:
    """A join with conditions across its sides."""
    compared = " && ".join(f"?x + {i} < ?y * {i + 2}" for i in range(n))
    return f"SELECT ?c {{ {{ ?c :p ?x }} SEQ {{ ?d :q ?y }} FILTER ({compared}) }}"


def windows(n: int) -> str:
    """A query over windows of as many streams."""
    named = " ".join(f"FROM NAMED WINDOW :w{i} ON :s{i} [RANGE PT10S STEP PT5S]" for i in range(n))
    read = " ".join(f"WINDOW :w{i} {{ ?c :p{i} ?x{i} }}" for i in range(n))
    return f"REGISTER RSTREAM :q AS SELECT * {named} WHERE {{ {read} }}"


@pytest.mark.parametrize("query", [conditions, windows])
def test_an_engine_for_one_large_query(query: Callable[[int], str]) -> None:
    def engine(n: int) -> Callable[[], object]:
        program = compile(query(n))
        return lambda: Engine(program, executor="rows")

    assert growth(engine, 20) < 5
