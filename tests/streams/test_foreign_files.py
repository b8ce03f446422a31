"""Binary files and frames from elsewhere: whatever is in them, events or an error that says what to do.

What is looked for includes the end of the process, so they are read in processes whose end is noticed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from random import randrange
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from etalis_py import read_stream, run
from etalis_py.streams import StreamError
from etalis_py.streams.columns import files
from etalis_py.streams.columns.checked_tables import DAMAGED
from etalis_py.streams.samples import file_samples, record_samples
from etalis_py.values.limits import Limits

from .damaged import KINDS, NATIVE

ROOT = Path(__file__).parents[2]
TERMS = ['"first"', '"second"', '"third"']


def rounds(first: int, count: int, *kinds: str) -> list[str]:
    """The ends of so many readings of damaged files, and how often each was seen."""
    command = [sys.executable, "-m", "tests.streams.damaged", str(first), str(count), *kinds]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, f"the process ended at {lines[-1:]} of {command}: {ended.stderr}"
    return [line for line in lines if line.startswith("=")]


def test_damaged_files_are_read_or_refused() -> None:
    ends = {(end.split()[2], " ".join(end.split()[3:])) for end in rounds(0, 40, *KINDS)}
    assert {end for _, end in ends} == {"read", "refused", "not opened"}
    assert {kind for kind, end in ends if end == "refused"} == set(KINDS)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_damaged_files_are_read_or_refused(kind: str) -> None:
    ends = rounds(randrange(10**9), 5_000, kind)
    assert not [end for end in ends if end.split()[3] not in ("read", "refused", "not")]


# --- by name ---


def texts(*offsets: int, data: bytes = b"".join(term.encode() for term in TERMS)) -> pa.Array:
    """Three texts with these offsets."""
    return pa.StringArray.from_buffers(3, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data))


def indexed(*index: int) -> pa.Array:
    """A dictionary with these indices."""
    numbers = pa.Array.from_buffers(pa.int32(), 3, [None, pa.py_buffer(np.array(index, np.int32))])
    return pa.DictionaryArray.from_arrays(numbers, pa.array(TERMS), safe=False)


def flat(objects: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"end": [1, 2, 3], "s": ["<urn:a>"] * 3, "p": ["<urn:p>"] * 3, "o": objects})


def priced(prices: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"at": [1, 2, 3], "id": ["a"] * 3, "price": prices, "note": ["x"] * 3})


def stored(batch: pa.RecordBatch, right: bytes, wrong: bytes, new: Callable[..., Any]) -> bytes:
    """A table as a file or a stream in which some bytes are replaced once."""
    sink = io.BytesIO()
    with new(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert sink.getvalue().count(right) == 1
    return sink.getvalue().replace(right, wrong)


def integers(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes()


BEYOND, BACK = (0, 7, 1 << 28, 22), (0, 15, 7, 22)
FRAMES: dict[str, Callable[[], Any]] = {
    "an offset beyond the end": lambda: flat(texts(*BEYOND)),
    "an offset that goes back": lambda: flat(texts(*BACK)),
    "a negative offset": lambda: flat(texts(0, -(1 << 28), 15, 22)),
    "bytes that are not UTF-8": lambda: flat(texts(0, 7, 15, 22, data=b'"first""sec\xffnd""third"')),
    "an index beyond the dictionary": lambda: flat(indexed(0, 1 << 28, 2)),
    "a dictionary with an offset beyond the end": lambda: flat(
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts(*BEYOND))
    ),
    "a mapped column with an offset beyond the end": lambda: priced(texts(*BEYOND)),
    "a mapped column with an index beyond the dictionary": lambda: priced(indexed(0, 1 << 28, 2)),
    "a table of the same": lambda: pa.Table.from_batches([flat(texts(*BEYOND))]),
}
RIGHT = integers(0, 7, 15, 22)
FILES: dict[str, Callable[[], bytes]] = {
    "d.arrow": lambda: stored(flat(pa.array(TERMS)), RIGHT, integers(*BEYOND), ipc.new_file),
    "back.arrow": lambda: stored(flat(pa.array(TERMS)), RIGHT, integers(*BACK), ipc.new_file),
    "last.arrow": lambda: stored(flat(pa.array(TERMS)), RIGHT, integers(0, 7, 15, 1 << 28), ipc.new_file),
    "d.arrows": lambda: stored(flat(pa.array(TERMS)), RIGHT, integers(*BEYOND), ipc.new_stream),
    "indexed.arrow": lambda: stored(
        flat(indexed(2, 1, 0)), integers(2, 1, 0), integers(2, 1 << 28, 0), ipc.new_file
    ),
    "mapped.arrow": lambda: stored(priced(pa.array(TERMS)), RIGHT, integers(*BEYOND), ipc.new_file),
    "text.arrow": lambda: stored(flat(pa.array(TERMS)), b"second", b"sec\xffnd", ipc.new_file),
}  # fmt: skip


def outcome(source: Any, mapping: Any = None) -> str:
    """The error that a stream ends with, or its events."""
    try:
        return str(list(read_stream(source, mapping=mapping)))
    except StreamError as error:
        return str(error)


def outcome_of_frame(name: str, mapping: Any) -> str:
    """The same; the frame is made in the process that reads it."""
    return outcome(FRAMES[name](), mapping)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Executor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_with_wrong_buffers_is_an_error(name: str, elsewhere: Executor) -> None:
    column, mapping = ("price", NATIVE) if "mapped" in name else ("o", None)
    error = elsewhere.submit(outcome_of_frame, name, mapping).result()
    assert error.startswith(f"the table: the column '{column}' is damaged: ")
    assert error.endswith(f"\n  {DAMAGED}")


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_wrong_buffers_is_an_error(name: str, elsewhere: Executor, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    column, mapping = ("price", NATIVE) if "mapped" in name else ("o", None)
    error = elsewhere.submit(outcome, str(path), mapping).result()
    assert error.startswith(f"{path}: the column '{column}' is damaged: ")


def test_a_damaged_column_that_nothing_uses_is_left_alone() -> None:
    unused = priced(pa.array([1, 2, 3])).append_column("unused", texts(0, 7, 15, 22, data=b"\xff" * 22))
    assert len(list(read_stream(unused, mapping=NATIVE))) == 3


def test_what_a_parquet_file_says_of_its_columns_may_be_damaged(elsewhere: Executor, tmp_path: Path) -> None:
    """Arrow ends the process if it is asked what the file says of such a column."""
    path = tmp_path / "d.parquet"
    path.write_bytes(with_a_wrong_histogram())
    error = elsewhere.submit(outcome, str(path)).result()
    assert error.startswith(f"{path}: this is no Parquet file: Definition level histogram size mismatch")


def with_a_wrong_histogram() -> bytes:
    """A Parquet file in which the histogram of a column without nulls has two entries."""
    sink = io.BytesIO()
    schema = pa.schema([pa.field("o", pa.string(), nullable=True)])
    parquet.write_table(pa.table({"o": ["a"]}, schema=schema), sink, store_schema=False)
    data = sink.getvalue()
    # In the schema: the column is optional (repetition type 1 of a byte array); now it is required.
    optional, required = b"\x15\x0c\x25\x02\x18\x01o", b"\x15\x0c\x25\x00\x18\x01o"
    assert data.count(optional) == 1
    return data.replace(optional, required)


@pytest.mark.parametrize("kind", [pa.binary(), pa.dictionary(pa.int32(), pa.binary())])
def test_terms_are_texts(kind: pa.DataType) -> None:
    with pytest.raises(StreamError, match="but terms are texts in N-Triples spelling"):
        list(read_stream(flat(pa.array([b"x"] * 3).dictionary_encode().cast(kind))))


def test_two_columns_of_one_name_are_an_error() -> None:
    batch = flat(pa.array(TERMS)).append_column("o", pa.array(TERMS))
    with pytest.raises(StreamError, match="two columns are called 'o'\n  rename one of them"):
        list(read_stream(batch))


def draft_of_file(path: str) -> str:
    """The error of sampling a file to draft a mapping for it, or its cells."""
    try:
        return str(file_samples(path).cells)
    except StreamError as error:
        return str(error)


def test_no_mapping_is_drafted_for_a_damaged_file(elsewhere: Executor, tmp_path: Path) -> None:
    path = tmp_path / "mapped.arrow"
    path.write_bytes(FILES["mapped.arrow"]())
    error = elsewhere.submit(draft_of_file, str(path)).result()
    assert error.startswith(f"{path}: the column 'price' is damaged: ")


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_a_compressed_file_that_must_be_whole_is_unpacked_up_to_a_limit(form: str, tmp_path: Path) -> None:
    path, sink, table = tmp_path / f"bomb.{form}.gz", io.BytesIO(), flat(pa.array([f'"{"x" * 100_000}"'] * 3))
    if form == "parquet":
        parquet.write_table(pa.table(table), sink, compression="none", use_dictionary=False)
    else:
        with (ipc.new_file if form == "arrow" else ipc.new_stream)(sink, table.schema) as writer:
            writer.write_batch(table)
    path.write_bytes(gzip.compress(sink.getvalue()))
    assert path.stat().st_size < 10_000
    what = "a message of the stream" if form == "arrows" else "the file"
    with patch.object(files, "LIMITS", Limits(unpacked_bytes=200_000)), pytest.raises(StreamError) as caught:
        list(read_stream(path))
    assert str(caught.value) == (
        f"{path}: {what} unpacks to more than 200,000 bytes\n"
        "  it has to be held as a whole: unpack it first if that is what it should have"
    )
    assert len(list(read_stream(path))) == 3


def test_samples_of_a_long_file_end_with_a_row(tmp_path: Path) -> None:
    """The first bytes end within the third of these rows."""
    path = tmp_path / "long.csv"
    path.write_text("n,note\n" + "".join(f"{n},{'x' * 100_000}\n" for n in range(5)))
    assert file_samples(path).cells["n"] == ["0", "1"]


def test_samples_of_records_have_no_lists_and_no_keys_that_are_not_texts() -> None:
    samples = record_samples([{"a": 1, "tags": ["x", "y"], 3: 4}, {"a": True, "b": {"c": None, "d": 2.5}}])
    assert samples.cells == {"a": ["1", "true"], "b.c": ["", ""], "b.d": ["", "2.5"]}


PACKED = "this is packed with bzip2, and only gzip is unpacked here"
UTF16 = "this is a text in UTF-16"
LINE = '<urn:a> <urn:p> "x" <urn:g> .\n'


@pytest.mark.parametrize("name", ["a.nq", "a.nt", "a.trig", "a.ttl", "a.jsonl", "a.csv"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bz2.compress(LINE.encode()), PACKED),
        (LINE.encode("utf-16"), UTF16),
        (LINE.encode("utf-16-le"), UTF16),
        (LINE.encode("utf-16-be"), UTF16),
        (b"PAR1\x15\x04\x15\xf0", "this is Parquet, whatever its name says\n  give it a name that ends in .parquet"),
        (b"ARROW1\x00\x00\xff\xff", "this is Arrow, whatever its name says"),
    ],
)
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_is_no_text_is_refused_whatever_its_name_says(
    name: str, data: bytes, message: str, executor: Any, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(StreamError, match=re.escape(message)):
        list(run("SELECT ?x { ?c ?p ?x }", tmp_path / name, executor=executor))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bz2.compress(LINE.encode()), PACKED),
        (b"\x28\xb5\x2f\xfd" + b"\x00" * 60, "this is packed with zstd"),
        (LINE.encode("utf-16"), UTF16),
        (b"PK\x03\x04" + b"\x00" * 60, "this is a workbook"),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_what_is_no_table_is_refused_for_what_it_is(
    name: str, data: bytes, message: str, mapped: bool, tmp_path: Path
) -> None:
    """The message told of bytes that are not there."""
    (tmp_path / name).write_bytes(data)
    more: Any = {"time": "at", "subject": "id"} if mapped else {}
    with pytest.raises(StreamError, match=re.escape(message)):
        list(run("SELECT ?x { ?c ?p ?x }", tmp_path / name, **more))


def test_a_text_may_begin_like_a_magic_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("PAR1,BZh9,at\na,b,1\n")
    [match] = run("SELECT ?x { ?c :BZh9 ?x }", tmp_path / "a.csv", time="at", subject="PAR1")
    assert match["x"] == "b"
