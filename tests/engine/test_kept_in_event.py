"""Sub-SELECTs inside EVENT that read the background alone are evaluated once, not for every event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from etalis_py import Engine, compile, event
from tests.work import growth

Executor = Literal["rows", "columns"]
COUNTED = "SELECT ?s ?n { EVENT { ?s :code ?y { SELECT (COUNT(*) AS ?n) { ?k :name ?z } } } }"
FIRST = "SELECT ?s ?k { EVENT { ?s :code ?z { SELECT ?k ?z { ?k :name ?z } ORDER BY DESC(?k) LIMIT 3 } } }"


def names(count: int) -> list[tuple[str, str, str]]:
    return [(f"<urn:k{i}>", "<http://example.org/name>", f'"n{i}"') for i in range(count)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_count_takes_in_what_the_event_adds(executor: Executor) -> None:
    """A triple of both is the event's and counts once."""
    engine = Engine(compile(COUNTED), background=[names(2)], executor=executor)
    said = [":s :code 1", ":s :code 2 ; :name 3", ":s :code 3", ":s :code 4 . <urn:k0> :name 'n0' .", ":s :code 5"]
    found = [*engine.push_all([event(text, t) for t, text in enumerate(said)]), *engine.close()]
    assert [m["n"] for m in found] == [2, 3, 2, 2, 2]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_it_follows_the_background(executor: Executor) -> None:
    engine = Engine(compile(FIRST), background=[names(3)], changes=True, executor=executor)
    found = engine.push(event(":s :code 'n1'", 1))
    found += engine.advance(1)
    engine.update(remove=[names(2)[1]], add=[("<urn:k5>", "<http://example.org/name>", '"n1"')])
    found += [*engine.push(event(":s :code 'n1'", 2)), *engine.close()]
    assert [m["k"] for m in found] == ["urn:k1", "urn:k5"]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_reads_the_time_of_the_event_is_evaluated_for_each(executor: Executor) -> None:
    text = "SELECT ?t { EVENT { ?s :code ?y { SELECT ?t { ?k :name ?z BIND (getENDTIME() AS ?t) } LIMIT 1 } } }"
    engine = Engine(compile(text), background=[names(1)], executor=executor)
    found = [*engine.push_all([event(":s :code 1", t) for t in (1, 2)]), *engine.close()]
    assert [m["t"].timestamp() for m in found] == [1, 2]


@pytest.mark.parametrize("text", [COUNTED, FIRST], ids=["a count", "the first"])
def test_the_work_does_not_grow_with_the_background(text: str) -> None:
    program = compile(text)

    def events(size: int) -> Callable[[], object]:
        engine = Engine(program, background=[names(size)], executor="rows")
        list(engine.push_all([event(":s :code 'n1'", t) for t in range(2)]))
        return lambda: list(engine.push_all([event(":s :code 'n1'", t) for t in range(2, 20)]))

    assert growth(events, 50) < 1.5
