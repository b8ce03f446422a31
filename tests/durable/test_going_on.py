"""A run of the command line with a folder goes on where another process stopped.

The expectation is always what a run without interruption gives.
"""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from etalis_py import read_stream, run
from etalis_py.streams import DeadLetters, StreamError, reader, stream
from tests.cli import in_process
from tests.processes import comes

RISING = "SELECT ?c ?x ?y { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT10S FILTER (?y > ?x) }"


def lines(begin: int, end: int) -> str:
    """One event a second, of three companies in turn, at prices that rise and fall."""
    triples = (f":c{at % 3} :price {at * 7 % 11} ." for at in range(begin, end))
    return "".join(json.dumps({"time": begin + n, "triples": text}) + "\n" for n, text in enumerate(triples))


class Command:
    """``etalis run`` in a folder with a query and a stream."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "q.rq").write_text(RISING)
        (folder / "s.jsonl").write_text(lines(0, 200))

    def __call__(self, *more: str, sink: str = "out.jsonl", code: int = 0, text: str = "") -> str:
        stream = () if "-s" in more else ("-s", "s.jsonl")
        given = ["run", "q.rq", *stream, *more, *(("-o", sink) if sink else ())]
        done = in_process.run(given, self.folder, text)
        assert done.returncode == code, done.stderr
        return done.stderr if sink else done.stdout

    def process(self, *more: str, sink: str = "out.jsonl") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "etalis_py.cli.main", "run", "q.rq", *more, "-o", sink]
        return subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE)

    def content(self, name: str = "out.jsonl") -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def plain(command: Command) -> str:
    """The output of a run without a folder."""
    command(sink="plain.jsonl")
    return command.content("plain.jsonl")


class Stop(Exception):
    """The process ends here."""


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the process end when the nth checkpoint has been written, before the sink commits it (or after)."""
    from etalis_py.durable import keeper

    def at(number: int, *, after: bool = False) -> None:
        def write(self: Any, data: Any) -> int:
            size = real(self, data)
            if data["number"] == number and not after:
                raise Stop
            return size

        def forget(self: Any, before: int) -> None:
            if before == number and after:
                raise Stop
            real_forget(self, before)

        real, real_forget = keeper.Folder.write, keeper.Folder.forget_before
        monkeypatch.setattr(keeper.Folder, "write", write)
        monkeypatch.setattr(keeper.Folder, "forget_before", forget)

    yield at
    monkeypatch.undo()


OFTEN = ("--checkpoint", "ck", "--checkpoint-every", "0s")


@pytest.mark.parametrize(
    ("format", "after"),
    [("jsonl", False), ("jsonl", True), ("csv", False), ("trig", True)],
    ids=["jsonl, before the commit", "jsonl, after the commit", "csv, before", "trig, after"],
)
def test_a_file_has_every_match_once(command: Command, crash: Any, after: bool, format: str) -> None:
    (command.folder / "s.jsonl").write_text(lines(0, 2500))
    command(sink=f"plain.{format}")
    with pytest.MonkeyPatch.context() as patch:
        crash(3, after=after)
        command(*OFTEN, sink=f"out.{format}", code=1)
        del patch
    crash_over(crash)
    before = command.content(f"out.{format}")
    assert command.content(f"plain.{format}").startswith(before)
    command(*OFTEN, sink=f"out.{format}")
    assert command.content(f"out.{format}") == command.content(f"plain.{format}")


def crash_over(crash: Any) -> None:
    """No further checkpoint ends the process."""
    crash(10**9)


def test_an_ended_run_has_nothing_left_to_do(command: Command, plain: str) -> None:
    command(*OFTEN)
    assert "has come to its end; nothing is left to do" in command(*OFTEN)
    assert command.content() == plain


def test_a_folder_of_parts_has_every_match_once(command: Command, crash: Any) -> None:
    (command.folder / "s.jsonl").write_text(lines(0, 2500))
    command(sink="plain.jsonl")
    crash(3)
    command(*OFTEN, sink="parts/", code=1)
    crash_over(crash)
    command(*OFTEN, sink="parts/")
    parts = sorted((command.folder / "parts").iterdir())
    assert len(parts) > 1
    assert "".join(part.read_text() for part in parts) == command.content("plain.jsonl")


