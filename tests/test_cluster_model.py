"""The model of a cluster says what follows from its assumptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cluster_model import Costs, cluster, end_with_processes, fullest, predict, waiting, weights


@pytest.mark.parametrize(
    ("shares", "cores", "expected"),
    [([0.25] * 4, 4, 0.25), ([0.25] * 4, 3, 0.5), ([0.25] * 4, 9, 0.25), ([0.7, 0.1, 0.1, 0.1], 2, 0.7)],
)
def test_the_fullest_core_takes_the_next_shard_when_it_is_free(
    shares: list[float], cores: int, expected: float
) -> None:
    assert fullest(shares, cores) == pytest.approx(expected)


def test_two_tasks_may_wait_for_one_process() -> None:
    """The third task has the process of the first, which still works when the second has ended."""
    assert end_with_processes([3, 1, 2], cores=2, processes=2) == 5
    assert end_with_processes([3, 1, 2], cores=2, processes=3) == 3
    assert waiting(2, 2, 1.0) == 0
    assert 0 < waiting(2, 4, 0.1) < waiting(2, 4, 1.0) < 1


def test_a_batch_is_the_sum_of_what_it_is_for() -> None:
    costs = Costs(1e-6, 4e-6, 0.5, 0.001, 100.0, 0.0, 0.0, 1e9, 16)
    batch = predict(costs, 1_000_000, 32, 32, 1 / 32)
    assert (batch.fixed, batch.driver) == (0.5, 0.064)
    assert batch.routing == pytest.approx(1 / 32)
    assert batch.shuffle == pytest.approx(0.025)  # half of 100 MB crosses, over two machines
    assert batch.shards == pytest.approx(4 / 32)
    assert predict(costs, 1_000_000, 16, 16, 1 / 16).shuffle == 0


def test_keys_fill_shards_and_a_hot_one_fills_its_own() -> None:
    assert sum(weights(8, 0.3)) == pytest.approx(1)
    assert weights(8, 0.3)[0] > 0.3 > max(weights(8, 0.3)[1:])


def test_what_limits_a_cluster() -> None:
    assert cluster(Costs(), 10, 0.0, 1_000_000, 10.0).limit == "shards"
    assert cluster(Costs(), 320, 0.05, 1_000_000, 10.0).limit == "the hot key"
    assert cluster(replace(Costs(), network=1e6), 100, 0.0, 1_000_000, 10.0).limit == "shuffle"
    many = cluster(Costs(), 10_000, 0.0, 1_000_000, 10.0)
    assert (many.limit, many.rate, many.shards) == ("driver", 0.0, 1024)
