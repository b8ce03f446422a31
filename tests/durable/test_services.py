"""Connectors with their real counterparts: what a database, a broker or a web server holds in the end."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from etalis_py import event, run
from etalis_py.connectors import connect
from etalis_py.connectors.redis import client_of
from etalis_py.connectors.registry import open_sink, open_source
from etalis_py.events import Event
from etalis_py.streams import SinkError, StreamError
from etalis_py.testing.connectors import check_sink, check_source, some_matches
from tests.cli import in_process
from tests.durable import services
from tests.durable.peers import add, entries, line, refuse_what_a_copy_has_written, rows

QUERY = "SELECT ?x { ?c :p ?x }"
EVENTS = [event(f":c :p {at}", at) for at in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


# --- PostgreSQL ---


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="needs the extra postgresql: pip install 'etalis-py[postgresql]'")
    with services.open_folder() as folder, services.postgres(folder) as address:
        yield address


def test_postgresql_keeps_the_contract(database: str) -> None:
    def content() -> list[str]:
        return [row[0] for row in rows(database, "SELECT id FROM contract ORDER BY started::int")]

    check_sink(lambda: open_sink(f"{database}?table=contract"), content)


def test_postgresql_refuses_a_portion_that_another_process_has_written(database: str) -> None:
    refuse_what_a_copy_has_written(*(open_sink(f"{database}?table=copied") for _ in range(2)))
    assert rows(database, "SELECT count(*) FROM copied") == [(3,)]


def test_postgresql_has_plain_values(database: str) -> None:
    sink = open_sink(f"{database}?table=plain")
    sink.recover(None)
    sink.write(list(run("SELECT ?c ?x ?b ?t { ?c :p ?x ; :b ?b ; :t ?t }", [event(':c :p 1.5 ; :b true ; :t "é"', 3)])))
    sink.commit(sink.prepare())
    ((started, ended, bindings),) = rows(database, "SELECT started, ended, bindings FROM plain")
    assert (started, ended) == ("3", "3")
    assert bindings == {"c": "http://example.org/c", "x": 1.5, "b": True, "t": "é"}


def test_postgresql_refuses_a_nul_with_what_to_do(database: str) -> None:
    events = [event(r':c :p "a\u0000b"', 3)]
    sink = open_sink(f"{database}?table=nuls")
    sink.recover(None)
    sink.write(list(run("SELECT ?x { ?c :p ?x }", events)))
    with pytest.raises(SinkError, match=r"its texts have no U\+0000: let the query remove it, as \(REPLACE"):
        sink.commit(sink.prepare())
    sink.abort()
    sink.write(list(run(r"SELECT (REPLACE(?x, '\u0000', '') AS ?text) { ?c :p ?x }", events)))
    sink.commit(sink.prepare())
    assert rows(database, "SELECT bindings->>'text' FROM nuls") == [("ab",)]


def test_postgresql_removes_what_is_taken_back(database: str, folder: Path) -> None:
    lines = [{"time": at, "triples": f":c :p {at} ."} for at in range(6)]
    lines.insert(4, lines[1] | {"retract": True})
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["run", "-q", QUERY, "-s", "s.jsonl", "--revise", "10s", "-o", f"{database}?table=revised"]
    done = in_process.run([*arguments, "--checkpoint", "ck", "--checkpoint-every", "0s"], folder)
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in rows(database, "SELECT bindings->>'x' FROM revised ORDER BY 1")] == list("02345")


def test_a_database_that_is_not_there_says_what_to_check() -> None:
    pytest.importorskip("psycopg", reason="needs the extra postgresql: pip install 'etalis-py[postgresql]'")
    with pytest.raises(SinkError, match=r"PostgreSQL says: .*\n.*check the address and the user; .* PGPASSWORD"):
        open_sink(f"postgresql://nobody@127.0.0.1:{services.free_port()}/x").recover(None)


# --- Redis Streams ---


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("redis", reason="needs the extra redis: pip install 'etalis-py[redis]'")
    with services.redis(tmp_path_factory.mktemp("redis")) as address:
        yield address


def first(stream: Any, count: int) -> list[Event]:
    """The first events of a stream that has no end."""
    with stream:
        return list(islice((item for item in stream if isinstance(item, Event)), count))


def test_redis_keeps_the_contract(server: str) -> None:
    add(server, "contract", [{"value": json.dumps({"time": at, "triples": f":c :p {at} ."})} for at in range(7)])
    check_source(lambda: open_source(f"{server}?stream=contract"))


def test_redis_refuses_a_portion_that_another_process_has_written(server: str) -> None:
    refuse_what_a_copy_has_written(*(open_sink(f"{server}?stream=copied") for _ in range(2)))
    assert len(entries(server, "copied")) == 3


def test_the_fields_of_a_redis_entry_are_columns(server: str) -> None:
    add(server, "ticks", [{"at": str(at), "symbol": "acme", "price": str(at + 0.5)} for at in range(3)])
    mapping = {"time": "{at}", "triple": [{"subject": ":{symbol}", "predicate": ":price", "object": "{price}"}]}
    events = first(connect(open_source(f"{server}?stream=ticks"), "redis://x", mapping=mapping), 3)
    assert [one.end for one in events] == [0, 1_000_000, 2_000_000]
    assert events[1].triples[0][0] == "<http://example.org/acme>"
    assert '"1.5"' in events[1].triples[0][2]


TRIMMED = "was trimmed away, and perhaps others behind it"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda client: client.xtrim("trimmed", minid="5-0", approximate=False),
            "; Redis has removed 4 of 6 entries in all",
        ),
        (
            lambda client: client.xtrim("trimmed", maxlen=0, approximate=False),
            "; Redis has removed 6 of 6 entries in all",
        ),
        (lambda client: client.xtrim("trimmed", minid="3-0", approximate=False), ""),  # the last that was read is there
        (lambda client: client.xdel("trimmed", "3-0"), ""),
        (lambda client: client.delete("trimmed"), ""),
    ],
    ids=["trimmed", "emptied", "behind the reader", "deleted by its id", "deleted"],
)
def test_redis_entries_that_are_trimmed_away_between_two_runs_are_told(
    server: str, change: Callable[[Any], object], told: str
) -> None:
    """What was removed before it was read is lost."""
    _, client = client_of(server, sink=False)
    client.delete("trimmed")
    for at in range(1, 7):
        client.xadd("trimmed", {"value": line(at)}, id=f"{at}-0")
    change(client)
    source = open_source(f"{server}?stream=trimmed")
    source.open("3-0")
    with closing(source), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            source.read(0.01)
    texts = [str(one.message) for one in caught]
    assert len(texts) == bool(told)
    assert all(TRIMMED + " that were not read" + told in text for text in texts)


def test_a_reader_of_redis_that_has_come_to_the_end_lacks_nothing(server: str) -> None:
    _, client = client_of(server, sink=False)
    client.xadd("ended", {"value": line(1)}, id="1-0")
    source = open_source(f"{server}?stream=ended")
    source.open(None)
    with closing(source), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(source.read(0.01) or ()) == 1
        client.xtrim("ended", maxlen=0, approximate=False)
        assert source.read(0.01) == []
    assert not caught


def test_a_field_named_value_may_be_a_column(server: str) -> None:
    """It is a message if it stands alone, has an object, or was asked for."""
    line = '{"time": 7, "triples": ":c :p 7 ."}'
    add(server, "mixed", [{"id": "a", "value": "31"}, {"id": "1", "value": line}, {"value": "32"}])

    def given(more: str) -> list[bytes]:
        source = open_source(f"{server}?stream=mixed{more}")
        source.open(None)
        with closing(source):
            return [message.value for message in source.read(5.0) or ()]  # type: ignore[union-attr]

    assert given("") == [b'{"id":"a","value":"31"}', line.encode(), b"32"]
    assert given("&field=value") == [b"31", line.encode(), b"32"]


def test_a_password_that_redis_wants_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redis", reason="needs the extra redis: pip install 'etalis-py[redis]'")
    with services.redis(folder, services.free_port()) as own:
        client_of(own, sink=False)[1].config_set("requirepass", "k")
        for password in ("", "wrong"):
            monkeypatch.setenv("REDIS_PASSWORD", password)
            with pytest.raises(StreamError, match=r"wants one\n.*REDIS_PASSWORD"):
                open_source(f"{own}?stream=x").open(None)
            with pytest.raises(SinkError, match=r"wants one\n.*REDIS_PASSWORD"):
                open_sink(f"{own}?stream=x").recover(None)
        monkeypatch.setenv("REDIS_PASSWORD", "k")
        open_source(f"{own}?stream=x").open(None)


def test_a_run_over_redis_goes_on(server: str, folder: Path) -> None:
    add(server, "go", [{"value": json.dumps({"time": at, "triples": f":c :p {at} ."})} for at in range(30)])
    given: list[int] = []
    for count in (5, 5, 10):
        stream = connect(open_source(f"{server}?stream=go"), "redis://x", idle=0.1)
        with run(QUERY, stream, checkpoint=folder / "ck", checkpoint_every=0) as matches:
            given += [match["x"] for match in islice(matches, count)]
        stream.close()
    assert sorted(set(given)) == list(range(max(given) + 1))
    assert len(given) - len(set(given)) <= 2, "only the last match before each stop comes again"


def test_a_redis_that_comes_back_is_read_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redis", reason="needs the extra redis: pip install 'etalis-py[redis]'")
    port = services.free_port()
    with services.redis(folder, port) as address:
        add(address, "s", [{"value": "1"}])
        source = open_source(f"{address}?stream=s")
        source.open(None)
        assert [message.value for message in source.read(1.0) or ()] == [b"1"]  # type: ignore[union-attr]
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(source.read, 5.0)
        with services.redis(folder, port) as address:
            add(address, "s", [{"value": "2"}])
            assert [message.value for message in reading.result(60) or ()] == [b"2"]  # type: ignore[union-attr]
    monkeypatch.setattr("etalis_py.connectors.redis.pauses", lambda: iter([0.0, 0.01]))
    with pytest.raises(StreamError, match="start the server, or check the address"):
        source.read(0.1)


def test_a_redis_that_is_not_there_says_so() -> None:
    pytest.importorskip("redis", reason="needs the extra redis: pip install 'etalis-py[redis]'")
    with pytest.raises(StreamError, match="start the server, or check the address"):
        open_source(f"redis://127.0.0.1:{services.free_port()}/0?stream=x").open(None)
    with pytest.raises(StreamError, match=r"it names no stream\n.*redis://host:6379/0\?stream=ticks"):
        open_source("redis://127.0.0.1/0")


def test_a_redis_stream_keeps_the_contract_of_a_sink(server: str) -> None:
    check_sink(lambda: open_sink(f"{server}?stream=written"), lambda: [one["id"] for one in entries(server, "written")])


def test_a_lost_answer_of_redis_does_not_double_a_portion(server: str) -> None:
    """The transaction is done, and the connection breaks before the client hears of it, each time."""
    port = int(server.rpartition(":")[2].partition("/")[0])
    with services.between(port, lambda data: b"EXEC" in data) as through:
        sink = open_sink(f"redis://127.0.0.1:{through}/0?stream=lost")
        sink.recover(None)
        sink.write(some_matches(2))
        token = sink.prepare()
        with pytest.raises(SinkError, match="Redis says"):
            sink.commit(token)
        sink.close()
    sink = open_sink(f"{server}?stream=lost")
    sink.recover(token)
    assert [one["bindings"]["x"] for one in entries(server, "lost")] == [0, 1]


def test_a_redis_stream_may_be_bounded(server: str) -> None:
    sink = open_sink(f"{server}?stream=bounded&maxlen=100")
    sink.recover(None)
    for _ in range(4):
        sink.write(some_matches(200))
        sink.commit(sink.prepare())
    assert 100 <= len(entries(server, "bounded")) < 400


def test_the_command_goes_from_one_redis_stream_to_another(server: str, folder: Path) -> None:
    """What one run writes another reads by a mapping."""
    (folder / "s.jsonl").write_text("".join(f'{{"time": {at}, "triples": ":c :p {at} ."}}\n' for at in range(3)))
    done = in_process.run(["run", "-q", QUERY, "-s", "s.jsonl", "-o", f"{server}?stream=first"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    mapping = {"time": "{end}", "triple": [{"subject": "_:row", "predicate": ":n", "object": "{bindings.x}"}]}
    stream = connect(open_source(f"{server}?stream=first"), "redis://x", mapping=mapping)
    assert [one.triples[0][2].partition("^")[0] for one in first(stream, 3)] == ['"0"', '"1"', '"2"']


def test_a_redis_address_to_write_to_says_what_is_wrong() -> None:
    with pytest.raises(SinkError, match="it names no stream"):
        open_sink("redis://127.0.0.1/0")
    with pytest.raises(SinkError, match="it says 'maxlen=0'"):
        open_sink("redis://127.0.0.1/0?stream=x&maxlen=0")


# --- both of them as sinks ---

SINKS = pytest.mark.parametrize(("service", "table"), [("database", "table"), ("server", "stream")])


@SINKS
def test_a_service_has_every_match_once_over_restarts(
    service: str, table: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    address = request.getfixturevalue(service)
    for count in (7, 3, 100):
        sink = open_sink(f"{address}?{table}=restarts")
        with run(QUERY, EVENTS, checkpoint=folder / "ck", checkpoint_every=0, sink=sink) as matches:
            list(islice(matches, count))
    if service == "database":
        stored = [row[0] for row in rows(address, "SELECT (bindings->'x')::int FROM restarts ORDER BY 1")]
    else:
        stored = [one["bindings"]["x"] for one in entries(address, "restarts")]
    assert stored == list(range(40))


@SINKS
def test_a_service_that_is_ahead_of_the_folder_is_refused(
    service: str, table: str, request: pytest.FixtureRequest
) -> None:
    address = f"{request.getfixturevalue(service)}?{table}=ahead"
    matches, sink = some_matches(3), open_sink(address)
    sink.recover(None)
    tokens = []
    for match in matches:
        sink.write([match])
        tokens.append(sink.prepare())
        sink.commit(tokens[-1])
    with pytest.raises(SinkError, match="up to portion 3 of this run, and the checkpoint is at 1"):
        open_sink(address).recover(tokens[0])


# --- objects in S3 ---


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that puts an object into a bucket and gives its address."""
    with services.s3(tmp_path_factory.mktemp("s3")) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "k")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s")

        def put(name: str, data: bytes = b"") -> str:
            kind = {"content-type": "application/octet-stream"}
            asked = urllib.request.Request(f"http://{server}/ticks/{name}", data, kind, method="PUT")
            urllib.request.urlopen(asked, timeout=10).close()
            return f"s3://ticks/{name}?endpoint_override={server}&scheme=http&region=us-east-1"

        put("")
        yield put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A store with the bucket ``lake``, as the environment names it to deltalake."""
    pytest.importorskip("deltalake", reason="needs the extra delta: pip install 'etalis-py[delta]'")
    with services.s3(tmp_path) as server:
        made = urllib.request.Request(f"http://{server}/lake/", b"", {"content-type": "text/plain"}, method="PUT")
        urllib.request.urlopen(made, timeout=10).close()
        yield os.environ | {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{server}",
            "AWS_ALLOW_HTTP": "true",
        }


def test_a_table_of_delta_lake_in_a_store(store: dict[str, str], tmp_path: Path) -> None:
    """Written and read by the command; deltalake takes the settings of the store from the environment."""
    (tmp_path / "s.jsonl").write_bytes(LINES)

    def etalis(query: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-q", query, *more]
        return subprocess.run(command, cwd=tmp_path, env=store, capture_output=True, text=True, check=False)

    query = "SELECT ?x { ?c :price ?x }"
    for said in ("", "etalis: the run in run has come to its end; nothing is left to do\n"):
        done = etalis(query, "-s", "s.jsonl", "-o", "delta:s3://lake/matches", "--checkpoint", "run")
        assert (done.returncode, done.stderr) == (0, said)
    columns = ["--time", "ended", "--subject", "id", "--format", "csv"]
    read = etalis("SELECT ?b { ?m :bindings ?b }", "-s", "delta:s3://lake/matches", *columns)
    assert sorted(row[0] for row in csv.reader(read.stdout.splitlines()[1:])) == [
        f'{{"x": {value}}}' for value in range(3)
    ], read.stderr
    wrong = etalis(query, "-s", "s.jsonl", "-o", "delta:s3://nobody/matches", "--checkpoint", "other")
    assert wrong.returncode == 1
    assert "the table cannot be written: Generic S3 error" in wrong.stderr
    assert "NoSuchBucket" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 2


def table() -> bytes:
    """A Parquet file of three ticks."""
    import io

    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table({"at": [0, 1, 2], "company": ["a"] * 3, "price": [0, 1, 2]}), file)
    return file.getvalue()


LINES = "".join(f'{{"time": {at}, "triples": ":a :price {at} ."}}\n' for at in range(3)).encode()
MAPPING = {"time": "{at}", "triple": [{"subject": ":{company}", "predicate": ":price", "object": "{price}"}]}


@pytest.mark.parametrize(
    ("name", "data", "mapping"),
    [
        ("t.jsonl", LINES, None),
        ("t.jsonl.gz", gzip.compress(LINES), None),
        ("t.csv", b"at,company,price\n0,a,0\n1,a,1\n2,a,2\n", MAPPING),
        ("t.parquet", table(), MAPPING),
    ],
    ids=["JSON lines", "compressed", "CSV", "Parquet"],
)
def test_an_object_is_read_as_a_file_is(bucket: Any, name: str, data: bytes, mapping: Any) -> None:
    matches = run("SELECT ?x { ?c :price ?x }", bucket(name, data), mapping=mapping)
    assert [match["x"] for match in matches] == [0, 1, 2]


def test_the_command_reads_objects(bucket: Any, folder: Path) -> None:
    arguments = ["run", "-q", "SELECT ?x { ?c :price ?x }", "-s", bucket("c.jsonl", LINES), "-f", "csv"]
    done = in_process.run(arguments, folder)
    assert done.stdout.splitlines() == ["x,start,end", "0,0,0", "1,1,1", "2,2,2"], done.stderr


def test_an_object_that_is_not_there_says_so(bucket: Any) -> None:
    with pytest.raises(StreamError, match="there is no such object"):
        list(run(QUERY, bucket("x.jsonl", b"").replace("x.jsonl", "y.jsonl")))
