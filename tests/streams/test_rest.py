"""A key that no object before it had is a property of its name, like every other, wherever the objects come from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Match, run
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.record_keys import MOST
from tests.draws import examples

ANY = "SELECT ?p ?o { EVENT { ?s ?p ?o } }"
Rows = list[dict[str, Any]]
Found = list[tuple[str, str, Any]]


def found(matches: Any) -> Found:
    return sorted((str(match.end), str(match["p"]), match["o"]) for match in matches)


def pushed(rows: Rows, path: Path) -> Found:
    engine = Engine(ANY)
    matches: list[Match] = []
    engine.on_match(matches.append)
    for row in rows:
        engine.push(row, time="at", subject="m")
    engine.close()
    return found(matches)


def listed(rows: Rows, path: Path) -> Found:
    return found(run(ANY, rows, time="at", subject="m"))


def iterated(rows: Rows, path: Path) -> Found:
    return found(run(ANY, iter(rows), time="at", subject="m"))


def read(rows: Rows, path: Path) -> Found:
    path.write_text("\n".join(map(json.dumps, rows)))
    return found(run(ANY, path, time="at", subject="m"))


def read_at_once(rows: Rows, path: Path) -> Found:
    """As large files are read: in columns."""
    path.write_text("\n".join(map(json.dumps, rows)))
    mapping = {"time": "{at}", "subject": ":{m}", "predicate": ":a", "object": "{a}", "rest": True}
    with read_stream(path, mapping=mapping) as stream:
        chunks = list(stream.chunks(large=True))
    return found(run(ANY, (event for chunk in chunks for event in _events(chunk))))


def _events(chunk: Any) -> Iterator[Any]:
    from etalis_py.streams.columns.flat_form import events_of

    yield from chunk if isinstance(chunk, list) else events_of(chunk)


WAYS = [pushed, listed, iterated, read, read_at_once]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Rows], Found]:
    return lambda rows: request.param(rows, tmp_path / "rows.jsonl")


def values(result: Found) -> list[tuple[str, Any]]:
    return [(predicate.rpartition("/")[2], value) for _, predicate, value in result]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"a": None}, {"a": 3}, [("a", 3)]),
        ({"a": 1}, {"a": 1, "b c": 2}, [("a", 1), ("a", 1), ("b_c", 2)]),
        ({"a": {"x": 1}}, {"a": {"y": 2}}, [("a_x", 1), ("a_y", 2)]),
        ({"a": {"x": 1}}, {"a": 2}, [("a_x", 1), ("a", 2)]),
        ({"a": 1}, {"a": {"x": 2}}, [("a", 1), ("a_x", 2)]),
        ({"a": ""}, {"a": "text"}, [("a", "text")]),
        ({"a": 1}, {"a": {}, "b": 2}, [("a", 1), ("b", 2)]),
    ],
)
def test_the_second_object_has_what_the_first_lacks(
    way: Callable[[Rows], Found], first: dict[str, Any], second: dict[str, Any], expected: list[tuple[str, Any]]
) -> None:
    assert values(way([{"at": 1, "m": "m1", **first}, {"at": 2, "m": "m1", **second}])) == expected


def test_a_key_may_come_after_thousands_of_objects(way: Callable[[Rows], Found]) -> None:
    rows: Rows = [{"at": n, "m": "m1", "a": 1} for n in range(3000)]
    result = way([*rows, {"at": 3000, "m": "m1", "late": 7}, {"at": 3001, "m": "m1", "late": 8, "a": 2}])
    assert [one for one in values(result) if one != ("a", 1)] == [("late", 7), ("a", 2), ("late", 8)]


SCALARS = st.sampled_from([1, 2.5, "x", "", None, True])
OBJECTS = st.dictionaries(st.sampled_from("xyz"), SCALARS | st.dictionaries(st.just("w"), SCALARS), max_size=2)


@settings(max_examples=examples(1 / 3))
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c d", "e.x"]), SCALARS | OBJECTS), max_size=6))
def test_every_value_is_found_under_its_name(tmp_path_factory: pytest.TempPathFactory, drawn: Rows) -> None:
    rows = [{"at": n, "m": "m1", "n": 0, **row} for n, row in enumerate(drawn, 1)]
    path = tmp_path_factory.mktemp("rest") / "rows.jsonl"
    expected = sorted(
        (str(row["at"]), f"http://example.org/{name}", value)
        for row in rows
        for name, value in flat(row)
        if name not in ("at", "m") and value not in (None, "")
    )
    if not rows:
        return
    for one in WAYS:
        result = one(rows, path)
        assert [(time, predicate.strip("<>"), value) for time, predicate, value in result] == expected, one.__name__


def flat(record: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The definition: names in one another are joined by what stands for a dot in an IRI."""
    for key, value in record.items():
        name = before + key.replace(" ", "_").replace(".", "_")
        if isinstance(value, dict):
            yield from flat(value, f"{name}_")
        else:
            yield name, value


