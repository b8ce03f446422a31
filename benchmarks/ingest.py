"""How fast streams are read: triples a second from each format into events, on one core.

    python benchmarks/ingest.py [--triples 300000] [--repeat 3] [--json FILE]

The data is made here, the same each time.  Each run is checked: the number of events, the number of triples, the last
time.  The best of the repeats counts, in processor time: nothing here waits, so on an idle machine it equals wall-clock
time, and on a busy one it excludes other programs.  The goal for N-Quads is 300,000 triples a second; the statements
with the times of the events are read too, but not counted as triples.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from etalis_py.events import Event
from etalis_py.streams import read_stream, render_datetime

XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://example.org/"
START = 1_577_836_800_000_000
STEP = 250_000


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    megabytes: float
    events: int
    triples: int
    seconds: float
    processor: float

    @property
    def rate(self) -> float:
        return self.triples / self.processor


def readings(events: int, width: int) -> Iterator[tuple[str, str, list[str]]]:
    """``(graph, time, triples)`` of synthetic readings with ``width`` triples each."""
    for number in range(events):
        subject = f"<{EX}sensor/{number % 997}>"
        triples = [
            f'{subject} <{EX}value{column}> "{number * 7 % 1000}"^^<{XSD}integer>' for column in range(width - 1)
        ]
        triples.append(f'{subject} <{EX}label> "reading {number} of a sensor"')
        yield f"<{EX}graph/{number}>", render_datetime(START + number * STEP), triples


def nquads(events: int, width: int, escapes: bool = False) -> bytes:
    lines = []
    for graph, moment, triples in readings(events, width):
        lines += [f"{triple} {graph} ." for triple in triples]
        if escapes:
            lines[-1] = lines[-1].replace("reading ", "r\\u0065ading ")
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{moment}"^^<{XSD}dateTime> .')
    return ("\n".join(lines) + "\n").encode()


def trig(events: int, width: int) -> bytes:
    parts = [f"PREFIX prov: <http://www.w3.org/ns/prov#>\nPREFIX xsd: <{XSD}>\n"]
    for graph, moment, triples in readings(events, width):
        parts.append(f'{graph} {{ {" . ".join(triples)} }}\n{graph} prov:generatedAtTime "{moment}"^^xsd:dateTime .\n')
    return "".join(parts).encode()


def messages(events: int, width: int) -> bytes:
    lines = ['VERSION "1.2-messages"']
    for graph, moment, triples in readings(events, width):
        lines += [f"{triple} {graph} ." for triple in triples]
        lines += [f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{moment}"^^<{XSD}dateTime> .', "MESSAGE"]
    return ("\n".join(lines) + "\n").encode()


def jsonl(events: int, width: int) -> bytes:
    rows = (
        json.dumps({"time": moment, "triples": "".join(f"{triple} .\n" for triple in triples)})
        for _, moment, triples in readings(events, width)
    )
    return ("\n".join(rows) + "\n").encode()


def csv(events: int, width: int) -> bytes:
    header = ",".join(("id", "time", *(f"c{column}" for column in range(width))))
    rows = (
        f"{n % 997},{render_datetime(START + n * STEP)},{','.join(str(n * 7 % 1000) for _ in range(width))}"
        for n in range(events)
    )
    return "\n".join((header, *rows, "")).encode()


def csv_mapping(width: int) -> dict[str, object]:
    return {
        "time": "{time}",
        "triple": [
            {"subject": f"<{EX}sensor/{{id}}>", "predicate": f"<{EX}value{c}>", "object": f"{{c{c}}}"}
            for c in range(width)
        ],
    }


def measure(workload: str, data: bytes, events: int, width: int, repeat: int, **options: object) -> Result:
    passed, best = 0.0, float("inf")
    for _ in range(repeat):
        begin, used = time.perf_counter(), time.process_time()
        count = triples = last = 0
        with read_stream(io.BytesIO(data), **options) as stream:  # type: ignore[arg-type]
            for item in stream:
                if type(item) is Event:
                    count += 1
                    triples += len(item.triples)
                    last = item.end
        wall, used = time.perf_counter() - begin, time.process_time() - used
        if used < best:
            passed, best = wall, used
        expected = (events, events * width, START + (events - 1) * STEP)
        if (count, triples, last) != expected:
            raise SystemExit(f"{workload}: read {(count, triples, last)}, expected {expected}")
    return Result(workload, len(data) / 1e6, events, events * width, passed, best)


def run(triples: int, repeat: int) -> list[Result]:
    results = []
    for width in (1, 4, 16):
        events = max(triples // width, 1)
        results.append(
            measure(f"nq, {width} triples an event", nquads(events, width), events, width, repeat, format="nq")
        )
    events, width = max(triples // 4, 1), 4
    cases: list[tuple[str, Callable[[int, int], bytes], dict[str, object]]] = [
        ("nq, gzip", lambda e, w: gzip.compress(nquads(e, w), 1), {"format": "nq"}),
        ("nq, a spelling to repair an event", lambda e, w: nquads(e, w, True), {"format": "nq"}),
        ("nq, message log", messages, {"format": "nq"}),
        ("trig", trig, {"format": "trig"}),
        ("jsonl", jsonl, {"format": "jsonl"}),
        ("csv", csv, {"format": "csv", "mapping": csv_mapping(4)}),
    ]
    results += [measure(f"{name}, 4", make(events, width), events, width, repeat, **o) for name, make, o in cases]
    return results


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="triples a second from each stream format into events")
    parser.add_argument("--triples", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="also write the results to this file")
    options = parser.parse_args(arguments)
    results = run(options.triples, options.repeat)
    print(f"{'workload':<40}{'MB':>8}{'events':>10}{'triples':>10}{'seconds':>9}{'processor':>10}{'triples/s':>12}")
    for r in results:
        print(
            f"{r.workload:<40}{r.megabytes:>8.1f}{r.events:>10,}{r.triples:>10,}{r.seconds:>9.3f}{r.processor:>10.3f}{r.rate:>12,.0f}"
        )
    record = [asdict(result) | {"triples_per_second": round(result.rate)} for result in results]
    text = json.dumps({"benchmark": "ingest", "python": sys.version.split()[0], "results": record})
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
