"""``format("etalis")``: each byte is read once, whatever grows, fails and starts again."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from etalis_py import Event
from etalis_py.spark import EVENTS, EventSource, SparkError, events_from_source
from etalis_py.spark.input import files as growing
from etalis_py.streams import StreamError, read_stream
from tests.containers.server import Server
from tests.draws import examples

TRIG = """@prefix prov: <http://www.w3.org/ns/prov#> .
<urn:g1> prov:generatedAtTime "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:g1> { <urn:a> <urn:p> [ <urn:q> 1 ] . }
"""


def line(n: int) -> str:
    return f'{{"time": {n}, "triples": "<urn:a> <urn:p> <urn:x{n}> ."}}\n'


def numbers(rows: list[Row]) -> list[int]:
    return sorted(row["end"] // 1_000_000 for row in rows)


def events(frame: DataFrame) -> list[Event]:
    return [
        Event(r["start"], r["end"], tuple((t["s"], t["p"], t["o"]) for t in r["triples"]), r["stream"], r["graph"])
        for r in frame.orderBy("end").collect()
    ]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 60), st.booleans())
@settings(max_examples=examples(2 / 5))
def test_pieces_of_lines_hold_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], size: int, ended: bool
) -> None:
    """Wherever a file is cut, a line is read by the piece in which it begins."""
    file = tmp_path_factory.mktemp("lines") / "a.jsonl"
    lines = [str(n % 10) * length for n, length in enumerate(lengths)]
    file.write_text("\n".join(lines) + ("\n" if ended else ""))
    found = []
    for piece in growing.pieces({}, {str(file): file.stat().st_size}, "", size):
        with growing.PieceLines(piece) as part:
            while block := part.read1(1):
                found += block.decode().splitlines()
    assert found == file.read_text().splitlines()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 100 << 20)), max_size=300))
@settings(max_examples=examples(1 / 5))
def test_tasks_have_all_pieces_in_their_order(drawn: list[tuple[int, int]]) -> None:
    given = [(f"file{n}", first, first + length) for n, (first, length) in enumerate(drawn)]
    found = growing.tasks(given)
    assert [piece for task in found for piece in task] == given
    assert all(found)
    for task in found:
        assert len(task) == 1 or sum(last - first for _, first, last in task) <= growing.PIECE


@pytest.mark.parametrize(
    ("count", "length", "tasks"),
    [(2_000, 100, 32), (100_000, 100, 65), (8, 5 << 20, 8), (3, growing.PIECE, 3), (1_000, growing.PIECE, 1_000)],
)
def test_small_files_share_a_task_and_large_ones_have_their_own(count: int, length: int, tasks: int) -> None:
    """A task costs a tenth of a second: with one for each of two thousand tiny files they took minutes to read."""
    assert len(growing.tasks([(f"file{n}", 0, length) for n in range(count)])) == tasks


def test_what_can_be_taken_of_a_growing_file(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    (tmp_path / "_hidden.jsonl").write_text("x")

    def taken(start: int = 0) -> int:
        return growing.available(str(tmp_path), "", {str(file): start})[str(file)]

    file.write_text(line(1) + '{"time": 2, "tri')
    assert taken() == len(line(1)), "the second line is not whole"
    file.write_text(line(1) + line(2).rstrip())
    assert taken() == len(line(1) + line(2)) - 1, "a whole object needs no end of line"
    with pytest.raises(StreamError, match="had 1000 bytes when it was read and now has"):
        taken(1000)
    whole = tmp_path / "b.trig"
    whole.write_text(TRIG)
    with pytest.raises(StreamError, match="only JSON lines may be appended to"):
        growing.available(str(tmp_path), "", {str(whole): 5})
    assert growing.up_to({"gone": 3, "a": 1}, {"a": 2, "b": 1, "c": 1}, 2) == {"a": 2, "b": 1}


def test_a_folder_of_all_formats(spark: SparkSession, tmp_path: Path) -> None:
    """A batch DataFrame, read as by the local reader."""
    (tmp_path / "a.jsonl").write_text(line(3) + line(4))
    (tmp_path / "b.trig").write_text(TRIG)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(line(5).encode()))
    frame = events_from_source(spark, str(tmp_path), stream="urn:s")
    assert frame.schema.simpleString() == spark.createDataFrame([], EVENTS).schema.simpleString()
    assert events(frame) == list(read_stream(f"{tmp_path}/*", name="urn:s"))
    assert {row["time"].timestamp() * 1_000_000 == row["end"] for row in frame.collect()} == {True}
    assert events_from_source(spark, f"{tmp_path}/*.nothing").count() == 0


def test_small_files_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    """In one task, also when some of them are empty or of other formats; what is wrong is named by its own file."""
    for n in range(1, 41):
        (tmp_path / f"{n:02}.jsonl").write_text("" if n % 4 == 0 else line(n))
    (tmp_path / "41.jsonl.gz").write_bytes(gzip.compress(line(41).encode()))
    frame = events_from_source(spark, str(tmp_path))
    assert numbers(frame.collect()) == [n for n in range(1, 42) if n % 4]
    assert frame.rdd.getNumPartitions() == 1
    (tmp_path / "30.jsonl").write_text(line(30) + "nonsense\n")
    with pytest.raises(Exception, match=r"30\.jsonl:2: this is not JSON"):
        events_from_source(spark, str(tmp_path)).collect()


def test_a_mapping_that_only_the_driver_sees(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('subject="<urn:{C}>"\npredicate="<urn:p>"\nobject="{V}"\ntime="{T}"\n')
    (tmp_path / "a.csv").write_text("C,V,T\nx,1,1\ny,2,2\n")
    frame = spark.read.format("etalis").option("mapping", str(tmp_path / "m.toml")).load(str(tmp_path / "a.csv"))
    (tmp_path / "m.toml").unlink()
    assert [e.triples[0][0] for e in events(frame)] == ["<urn:x>", "<urn:y>"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "there is nothing to read"),
        ({"path": "a", "fomat": "nq"}, "there is no option 'fomat'"),
        ({"path": "a", "max_files": "none"}, "max_files is 1 or more"),
        ({"path": "a", "format": "csv"}, "CSV needs mapping"),
        ({"path": "a", "time_unit": "years"}, "unknown time unit"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], said: str) -> None:
    with pytest.raises(SparkError, match=said):
        EventSource(options)


@pytest.mark.parametrize(
    ("path", "said"),
    [("s3://bucket/events", "take events_from_files"), ("/no/such/folder", "there is no such file or folder")],
)
def test_places_that_cannot_be_read(spark: SparkSession, path: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        events_from_source(spark, path).count()


def test_a_line_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line(1) + "nonsense\n")
    with pytest.raises(Exception, match=r"a\.jsonl:2: this is not JSON"):
        events_from_source(spark, str(tmp_path)).collect()


def test_a_run_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that were appended, a line that was not whole, a file with an earlier name: each once."""
    source = tmp_path / "in"
    source.mkdir()

    def written() -> list[int]:
        frame = events_from_source(spark, str(source), streaming=True, max_files=1)
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        return numbers(spark.read.schema(EVENTS).parquet(str(tmp_path / "out")).collect())

    (source / "b.jsonl").write_text(line(1) + line(2) + line(3)[:10])
    (source / "c.jsonl").write_text(line(4))
    assert written() == [1, 2, 4]
    with (source / "b.jsonl").open("a") as file:
        file.write(line(3)[10:] + line(5))
    (source / "a.jsonl").write_text(line(6))
    assert written() == [1, 2, 3, 4, 5, 6]
    (source / "c.jsonl").unlink()
    assert written() == [1, 2, 3, 4, 5, 6]