@pytest.mark.parametrize("kind", ["gz", "unordered", "unordered gz", "several", "several large", "csv", "updates"])
def test_every_kind_of_file_is_gone_on_with(
    command: Command, crash: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = lines(0, 2500)
    more: tuple[str, ...] = ("-s", "s.jsonl")
    (command.folder / "s.jsonl").write_text(text)
    match kind:
        case "unordered":
            (command.folder / "s.jsonl").write_text("".join(reversed(text.splitlines(keepends=True))))
        case "gz" | "unordered gz":
            if kind != "gz":
                text = "".join(reversed(text.splitlines(keepends=True)))
            (command.folder / "s.jsonl.gz").write_bytes(gzip.compress(text.encode()))
            more = ("-s", "s.jsonl.gz")
        case "several" | "several large":
            if kind == "several large":
                for module, name in product((reader, stream), ("LARGE", "LOOKED_AT")):
                    monkeypatch.setattr(module, name, 1)
            for part in range(3):
                taken = islice(text.splitlines(keepends=True), part, None, 3)
                (command.folder / f"p{part}.jsonl").write_text("".join(taken))
            more = ("-s", "p[01].jsonl", "-s", "p2.jsonl")
        case "csv":
            rows = (f"{at},c{at % 3},{at * 7 % 11}\n" for at in range(2500))
            (command.folder / "s.csv").write_text("at,company,price\n" + "".join(rows))
            more = ("-s", "s.csv", "--time", "at", "--subject", "company")
        case "updates":
            (command.folder / "q.rq").write_text("SELECT ?c ?x ?k { ?c :price ?x GRAPH ?g { ?c :kind ?k } }")
            changes = ({"time": at, "add": f":c0 :kind {at} .", "graph": "urn:g"} for at in range(0, 2500, 97))
            (command.folder / "u.jsonl").write_text("".join(json.dumps(change) + "\n" for change in changes))
            more += ("--background-stream", "u.jsonl")
    command(*more, sink="plain.jsonl")
    crash(3)
    command(*more, *OFTEN, code=1)
    crash_over(crash)
    command(*more, *OFTEN)
    assert command.content() == command.content("plain.jsonl") != ""


def test_corrections_are_gone_on_with(command: Command, crash: Any) -> None:
    given = lines(0, 1300).splitlines()
    for at in range(10, 1300, 4):
        given[at] += "\n" + json.dumps(json.loads(given[at - 9]) | {"retract": True})
    (command.folder / "s.jsonl").write_text("\n".join(given) + "\n")
    command("--revise", "10s", sink="plain.jsonl")
    assert '"retracted"' in command.content("plain.jsonl")
    crash(2)
    command("--revise", "10s", *OFTEN, code=1)
    crash_over(crash)
    command("--revise", "10s", *OFTEN)
    assert net(command.content()) == net(command.content("plain.jsonl"))


def net(text: str) -> dict[str, Any]:
    """The matches that have not been taken back."""
    kept: dict[str, Any] = {}
    for match in map(json.loads, text.splitlines()):
        if match.get("retracted"):
            del kept[match["id"]]
        else:
            assert match["id"] not in kept
            kept[match["id"]] = match
    return kept


def test_the_folder_and_the_files_can_be_moved(command: Command, crash: Any, tmp_path: Path) -> None:
    (command.folder / "s.jsonl").write_text(lines(0, 2500))
    command(sink="plain.jsonl")
    crash(3)
    command(*OFTEN, code=1)
    crash_over(crash)
    elsewhere = tmp_path / "other" / "machine"
    shutil.copytree(command.folder, elsewhere, ignore=shutil.ignore_patterns("other"))
    there = ("-s", str(elsewhere / "s.jsonl"), "--checkpoint", str(elsewhere / "ck"))
    command(*there, sink=str(elsewhere / "out.jsonl"))
    assert (elsewhere / "out.jsonl").read_text() == command.content("plain.jsonl")


def test_dead_letters_are_written_once(command: Command, crash: Any) -> None:
    bad = [text + "\n" + "broken\n" * (n % 700 == 5) for n, text in enumerate(lines(0, 2500).splitlines())]
    (command.folder / "s.jsonl").write_text("\n".join(bad))
    asked = ("--on-error", "skip", "--keep-order", "--dead-letters")
    command(*asked, "plain.letters", sink="plain.jsonl")
    crash(3)
    command(*asked, "letters", *OFTEN, code=1)
    crash_over(crash)
    command(*asked, "letters", *OFTEN)
    assert command.content("letters") == command.content("plain.letters") != ""
    assert command.content() == command.content("plain.jsonl")


def test_dead_letters_are_those_of_one_run(command: Command) -> None:
    """Another run would write over them, or cut them off when it goes on."""
    (command.folder / "s.jsonl").write_text("broken\n" + lines(0, 40))
    asked = ("--on-error", "skip", "--keep-order", "--dead-letters", "letters")
    with DeadLetters(command.folder / "letters") as other:
        other.refused(StreamError("a reason", source="another", line=7))
        assert "letters: another run writes its dead letters to this file" in command(*asked, code=1)
        assert [json.loads(line)["source"] for line in command.content("letters").splitlines()] == ["another"]
    told = command(*asked, *OFTEN, code=1)
    assert "letters: this file has" in told
    assert "which no checkpoint knows of" in told
    assert [json.loads(line)["source"] for line in command.content("letters").splitlines()] == ["another"]
    command(*asked)
    assert [json.loads(line)["source"] for line in command.content("letters").splitlines()] == ["s.jsonl"]


def test_dead_letters_may_be_a_device(command: Command) -> None:
    (command.folder / "s.jsonl").write_text("broken\n" + lines(0, 40))
    command("--on-error", "skip", "--keep-order", "--dead-letters", "/dev/null", *OFTEN)


def test_what_has_stopped_a_run_can_be_skipped_when_it_goes_on(command: Command) -> None:
    text = lines(0, 40) + "broken\n" + lines(40, 80)
    (command.folder / "s.jsonl").write_text(text)
    command("--on-error", "skip", sink="plain.jsonl")
    assert "s.jsonl:41: this is not JSON" in command("--keep-order", *OFTEN, code=1)
    command("--keep-order", "--on-error", "skip", "--dead-letters", "letters", *OFTEN)
    assert json.loads(command.content("letters"))["line"] == 41
    assert command.content() == command.content("plain.jsonl")


# --- followed files, pipes, signals ---


def until(condition: Any) -> None:
    assert comes(condition), "nothing happened in time"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_followed_file_is_read_on_from_where_it_was_left(command: Command, how: signal.Signals) -> None:
    stream, out = command.folder / "s.jsonl", command.folder / "out.jsonl"
    stream.write_text(lines(0, 2))
    for end, ending in ((30, how), (60, how), (90, signal.SIGTERM)):
        before = out.read_text().count("\n") if out.exists() else 0
        with command.process("-s", "s.jsonl", "--follow", "--checkpoint", "ck", "--checkpoint-every", "50ms") as one:
            with stream.open("a") as file:
                file.write(lines(len(stream.read_text().splitlines()), end))
            until(lambda least=before + 7: out.exists() and out.read_text().count("\n") > least)
            one.send_signal(ending)
            assert one.wait(30) == (0 if ending == signal.SIGTERM else -ending)
    stream_of = run(command.folder / "q.rq", read_stream(stream, in_order=False))
    expected = [match.id for match in stream_of if match.end < 80]
    got = [json.loads(text)["id"] for text in out.read_text().splitlines()]
    assert got[: len(expected)] == expected
    assert len(got) == len(set(got))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("shorter", "of this file, and it has only"),
        ("begun anew", "this is not the file that the run has read: its content differs"),
    ],
)
@pytest.mark.parametrize("name", ["s.jsonl", "s.csv"])
def test_a_followed_file_that_was_replaced_is_refused(command: Command, name: str, change: str, reason: str) -> None:
    """Also when all that was read of it is one block, which is read again from its beginning."""
    stream, out = command.folder / name, command.folder / "out.jsonl"
    rows = "".join(f"{at},c{at % 3},{at * 7 % 11}\n" for at in range(30))
    whole = lines(0, 30) if name == "s.jsonl" else f"time,company,price\n{rows}"
    stream.write_text(whole)
    columns = () if name == "s.jsonl" else ("--time", "time", "--subject", "company")
    given = ("-s", name, *columns, "--follow", "--checkpoint", "ck", "--checkpoint-every", "50ms")
    with command.process(*given) as one:
        until(lambda: out.exists() and out.read_text().count("\n") > 7)
        one.send_signal(signal.SIGTERM)
        assert one.wait(30) == 0
    if change == "shorter":
        stream.write_text("".join(whole.splitlines(keepends=True)[:9]))
    else:
        stream.write_text(whole.replace("c2", "c4") + whole.splitlines(keepends=True)[-1])
    assert reason in command(*given, code=1)


