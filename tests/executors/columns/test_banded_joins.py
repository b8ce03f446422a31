"""Joins in columns with a lower and an upper bound: the pairs are those of all goals, and few goals are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from etalis_py import Engine, compile
from etalis_py.executors.columns import bands, joins, store
from etalis_py.executors.columns.bands import banded_pairs
from etalis_py.executors.columns.kernels.goals import HIGH, LOW
from etalis_py.executors.columns.kernels.joining import LESS, UNEQUAL
from tests.draws import length
from tests.engine.test_bands import (
    ALL_KINDS,
    BANDS,
    LIMITS,
    NEAR,
    NEIGHBOURS,
    ROUNDED,
    all_of,
    drawn,
    drifting,
    query,
    rising,
)
from tests.executors.columns.judge import in_columns


@pytest.mark.parametrize("op", ["SEQ", "AND", "PAR"])
@pytest.mark.parametrize("band", BANDS)
def test_ids_and_order_are_those_of_rows(band: str, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "SORTED", 0)
    for seed, values in enumerate(ALL_KINDS.values()):
        program, events = compile(query(BANDS[band], op)), list(drawn(seed, length(240), values))
        expected = all_of(Engine(program, executor="rows"), events)
        for size in (7, 10**9):
            assert in_columns(Engine(program, executor="columns"), events, size) == expected


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_policy_takes_the_same_goals(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "SORTED", 0)
    program = compile(query("?y > ?x && ?y < ?x + 3 && ?c != ?d"), policy=policy)
    events = list(drawn(3, length(240), ALL_KINDS["integers"]))
    expected = all_of(Engine(program, policy=policy, executor="rows"), events)
    assert expected
    assert in_columns(Engine(program, policy=policy, executor="columns"), events, 7) == expected


@pytest.mark.parametrize("keys", [1, 5])
@pytest.mark.parametrize("relation", [bands.ANY, bands.BEFORE])
def test_pairs_are_those_that_the_kernel_finds(relation: int, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over goals of equal values, infinite ones and NaN."""
    monkeypatch.setattr(bands, "SORTED", 0)
    draw, searched = np.random.default_rng(keys), 0
    for special in ((), (np.inf, -np.inf), (np.nan,)):
        goals = store.ColumnGoalStore(store.Keys(0), 1, 3, None)
        goals.keys.count = keys
        ends = np.sort(draw.integers(0, 50, 80))
        x = draw.choice([*range(8), *special], 80)
        values = np.column_stack((x, -(x + 3), draw.integers(0, 2, 80)))
        goals.insert(draw.integers(0, keys, 80), ends, ends - 1, np.zeros((80, 1), np.int32), values, 0)
        y = draw.choice([*range(8), *special], 60)
        later = np.sort(draw.integers(0, 50, 60))
        asking = later, later - draw.integers(0, 5, 60), np.column_stack((y, -y, draw.integers(0, 2, 60)))
        sought, ops = draw.integers(-1, keys, 60), np.array([LESS, LESS, UNEQUAL])
        found = goals.banded((0, 1), relation, sought, asking, 20, ops, 10**6)
        if found is not None:
            searched += 1
            ((_, *pairs),) = goals.pairs(relation, sought, asking, 20, ops)
            assert [column.tolist() for column in found] == [column.tolist() for column in pairs]
            assert len(found[0])
    assert searched >= 2


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_no_pair_is_lost_where_differences_are_rounded(kind: str, limit: str) -> None:
    """Whichever side waits, as in AND either does."""
    events = list(drawn(5, length(200), NEIGHBOURS[kind]))
    for band in ROUNDED:
        program = compile(query(band.format(limit), "AND"))
        expected = all_of(Engine(program, executor="rows"), events)
        assert in_columns(Engine(program, executor="columns"), events, 50) == expected


@pytest.mark.parametrize("band", NEAR)
@pytest.mark.parametrize("events", [rising, drifting])
@pytest.mark.parametrize("op", ["SEQ", "AND"])
def test_few_goals_are_looked_at(band: str, events: Any, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than four for each event, or all would be looked at."""
    looked = 0

    def counted(*args: Any) -> Any:
        nonlocal looked
        pairs, sought, buckets = banded_pairs(*args), args[2], args[6][0]
        if pairs is None:
            looked += int((buckets[sought, HIGH] - buckets[sought, LOW]).sum())
        return pairs

    monkeypatch.setattr(store, "banded_pairs", counted)
    text = f"SELECT * {{ {{ ?c <urn:p> ?x }} {op} {{ ?c <urn:p> ?y }} FILTER ({NEAR[band]}) }}"
    for size in (1_000, 4_000):
        looked = 0
        monkeypatch.setattr(joins, "MANY_AT_ONCE", 4 * size)
        assert in_columns(Engine(text, executor="columns"), events(size), 10**9)
        assert 0 < looked <= 4 * size
