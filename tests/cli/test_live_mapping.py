"""A mapping reads the plain JSON of what is live: of a topic, a socket, a pipe."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from types import SimpleNamespace

import pytest

from etalis_py import run
from etalis_py.streams import StreamError
from tests.cli.conftest import Folder
from tests.processes import PATIENCE, comes
from tests.streams import fake_topic

PAID = [{"at": 1, "card": "c1", "amount": 10}, {"at": 2, "card": "c1", "amount": 500}]
MAPPING = 'time = "{at}"\nsubject = ":{card}"\npredicate = ":amount"\nobject = "{amount}"\n'
QUERY = "SELECT ?x ?y { { ?c :amount ?x } SEQ { ?c :amount ?y } }"
RIGHT = "x,y,start,end\n10,500,1,2\n"
TOPIC = "kafka://broker:9092/paid?until=now"


class Message:
    """One message of a topic with one partition."""

    def __init__(self, offset: int, text: str) -> None:
        self._offset, self._text = offset, text

    def partition(self) -> int:
        return 0

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return self._text.encode()

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def offset(self) -> int:
        return self._offset


class Consumer:
    """A consumer of the messages, after which comes one that is too late for ``until=now``."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._left = [Message(n, text) for n, text in enumerate([*map(json.dumps, PAID), "later"])]

    def list_topics(self, name: str, timeout: float) -> object:
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        return 0, len(PAID)

    def poll(self, timeout: float) -> Message | None:
        return self._left.pop(0) if self._left else None

    def consume(self, most: int, timeout: float) -> list[Message]:
        return []

    def assign(self, partitions: object) -> None: ...

    pause = resume = assign

    def close(self) -> None: ...


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> str:
    known = {"TIMESTAMP_NOT_AVAILABLE": 0, "OFFSET_END": -1, "OFFSET_BEGINNING": -2, "KafkaException": RuntimeError}
    module = SimpleNamespace(Consumer=Consumer, TopicPartition=lambda *_: None, **known)
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)  # type: ignore[arg-type]
    return TOPIC


HOW = pytest.mark.parametrize("how", [("-m", "m.toml"), ("--time", "at", "--subject", "card")], ids=["map", "names"])


@HOW
def test_the_messages_of_a_topic(folder: Folder, topic: str, how: tuple[str, ...]) -> None:
    folder.write("m.toml", MAPPING)
    assert folder.etalis("run", "-q", QUERY, "-s", topic, *how, "-f", "csv").stdout == RIGHT


def test_columns_of_a_topic_in_python(topic: str) -> None:
    assert [(match["x"], match["y"]) for match in run(QUERY, topic, time="at", subject="card")] == [(10, 500)]
    with pytest.raises(StreamError, match="name both of them"):
        run(QUERY, topic, time="at")
    with pytest.raises(StreamError, match="a container has graphs"):
        run(QUERY, "http://localhost:1/paid", time="at", subject="card")


def test_the_mapping_of_a_topic_by_its_name(folder: Folder, topic: str) -> None:
    folder.write("m.toml", MAPPING)
    named = folder.etalis("run", "-q", QUERY, "-s", f"paid={topic}", "-m", "paid=m.toml", "-f", "csv")
    assert named.stdout == RIGHT


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_gets_what_a_topic_holds_back(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """Nobody knows yet what the first partition has; the signal comes before its second is over."""
    portion = [fake_topic.Message(1, n, json.dumps(row).encode()) for n, row in enumerate(PAID)]
    ends = [fake_topic.Message(n, ends=True) for n in range(2)]
    module = fake_topic.client([[*portion, *ends]], 2)
    poll = module.Consumer.poll

    def poll_and_stop(consumer: object, timeout: float) -> object:
        message = poll(consumer, timeout)
        if message is None:
            signal.raise_signal(how)
        return message

    module.Consumer.poll = poll_and_stop
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)
    folder.write("m.toml", MAPPING)
    source = TOPIC.partition("?")[0]
    run = folder.etalis("run", "-q", QUERY, "-s", source, "-m", "m.toml", "-f", "csv")
    assert run.stdout == RIGHT
    assert "stopped: 2 events, 1 match in" in run.stderr


def test_without_a_mapping_the_message_says_one_that_would_do(folder: Folder, topic: str) -> None:
    told = folder.etalis("run", "-q", QUERY, "-s", topic, code=1).stderr
    assert "a plain object needs --time at --subject card, or a mapping, such as" in told
    assert 'subject = ":{card}"' in told