def test_what_a_silence_decides_is_in_the_sink_while_it_lasts(command: Command) -> None:
    """Nothing comes after the absence is certain; the match must not wait for the next event to be committed."""
    (command.folder / "q.rq").write_text("SELECT ?x { ?c :price ?x } SEQ NOT { ?c :sold ?y } WITHIN 1 SECONDS")
    (command.folder / "s.jsonl").write_text('{"time": 1, "triples": ":c :price 7 ."}\n')
    out = command.folder / "out.jsonl"
    given = ("--follow", "--idle", "100ms", "--checkpoint", "ck", "--checkpoint-every", "50ms")
    with command.process("-s", "s.jsonl", *given) as one:
        until(lambda: out.exists() and out.read_text().count("\n") == 1)
        one.send_signal(signal.SIGKILL)
    with command.process("-s", "s.jsonl", *given) as one:
        until(lambda: (command.folder / "ck" / "lock").exists())
        one.send_signal(signal.SIGTERM)
    assert out.read_text().count("\n") == 1


def test_a_pipe_goes_on_with_what_comes(command: Command, plain: str) -> None:
    text = command.content("s.jsonl").splitlines(keepends=True)
    said = command("-s", "-", *OFTEN, sink="out.jsonl", text="".join(text[:100]))
    assert "cannot be read again" in said


