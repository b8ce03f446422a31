"""Several tables given by the names of their streams are one stream, in order of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from etalis_py import Engine, run
from etalis_py.streams import StreamError

CLICKS: list[dict[str, Any]] = [{"at": 1, "user": "ann", "ad": "a1"}, {"at": 6, "user": "bob", "ad": "a2"}]
BUYS: list[dict[str, Any]] = [{"at": 4, "user": "ann", "amount": 30}, {"at": 5, "user": "bob", "amount": 40}]
THEN = "SELECT ?user ?ad ?amount { { ?user :ad ?ad } SEQ { ?user :amount ?amount } }"
ANN = [{"user": "ann", "ad": "a1", "amount": 30, "start": 1, "end": 4}]


def as_csv(rows: list[dict[str, Any]], path: Path) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "clicks", [CLICKS, pd.DataFrame(CLICKS), pl.DataFrame(CLICKS)], ids=["dicts", "pandas", "polars"]
)
def test_tables_of_any_kind_are_merged_by_time(clicks: Any, tmp_path: Path) -> None:
    buys = as_csv(BUYS, tmp_path / "buys.csv")
    for given in ({"clicks": clicks, "buys": buys}, {"buys": str(buys), "clicks": clicks}):
        assert run(THEN, given, time="at", subject="user").to_dicts(terms="short") == ANN
    found = Engine(THEN)
    assert [m["amount"] for m in found.push_all({"b": BUYS, "c": clicks}, time="at", subject="user")] == [30]


@pytest.mark.parametrize("clicks", ["clicks", ":clicks", "<http://example.org/clicks>"])
def test_a_query_can_ask_for_one_of_them(clicks: str) -> None:
    given = {clicks: CLICKS, "http://shop.example/buys": BUYS}
    for stream, users in ((":clicks", ["ann", "bob"]), ("<http://shop.example/buys>", ["ann", "bob"]), (":buys", [])):
        found = run(f"SELECT ?user {{ STREAM {stream} {{ ?user ?p ?o }} }}", given, time="at", subject="user")
        assert [m["user"].rpartition("/")[2] for m in found] == users


def test_each_may_have_a_mapping_of_its_own() -> None:
    mapped = {
        "clicks": {"time": "{at}", "subject": ":{user}", "predicate": ":ad", "object": "{ad}"},
        "buys": {"time": "{at}", "subject": ":{user}", "predicate": ":amount", "object": "{amount}"},
    }
    assert run(THEN, {"clicks": CLICKS, "buys": BUYS}, mapping=mapped).to_dicts(terms="short") == ANN


def test_what_is_not_named_is_drafted_for_each() -> None:
    renamed = pd.DataFrame(BUYS).rename(columns={"at": "time"})
    with pytest.warns(UserWarning, match="one is drafted: time {time}, subject :{user}"):
        assert run(THEN, {"clicks": CLICKS, "buys": renamed}).to_dicts(terms="short") == ANN


def test_a_list_of_tables_says_how_to_name_them() -> None:
    with pytest.raises(TypeError, match=r"by the names of their streams: \{'clicks': clicks, 'buys': buys\}"):
        run(THEN, [pd.DataFrame(CLICKS), pd.DataFrame(BUYS)], time="at", subject="user")


def test_what_is_no_stream_among_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'buys': 5 \(int\): a dict of streams has tables, paths and lists of rows"):
        run(THEN, {"clicks": pd.DataFrame(CLICKS), "buys": 5}, time="at", subject="user")
    with pytest.raises(TypeError, match=r"7: .* a dict of streams has tables"):
        run(THEN, {"clicks": CLICKS, 7: BUYS}, time="at", subject="user")
    with pytest.raises(StreamError, match="there is no such file"):
        run(THEN, {"clicks": pd.DataFrame(CLICKS), "buys": str(tmp_path / "none.jsonl")}).collect()


def test_a_record_whose_values_are_texts_or_lists_is_no_dict_of_streams() -> None:
    for record in ({"at": "t", "user": "ann"}, {"at": 1, "tags": ["a", "b"]}, {"order": "o1", "items": CLICKS}):
        with pytest.raises(TypeError, match=r"a single dict is one record: put it into a list"):
            run(THEN, record)
