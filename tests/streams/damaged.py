"""Damaged binary files, drawn from seeds: Arrow files and streams, Parquet, Jelly, gzip, and frames given in Python.

``python -m tests.streams.damaged FIRST COUNT KIND…`` reads so many of each kind in a process of its own, because what
is looked for includes the end of the process.  It prints the seed before each, and at the end how the readings ended.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import random
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from etalis_py import read_stream
from etalis_py.streams import StreamError

from .test_fuzz_readers import MAPPING, check_events, csv_rows, jelly, json_lines, n_quads

SIZES = (1, 3, 40)
_INTEGERS = (0, 1, 2, 7, 255, 2**15, 2**31 - 1, -1, -8, 2**31 // 8, 2**62, -(2**63))
NATIVE = {"subject": ":{id}", "predicate": ":price", "object": "{price}", "time": "{at}", "graph": "<urn:g{note}>"}


def flat(rows: int, draws: random.Random) -> pa.Table:
    """A table of triples; some columns are dictionaries, some are null or long strings."""
    terms = [draws.choice(['"text"', '"é"@en', "<urn:b>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'])]
    terms += [f'"{"x" * draws.randrange(40)}{n}"' for n in range(rows - 1)]
    columns: dict[str, Any] = {
        "end": pa.array(range(rows), pa.int64()),
        "s": pa.array(["<urn:a>"] * rows),
        "p": pa.array(["<urn:p>"] * rows).dictionary_encode(),
        "o": pa.array(terms),
    }
    if draws.random() < 0.5:
        columns["graph"] = pa.array([draws.choice(["<urn:g>", "", None]) for _ in range(rows)])
    if draws.random() < 0.3:
        columns["retract"] = pa.array([draws.choice([True, False, None]) for _ in range(rows)])
    if draws.random() < 0.3:
        columns["event"] = pa.array([n // 2 for n in range(rows)])
    for name in "so":
        match draws.randrange(5):
            case 0:
                columns[name] = columns[name].dictionary_encode()
            case 1:
                columns[name] = columns[name].cast(pa.large_string())
            case 2:
                columns[name] = columns[name].cast(pa.string_view())
    return pa.table(columns)


def native(rows: int, draws: random.Random) -> pa.Table:
    """A table for the mapping ``NATIVE``."""
    moments = [datetime(2026, 1, 31, 10, n % 60, tzinfo=UTC) for n in range(rows)]
    prices: list[pa.Array] = [
        pa.array([n * 1.5 for n in range(rows)]),
        pa.array([draws.choice([None, n]) for n in range(rows)], pa.decimal128(9, 2)),
        pa.array([f"{n}é" for n in range(rows)]).dictionary_encode(),
        pa.array([n > 2 for n in range(rows)]),
        pa.array([str(n) for n in range(rows)], pa.large_string()),
        pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["x"])),
        pa.array([n * 1_000_003 for n in range(rows)], pa.duration("ns")),
        pa.array(moments, pa.date32()),
        pa.array([[n] for n in range(rows)]),
    ]
    return pa.table(
        {
            "at": pa.array(moments, pa.timestamp(draws.choice(["s", "ms", "us"]), "UTC")),
            "id": pa.array([f"id {n % 3}" for n in range(rows)]),
            "price": draws.choice(prices),
            "note": pa.array([draws.choice(["a", "ü", None]) for _ in range(rows)]),
            "unused": pa.array([b"\xff" * (n % 4) for n in range(rows)]),
        }
    )


def table(draws: random.Random) -> tuple[pa.Table, dict[str, Any]]:
    rows = draws.choice(SIZES)
    return (flat(rows, draws), {}) if draws.random() < 0.5 else (native(rows, draws), {"mapping": NATIVE})


def arrow_file(draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    return _written(ipc.new_file, draws)


def arrow_stream(draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    return _written(ipc.new_stream, draws)


def _written(new: Callable[..., Any], draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    rows, options = table(draws)
    sink = io.BytesIO()
    packing = draws.choice([None, None, "lz4", "zstd"])
    with new(sink, rows.schema, options=ipc.IpcWriteOptions(compression=packing, unify_dictionaries=True)) as writer:
        writer.write_table(rows, max_chunksize=draws.choice([1, 16, 100]))
    return sink.getvalue(), options


def parquet_file(draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    rows, options = table(draws)
    plain = [field.name for field in rows.schema if not pa.types.is_run_end_encoded(field.type)]
    plain = [name for name in plain if not pa.types.is_duration(rows.schema.field(name).type)]
    if options and "price" not in plain:
        rows = rows.set_column(2, "price", pa.array(range(len(rows))))
        plain = rows.schema.names
    sink = io.BytesIO()
    parquet.write_table(
        rows.select(plain),
        sink,
        compression=draws.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=draws.random() < 0.5,
        data_page_version=draws.choice(["1.0", "2.0"]),
        store_schema=draws.random() < 0.7,
        row_group_size=draws.choice([2, 100]),
    )
    return sink.getvalue(), options


def jelly_file(draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    return jelly(), {}


def gzip_file(draws: random.Random) -> tuple[bytes, dict[str, Any]]:
    make, options = draws.choice([(n_quads, {}), (json_lines, {}), (csv_rows, {"mapping": MAPPING})])
    form = {n_quads: "nq", json_lines: "jsonl", csv_rows: "csv"}[make]
    return gzip.compress(make() * draws.choice([1, 1, 50]), mtime=0), {"format": form, **options}


KINDS: dict[str, tuple[str, Callable[[random.Random], tuple[bytes, dict[str, Any]]]]] = {
    "arrow": ("d.arrow", arrow_file),
    "stream": ("d.arrows", arrow_stream),
    "frame": ("the table", arrow_stream),
    "parquet": ("d.parquet", parquet_file),
    "jelly": ("d.jelly", jelly_file),
    "gzip": ("d.gz", gzip_file),
}


def damaged(data: bytes, draws: random.Random) -> bytes:
    """The data with a few bits, bytes, numbers or pieces changed."""
    changed = bytearray(data)
    for _ in range(draws.choice((1, 1, 1, 2, 4))):
        at = draws.randrange(max(1, len(changed)))
        match draws.randrange(8):
            case 0 | 1 | 2 if changed:
                changed[at] ^= 1 << draws.randrange(8)
            case 3 if changed:
                changed[at] = draws.choice((0, 255, 128, draws.randrange(256)))
            case 4:
                at -= at % 4
                changed[at : at + 4] = struct.pack("<q", draws.choice(_INTEGERS))[:4]
            case 5:
                at -= at % 8
                changed[at : at + 8] = struct.pack("<q", draws.choice(_INTEGERS))
            case 6:
                size = draws.choice((1, 4, 8, 64))
                piece = bytes(changed[at : at + size])
                changed[at : at + draws.choice((0, size))] = piece * draws.choice((0, 2))
            case _ if draws.random() < 0.2:
                del changed[at:]
    return bytes(changed)


def read(kind: str, seed: int, folder: Path) -> str:
    """How the reading of one damaged file ends: "read", or "refused" with an error of ours; other errors are raised."""
    draws = random.Random(f"{kind} {seed}")
    name, make = KINDS[kind]
    data, options = make(draws)
    data = damaged(data, draws)
    options |= {"on_error": draws.choice(["stop", "skip"])}
    source: Any = folder / name
    try:
        if kind == "frame":
            try:
                source = ipc.open_stream(data)
            except (pa.ArrowException, OSError, ValueError):
                return "not opened"
        elif draws.random() < 0.8:
            source.write_bytes(data)
        else:
            source, name = io.BytesIO(data), "<input>"
            options.setdefault("format", "arrow" if kind == "stream" else kind)
        with read_stream(source, **options) as stream:
            check_events(stream)
    except StreamError as error:
        text = str(error)
        assert name in text, f"an error says where it is: {text}"
        assert "\n  " in text, f"an error says what to do: {text}"
        return "refused"
    return "read"


def main(first: int, count: int, kinds: Sequence[str]) -> None:
    faulthandler.enable()
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for seed in range(first, first + count):
                print(kind, seed, flush=True)
                try:
                    ends[f"{kind} {read(kind, seed, Path(folder))}"] += 1
                except Exception as error:
                    ends[f"{kind} {seed}: {type(error).__name__}: {str(error)[:300]}"] += 1
    for end, number in sorted(ends.items()):
        print("=", number, end.replace("\n", " "))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
