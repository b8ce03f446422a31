"""Parts of EVENT that only a constant connects with the event: they are looked up, not read for every event."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from etalis_py import Engine, compile, event
from tests.work import growth

LABEL = "<http://example.org/label>"
CONDITIONS = {
    "equal": ("FILTER (?z = :c5)", {"c5"}),
    "the other way round": ("FILTER (:c5 = ?z)", {"c5"}),
    "the same term": ("FILTER (sameTerm(?z, :c5))", {"c5"}),
    "one of several": ("FILTER (?z IN (:c5, :c6, :c5, :unknown))", {"c5", "c6"}),
    "one of none": ("FILTER (?z IN ())", set()),
    "values": ("VALUES ?z { :c5 :c7 }", {"c5", "c7"}),
    "values on the left": ("VALUES (?a ?z) { (1 :c5) (1 :c7) }", {"c5", "c7"}),
    "with another condition": ('FILTER (?z IN (:c5, :c6) && ?l != "l5")', {"c6"}),
    "no term is two": ("FILTER (?z = :c5 && ?z = :c6)", set()),
}


def labels(count: int) -> list[tuple[str, str, str]]:
    return [(f"<http://example.org/c{i}>", LABEL, f'"l{i}"') for i in range(count)]


def query(condition: str) -> str:
    return f"SELECT ?x ?z {{ EVENT {{ ?x :at ?y . ?z :label ?l {condition} }} }}"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_a_constant_finds(executor: str, condition: str) -> None:
    text, found = CONDITIONS[condition]
    engine = Engine(compile(query(text)), background=[labels(9)], executor=executor)  # type: ignore[arg-type]
    matches = [*engine.push_all([event(f":e{i} :at :here .", i) for i in range(3)]), *engine.close()]
    assert sorted((m.end, m["z"].removeprefix("http://example.org/")) for m in matches) == [
        (i, z) for i in range(3) for z in sorted(found)
    ]


def test_what_the_event_says_of_the_constant_counts_too() -> None:
    engine = Engine(compile(query("FILTER (?z = :c5)")), background=[labels(3)])
    matches = [*engine.push(event(":e :at :here . :c5 :label 'new' .", 1)), *engine.close()]
    assert [m["z"] for m in matches] == ["http://example.org/c5"]


@pytest.mark.parametrize("condition", ["equal", "the same term", "one of several", "values"])
def test_the_work_does_not_grow_with_the_background(condition: str) -> None:
    program = compile(query(CONDITIONS[condition][0]))

    def events(size: int) -> Callable[[], object]:
        engine = Engine(program, background=[labels(size)], executor="rows")
        list(engine.push(event(":e :at :here .", 0)))
        return lambda: list(engine.push_all([event(":e :at :here .", i) for i in range(1, 20)]))

    assert growth(events, 50) < 1.5
