"""Paths between two given nodes: found from either end, by the search that is over first."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from etalis_rules.algebra import Chain, Choice, Inverse, NotAny, Repeated

from etalis_py.sparql import paths, prepare
from tests.draws import seeds
from tests.engine.backward_tables import PLUS, STAR, P, Q, answers, history, knowledge, path, t
from tests.work import growth

NODES = "abcd"


@pytest.mark.parametrize("from_root", [False, True])
@pytest.mark.parametrize("repetition", [PLUS, STAR])
def test_a_path_between_a_leaf_and_the_root_takes_a_few_steps(from_root: bool, repetition: tuple[int, bool]) -> None:
    """The tree below the root has all edges; above a leaf are ten."""

    def work(n: int) -> Callable[[], object]:
        source = knowledge(" . ".join(f"n{i} p n{(i - 1) // 2}" for i in range(1, n)))
        up = Repeated(P, *repetition)
        leaf, root = f"n{n - 1}", "n0"
        pattern = path("?x", Inverse(up), "?y") if from_root else path("?x", up, "?y")
        ends = {"x": root, "y": leaf} if from_root else {"x": leaf, "y": root}
        given = {v: t(x).term for v, x in ends.items()}

        def search() -> None:
            assert len(list(prepare(pattern).solve(given, source))) == 1

        search()  # the indexes are built when they are first needed
        return search

    assert growth(work, 1_000) < 2


def drawn_path(random: Random, depth: int = 3) -> Any:
    if depth == 0 or random.random() < 0.2:
        return random.choice([P, Q, Inverse(P), NotAny(("<urn:p>",))])
    first, second = drawn_path(random, depth - 1), drawn_path(random, depth - 1)
    return random.choice(
        [Chain(first, second), Choice(first, second), Inverse(first), Repeated(first, *random.choice([PLUS, STAR]))]
    )


@pytest.mark.parametrize("seed", seeds(150))
def test_both_searches_find_the_same_as_often(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)

    def edge() -> str:
        return f"{random.choice(NODES)} {random.choice('pq')} {random.choice(NODES)}"

    times = (sorted(random.choices(range(1, 4), k=2)) for _ in range(random.randint(0, 3)))
    background = " . ".join(edge() for _ in range(random.randint(0, 4)))
    source = history(*((start, end, edge()) for start, end in times), background=background)
    searched = drawn_path(random)
    x, y = random.choice(NODES), random.choice(NODES)
    for pattern, given in (
        (path(x, searched, y), {}),
        (path("?x", searched, y), {"x": x}),
        (path("?x", searched, "?y"), {"x": x, "y": y}),
    ):
        monkeypatch.setattr(paths, "_FEW", 1_000_000)
        from_one_end = answers(pattern, source, **given)
        monkeypatch.setattr(paths, "_MORE", 2)
        for few in (1, 2, 5):
            monkeypatch.setattr(paths, "_FEW", few)
            assert answers(pattern, source, **given) == from_one_end
