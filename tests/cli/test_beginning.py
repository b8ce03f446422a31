"""What a newcomer meets first: help, a query on the command line, a project to begin with, completion, ``--watch``."""

from __future__ import annotations

import io
import os
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from etalis_py.cli.commands import COMMANDS, parser
from etalis_py.cli.errors import UsageError
from etalis_py.cli.watch import check_watch, files_of, watch
from tests.cli.conftest import RISES, RISING, Folder, rows

MAPPING = 'subject = ":{company}"\npredicate = ":price"\nobject = "{%s}"\ntime = "{%s}"\n'


# --- help ------------------------------------------------------------------------


def help_of(*arguments: str) -> str:
    with redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        parser().parse_args([*arguments, "--help"])
    return out.getvalue()


def test_without_a_command_it_shows_the_help(folder: Folder) -> None:
    assert folder.etalis(code=2).stdout == help_of()


def test_help_groups_the_commands_and_gives_examples() -> None:
    text = help_of()
    for title, commands in COMMANDS.items():
        assert f"commands {title}:" in text
        assert all(f"\n  {command} " in text for command in commands)
    assert "\n  etalis run rising.rq --stream ticks.jsonl" in text


def examples() -> list[str]:
    """Every command line of the product that a ``--help`` shows."""
    texts = [help_of(), *(help_of(command) for group in COMMANDS.values() for command in group)]
    lines = {line.strip() for text in texts for line in text.partition("examples:")[2].splitlines()}
    return sorted(line for line in lines if line.startswith("etalis ") and "COMMAND" not in line and "$(" not in line)


@pytest.mark.parametrize("line", examples())
def test_every_example_of_a_help_is_a_command_line(line: str) -> None:
    command = line.partition("  ")[0].partition(" | ")[0].partition(" > ")[0].partition(" && ")[0]
    assert parser().parse_args(shlex.split(command)[1:]).command


def test_options_are_grouped_and_have_short_names() -> None:
    text = help_of("run")
    groups = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == [
        "options:", "query:", "streams:", "background knowledge:", "time and order:", "output:", "engine:", "examples:",
    ]  # fmt: skip
    short = "run rising.rq -q X -s a.csv -m a.toml -b c.ttl -p recent -l 2s -f csv -o out.csv -w"
    options = parser().parse_args(short.split())
    assert (options.query, options.texts, options.stream) == (["rising.rq"], ["X"], ["a.csv"])
    assert (options.mapping, options.background, options.policy) == (["a.toml"], ["c.ttl"], "recent")
    assert (options.lateness, options.format, options.sink, options.watch) == (2_000_000, "csv", "out.csv", True)


# --- queries and streams as they come to mind ------------------------------------------


def test_a_query_may_stand_on_the_command_line(folder: Folder) -> None:
    assert rows(folder.etalis("run", "-q", RISING, "-s", "ticks.jsonl").stdout) == RISES
    folder.etalis("check", "-q", RISING)
    assert "query q1" in folder.etalis("explain", "-q", RISING).stdout


def test_a_query_may_stand_behind_the_options(folder: Folder) -> None:
    assert rows(folder.etalis("run", "-s", "ticks.jsonl", "rising.rq").stdout) == RISES
    done = folder.etalis("run", "-s", "ticks.jsonl", "rising.rq", "--fromat", "csv", code=2)
    assert "there is no option --fromat; did you mean --format?" in done.stderr
    assert "there is no command 'chekc'; did you mean check?" in folder.etalis("chekc", code=2).stderr
    assert "unrecognized arguments: now" in folder.etalis("completion", "bash", "now", code=2).stderr


def test_texts_and_files_form_one_program(folder: Folder) -> None:
    up = "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)"
    folder.write("ups.rq", "SELECT ?c ?y { ?c :up ?y }")
    done = folder.etalis("run", "ups.rq", "-q", up, "-s", "ticks.jsonl", "-f", "csv")
    assert "http://example.org/acme,12,1,3" in done.stdout


