"""A disk that is full leaves nothing behind that keeps it full: whatever was being written, wherever it stops."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from etalis_py.streams import SinkError, open_sink, write_tables
from etalis_py.streams.outputs import FileOutput

from .test_sinks import ROW

FORMATS = ["parquet", "arrow", "jsonl", "csv", "json", "table", "trig"]
# A limit of the size of files stands for the disk: the system refuses a write at any place.  The first matches have
# an unbound variable, so a table is begun again with another type of its column.
PROGRAM = """
import json, os, resource, sys
from tests.streams.test_sinks import FakeMatch
from etalis_py.streams import SinkError, open_sink, write_tables

write_tables.ROWS = 50
folder, left = sys.argv[1], []
for format in sys.argv[2:]:
    for revised in (False, True):
        for limit in (0, 1, 100, 1_000, 3_000, 5_000, 8_000, 10_000, 12_000, 14_000, 16_000):
            here = f"{folder}/{format} {revised} {limit}"
            os.mkdir(here)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                with open_sink(format, f"{here}/out", revised=revised) as sink:
                    for n in range(300):
                        bindings = {"x": f'"text {n * 7919}"'} if n >= 60 else {}
                        triples = (("<urn:a>", "<urn:p>", f'"{n * 7919}"'),)
                        given = {"triples": triples} if format == "trig" else {"bindings": bindings}
                        sink.write(FakeMatch(**given, id=str(n)))
            except SinkError:
                left.append([format, limit, os.listdir(here)])
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
print(json.dumps(left))
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, list[str]]]:
    """The format, the limit and the files that were left, of each sink that could not be written."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("disk")), *FORMATS]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return [(format, limit, names) for format, limit, names in json.loads(ended.stdout)]


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_left_of_a_file_that_could_not_be_written(
    left: list[tuple[str, int, list[str]]], format: str
) -> None:
    found = [(limit, names) for one, limit, names in left if one == format]
    assert len(found) > 6
    assert not [(limit, names) for limit, names in found if names]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_sink_that_is_closed_after_an_error_publishes_nothing(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SinkError("no space left on the device")

    monkeypatch.setattr(FileOutput, "write", refuse)
    monkeypatch.setattr(write_tables._Writer, "write_table", refuse)
    monkeypatch.setattr(write_tables, "ROWS", 1)
    sink = open_sink(format, tmp_path / "out")
    with pytest.raises(SinkError, match="no space left"):
        sink.write(ROW)
    sink.close()
    assert list(tmp_path.iterdir()) == []