# --- refusals ---


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("query", "belongs to other queries: q.rq has changed in line 1, from '"),
        ("option", "--lateness was not given and is 2 s now"),
        ("source", "the run read s.jsonl, not t.jsonl"),
        ("content", "its content differs"),
        ("longer", "a file that grows is read with --follow"),
        ("sink", "matches went to out.jsonl, and would go to other.jsonl now"),
        ("output", "and the checkpoint was made when it had"),
        ("torn", "is cut off: it has"),
        ("beginning", " is cut off: it has 10 bytes; restore the folder"),
        ("damaged", "its checksum does not match"),
        ("format", "has the format 9"),
    ],
)
def test_what_differs_is_refused_by_name(command: Command, crash: Any, change: str, reason: str) -> None:
    (command.folder / "s.jsonl").write_text(lines(0, 2500))
    crash(3, after=True)
    command(*OFTEN, code=1)
    crash_over(crash)
    stream, more, sink = command.folder / "s.jsonl", (), "out.jsonl"
    checkpoint = max((command.folder / "ck").glob("checkpoint-*"))
    raw = checkpoint.read_bytes()
    match change:
        case "query":
            (command.folder / "q.rq").write_text(RISING.replace(">", "<"))
        case "option":
            more = ("--lateness", "2s")
        case "source":
            stream.rename(command.folder / "t.jsonl")
            more = ("-s", "t.jsonl")
        case "content":
            stream.write_text(lines(0, 2500).replace(":price 1 ", ":price 2 "))
        case "longer":
            stream.write_text(lines(0, 2501))
        case "sink":
            sink = "other.jsonl"
        case "output":
            (command.folder / "out.jsonl").write_text("")
        case "torn":
            checkpoint.write_bytes(raw[:-10])
        case "beginning":
            checkpoint.write_bytes(raw[:10])
        case "damaged":
            checkpoint.write_bytes(raw[:-10] + bytes(10))
        case "format":
            checkpoint.write_bytes(raw[:10] + b"\x09" + raw[11:])
    assert reason in command(*more, *OFTEN, sink=sink, code=1)


def test_what_has_another_content_is_said_to_have_changed(command: Command) -> None:
    (command.folder / "b.ttl").write_text("<urn:a> a <urn:b> .")
    command("-b", "b.ttl", *OFTEN)
    (command.folder / "b.ttl").write_text("<urn:a> a <urn:c> .")
    assert "ck: the content of --background has changed: give the same" in command("-b", "b.ttl", *OFTEN, code=1)