def test_without_a_query_it_is_said_how_one_is_given(folder: Folder) -> None:
    done = folder.etalis("run", "-s", "ticks.jsonl", code=2)
    assert done.stderr == "etalis: there is no query: name a file, write one after -q, or name - for standard input\n"
    done = folder.etalis("run", "SELECT * { ?x ?p ?y }", "-s", "ticks.jsonl", code=2)
    assert "to give a query itself, write it after -q" in done.stderr


@pytest.mark.parametrize("command", [("run", "rising.rq"), ("why-not", "rising.rq"), ("run", "--queries", ".")])
def test_without_a_stream_it_is_said_how_one_is_given(folder: Folder, command: tuple[str, ...]) -> None:
    done = folder.etalis(*command, code=2)
    assert done.stderr.startswith("etalis: there is no stream: name one after --stream, a file (ticks.csv, ")
    assert all(kind in done.stderr for kind in ("- for standard input", "tcp://", "kafka://", "http://"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "run rising.rq --streem ticks.jsonl",
            "etalis run: error: there is no option --streem; did you mean --stream?",
        ),
        ("run rising.rq --snik=a.csv", "etalis run: error: there is no option --snik; did you mean --sink?"),
        (
            "check rising.rq -Z a.ttl",
            "etalis check: error: there is no option -Z; etalis check --help lists its options",
        ),
        (
            "replay stock --event 5 --ploot a.png",
            "etalis replay stock: error: there is no option --ploot; did you mean --plot?",
        ),
        ("init a b", "etalis init: error: unrecognized arguments: b"),
    ],
)
def test_of_an_unknown_option_the_nearest_is_named(folder: Folder, line: str, said: str) -> None:
    assert folder.etalis(*line.split(), code=2).stderr.splitlines()[-1] == said


@pytest.mark.parametrize("command", ["run", "why-not"])
def test_a_stream_that_stands_alone_is_named(folder: Folder, command: str) -> None:
    done = folder.etalis(command, "rising.rq", "ticks.jsonl", code=2)
    assert "ticks.jsonl is a stream by its ending, where a query is expected: write --stream before" in done.stderr


def test_a_stream_in_the_place_of_a_query_is_named(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "more.jsonl", code=2)
    assert "more.jsonl is a stream by its ending, where a query is expected: write --stream before each" in done.stderr


def test_each_stream_may_have_a_mapping_of_its_own(folder: Folder) -> None:
    folder.write("old.csv", "company,price,time\nacme,10,1\n")
    folder.write("new.csv", "company;close;second\nacme;12;3\n")
    folder.write("old.toml", MAPPING % ("price", "time"))
    folder.write("new.toml", 'delimiter = ";"\n' + MAPPING % ("close", "second"))
    streams = ("-s", "old=old.csv", "-s", "new=new.csv")
    done = folder.etalis("run", "rising.rq", *streams, "-m", "old=old.toml", "-m", "new=new.toml")
    assert rows(done.stdout) == RISES[:1]
    done = folder.etalis("run", "rising.rq", *streams, "-m", "old.toml", "-m", "new=new.toml")
    assert rows(done.stdout) == RISES[:1]
    done = folder.etalis("run", "rising.rq", *streams, "-m", "old.toml", "-m", "new.toml", code=2)
    assert "--mapping new.toml: a second mapping for all streams; name the stream that each is for" in done.stderr
    done = folder.etalis("run", "rising.rq", *streams, "-m", "odl=old.toml", code=2)
    assert "there is no stream <http://example.org/odl>; streams: <http://example.org/old>, " in done.stderr


# --- a project ------------------------------------------------------------------------


def test_a_new_project_runs_and_its_tests_pass(folder: Folder) -> None:
    done = folder.etalis("init", "prices")
    assert done.stdout.startswith(
        "wrote README.md, mapping.toml, rising.rq, test_rising.py, ticks.csv to prices; next:"
    )
    project = Folder(folder.path / "prices")
    for command in done.stdout.splitlines()[2:]:
        assert ":acme" in project.etalis(*command.split()[1:]).stdout
    tests = runpy.run_path(str(project.path / "test_rising.py"))
    tested = [test() for name, test in tests.items() if name.startswith("test_")]
    assert len(tested) == 5
    lines = [line.strip() for line in project.read("README.md").splitlines() if line.startswith("    etalis")]
    assert lines
    for line in lines:
        if "--watch" not in line:
            project.etalis(*shlex.split(line)[1:])


