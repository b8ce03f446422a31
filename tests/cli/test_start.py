"""``etalis run --start T``: when the stream starts."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Folder, tick

ABSENT = "SELECT ?n { { START } SEQ NOT { ?c :price ?x } WITHIN 2 s BIND (0 AS ?n) }"


def run(folder: Folder, *options: str, times: tuple[object, ...], code: int = 0) -> tuple[list[str], str]:
    folder.write("t.jsonl", "".join(tick(time, 1) for time in times))
    done = folder.etalis("run", "-q", ABSENT, "-s", "t.jsonl", "-f", "csv", *options, code=code)
    return done.stdout.splitlines()[1:], done.stderr


def test_it_is_spelled_as_the_stream_counts(folder: Folder) -> None:
    assert run(folder, times=(10, 20)) == ([], "")
    assert run(folder, "--start", "5", times=(10, 20)) == (["0,5,7"], "")
    assert run(folder, "--start", "5000", "--time-unit", "ms", times=(10_000, 20_000)) == (["0,5000,7000"], "")
    dated = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z")
    start = "2026-01-01T00:00:05Z"
    assert run(folder, "--start", start, times=dated) == (["0,2026-01-01T00:00:05Z,2026-01-01T00:00:07Z"], "")


def test_what_ends_before_it_is_late(folder: Folder) -> None:
    found, told = run(folder, "--start", "11", times=(10, 20))
    assert found == ["0,11,13"]
    assert "1 event came too late and was left out; an earlier --start, or --lateness D, allows for more" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [("--start soon", "--start soon: "), ("--start 5 --engine spark", "--start is for the local engine")],
)
def test_what_is_refused(folder: Folder, options: str, message: str) -> None:
    assert message in run(folder, *options.split(), times=(10,), code=2)[1]