def test_a_list_is_told(tmp_path: Path) -> None:
    rows: Rows = [{"at": 1, "m": "m1", "a": 1}, {"at": 2, "m": "m1", "a": 2, "tags": ["x"]}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    for source in (rows, iter(rows), path):
        with run(ANY, source, time="at", subject="m") as matches:
            assert len(list(matches)) == 2
        assert any("'tags' is a list and left out" in told for told in matches.warnings)
    engine = Engine(ANY)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for row in (*rows, {**rows[1], "at": 3}):
            engine.push(row, time="at", subject="m")
    assert [str(one.message).partition(";")[0] for one in told] == ["the record: 'tags' is a list and left out"]


@pytest.mark.parametrize("way", [iterated, read_at_once])
def test_keys_that_are_values_are_refused_before_they_fill_the_memory(
    way: Callable[[Rows, Path], Found], tmp_path: Path
) -> None:
    rows: Rows = [{"at": n, "m": "m1", "a": 1, f"user{n}": 1} for n in range(MOST + 2)]
    with pytest.raises(StreamError, match="should be values of one key"):
        way(rows, tmp_path / "rows.jsonl")


def test_a_long_list_has_few_keys() -> None:
    rows: Rows = [
        {"at": 1, "m": "m1", "items": [{"sku": "a"}]},
        {"at": 2, "m": "m1", "items": [{"sku": "b", "late": n} for n in range(MOST + 1)]},
    ]
    assert len(run(ANY, rows[:1], time="at", subject="m").to_dicts()) == 1
    late = [match for match in run(ANY, iter(rows), time="at", subject="m") if match["p"].endswith("late")]
    assert len(late) == MOST + 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_later_file_may_have_more_columns(tmp_path: Path, ending: str) -> None:
    import pandas as pd

    for number, more in enumerate(({}, {"late": [7]})):
        frame = pd.DataFrame({"at": [number], "m": ["m1"], "a": [1], **more})
        path = tmp_path / f"{number}.{ending}"
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    assert values(found(run(ANY, tmp_path / f"*.{ending}", time="at", subject="m"))) == [
        ("a", 1), ("a", 1), ("late", 7),
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["yes", 1, ":p"])
def test_rest_is_true_or_false(wrong: Any) -> None:
    mapping = {"time": "{at}", "subject": ":{m}", "predicate": ":a", "object": "{a}", "rest": wrong}
    with pytest.raises(StreamError, match="'rest' is true or false"):
        run(ANY, [{"at": 1, "m": "m", "a": 1}], mapping=mapping)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_of_several_wrong_keys_the_first_by_name_is_told(seed: str) -> None:
    """In every process: sets of texts have another order in each."""
    program = (
        "from etalis_py import run\n"
        "keys = [{'subject': ':s', 'predicate': f':{key}', 'object': '{' + key + '}'} for key in 'dcba']\n"
        "row = {'at': 1, **dict.fromkeys('abcd', [])}\n"
        "list(run('ASK {}', [row], mapping={'time': '{at}', 'triple': keys}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
    )
    assert "the records:1: 'a' is a list" in done.stderr
