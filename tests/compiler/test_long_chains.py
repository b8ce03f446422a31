"""Chains without a limit of length: read as a tree, they find what the chain finds that is read step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from etalis_compiler import parser
from etalis_compiler.ast import walk
from etalis_compiler.building import long_chains
from etalis_compiler.diagnostics import QueryError
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Event, compile, event, run
from tests.work import growth

OPERATORS = st.sampled_from(["SEQ", "SEQ", "SEQ", "AND", "UNION", "OPTIONALSEQ", "EQUALS"])
STEPS = st.tuples(OPERATORS, st.integers(0, 3), st.sampled_from(["?x", "?y", "?z"]))
CHAINS = st.lists(STEPS, min_size=3, max_size=8)
STREAMS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 8), st.integers(0, 2)), max_size=9)


def written(chain: list[tuple[str, int, str]]) -> str:
    """The groups of a chain and the operators between them; before the first there is none."""
    return " ".join(f"{operator if n else ''} {{ ?c :p{p} {x} }}" for n, (operator, p, x) in enumerate(chain))


def found(text: str, stream: list[Event]) -> Sequence[object]:
    return sorted((m.start, m.end, sorted(m.items(), key=str)) for m in run(compile(text), stream))


@given(CHAINS, STREAMS)
def test_stretches_of_a_chain_find_what_the_chain_finds(
    chain: list[tuple[str, int, str]], made: list[tuple[int, int, int, int]]
) -> None:
    text = f"SELECT * {{ {written(chain)} }} WITHIN 6 s"
    stream = [event(f":c{c} :p{p} {c}", (end - length, end)) for p, c, end, length in sorted(made, key=lambda e: e[2])]
    whole = found(text, stream)
    with pytest.MonkeyPatch.context() as patch:  # so that a chain of four groups is taken apart
        patch.setattr(parser, "MAX_DEPTH", 23)
        patch.setattr(long_chains, "STEPS", 2)
        assert found(text, stream) == whole


def conditions(n: int) -> str:
    return f"SELECT * {{ ?c :p ?x FILTER ({' || '.join(f'?x = {i}' for i in range(n))}) }}"


def groups(n: int) -> str:
    """A chain of groups, every seventh of which holds a part of the chain itself."""
    parts = ["{ { ?c :p 1 } SEQ { ?c :p 2 } }" if i % 7 == 0 else f"{{ ?c :p {i} }}" for i in range(n)]
    return f"SELECT * {{ {' SEQ '.join(parts)} }}"


def with_spans(text: str) -> list[tuple[object, object]]:
    return [(node, getattr(node, "span", None)) for node in walk(parser.parse(text))]


@pytest.mark.parametrize("text", [conditions, groups])
@pytest.mark.parametrize("steps", [300, 1_100])
@pytest.mark.parametrize("stretch", [3, 32])
def test_a_chain_goes_on_from_its_stretches_as_if_all_were_read_again(
    text: Callable[[int], str], steps: int, stretch: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_chains, "STEPS", stretch)
        gone_on = with_spans(text(steps))
        again = long_chains.LongChains.shallower
        patch.setattr(long_chains.LongChains, "shallower", lambda _, node: again(long_chains.LongChains(), node))
        assert with_spans(text(steps)) == gone_on


def test_reading_a_long_chain_takes_work_for_each_step_once() -> None:
    assert growth(lambda n: lambda: parser.parse(conditions(n)), 500) < 5


@pytest.mark.parametrize("operator", ["SEQ", "UNION", "AND"])
def test_a_chain_of_five_hundred_groups(operator: str) -> None:
    text = f"SELECT ?c {{ {f' {operator} '.join(f'{{ ?c :p{n} {n} }}' for n in range(500))} }}"
    stream = [event(f":a :p{n} {n}", n) for n in range(500)]
    spans = [(m.start, m.end) for m in run(text, stream)]
    assert spans == ([(n, n) for n in range(500)] if operator == "UNION" else [(0, 499)])


def test_a_missing_step_of_a_long_chain_is_missed() -> None:
    text = f"SELECT ?c {{ {' SEQ '.join(f'{{ ?c :p{n} {n} }}' for n in range(200))} }}"
    assert list(run(text, [event(f":a :p{n} {n}", n) for n in range(200) if n != 150])) == []
    assert list(run(text, [event(f":a :p{n} {n}", n if n != 150 else 149) for n in range(200)])) == []


@pytest.mark.parametrize(("operator", "values"), [("||", [3, 299]), ("&&", [])])
def test_conditions_of_three_hundred_parts(operator: str, values: list[int]) -> None:
    conditions = f" {operator} ".join(f"?x = {n}" for n in range(300))
    stream = [event(f":a :p {n}", n) for n in (3, 299, 300)]
    assert [m["x"] for m in run(f"SELECT ?x {{ ?c :p ?x FILTER ({conditions}) }}", stream)] == values


@pytest.mark.parametrize("operator", ["NEXT", "OPTIONALSEQ", "EQUALSOPTIONAL"])
def test_chains_whose_order_matters_keep_their_limit(operator: str) -> None:
    with pytest.raises(QueryError, match="more than 128 groups"):
        compile(f"SELECT ?c {{ {f' {operator} '.join(['{ ?c :p ?x }'] * 200)} }}")


def test_short_chains_stay_as_they_are_written() -> None:
    text = " SEQ ".join(["{ ?c :p ?x }"] * (long_chains.STEPS + 1))
    where = parser.parse(f"SELECT * {{ {text} }}").queries[0].where
    assert where is not None
    steps = 0
    here = where.elements[0]
    while hasattr(here, "left"):
        here, steps = here.left, steps + 1
    assert steps == long_chains.STEPS
