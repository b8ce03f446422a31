"""A run in Python with a folder goes on where another one stopped.

The expectation is always what a run without interruption gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from etalis_py import event, run
from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.identity import check
from etalis_py.streams import Stream

RISING = "SELECT ?c ?x ?y { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT10S FILTER (?y > ?x) }"
ABSENT = "SELECT ?c ?x { { { ?c :price ?x } SEQ NOT { ?c :sold ?y } WITHIN 3 SECONDS } }"
EVENTS = [event(f":c{at % 3} :price {at * 7 % 11}", at) for at in range(3000)]


def taken(folder: Path, count: int | None = None, **more: Any) -> Iterator[str]:
    with run(RISING, EVENTS, checkpoint=folder, checkpoint_every=0, **more) as matches:
        yield from (match.id for match in islice(matches, count))


def test_python_gives_every_match_at_least_once(tmp_path: Path) -> None:
    first = list(taken(tmp_path / "ck", 700))
    rest = list(taken(tmp_path / "ck"))
    everything = [match.id for match in run(RISING, EVENTS)]
    assert list(dict.fromkeys(first + rest)) == everything
    assert len(rest) < len(everything)


def test_python_refuses_another_query(tmp_path: Path) -> None:
    list(taken(tmp_path / "ck", 700))
    with pytest.raises(CheckpointError, match="other queries"):
        run(ABSENT, EVENTS, checkpoint=tmp_path / "ck")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"time": "at", "subject": "d"}, "subject was c and is d now: give the same, or begin anew"),
        ({"time": "at", "subject": None}, "subject was c and is None now"),
        ({"mapping": {"time": "{at}", "subject": ":{c}", "predicate": ":v", "object": "{v}"}}, "mapping was not given"),
    ],
)
def test_python_refuses_another_reading_of_rows(tmp_path: Path, other: dict[str, Any], reason: str) -> None:
    """Goals of the one reading would meet events of the other."""
    rows = [{"at": n, "c": "a", "d": "b", "v": n} for n in range(5)]
    query = "SELECT ?x ?y { { ?s :v ?x } NEXT { ?s :v ?y } }"
    with run(query, rows, time="at", subject="c", checkpoint=tmp_path / "ck", checkpoint_every=0) as matches:
        assert next(iter(matches))["x"] == 0
    with pytest.raises(CheckpointError, match=reason):
        run(query, rows, checkpoint=tmp_path / "ck", **other)
    with run(query, rows, time="at", subject="c", checkpoint=tmp_path / "ck") as matches:
        assert [match["y"] for match in matches][-1] == 4


def test_a_checkpoint_that_does_not_say_how_rows_were_read_is_gone_on_with(tmp_path: Path) -> None:
    here = {"program": [], "options": {}, "sources": [], "sink": "", "reading": {"subject": "c"}}
    check(tmp_path, here, {name: value for name, value in here.items() if name != "reading"})
    with pytest.raises(CheckpointError, match="subject was d and is c now"):
        check(tmp_path, here, here | {"reading": {"subject": "d"}})


def test_a_source_without_a_position_is_refused(tmp_path: Path) -> None:
    stream = Stream(iter(EVENTS), name="<urn:s>", source="http://h/s/", contexts=[], close=lambda: None)
    with pytest.raises(CheckpointError, match="http://h/s/ does not tell its position"):
        run(RISING, stream, checkpoint=tmp_path / "ck")
    assert not (tmp_path / "ck").exists()


def test_the_folder_is_named_with_its_options() -> None:
    with pytest.raises(TypeError, match="name the folder as well"):
        run(RISING, EVENTS, checkpoint_every=3)


def test_what_falls_due_by_time_alone_comes_once(tmp_path: Path) -> None:
    """The deadlines of goals are part of the state: they fall due in whichever process is there."""
    given = [event(":c :price 1", 1), event(":d :price 2", 2), *(event(":e :other 1", 3) for _ in range(2000))]
    first = run(ABSENT, given, checkpoint=tmp_path / "ck", checkpoint_every=0)
    steps = iter(first._steps)
    next(steps)
    next(steps)
    next(steps)
    first.close()
    second = [(match["c"], match.end) for match in run(ABSENT, given, checkpoint=tmp_path / "ck")]
    assert second == [("http://example.org/c", 4), ("http://example.org/d", 5)]
