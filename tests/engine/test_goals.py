"""The goal store, and that what is written into generated code does what its methods say."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import GoalStore, Solution, write_insert, write_prune, write_retract
from etalis_py.values import SparqlError

KEYS = ("<a>", "<b>")
LONGEST = 5


def store() -> GoalStore:
    return GoalStore(1, "j", "G", Layout(("k",), ()), key=(2,), longest=LONGEST)


def written(write: Any) -> Any:
    """A function of the goals, a goal and a time, with one of the written pieces as its body."""
    w = Writer()
    with w.block("def run(goals, x, t):"):
        w("k = x[2]", "b = goals.get(k)")
        write(w)
        w("return goals if b is None or not b or k not in goals else {**goals, k: b} if b != goals[k] else goals")
    scope = {"bisect_left": bisect_left, "insort": insort}
    exec(w.text(), scope)
    return scope["run"]


INSERT = written(lambda w: write_insert(w, "goals"))
LATE = written(lambda w: write_insert(w, "goals", "insort"))


def retract(w: Writer) -> None:
    w("i = b.index(x)")
    write_retract(w, "goals", "k")
    w("return goals")


def prune(w: Writer) -> None:
    with w.block("if b:"):
        write_prune(w, str(LONGEST), exactly=True)
    w("return b")


RETRACT, PRUNE = written(retract), written(prune)
GOALS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(KEYS)), max_size=12).map(
    lambda drawn: [(end, end, key) for end, key in sorted(drawn, key=lambda goal: goal[0])]
)


def filled(goals: list[Solution]) -> GoalStore:
    result = store()
    for goal in goals:
        result.insert(goal)
    return result


@given(GOALS)
def test_insertion_is_written_as_it_is_defined(goals: list[Solution]) -> None:
    buckets: dict[Any, Any] = {}
    for goal in goals:
        INSERT(buckets, goal, 0)
    assert buckets == filled(goals).buckets


@given(GOALS, st.integers(0, 12), st.sampled_from([(), (2,), (2, 1)]), st.sampled_from([(), ("k",)]), st.booleans())
def test_many_are_inserted_as_each_of_them_is(
    goals: list[Solution], place: int, key: tuple[int, ...], values: tuple[str, ...], extended: bool
) -> None:
    """Also those that carry values, have more computed, or cannot be: and what was known of an edge is forgotten."""

    def extend(goal: Solution) -> Solution:
        if goal[0] == 7:
            raise SparqlError("no number")
        return (*goal, goal[0] + 1)

    one, many = (
        GoalStore(1, "j", "G", Layout(("k",), values), key, LONGEST, extend=extend if extended else None)
        for _ in range(2)
    )
    for goal in goals:
        if (whole := one.rebuild(goal)) is not None:
            one.insert(whole)
    many.insert_all(goals[:place])
    many.edges = {"<a>": 1, "<c>": 2}
    many.insert_all(goals[place:])
    assert many.buckets == one.buckets
    assert [bucket.__class__ for bucket in many.buckets.values()] == [b.__class__ for b in one.buckets.values()]
    if key == (2,):
        assert ("<a>" in many.edges) == all(k != "<a>" for end, _, k in goals[place:] if not extended or end != 7)
    assert "<c>" in many.edges


@given(GOALS, st.randoms())
def test_a_goal_that_comes_late_takes_its_place(goals: list[Solution], random: Any) -> None:
    shuffled = list(goals)
    random.shuffle(shuffled)
    buckets: dict[Any, Any] = {}
    for goal in shuffled:
        LATE(buckets, goal, 0)
    by_key = {key: list(bucket) for key, bucket in buckets.items()}
    assert by_key == {key: list(bucket) for key, bucket in filled(goals).buckets.items()}


@given(GOALS.filter(bool), st.data())
def test_retraction_is_written_as_it_is_defined(goals: list[Solution], data: Any) -> None:
    gone = data.draw(st.sampled_from(goals))
    kept = filled(goals)
    kept.retract(gone)
    assert RETRACT(filled(goals).buckets, gone, 0) == kept.buckets


@given(GOALS, st.integers(0, 20))
def test_what_has_expired_is_pruned_and_swept(goals: list[Solution], now: int) -> None:
    live = [goal for goal in goals if goal[0] >= now - LONGEST]
    swept = filled(goals)
    assert swept.expire(now) == len(goals) - len(live) == len(goals) - swept.live()
    assert {key: swept.probe(key) for key in KEYS} == {key: [g for g in live if g[2] == key] for key in KEYS}
    for key in KEYS:
        assert list(PRUNE(filled(goals).buckets, (0, 0, key), now) or ()) == [goal for goal in live if goal[2] == key]


@given(GOALS, st.integers(0, 13))
def test_a_probe_finds_what_ended_before(goals: list[Solution], before: int) -> None:
    assert filled(goals).probe("<a>", before) == [goal for goal in goals if goal[2] == "<a>" and goal[0] < before]


@given(GOALS)
def test_a_dump_gives_the_same_store(goals: list[Solution]) -> None:
    assert filled(list(filled(goals).dump())).buckets == filled(goals).buckets
