"""Whole runs from file to file, and reading and writing alone: events a second by format, on one core.

    python -m benchmarks.files [--events 200000] [--repeat 3] [--json FILE]
    python -m benchmarks.files --spellings [--sizes 4,40] [--only TEXT] [--json FILE]

The events are those of W2 (prices of fifty companies), one triple each, written once in each format.  For each format
the same program reads the file, matches, and writes a file; the answers are compared with those of the first format.
``read`` is the reader alone (in columns and row by row), ``write`` the sink alone with the matches of the run, the rest
of ``run`` is matching.  Processor time, the best of the repeats.

With ``--spellings``: reading alone, every spelling of ``benchmarks.spellings`` in several sizes (in MB).  The events of
the smallest are compared with those of the row reader.  The bar for a spelling is 300,000 triples/s, or a third
of the first spelling of its format, whichever is less; ``growth`` is the time per byte at the largest size, relative to
the smallest, and ``to bare`` the time at the smallest, relative to a bare parse by pyoxigraph, ``json`` or ``csv``, of
which it should take 1.2 times at most.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from csv import reader
from dataclasses import asdict, dataclass
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph
from etalis_rules.terms import parts
from pyarrow import parquet

from benchmarks.spellings import SPELLINGS, Spelling
from benchmarks.workloads import w2_stock
from etalis_py import Engine, compile
from etalis_py.cli.outputs import Outlet
from etalis_py.engine.inputs import columns_of
from etalis_py.events import Event
from etalis_py.kernel.matches import Matches
from etalis_py.streams import Stream, open_sink, read_stream, render_datetime
from etalis_py.streams.columns.flat_form import events_of

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
MAPPING = {
    "subject": "<{company}>",
    "predicate": "<urn:p:price>",
    "object": '"{price}"^^xsd:double',
    "time": "{time}",
    "time_unit": "us",
}


@dataclass(frozen=True, slots=True)
class Result:
    format: str
    sink: str
    megabytes: float
    events: int
    matches: int
    run: float
    rows: float
    read: float
    write: float

    @property
    def rate(self) -> float:
        return self.events / self.run


def nquads(events: list[Event], path: Path) -> None:
    date = "http://www.w3.org/2001/XMLSchema#dateTime"
    with path.open("w") as file:
        for number, event in enumerate(events):
            ((s, p, o),) = event.triples
            graph = f"<urn:g:{number}>"
            file.write(f'{s} {p} {o} {graph} .\n{graph} {PROV} "{render_datetime(event.end)}"^^<{date}> .\n')


def json_lines(events: list[Event], path: Path) -> None:
    with path.open("w") as file:
        for event in events:
            text = "".join(f"{s} {p} {o} .\n" for s, p, o in event.triples)
            file.write(json.dumps({"time": event.end, "triples": text}) + "\n")


def columns(events: list[Event]) -> dict[str, list[Any]]:
    triples = [event.triples[0] for event in events]
    return {
        "time": [event.end for event in events],
        "company": [s[1:-1] for s, _, _ in triples],
        "price": [parts(o)[0] for _, _, o in triples],
    }


def csv(events: list[Event], path: Path) -> None:
    table = columns(events)
    with path.open("w") as file:
        file.write(",".join(table) + "\n")
        file.writelines(f"{t},{c},{p}\n" for t, c, p in zip(*table.values(), strict=True))


def plain_json(events: list[Event], path: Path) -> None:
    table = columns(events)
    with path.open("w") as file:
        file.writelines(
            json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in zip(*table.values(), strict=True)
        )


def flat_parquet(events: list[Event], path: Path) -> None:
    s, p, o = zip(*(event.triples[0] for event in events), strict=True)
    end = [event.end for event in events]
    parquet.write_table(pa.table({"end": end, "start": end, "s": s, "p": p, "o": o}), path)


FORMATS: dict[str, tuple[str, Callable[[list[Event], Path], None], str, dict[str, Any]]] = {
    "N-Quads": ("nq", nquads, "jsonl", {}),
    "JSON lines": ("jsonl", json_lines, "jsonl", {"time_unit": "us"}),
    "plain JSON, mapping": ("jsonl", plain_json, "jsonl", {"mapping": MAPPING}),
    "CSV, mapping": ("csv", csv, "csv", {"mapping": MAPPING}),
    "Parquet, flat": ("parquet", flat_parquet, "parquet", {}),
}


def processor(action: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The least processor time of some repeats, and the result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        begun = time.process_time()
        result = action()
        best = min(best, time.process_time() - begun)
    return best, result


def measure(name: str, events: list[Event], folder: Path, repeat: int) -> tuple[Result, list[str]]:
    ending, write, sink, options = FORMATS[name]
    path, out = folder / f"events.{ending}", folder / f"matches.{sink}"
    write(events, path)
    program = compile(w2_stock.QUERY, policy="recent")
    reports: list[Matches] = []

    def read(large: bool) -> int:
        stream = read_stream(path, **options)
        for _ in stream.chunks(large=large):
            pass
        return stream.counters.events

    def write_all(steps: list[Matches]) -> None:
        variables = {query: list(output.variables) for query, output in zip(program.queries, outputs, strict=True)}
        first = next(iter(variables.values()))
        with Outlet(open_sink(sink, out, variables=first, columns=variables)) as outlet:
            for matches in steps:
                outlet.write_all(matches)

    def run() -> None:
        engine = Engine(program)
        reports.clear()
        with read_stream(path, **options) as stream:
            for chunk in stream.chunks(large=True):
                reports.append(engine.push_all(chunk if isinstance(chunk, list) else columns_of(chunk)))
        reports.append(engine.close())
        write_all(reports)

    outputs = Engine(program).outputs
    read(True)  # compiles anything not compiled yet
    seconds, _ = processor(run, repeat)
    ids = [match.id for matches in reports for match in matches]
    in_columns, count = processor(lambda: read(True), repeat)
    by_rows, counted = processor(lambda: read(False), 1)
    if not count == counted == len(events):
        raise SystemExit(f"{name}: read {count} and {counted} events, expected {len(events)}")
    writing, _ = processor(lambda: write_all(reports), repeat)
    megabytes = path.stat().st_size / 1e6
    return Result(name, sink, megabytes, len(events), len(ids), seconds, by_rows, in_columns, writing), ids


def read_spelling(spelling: Spelling, size: float, repeat: int, *, checked: bool) -> tuple[int, float]:
    """How many triples a text of this size has, and the seconds to read it."""
    text, _ = spelling.text(int(size * 1e6))
    data = text.encode()

    def stream() -> Stream:
        return read_stream(BytesIO(data), format=spelling.format, **spelling.options)

    def read() -> int:
        opened = stream()
        for _ in opened.chunks(large=True):
            pass
        return opened.counters.triples

    seconds, count = processor(read, repeat)
    if checked:
        columns = (events_of(c) if isinstance(c, pa.RecordBatch) else c for c in stream().chunks(large=True))
        for one, other in zip(chain.from_iterable(columns), stream(), strict=True):
            if one != other:
                raise SystemExit(f"{spelling.format}, {spelling.name}: columns read {one}, rows {other}")
    return count, seconds


def bare(spelling: Spelling, size: float, repeat: int) -> float:
    """The seconds to parse the same text by the usual library, which makes no events of it."""
    data = spelling.text(int(size * 1e6))[0].encode()

    def parse() -> int:
        match spelling.format:
            case "nq":
                return sum(1 for _ in pyoxigraph.parse(data, format=pyoxigraph.RdfFormat.N_QUADS))
            case "jsonl":
                return sum(1 for line in data.splitlines() if line.strip() and json.loads(line))
            case "csv":
                return sum(1 for _ in reader(TextIOWrapper(BytesIO(data), encoding="utf-8", newline="")))
        raise ValueError(f"no library for {spelling.format}")

    return processor(parse, repeat)[0]


def read_spellings(sizes: list[float], only: str, repeat: int, json_file: str | None) -> None:
    """Print the table of spellings."""
    chosen = [one for one in SPELLINGS if only in f"{one.format} {one.name}"]
    heads = "".join(f"{f'{size:g} MB':>12}" for size in sizes)
    print(f"{'format':<8}{'spelling':<30}{heads}{'growth':>8}{'to bare':>9}")
    fastest: dict[str, float] = {}
    results = []
    for spelling in chosen:
        read_spelling(spelling, 0.1, 1, checked=False)  # compiles anything not compiled yet
        rates, costs = [], []
        for size in sizes:
            count, seconds = read_spelling(spelling, size, repeat, checked=size == sizes[0])
            rates.append(count / seconds)
            costs.append(seconds / size)
        to_bare = costs[0] * sizes[0] / bare(spelling, sizes[0], repeat)
        bar = min(300_000, fastest.setdefault(spelling.format, rates[0]) / 3)
        below = "" if min(rates) >= bar else "  below the bar"
        shown = "".join(f"{rate:>12,.0f}" for rate in rates)
        print(
            f"{spelling.format:<8}{spelling.name:<30}{shown}{costs[-1] / costs[0]:>8.2f}{to_bare:>9.2f}{below}",
            flush=True,
        )
        results.append({"format": spelling.format, "spelling": spelling.name, "rates": rates, "to bare": to_bare})
    if json_file:
        record = {"benchmark": "spellings", "python": sys.version.split()[0], "sizes": sizes, "results": results}
        Path(json_file).write_text(json.dumps(record) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="whole runs from file to file, by format")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--spellings", action="store_true", help="read every spelling of every text format")
    parser.add_argument("--sizes", default="4,40", help="sizes for --spellings in MB, the smallest first")
    parser.add_argument("--only", default="", help="the spellings whose format and name have this text")
    options = parser.parse_args(arguments)
    warnings.simplefilter("error")
    if options.spellings:
        read_spellings([float(size) for size in options.sizes.split(",")], options.only, options.repeat, options.json)
        return
    events = w2_stock.events(options.events)
    results: list[Result] = []
    expected: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            result, ids = measure(name, events, Path(folder), options.repeat)
            if expected and ids != expected:
                raise SystemExit(f"{name}: {len(ids)} matches, which are not those of the first format")
            expected = ids
            results.append(result)
    head = ("format", "to", "MB", "events/s", "read/s", "by rows/s", "read", "match", "write")
    print("{:<22}{:<9}{:>7}{:>12}{:>12}{:>12}{:>7}{:>7}{:>7}".format(*head))
    for r in results:
        read, write = r.read / r.run, r.write / r.run
        print(
            f"{r.format:<22}{r.sink:<9}{r.megabytes:>7.1f}{r.rate:>12,.0f}{r.events / r.read:>12,.0f}"
            f"{r.events / r.rows:>12,.0f}{read:>7.0%}{1 - read - write:>7.0%}{write:>7.0%}"
        )
    print(f"{results[0].matches:,} matches each, with the same ids")
    record = {"benchmark": "files", "python": sys.version.split()[0], "results": [asdict(r) for r in results]}
    if options.json:
        Path(options.json).write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
