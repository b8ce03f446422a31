"""Records from file to file: rows a second by format, beside those of W1, whose rows are single triples.

    python -m benchmarks.record_files [--events 200000] [--repeat 3]

W10 and W10n read tables of six columns and a time.  Each program reads a file by a mapping, matches, and writes a file
of the same format; the answers are compared with those of the hand-written loop.  The bar: a row of a record costs at
most 1.5 times a row of W1.  Processor time, the best of the repeats; the first run compiles the kernels and is not
counted.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from etalis_rules.terms import is_literal, parts
from pyarrow import parquet

from benchmarks.harness import answers_of
from benchmarks.workloads import w1_pairs, w10_records
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, compile
from etalis_py.cli.outputs import Outlet
from etalis_py.engine.inputs import in_columns
from etalis_py.events import Event
from etalis_py.kernel.matches import Matches
from etalis_py.streams import open_sink, read_stream

FORMATS = ("parquet", "csv", "jsonl")
BAR = 1.5
COLUMNS = ("subject", *(p[len("<urn:p:") : -1] for _, p, _ in w10_records.events(1)[0].triples))

Table = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Source:
    """A workload whose events are rows, and the mapping that makes them of these."""

    workload: Workload
    mapping: dict[str, Any]

    def table(self, events: Sequence[Event]) -> Table:
        """The events as rows."""
        rows: Table = {"time": [event.end for event in events]}
        rows["subject"] = [event.triples[0][0][1:-1] for event in events]
        if self.workload is w1_pairs.WORKLOAD:
            rows["kind"] = [event.triples[0][1][1:-1] for event in events]
            return rows | {"n": [_cell(event.triples[0][2]) for event in events]}
        return rows | {name: [_cell(e.triples[k][2]) for e in events] for k, name in enumerate(COLUMNS[1:])}


def _cell(term: str) -> Any:
    return int(parts(term)[0]) if is_literal(term) else term[1:-1]


TIME = {"time": "{time}", "time_unit": "us"}
TRIPLE = {"subject": "<{subject}>", "predicate": "<{kind}>", "object": '"{n}"^^xsd:integer'}
_NUMBERS = ("amount", "items")
RECORD = [
    {
        "subject": "<{subject}>",
        "predicate": f"<urn:p:{name}>",
        "object": f'"{{{name}}}"^^xsd:integer' if name in _NUMBERS else f"<{{{name}}}>",
    }
    for name in COLUMNS[1:]
]
SOURCES = (
    Source(w1_pairs.WORKLOAD, TIME | TRIPLE),
    *(Source(workload, TIME | {"triple": RECORD}) for workload in w10_records.WORKLOADS),
)


def write(table: Table, path: Path) -> None:
    """The table as a file; the ending says in which format."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(table), path)
        return
    rows = zip(*table.values(), strict=True)
    with path.open("w", newline="") as file:
        if path.suffix == ".csv":
            csv.writer(file, lineterminator="\n").writerows([list(table), *rows])
        else:
            file.writelines(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows)


def run(source: Source, path: Path) -> tuple[float, float, list[Matches]]:
    """The seconds from file to file, those of reading alone, and the matches."""
    engine = Engine(compile(source.workload.query), policy=source.workload.policy, executor="columns")
    variables = {output.query: list(output.variables) for output in engine.outputs}
    found: list[Matches] = []
    gc.collect()
    begun, reading = time.process_time(), 0.0
    with read_stream(path, mapping=source.mapping) as stream:
        chunks = stream.chunks(large=True, as_records=engine.reads_records)
        while True:
            before = time.process_time()
            chunk = next(chunks, None)
            reading += time.process_time() - before
            if chunk is None:
                break
            found.append(engine.push_all(chunk if isinstance(chunk, list) else in_columns(chunk)))
    found.append(engine.close())
    out, kind = path.with_name(f"matches{path.suffix}"), path.suffix[1:]
    with Outlet(open_sink(kind, out, variables=next(iter(variables.values())), columns=variables)) as outlet:
        for matches in found:
            outlet.write_all(matches)
    return time.process_time() - begun, reading, found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_files", description="records, file to file")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    wrong = 0
    print(f"{'format':<9}{'workload':<9}{'rows/s':>10}{'× W1':>7}{'reading':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for format in FORMATS:
            first = 0.0
            for source in SOURCES:
                workload = source.workload
                events = workload.events(options.events)
                path = Path(folder, f"{workload.name}.{format}")
                write(source.table(events), path)
                *_, found = run(source, path)
                feed = workload.loop()
                if sorted(answers_of(workload, chain.from_iterable(found))) != sorted(feed(events) + feed(())):
                    print(f"{format}, {workload.name}: other answers than those of the loop", file=sys.stderr)
                    wrong += 1
                del found
                seconds, reading, _ = min(
                    (run(source, path) for _ in range(options.repeat)), key=lambda taken: taken[0]
                )
                first = first or seconds
                above = "  above the bar" if seconds > BAR * first else ""
                rate, ratio = options.events / seconds, seconds / first
                print(f"{format:<9}{workload.name:<9}{rate:>10,.0f}{ratio:>7.2f}{reading / seconds:>9.0%}{above}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