def test_a_batch_that_failed_is_read_again_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Although the file has grown in between."""
    source = tmp_path / "in"
    source.mkdir()
    given: list[tuple[int, list[int]]] = []

    def take(batch: DataFrame, number: int) -> None:
        given.append((number, numbers(batch.collect())))
        if len(given) == 2:
            raise RuntimeError("the sink is down")

    def run() -> None:
        query = (
            events_from_source(spark, str(source), streaming=True)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def append(*those: int) -> None:
        with (source / "a.jsonl").open("a") as file:
            file.writelines(map(line, those))

    append(1, 2)
    run()
    append(3)
    with pytest.raises(Exception, match="the sink is down"):
        run()
    append(4)
    run()
    assert given == [(0, [1, 2]), (1, [3]), (1, [3]), (2, [4])]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "server.log", store=str(tmp_path / "server.db"))
    yield started
    started.stop()


STREAM = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."


def test_a_stream_container(spark: SparkSession, tmp_path: Path, server: Server) -> None:
    """In batches and after a restart, each member once; as a batch DataFrame, all of them."""
    turtle = {"Content-Type": "text/turtle"}
    url = httpx.post(server.url, content=STREAM, headers=turtle).headers["location"]

    def post(*values: int) -> None:
        for value in values:
            assert httpx.post(url, content=f"<> <urn:v> {value} .", headers=turtle).status_code == 201

    def values(frame: DataFrame) -> list[int]:
        return sorted(int(t[2].split('"')[1]) for e in events(frame) for t in e.triples if t[1] == "<urn:v>")

    def written() -> list[int]:
        query = (
            events_from_source(spark, url, streaming=True)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        return values(spark.read.schema(EVENTS).parquet(str(tmp_path / "out")))

    post(1, 2)
    assert written() == [1, 2]
    post(3)
    assert written() == [1, 2, 3]
    found = events_from_source(spark, url, stream="urn:mine")
    assert values(found) == [1, 2, 3]
    assert {e.stream for e in events(found)} == {"<urn:mine>"}
