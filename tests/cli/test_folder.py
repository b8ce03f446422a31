"""``etalis run --queries DIR``: a folder of queries, which come, change and go while a live stream runs."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from etalis_py import Engine, compile, event
from etalis_py.cli.commands import parser
from etalis_py.cli.folder import QueryFolder, follows_folder
from etalis_py.cli.watch import files_of
from tests.cli.conftest import Folder

GENEROUS = 30.0
RISE = "SELECT ?x ?y WHERE {{ {{ :c{0} :price ?x }} SEQ {{ :c{0} :price ?y }} FILTER (?y > ?x) }}"


class Alerts:
    """A folder, an engine that it is for, and what is said of it."""

    def __init__(self, path: Path) -> None:
        self.path, self.engine, self.said = path, Engine(), []
        self.folder = QueryFolder(str(path), "unrestricted", self.said.append)
        self._written = 0

    def write(self, name: str, text: str) -> None:
        """With a time of its own, however coarse those of the file system are."""
        self._written += 1
        (self.path / name).write_text(text)
        os.utime(self.path / name, ns=(self._written, self._written))

    def look(self) -> list[str]:
        """What is said of the changes, without the name of the folder."""
        self.said.clear()
        self.folder.look(self.engine)
        return [line.replace(f"{self.path}/", "") for line in self.said]

    def prices(self, t: int, *companies: str) -> list[str]:
        """The names of the queries that match when prices rise to the time."""
        self.engine.push_all([event(f":{company} :price {t}", t) for company in companies])
        return sorted({match.query for match in self.engine.advance(t * 1_000_000)})


@pytest.fixture
def alerts(tmp_path: Path) -> Alerts:
    made = Alerts(tmp_path)
    for n in range(6):
        made.write(f"user{n}.rq", RISE.format(n))
    made.write("notes.txt", "no query")
    made.folder.begin(made.engine)
    return made


def test_what_is_there_runs_by_the_names_of_the_files(alerts: Alerts) -> None:
    assert alerts.said == [f"etalis: watching {alerts.path}, 6 files (Ctrl-C stops)"]
    assert alerts.look() == []
    assert alerts.prices(1, "c0", "c5") == []
    assert alerts.prices(2, "c5", "c0") == ["user0", "user5"]


def test_a_file_that_comes_or_goes_leaves_the_goals_of_the_others_alone(alerts: Alerts) -> None:
    alerts.prices(1, "c0", "c1", "c8")
    alerts.write("user8.rq", RISE.format(8))
    (alerts.path / "user1.rq").unlink()
    assert alerts.look() == ["etalis: user1.rq: removed", "etalis: user8.rq: added"]
    assert alerts.prices(2, "c0", "c1", "c8") == ["user0"]
    assert alerts.prices(3, "c1", "c8") == ["user8"]


def test_a_file_that_changes_begins_anew(alerts: Alerts) -> None:
    alerts.prices(1, "c0", "c1")
    alerts.write("user0.rq", RISE.format(1))
    assert alerts.look() == ["etalis: user0.rq: changed, begins anew"]
    assert alerts.prices(2, "c0", "c1") == ["user1"]
    assert alerts.prices(3, "c0", "c1") == ["user0", "user1"]


def test_a_file_that_changes_is_compiled_once(alerts: Alerts, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr("etalis_py.engine.program.gather", lambda texts, *_: compiled.extend(texts))
    alerts.write("user2.rq", "SELECT ?x WHERE { :c2 :price ?x } ORDER BY ?x")
    assert alerts.look() == ["etalis: user2.rq: changed, begins anew"]
    assert [Path(text.name).name for text in compiled] == ["user2.rq"]
    alerts.write("user2.rq", RISE.format(7))
    assert alerts.look() == ["etalis: user2.rq: changed, begins anew"]
    assert len(compiled) == 1, "a text of a known kind is not compiled at all"


def test_a_file_that_does_not_compile_is_told_and_what_it_held_runs_on(alerts: Alerts) -> None:
    alerts.prices(1, "c0")
    alerts.write("user0.rq", "SELECT ?x WHERE { :c0 :price ")
    alerts.write("user9.rq", "SELECT")
    said = alerts.look()
    assert "user0.rq: what it held before runs on; the run goes on" in said[1]
    assert "user0.rq:1:" in said[0]
    assert "user9.rq: left out; the run goes on" in said[3]
    assert len(said) == 4
    assert alerts.look() == []
    assert alerts.prices(2, "c0") == ["user0"]
    alerts.write("user9.rq", RISE.format(0))
    (alerts.path / "user0.rq").unlink()
    assert alerts.look() == ["etalis: user0.rq: removed", "etalis: user9.rq: added"]


def test_a_file_that_is_no_text_is_told_as_one_of_a_command_is(alerts: Alerts) -> None:
    (alerts.path / "user0.rq").write_bytes(b"\xff\xfe")
    (alerts.path / "user9.rq").write_bytes(b"SELECT ?x\n# Z\xfcrich")
    first, second = alerts.look()
    told = "a query is UTF-8 text, this is not; save it in UTF-8, or convert it"
    assert first.startswith(f"etalis: user0.rq: what it held before runs on: line 1: {told}: ")
    assert second.startswith(f"etalis: user9.rq: left out: line 2: {told}: ")
    with pytest.raises(ValueError, match=f"user9.rq, line 2: {told}"):
        compile(alerts.path / "user9.rq")


def test_a_name_that_is_taken_is_told(alerts: Alerts) -> None:
    alerts.write("other.rq", f"REGISTER QUERY user3 AS {RISE.format(7)}")
    assert alerts.look() == [
        "etalis: other.rq: left out: queries named user3 are running already; rename them or REGISTER a name"
    ]


def test_the_run_goes_on_while_a_file_comes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.path / "alerts").mkdir()
    folder.write("alerts/first.rq", RISE.format(1))
    begun, looked = threading.Event(), threading.Event()

    class Observed(QueryFolder):
        def begin(self, engine: Engine) -> None:
            super().begin(engine)
            begun.set()

        def look(self, engine: Engine) -> None:
            super().look(engine)
            if len(engine.programs) == 3:  # what was given beside the folder, too
                looked.set()

    monkeypatch.setattr("etalis_py.cli.folder.QueryFolder", Observed)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                for t in (1, 2, 3, 4):
                    if t == 3:
                        assert begun.wait(GENEROUS)
                        folder.write("alerts/second.rq", RISE.format(2))
                        assert looked.wait(GENEROUS)
                    connection.sendall(f'{{"time": {t}, "triples": ":c1 :price {t} . :c2 :price {t} ."}}\n'.encode())

        thread = threading.Thread(target=send)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        done = folder.etalis("run", "--queries", "alerts", "--stream", address, "--watch")
        thread.join()
    spans: dict[str, set[tuple[int, int]]] = {"first": set(), "second": set()}
    for match in map(json.loads, done.stdout.splitlines()):
        spans[match["query"]].add((match["start"], match["end"]))
    assert spans["first"] == {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
    assert (3, 4) in spans["second"]
    assert "etalis: watching alerts, 1 file (Ctrl-C stops)\netalis: alerts/second.rq: added\n" in done.stderr


def test_without_a_live_stream_the_folder_is_one_program(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    (folder.path / "alerts").mkdir()
    for n in (1, 2):
        folder.write(f"alerts/user{n}.rq", RISE.format(n))
    folder.write("prices.jsonl", "".join(f'{{"time": {t}, "triples": ":c2 :price {t} ."}}\n' for t in (1, 2)))
    line = ("run", "--queries", "alerts", "-s", "prices.jsonl")
    assert [json.loads(one)["query"] for one in folder.etalis(*line).stdout.splitlines()] == ["user2"]
    options = parser().parse_args([*line, "--watch"])
    assert not follows_folder(options)
    assert {"alerts/user1.rq", "alerts/user2.rq", "prices.jsonl"} == set(map(str, files_of(options)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run --queries nowhere -s ticks.jsonl", "--queries nowhere: there is no such folder"),
        ("run --queries empty -s ticks.jsonl", "--queries empty: no file in this folder ends in .rq"),
    ],
)
def test_a_folder_that_holds_nothing_is_told(line: str, message: str, folder: Folder) -> None:
    (folder.path / "empty").mkdir(exist_ok=True)
    assert message in folder.etalis(*line.split(), code=2).stderr


def test_other_formats_are_refused_while_queries_come_and_go(folder: Folder) -> None:
    done = folder.etalis("run", "--queries", ".", "-s", "-", "--watch", "--format", "csv", code=2)
    assert "may not fit into --format csv: write jsonl" in done.stderr