def test_another_query_is_named_with_the_one_before(command: Command) -> None:
    command(*OFTEN)
    (command.folder / "q.rq").rename(command.folder / "p.rq")
    (command.folder / "q.rq").write_text(RISING.replace(">", "<"))
    done = in_process.run(["run", "p.rq", "-s", "s.jsonl", "-o", "out.jsonl", *OFTEN], command.folder, "")
    assert done.returncode == 0, done.stderr  # a query is known by its text
    (command.folder / "r.rq").write_text(RISING.replace(">", "<"))
    done = in_process.run(["run", "r.rq", "-s", "s.jsonl", "-o", "out.jsonl", *OFTEN], command.folder, "")
    assert "ck belongs to other queries: it was q.rq, and is r.rq now in line 1, from" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            RISING.replace("?y > ?x", "?x < ?y"),
            "from '…THIN PT10S FILTER (?y > ?x) }' to '…THIN PT10S FILTER (?x < ?y) }'",
        ),
        (
            RISING.replace("FILTER", "\nFILTER"),
            "from '…?y } } WITHIN PT10S FILTER (?y > ?x) }' to '…?y } } WITHIN PT10S '",
        ),
        (RISING + "\nLIMIT 5", "in line 2, from no line to 'LIMIT 5'"),
        (RISING + "\n", "q.rq has changed in how its lines end; give the same"),
    ],
)
def test_of_another_query_the_first_difference_is_told(command: Command, text: str, told: str) -> None:
    """A query is known by its text: one that means the same in other words is another query."""
    command(*OFTEN)
    (command.folder / "q.rq").write_text(text)
    assert told in command(*OFTEN, code=1)


def test_a_file_that_no_checkpoint_knows_is_not_written_over(command: Command) -> None:
    (command.folder / "out.jsonl").write_text("mine\n")
    assert "which no checkpoint knows of" in command(*OFTEN, code=1)
    assert command.content() == "mine\n"


def test_a_folder_with_other_files_is_refused(command: Command) -> None:
    (command.folder / "ck").mkdir()
    (command.folder / "ck" / "photo.png").write_text("")
    assert "has other files in it, as photo.png" in command(*OFTEN, code=1)


def test_two_runs_in_one_folder_are_refused(command: Command) -> None:
    from etalis_py.durable.folder import Folder

    folder = Folder(command.folder / "ck")
    folder.open()
    assert "another run is at work in ck" in command(*OFTEN, code=1)
    folder.close()


@pytest.mark.parametrize("sink", ["out.jsonl", "-"])
@pytest.mark.parametrize(
    ("more", "reason"),
    [(("--speed", "real"), "begins anew each time"), (("-f", "json"), "json can go to a folder")],
)
def test_what_cannot_go_on_is_refused_at_once(command: Command, more: tuple[str, ...], reason: str, sink: str) -> None:
    assert reason in command(*more, *OFTEN, sink=sink, code=2)


def test_a_table_cannot_go_on(command: Command) -> None:
    assert "write jsonl, csv or trig" in command(*OFTEN, sink="out.parquet", code=2)


def test_a_followed_document_is_refused(command: Command) -> None:
    (command.folder / "s.trig").write_text("")
    assert "silences decide" in command("-s", "s.trig", "--follow", *OFTEN, code=1)


# --- the description ---


def test_the_command_describes_a_folder(command: Command) -> None:
    (command.folder / "s.jsonl").write_text(lines(1_796_060_000, 1_796_060_200))
    command(*OFTEN)
    said = in_process.run(["checkpoint", "ck"], command.folder).stdout
    assert "the run has come to its end" in said
    assert "200 events" in said
    assert "source s.jsonl: 200 events" in said
    assert f"sink out.jsonl: {len(command.content().encode()):,} bytes" in said
    assert "of q.rq" in said
    assert "newest event: 1796060199 s\n" in said


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "nowhere does not exist"),
        ("q.rq", "q.rq is a file"),
        (".", "is not a checkpoint of etalis run --ch"),
    ],
)
def test_what_is_no_folder_of_a_run_is_not_described(command: Command, name: str, reason: str) -> None:
    said = in_process.run(["checkpoint", name], command.folder)
    assert (said.returncode, reason in said.stderr) == (2, True), said.stderr
