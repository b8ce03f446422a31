"""The times that an event may have: the same for events made by hand and for all readers, row by row and in columns."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from etalis_py import Engine, Event, read_stream, run
from etalis_py.events.clock import MAX_TIME, MIN_TIME
from etalis_py.streams import StreamError

OUTSIDE = [MAX_TIME + 1, MIN_TIME - 1, 2**63 - 1, -(2**63)]
WINDOW = "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?x } WITHIN 10 s"


@pytest.mark.parametrize("time", OUTSIDE)
def test_an_event_is_at_most_146_000_years_from_1970(time: int) -> None:
    with pytest.raises(ValueError, match="146,000 years"):
        Event(time, time, (("<urn:a>", "<urn:p>", '"1"'),))


@pytest.mark.parametrize("many", [1, 3_000])
@pytest.mark.parametrize("time", OUTSIDE)
def test_readers_of_text_refuse_what_an_event_cannot_have(time: int, many: int, tmp_path: Path) -> None:
    """With many lines the file is read in columns."""
    lines = [json.dumps({"time": t, "triples": "<urn:a> <urn:p> 1 ."}) for t in (*range(many), time)]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(StreamError, match=r"more than 146,000 years from 1970(.|\n)*unit"):
        list(run(WINDOW, read_stream(file, time_unit="us", in_order=False)))


def test_windows_at_the_last_time() -> None:
    term = pa.array(["<urn:a>"] * 2)
    table = pa.table({"end": [MAX_TIME - 1, MAX_TIME], "s": term, "p": pa.array(["<urn:p>"] * 2), "o": term})
    for executor in ("rows", "columns"):
        assert [m["n"] for m in run(WINDOW, table, executor=executor)] == [1, 2]


@pytest.mark.parametrize("option", ["lateness", "revise"])
@pytest.mark.parametrize(
    "length", ["PT9999999999999H", "9999999999999 h", "-PT9999999999999H", MAX_TIME + 1, timedelta.max]
)
def test_a_length_of_time_is_at_most_146_000_years(option: str, length: Any) -> None:
    """A time less a longer one would not fit into 64 bits: in columns matches were missing."""
    longest: dict[str, Any] = {option: MAX_TIME}
    with pytest.raises(ValueError, match=f"{option}=.*: a length of time is at most 146,000 years; give a shorter one"):
        Engine("SELECT ?x { ?c :p ?x }", **longest | {option: length})
    Engine("SELECT ?x { ?c :p ?x }", **longest)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_the_longest_lateness_keeps_everything_to_the_end(executor: Any) -> None:
    times = pa.array([*range(3_000)])
    term = pa.array(["<urn:a>"] * 3_000)
    table = pa.table({"end": times, "s": term, "p": pa.array(["<urn:p>"] * 3_000), "o": term})
    assert len(list(run("SELECT ?s { ?s <urn:p> ?o }", table, executor=executor, lateness=MAX_TIME))) == 3_000