def test_no_file_is_overwritten(folder: Folder) -> None:
    assert "DIR is empty: name a folder, or write . for this one" in folder.etalis("init", "", code=2).stderr
    done = folder.etalis("init", ".", code=2)
    assert done.stderr == "etalis: . has rising.rq already: name another folder\n"
    assert not (folder.path / "mapping.toml").exists()


def test_a_project_goes_into_a_folder_with_a_space(folder: Folder) -> None:
    assert "\n  cd 'my prices'\n" in folder.etalis("init", "my prices").stdout


@pytest.mark.parametrize(
    ("place", "said"),
    [("ticks.jsonl", "ticks.jsonl: File exists"), ("ticks.jsonl/a", "ticks.jsonl/a: Not a directory")],
)
def test_where_no_folder_can_be_made_one_line_says_so(folder: Folder, place: str, said: str) -> None:
    assert folder.etalis("init", place, code=1).stderr == f"etalis: {said}\n"


# --- completion ------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_to_complete(folder: Folder, shell: str) -> None:
    script = folder.etalis("completion", shell).stdout
    assert "etalis" in script
    assert {"bash": "complete ", "zsh": "compdef", "fish": "complete --command etalis"}[shell] in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("etalis ch", {"check", "checkpoint"}), ("etalis run --str", {"--stream"}), ("etalis run -p r", {"recent"})],
)
def test_what_is_completed(tmp_path: Path, line: str, expected: set[str]) -> None:
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    environment = os.environ | asked | {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "etalis_py.cli.main"], env=environment, check=True)
    assert {word.strip() for word in answer.read_text().split("\v")} == expected


# --- again and again ------------------------------------------------------------------------


def test_a_change_of_a_file_runs_it_again(tmp_path: Path) -> None:
    query = tmp_path / "q.rq"
    query.write_text("one")
    runs: list[str] = []

    def wait(_: float) -> None:
        if len(runs) == 2:
            raise KeyboardInterrupt
        query.write_text("another")

    with redirect_stderr(io.StringIO()) as err:
        assert watch(lambda: runs.append(query.read_text()) or 0, lambda: [query], wait) == 0
    assert runs == ["one", "another"]
    assert f"etalis: {query} changed" in err.getvalue()


def test_a_fault_is_shown_and_the_watch_goes_on(tmp_path: Path) -> None:
    query = tmp_path / "q.rq"
    attempts = []

    def run() -> int:
        attempts.append(1)
        raise UsageError("there is no query file")

    def wait(_: float) -> None:
        if len(attempts) == 2:
            raise KeyboardInterrupt
        query.write_text("it is there now")

    with redirect_stderr(io.StringIO()) as err:
        watch(run, lambda: [query], wait)
    assert err.getvalue().count("etalis: there is no query file") == 2


def test_what_is_watched(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    folder.write("a.csv", "")
    folder.write("b.csv", "")
    options = parser().parse_args(["run", "rising.rq", "-s", "s=*.csv", "-m", "s=s.toml", "-b", "firms.ttl", "--watch"])
    assert sorted(map(str, files_of(options))) == ["a.csv", "b.csv", "firms.ttl", "rising.rq", "s.toml"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run rising.rq -s -", "--stream - is read once only"),
        ("run rising.rq -s http://localhost/s/", "is read once only"),
        ("run - -s ticks.jsonl", "standard input can be read once only: name a file"),
        ("run rising.rq -s ticks.jsonl --engine spark", "leave --engine spark out"),
    ],
)
def test_what_cannot_be_watched(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_watch(parser().parse_args([*line.split(), "--watch"]))
