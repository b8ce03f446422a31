"""GROUP_CONCAT beside HAVING: the text of a group is made when HAVING has let the group through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from etalis_py import Engine, compile, event, run
from etalis_py.executors.columns import group_concat, grouped
from tests.work import growth

QUERY = (
    "SELECT ?c (GROUP_CONCAT(DISTINCT ?x; SEPARATOR=',') AS ?g) (COUNT(*) AS ?n) "
    "{{ ?c :p ?x }} WITHIN 1000000 s GROUP BY ?c HAVING ({})"
)
SO_FAR = QUERY.replace(" WITHIN 1000000 s", "").replace("DISTINCT ", "")
EVENTS = [event(f":a :p {x}", t) for t, x in enumerate([4, 2, 4, 7], 1)]


def test_refused_groups_take_no_time_for_their_texts() -> None:
    program = compile(QUERY.format("COUNT(*) > 100000"))

    def pushed(n: int) -> Callable[[], object]:
        engine = Engine(program, executor="rows")
        events = [event(f":a :p {x}", x) for x in range(1, n + 1)]
        return lambda: engine.push_all(events)

    assert growth(pushed, 50) < 5


def test_nor_do_those_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    joined = grouped.joined_texts

    def counted(terms: Any, ids: Any, members: Any, separator: str) -> Any:
        answers.append(len(members.firsts))
        return joined(terms, ids, members, separator)

    monkeypatch.setattr(grouped, "joined_texts", counted)
    program = compile(QUERY.format("COUNT(*) > 98").replace("DISTINCT ", ""))
    matches = run(program, [event(f":a :p {x}", x) for x in range(1, 101)], executor="columns")
    assert [match["n"] for match in matches] == [99, 100]
    assert 0 < sum(answers) < 10


def test_nor_do_those_without_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    written = group_concat.RunningTexts._after

    def counted(self: Any, asked: Any) -> Any:
        rows.append(len(asked))
        return written(self, asked)

    monkeypatch.setattr(group_concat.RunningTexts, "_after", counted)
    engine = Engine(SO_FAR.format("COUNT(*) > 98"), executor="columns")
    events = [event(f":a :p {x}", x) for x in range(1, 101)]
    matches = [*engine.push_all(events[:60]), *engine.push_all(events[60:]), *engine.close()]
    assert [match["n"] for match in matches] == [99, 100]
    assert matches[1]["g"] == ",".join(map(str, range(1, 101)))
    assert sum(rows) == 2


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(
    ("having", "texts"),
    [
        ("COUNT(*) > 2", ["4,2", "4,2,7"]),
        ("STRLEN(GROUP_CONCAT(DISTINCT ?x; SEPARATOR=',')) > 3", ["4,2,7"]),
        ("STRLEN(GROUP_CONCAT(?x; SEPARATOR='')) > 3", ["4,2,7"]),
        ("COUNT(*) > 2 && NOW() > '1969-01-01T00:00:00Z'^^xsd:dateTime", ["4,2", "4,2,7"]),
    ],
)
def test_the_groups_that_are_let_through_have_their_texts(executor: str, having: str, texts: list[str]) -> None:
    assert [match["g"] for match in run(compile(QUERY.format(having)), EVENTS, executor=executor)] == texts


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_texts_of_several_groups_go_on_from_batch_to_batch(executor: str, batch: int) -> None:
    engine = Engine(SO_FAR.format("?c != :b || COUNT(*) > 1"), executor=executor)
    events = [event(f":{c} :p '{x}'", t) for t, (c, x) in enumerate(["a1", "b2", "a3", "c4", "b5", "b6", "a7"], 1)]
    matches = [m for at in range(0, len(events), batch) for m in engine.push_all(events[at : at + batch])]
    texts = [match["g"] for match in (*matches, *engine.close())]
    assert texts == ["1", "1,3", "4", "2,5", "2,5,6", "1,3,7"]
