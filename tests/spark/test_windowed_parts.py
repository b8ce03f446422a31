"""How windowed programs are divided, and that their shards together find what one engine finds (without Spark)."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.draws import examples
from tests.spark.windowed import (
    KEYED,
    PROGRAMS,
    WHOLE,
    compiled,
    embedded,
    parts_of,
    run_by_hand,
    stream,
    windowed_queries,
)


@pytest.mark.parametrize("name", KEYED)
def test_what_is_divided(name: str) -> None:
    assert {p.part.shards for p in parts_of(compiled(KEYED[name]), 4)} == {4}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_not_divided_and_why(name: str) -> None:
    text, said = WHOLE[name]
    [part] = parts_of(compiled(text), 4)
    assert part.part.shards == 1
    assert re.search(said, part.part.reason), part.part.reason


@pytest.mark.parametrize("name", PROGRAMS)
def test_shards_find_what_one_engine_finds(name: str) -> None:
    program, events = compiled(PROGRAMS[name]), stream(7, 80)
    wanted = embedded(program, events)
    assert wanted
    for shards in (1, 3, 8):
        assert run_by_hand(program, events, shards) == wanted


@settings(max_examples=examples(2), suppress_health_check=list(HealthCheck))
@given(windowed_queries(), st.integers(2, 8), st.integers(0, 10_000), st.integers(1, 40))
def test_random_queries(text: str, shards: int, seed: int, size: int) -> None:
    program, events = compiled(text), stream(seed, size)
    assert run_by_hand(program, events, shards) == embedded(program, events)
