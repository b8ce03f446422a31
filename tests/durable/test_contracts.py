"""The contracts of sources and sinks, shown by the test kit on connectors that keep them and on some that do not."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from etalis_py import run
from etalis_py.connectors import Message, connect
from etalis_py.connectors.files import DurableFile, DurableFolder
from etalis_py.connectors.held import Held, HeldText
from etalis_py.connectors.immediate import Immediate
from etalis_py.connectors.registry import SINKS, SOURCES, is_sink, open_sink, open_source
from etalis_py.connectors.sqlite import Database
from etalis_py.containers.follow_container import container_stream
from etalis_py.containers.origin import ContainerError, checked_address
from etalis_py.durable.disk import Disk
from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.identity import check
from etalis_py.events.errors import without_password
from etalis_py.streams import DeadLetters, SinkError, StreamError
from etalis_py.streams.kafka import read_kafka
from etalis_py.streams.objects import open_object
from etalis_py.streams.sinks import TextSink
from etalis_py.streams.write_rows import JsonLines, ResultsCsv
from etalis_py.testing.connectors import Memory, MemorySink, Slow, check_sink, check_source, poisoned, some_matches
from tests.cli import in_process
from tests.durable.peers import refuse_what_a_copy_has_written

VALUES = [json.dumps({"time": at, "triples": f":c :p {at} ."}).encode() for at in range(9)]
QUERY = "SELECT ?x { ?c :p ?x }"


def ids(text: str) -> list[str]:
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_a_file_keeps_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    check_sink(lambda: DurableFile(str(path), JsonLines(), Disk()), lambda: ids(path.read_text()))


def test_a_folder_keeps_the_contract(tmp_path: Path) -> None:
    def content() -> list[str]:
        return [one for part in sorted(tmp_path.glob("parts/part-*")) for one in ids(part.read_text())]

    check_sink(lambda: DurableFolder(str(tmp_path / "parts"), "jsonl", JsonLines(), Disk()), content)


def test_a_folder_has_more_parts_than_its_names_have_places_for(tmp_path: Path) -> None:
    def opened() -> DurableFolder:
        return DurableFolder(str(tmp_path), "jsonl", JsonLines(), Disk())

    (tmp_path / "part-99999.jsonl").write_text("")
    sink = opened()
    sink.recover({"number": 100_000, "text": b""})
    sink.write(some_matches(1))
    token = sink.prepare()
    sink.commit(token)
    opened().recover(token)
    assert ids((tmp_path / "part-100000.jsonl").read_text()) == [match.id for match in some_matches(1)]
    (tmp_path / "part-100002.jsonl").write_text("")
    with pytest.raises(SinkError, match=r"part-100002\.jsonl was written after the checkpoint was made"):
        opened().recover(token)


@pytest.mark.parametrize(("sink", "file"), [("out.csv", "out.csv"), ("parts", "parts/part-00000.csv"), ("-", "said")])
@pytest.mark.parametrize("query", ["SELECT ?y { ?c :q ?y }", "SELECT ?x { ?c :p ?x }"], ids=["none", "some"])
def test_the_output_without_any_match_is_that_of_a_run_without_checkpoints(
    query: str, sink: str, file: str, tmp_path: Path
) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"\n".join(VALUES))
    found = []
    for name, more in (("plain", ()), ("kept", ("--checkpoint", "ck", "--revise", "1s"))):
        (tmp_path / name).mkdir()
        address = sink if sink == "-" else f"{name}/{sink}{'/' * (sink == 'parts')}"
        command = ["run", "-q", query, "-s", "s.jsonl", "-f", "csv", "-o", address, "--revise", "1s", *more]
        done = in_process.run(command, tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout if sink == "-" else (tmp_path / name / file).read_bytes().decode())
    plain, kept = found
    assert kept.replace("\r", "") == plain.replace("\r", "")
    assert kept.splitlines()[0] == f"{query[8]},start,end,retracted"


def test_a_csv_file_has_one_header(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    for begin, token in ((0, None), (4, {"offset": 0, "text": b"x,start,end\r\n0,0,0\r\n"})):
        path.write_bytes(b"" if token is None else token["text"])
        sink = DurableFile(str(path), ResultsCsv(["x"]), Disk())
        sink.recover(token)
        sink.write(list(run(QUERY, list(connect(Memory(VALUES[begin : begin + 1]), "memory://")))))
        sink.commit(sink.prepare())
    assert path.read_text().splitlines() == ["x,start,end", "0,0,0", "4,4,4"]


@pytest.mark.parametrize("held", [False, True], ids=["at once", "at checkpoints"])
def test_standard_output_has_one_header_over_two_processes(held: bool) -> None:
    """One that passes matches on at once wrote it in each process, the other one never if the first had no match."""
    token, said, output = None, "", Held()
    for begin in (0, 3, 6):
        sink = HeldText(ResultsCsv(["x"]), output) if held else Immediate(TextSink(ResultsCsv(["x"]), output))
        sink.recover(token)
        if begin:
            sink.write(list(run(QUERY, list(connect(Memory(VALUES[begin : begin + 1]), "memory://")))))
        token = sink.prepare()
        sink.commit(token)
        said += output.take().decode()
        sink.close()  # as a signal does, before a match or after one
        said += output.take().decode()
    assert said.split() == ["x,start,end", "3,3,3", *(["x,start,end", "3,3,3"] if held else []), "6,6,6"]


SINKS_TO_SHARE: dict[str, Callable[[Path], Any]] = {
    "file": lambda folder: DurableFile(str(folder / "out.jsonl"), JsonLines(), Disk()),
    "folder": lambda folder: DurableFolder(str(folder / "out"), "jsonl", JsonLines(), Disk()),
    "sqlite": lambda folder: Database(str(folder / "out.sqlite"), {"q": ["x"]}),
}


@pytest.mark.parametrize("kind", SINKS_TO_SHARE)
def test_of_a_run_and_its_copy_the_slower_one_is_refused(tmp_path: Path, kind: str) -> None:
    """Both go on from one checkpoint; what the second wrote would be lost, or would replace what is there."""
    one = SINKS_TO_SHARE[kind](tmp_path)
    one.recover(None)
    one.write(some_matches(1))
    one.commit(token := one.prepare())
    copy = SINKS_TO_SHARE[kind](tmp_path)
    copy.recover(token)
    for sink, count in ((one, 3), (copy, 6)):
        sink.write(some_matches(6)[1:count])
    one.commit(one.prepare())
    with pytest.raises(SinkError, match=r"something else writes|another one goes on with a copy"):
        copy.commit(copy.prepare())


def test_a_portion_is_refused_that_another_process_has_written_since_the_number_was_read(tmp_path: Path) -> None:
    one, copy = (SINKS_TO_SHARE["sqlite"](tmp_path) for _ in range(2))
    refuse_what_a_copy_has_written(one, copy)
    (table,) = {match.query for match in some_matches(1)}
    assert len(rows_in(tmp_path / "out.sqlite", f'SELECT id FROM "{table}"')) == 3


def test_a_database_that_was_moved_is_told(tmp_path: Path) -> None:
    """SQLite calls it read-only."""
    sink = SINKS_TO_SHARE["sqlite"](tmp_path)
    sink.recover(None)
    sink.write(some_matches(1))
    sink.commit(sink.prepare())
    (tmp_path / "out.sqlite").rename(tmp_path / "moved.sqlite")
    sink.write(some_matches(2)[1:])
    with pytest.raises(SinkError, match="its file was moved or removed"):
        sink.commit(sink.prepare())


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_two_runs_do_not_write_over_each_other(tmp_path: Path, kind: str) -> None:
    one, other = (SINKS_TO_SHARE[kind](tmp_path) for _ in range(2))
    for sink in (one, other):
        sink.recover(None)
        sink.commit(sink.prepare())
    for sink in (one, other):
        sink.write(some_matches(2))
    one.commit(one.prepare())
    with pytest.raises(SinkError, match="something else writes"):
        other.commit(other.prepare())


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_file_that_was_moved_or_emptied_gets_no_hole(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """As by a rotation of logs: at its place in the file, the next match would follow thousands of zero bytes."""
    sink = SINKS_TO_SHARE["file"](tmp_path)
    sink.recover(None)
    sink.write(some_matches(2))
    sink.commit(sink.prepare())
    change(tmp_path / "out.jsonl")
    sink.write(some_matches(3)[2:])
    with pytest.raises(SinkError, match="has 0 bytes, and the run has written"):
        sink.commit(sink.prepare())


class Forgetful(MemorySink):
    """Commits, but does not repeat a commit that did not happen."""

    def recover(self, token: Any) -> None: ...


class Doubling(MemorySink):
    """Commits again what was committed."""

    def commit(self, token: Any) -> None:
        self._kept += token[1]


class Eager(MemorySink):
    """Does not wait for the commit."""

    def write(self, matches: Iterable[Any]) -> None:
        self._kept += [match.id for match in matches]


@pytest.mark.parametrize("broken", [Forgetful, Doubling, Eager])
def test_the_kit_notices_a_sink_that_breaks_the_contract(broken: type[MemorySink]) -> None:
    kept: list[str] = []
    with pytest.raises(AssertionError):
        check_sink(lambda: broken(kept), lambda: kept)


class Ahead(Memory):
    """Its position is that of the portion after the one it gave."""

    def position(self) -> Any:
        return self._next + 1


def test_the_kit_notices_a_source_that_breaks_the_contract() -> None:
    check_source(lambda: Memory(VALUES))
    with pytest.raises(AssertionError):
        check_source(lambda: Ahead(VALUES))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (object(), "object is no source: it lacks open, read, position, committed, close; etalis_py.connectors.Source"),
        (Memory, "Memory is a class, not a source: give an object, Memory(…)"),
        (
            "redis://host",
            "'redis://host' is an address, not a source: give etalis_py.connectors.registry.open_source(…)",
        ),
    ],
)
def test_what_is_no_source_is_told(source: Any, told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)):
        connect(source, "own://x")


@pytest.mark.parametrize(
    ("portion", "told"),
    [
        (["{}"], "a source gives Message(b'…') or events, but this one gave '{}'"),
        ([Message("{}")], "the value of a Message is bytes, and this one has a str: encode it as UTF-8"),  # type: ignore[arg-type]
        ([Message(b"{}", arrival=1.5)], "the arrival of a Message is an integer"),  # type: ignore[arg-type]
        ([Message(b"{}", arrival=2**70)], "the arrival of a Message is an integer, the microseconds since 1970"),
        (Message(b"{}"), "own://x: read gives a list of messages, but this one gave a single one"),
    ],
)
def test_what_is_no_message_is_told(portion: Any, told: str) -> None:
    source = Memory(VALUES)
    source.read = lambda seconds: portion  # type: ignore[method-assign]
    with pytest.raises(TypeError, match=re.escape(told)):
        list(run(QUERY, connect(source, "own://x")))


def test_an_entry_of_redis_may_have_names_that_are_no_text_and_an_id_that_is_no_time() -> None:
    """The name of a field ended the run with a traceback; an id beyond all times is no time of arrival."""
    pytest.importorskip("redis", reason="needs the extra redis")
    stream = open_source("redis://localhost/0?stream=s")
    fields = {b"\xff": b"1", b"x": b"5"}
    with pytest.warns(UserWarning, match="entry 18446744073709551615-0: bytes that are not UTF-8 are read as U.FFFD"):
        message = stream._message("18446744073709551615-0", fields)  # type: ignore[attr-defined]
    assert json.loads(message.value) == {"\ufffd": "1", "x": "5"}
    assert message.arrival is None
    assert stream._message("7-1", {b"value": b"{}"}).arrival == 7_000  # type: ignore[attr-defined]


def test_a_field_of_redis_that_is_no_text_is_told_once() -> None:
    """It was changed silently, whereas a message that is no text is refused."""
    pytest.importorskip("redis", reason="needs the extra redis")
    stream: Any = open_source("redis://localhost/0?stream=s")
    with pytest.warns(UserWarning, match=r"stream=s, entry 7-1: .*, in name; write texts in UTF-8") as told:
        values = [json.loads(stream._message(f"7-{at}", {b"name": b"Z\xfcrich", b"x": b"5"}).value) for at in (1, 2)]
    assert values == [{"name": "Z\ufffdrich", "x": "5"}] * 2
    assert len(told) == 1
    assert stream._message("7-3", {b"value": b"\xff"}).value == b"\xff"


@pytest.mark.parametrize("sink", [object(), MemorySink, "-"])
def test_what_is_no_sink_is_told(sink: Any, tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"is (no sink: it lacks guarantee, |a class, not a sink|an address, not a sink)"
    ):
        list(run(QUERY, connect(Memory(VALUES), "own://x"), checkpoint=tmp_path, sink=sink))


@pytest.mark.parametrize("position", [object(), 2**70])
def test_a_position_that_no_checkpoint_can_hold_is_told(position: Any, tmp_path: Path) -> None:
    source = Memory(VALUES)
    source.position = lambda: position  # type: ignore[method-assign]
    with pytest.raises(CheckpointError, match="is no plain data, which is integers of 64 bits"):
        list(run(QUERY, connect(source, "own://x"), checkpoint=tmp_path, sink=MemorySink([])))


def test_a_source_goes_on_in_the_middle_of_a_portion(tmp_path: Path) -> None:
    """The run stops when two of the five messages of a portion have been used."""
    given: list[int] = []
    for count in (2, 3, 9):
        stream = connect(Memory(VALUES, portion=5), "memory://")
        with run(QUERY, stream, checkpoint=tmp_path / "ck", checkpoint_every=0) as matches:
            for match, _ in zip(matches, range(count), strict=False):
                given.append(match["x"])
    assert sorted(set(given)) == list(range(9))
    assert len(given) < 9 + 3


def test_poisoned_messages_go_to_the_dead_letters_once(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path / "letters")
    stream = connect(Memory(list(poisoned(VALUES))), "memory://", on_error="skip", dead_letters=letters)
    assert [match["x"] for match in run(QUERY, stream)] == list(range(9))
    refused = [json.loads(line) for line in (tmp_path / "letters").read_text().splitlines()]
    assert len(refused) == letters.count == 3


def test_a_slow_sink_holds_the_source_up_and_loses_nothing(tmp_path: Path) -> None:
    kept: list[str] = []
    stream = connect(Memory(VALUES, portion=1), "memory://")
    sink = Slow(MemorySink(kept), 0.01)
    matches = [match.id for match in run(QUERY, stream, checkpoint=tmp_path / "ck", sink=sink)]
    assert kept == matches
    assert len(kept) == 9


def test_an_unknown_address_names_what_is_known() -> None:
    with pytest.raises(SinkError, match=r"known are .*kafka://.*postgresql://"):
        open_sink("oracle://host/table")
    with pytest.raises(StreamError, match=r"known are .*mqtt://.*redis://"):
        open_source("oracle://host/table")


def test_a_password_in_an_address_is_neither_shown_nor_stored() -> None:
    stream = connect(Memory(VALUES), "redis://me:secret@host/0?stream=t")
    assert stream.origin is not None
    assert "secret" not in f"{stream.source} {stream.name} {stream.origin}"
    assert without_password("postgresql://me:se@cret@host/x?table=t") == "postgresql://me@host/x?table=t"


@pytest.mark.parametrize(
    "said",
    [
        "token=3f9c",
        "access_token=3f9c",
        "room=2&X-Amz-Signature=3f9c",
        "api-key=3f9c",
        "sig=3f9c&room=2",
        "Password=3f9c",
    ],
)
def test_a_token_in_an_address_is_neither_shown_nor_stored(said: str, tmp_path: Path) -> None:
    address = f"wss://host/feed?{said}"
    stream = connect(Memory(VALUES), address)
    assert "3f9c" not in f"{stream.source} {stream.name} {stream.origin}"
    followed = container_stream(address.replace("wss", "http"))
    assert "3f9c" not in f"{followed.source} {followed.name} {followed.origin}"
    for error in (StreamError("no", source=address), SinkError("no", target=address), ContainerError(f"{address}: no")):
        assert "3f9c" not in str(error)
    assert len(list(run(QUERY, connect(Memory(VALUES), address), checkpoint=tmp_path))) == len(VALUES)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"wss://host/feed" in stored
    assert b"3f9c" not in stored


def test_an_address_that_nobody_knows_is_shown_without_its_token(tmp_path: Path) -> None:
    done = in_process.run(["run", "-q", QUERY, "-s", "nats://host/x?token=3f9c"], tmp_path)
    assert "nats://host/x?token=…: known are" in done.stderr


def test_a_run_goes_on_with_another_token_in_its_address(tmp_path: Path) -> None:
    """Also where an older version has stored the token."""
    before = {"program": [], "options": {}, "sources": [], "sink": "webhook+https://host/hook?sig=3f9c"}
    now = {**before, "sink": without_password("webhook+https://host/hook?sig=77ab")}
    check(tmp_path, now, before)
    with pytest.raises(CheckpointError, match="matches went to webhook") as raised:
        check(tmp_path, {**now, "sink": "-"}, before)
    assert "3f9c" not in str(raised.value)


@pytest.mark.parametrize("scheme", [scheme for scheme in SINKS if scheme not in ("delta", "iceberg")])
@pytest.mark.parametrize("place", ["[::1/x", "a..b/x?stream=s&table=t", f"{'a' * 70}.org:1/x?stream=s&table=t"])
def test_what_is_no_address_of_a_sink_is_told(scheme: str, place: str) -> None:
    with pytest.raises(SinkError, match="this is not an address: "):
        open_sink(f"{scheme}://{place}")


@pytest.mark.parametrize("scheme", [*SOURCES, "kafka"])
def test_what_is_no_address_of_a_source_is_told(scheme: str) -> None:
    open_it: Callable[[str], object] = read_kafka if scheme == "kafka" else open_source
    with pytest.raises(StreamError, match=r"this is not (an|the) address"):
        open_it(f"{scheme}://[::1/x")


@pytest.mark.parametrize("scheme", ["redis", "mqtt"])
@pytest.mark.parametrize("port", ["abc", "99999"])
def test_a_port_that_is_none_is_told(scheme: str, port: str) -> None:
    with pytest.raises(StreamError, match="this is not an address: Port"):
        open_source(
            f"{scheme}://localhost:{port}/0?stream=s" if scheme == "redis" else f"{scheme}://localhost:{port}/x"
        )


@pytest.mark.parametrize("scheme", [*SINKS, "http", "https"])
def test_no_sink_takes_a_password_in_its_address(scheme: str) -> None:
    slashes = ":s3://" if scheme in ("delta", "iceberg") else "://"
    open_it: Callable[[str], object] = checked_address if scheme in ("http", "https") else open_sink
    with pytest.raises(OSError, match="a password does not belong in an address") as raised:
        open_it(f"{scheme}{slashes}me:secret@host:1/x")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", [*SOURCES, "kafka", "s3"])
def test_no_source_takes_a_password_in_its_address(scheme: str) -> None:
    others: dict[str, Callable[[str], object]] = {"kafka": read_kafka, "s3": open_object}
    open_it = others.get(scheme, open_source)
    with pytest.raises(StreamError, match="a password does not belong in an address") as raised:
        open_it(f"{scheme}://me:secret@host:1/x")
    assert "secret" not in str(raised.value)


def test_another_package_adds_a_connector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "other_package"
    (tmp_path / "other_package-1.0.dist-info").mkdir()
    (tmp_path / "other_package-1.0.dist-info" / "METADATA").write_text("Name: other-package\nVersion: 1.0\n")
    points = "[etalis_py.sinks]\nother = other_package:open_sink\n"
    (tmp_path / "other_package-1.0.dist-info" / "entry_points.txt").write_text(points)
    module.mkdir()
    (module / "__init__.py").write_text("def open_sink(address, request):\n    return (address, request.revised)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_sink("other://x")
    assert open_sink("other://x") == ("other://x", False)


def rows_in(path: Path, asked: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(asked)]


def test_a_sqlite_database_keeps_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "m.db"

    def content() -> list[str]:
        (table,) = {match.query for match in some_matches(1)}
        known = rows_in(path, f"SELECT name FROM sqlite_master WHERE name = '{table}'")
        return rows_in(path, f'SELECT id FROM "{table}" ORDER BY "end"') if known else []

    check_sink(lambda: Database(str(path), {}), content)


def test_a_database_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    path, told = tmp_path / "m.db", []
    for spoil in (
        lambda mine, _: mine.execute("PRAGMA max_page_count = 1"),
        lambda mine, other: (mine.execute("PRAGMA busy_timeout = 0"), other.execute("BEGIN IMMEDIATE")),
    ):
        database = Database(str(path), {})
        with closing(database), closing(sqlite3.connect(path)) as other:
            database.recover(None)
            spoil(database._connection, other)
            database.write(some_matches(1))
            with pytest.raises(SinkError) as caught:
                database.commit(database.prepare())
            told.append((caught.value.reason, caught.value.hint))
    assert told == [
        ("cannot be written: database or disk is full", "make room on its disk"),
        ("cannot be written: database is locked", "end what else writes it, or name another file"),
    ]


def test_a_match_that_is_taken_back_leaves_the_database(tmp_path: Path) -> None:
    """The line of time 2 is withdrawn: in the same portion as it comes, or after a restart."""
    lines = [json.dumps({"time": at, "triples": f":c :p {at} ."}) for at in range(1, 4)]
    withdrawn = json.dumps({"time": 2, "triples": ":c :p 2 .", "retract": True})
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.jsonl").write_text("\n".join([*lines, withdrawn]) + "\n")
    arguments = ["run", "q.rq", "-s", "s.jsonl", "--revise", "10s", "-o", "m.db", "-f", "sqlite", "--checkpoint"]
    for name, more in (("together", []), ("apart", ["--checkpoint-every", "0s"])):
        done = in_process.run([*arguments, name, *more], tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert rows_in(tmp_path / "m.db", "SELECT x FROM q ORDER BY x") == [1, 3]
        (tmp_path / "m.db").unlink()