@HOW
def test_lines_of_a_socket(folder: Folder, how: tuple[str, ...]) -> None:
    folder.write("m.toml", MAPPING)
    with socket.create_server(("localhost", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("".join(f"{json.dumps(row)}\n" for row in PAID).encode())

        sender = threading.Thread(target=send)
        sender.start()
        source = f"tcp://localhost:{server.getsockname()[1]}"
        done = folder.etalis("run", "-q", QUERY, "-s", source, *how, "-f", "csv")
        sender.join()
    assert done.stdout == RIGHT


@pytest.mark.parametrize("only", ["--time=at", "--subject=card"])
@pytest.mark.parametrize("source", [TOPIC, "tcp://localhost:1", "-"])
def test_one_column_is_not_enough_for_what_is_live(folder: Folder, source: str, only: str) -> None:
    done = folder.etalis("run", "-q", QUERY, "-s", source, only, code=1)
    assert "cannot be guessed\n  name both of them, or give a mapping" in done.stderr


def test_columns_of_rows_that_have_yet_to_come(folder: Folder) -> None:
    """CSV and JSON of a pipe; each key that comes later is a property, too."""
    texts = {
        "CSV": "card,at,amount\nc1,1,10\nc1,2,500\n",
        "JSON": "".join(f"{json.dumps(row)}\n" for row in PAID),
        "JSON that grows": '{"at": 0, "card": "c1"}\n' + "".join(f"{json.dumps({'n': 1, **row})}\n" for row in PAID),
    }
    for name, text in texts.items():
        done = folder.etalis(
            "run", "-q", QUERY, "-s", "-", "--time", "at", "--subject", "card", "-f", "csv", input=text
        )
        assert done.stdout == RIGHT, name


def test_a_container_has_no_columns_to_name(folder: Folder) -> None:
    done = folder.etalis(
        "run", "-q", QUERY, "-s", "http://localhost:1/paid", "--time", "at", "--subject", "card", code=2
    )
    assert "--time and --subject are for rows, without --mapping or --context" in done.stderr


def test_a_container_has_graphs_and_no_columns(folder: Folder) -> None:
    folder.write("m.toml", MAPPING)
    done = folder.etalis("run", "-q", QUERY, "-s", "http://localhost:1/paid", "-m", "m.toml", code=2)
    assert "--mapping is for CSV, JSON lines, Parquet, Arrow and Kafka;" in done.stderr


HOT = "SELECT ?s ?x { ?s :value ?x FILTER (?x > 30) }"
ROWS = "at,sensor,value\n2026-01-31T12:00:00Z,a,31\n2026-01-31T12:00:01Z,b,3\n"


def test_a_csv_that_grows_is_drafted_by_the_rows_that_it_has(folder: Folder) -> None:
    """As other tables are, and told in one line; --until ends the run behind a row that comes later."""
    folder.write("s.csv", ROWS)
    later = threading.Timer(1.0, lambda: (folder.path / "s.csv").open("a").write("2026-01-31T12:00:05Z,a,99\n"))
    later.start()
    run = folder.etalis("run", "-q", HOT, "-s", "s.csv", "--follow", "--until", "2026-01-31T12:00:05Z", "-f", "csv")
    assert [line.split(",")[:2] for line in run.stdout.splitlines()[1:]] == [
        ["http://example.org/a", "31"],
        ["http://example.org/a", "99"],
    ]
    said = [line for line in run.stderr.splitlines() if "drafted" in line]
    assert len(said) == 1
    assert said[0].startswith("etalis: s.csv: there is no mapping, so one is drafted: ")


def test_plain_json_that_grows_is_drafted_too(folder: Folder) -> None:
    folder.write("s.jsonl", "".join(f"{json.dumps(row)}\n" for row in PAID))
    run = folder.etalis("run", "-q", QUERY, "-s", "s.jsonl", "--follow", "--until", str(PAID[-1]["at"]), "-f", "csv")
    assert run.stdout == RIGHT
    assert run.stderr.startswith("etalis: s.jsonl: there is no mapping, so one is drafted: time {at}, subject :{card}")


def test_a_csv_that_grows_says_what_to_do_where_there_is_nothing_to_draft_it_from(folder: Folder) -> None:
    folder.write("s.csv", "at,sensor,value\n")
    lasting = ("--checkpoint", "ck", "-o", "o.jsonl")
    for more in ((), lasting):
        run = folder.etalis("run", "-q", HOT, "-s", "s.csv", "--follow", *more, code=1)
        assert "s.csv: no rows found below the header" in run.stderr
        assert "begin when there is one, or give a mapping" in run.stderr
    run = folder.etalis("run", "-q", HOT, "-s", "missing.csv", "--follow", *lasting, code=1)
    assert "missing.csv: there is no such file" in run.stderr


SAME = "SELECT ?x ?y { { ?s :value ?x } SEQ { ?s :value ?y } FILTER (?y = ?x + 1) }"


def cells(folder: Folder, name: str) -> list[tuple[int, int]]:
    lines = folder.read(name).splitlines() if (folder.path / name).exists() else []
    found = (json.loads(line)["bindings"] for line in lines)
    return [(int(one["x"]["value"]), int(one["y"]["value"])) for one in found]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_goes_on_reads_by_the_draft_that_it_began_with(folder: Folder, how: signal.Signals) -> None:
    """Of the rows that are there later another mapping would be drafted: a label has two rows at a time then."""
    folder.write("s.csv", "at,label,value\n1,a,1\n1,b,11\n2,a,2\n2,b,12\n3,a,3\n3,b,13\n4,a,4\n4,b,14\n")
    stream, expected = folder.path / "s.csv", {(x, x + 1) for x in (1, 2, 3, 11, 12, 13)}
    given = ("run", "-q", SAME, "-s", "s.csv", "--follow", "-o", "o.jsonl", "--checkpoint", "ck")
    with folder.start(*given, "--checkpoint-every", "50ms") as one:
        assert comes(lambda: {*cells(folder, "o.jsonl")} == expected)
        one.send_signal(how)
        _, first = one.communicate(timeout=PATIENCE)
    told = "time {at}, subject :{label}"
    assert f"s.csv: there is no mapping, so one is drafted: {told}" in first
    assert f"s.csv: a drafted mapping, {told}" in folder.etalis("checkpoint", "ck").stdout
    with stream.open("a") as file:
        file.write("".join(f"{at},a,{at}\n{at},a,{at + 20}\n{at},a,{at + 40}\n" for at in range(5, 30)))
    assert 'subject = "_:row"' in folder.etalis("map", "s.csv").stdout
    with folder.start(*given, "--checkpoint-every", "50ms") as one:
        assert comes(lambda: {(at, at + 1) for at in range(5, 28)} <= {*cells(folder, "o.jsonl")})
        one.send_signal(signal.SIGTERM)
        _, second = one.communicate(timeout=PATIENCE)
    assert f"s.csv: it is read by the mapping that was drafted when the run began: {told}" in second
    assert "so one is drafted" not in second
    ids = [json.loads(line)["id"] for line in folder.read("o.jsonl").splitlines()]
    assert len(ids) == len({*ids})


def test_a_mapping_that_is_given_later_is_another_run(folder: Folder) -> None:
    folder.write("s.csv", ROWS)
    given = ("run", "-q", HOT, "-s", "s.csv", "-o", "o.jsonl", "--checkpoint", "ck")
    folder.etalis(*given)
    folder.write("m.toml", 'time = "{at}"\nsubject = ":{sensor}"\npredicate = ":value"\nobject = "{value}"\n')
    assert "the content of --mapping was not given" in folder.etalis(*given, "-m", "m.toml", code=1).stderr


def test_a_named_pipe_is_read_as_its_lines_come(folder: Folder) -> None:
    """It may be somebody's live stream: nothing of it may wait for its end."""
    os.mkfifo(folder.path / "pipe")
    query = "SELECT ?p { ?c :amount ?p }"
    process = folder.start("run", "-q", query, "-s", "pipe", "--time", "at", "--subject", "card", "-f", "csv")
    assert process.stdout is not None
    with (folder.path / "pipe").open("w") as pipe:
        for paid in PAID:
            pipe.write(json.dumps(paid) + "\n")
            pipe.flush()
            if paid is PAID[0]:
                assert [process.stdout.readline() for _ in range(2)] == ["p,start,end\n", "10,1,1\n"]
    assert process.communicate(timeout=PATIENCE)[0] == "500,2,2\n"
