"""Drawn programs over a session of one's own: ``python -m tests.spark.drawn classic`` or ``connect``.

Sixty programs, the same in each kind of session and version of PySpark, ten at a time over the events of all ten: in a
batch, and as a stream that ends and goes on from its checkpoint.  Each of them finds something.  Prints how many
matches there were and a hash of their ids, which is the same everywhere; an id that is not the embedded engine's ends
the process with an error.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from etalis_py import Event, Program, compile
from etalis_py.spark import EVENTS, events_from_events, matches
from etalis_py.spark.versions import CONNECT_STREAMS
from tests.draws import load_profile
from tests.oracle import printing
from tests.oracle.strategies import Case
from tests.spark.core import THE_END, session_of
from tests.spark.drawing import DRAWN, is_accepted
from tests.spark.programs import SECOND, embedded, ids_by_program, write_batches

TOGETHER = 10
Ids = dict[str, list[str]]


def drawn_cases(count: int, first: int = 1) -> list[Case]:
    """Cases whose program is accepted and finds something in the case's own events; ``first`` is the seed."""
    cases: dict[str, Case] = {}

    @seed(first)
    @settings(max_examples=20 * count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(DRAWN.filter(is_accepted))
    def draw(case: Case) -> None:
        text = printing.program(case.program)
        if len(cases) < count and text not in cases and embedded(text, case.events, policy=case.policy):
            cases[text] = case

    draw()
    assert len(cases) == count
    return list(cases.values())


def after_the_first_watermark(events: Sequence[Event]) -> list[Event]:
    """The watermark of a stream begins at 1970: what ends there is over before the first batch."""
    return [e._replace(start=e.start + 60 * SECOND, end=e.end + 60 * SECOND) for e in events]


def of_a_batch(spark: SparkSession, programs: dict[str, Program], events: Sequence[Event]) -> Ids:
    return ids_by_program(matches(programs, events_from_events(spark, events), shards=3).collect())


def of_a_stream(spark: SparkSession, programs: dict[str, Program], events: Sequence[Event], folder: Path) -> Ids:
    """It ends in the middle, and goes on."""
    middle = len(events) // 2
    end = [THE_END[0]._replace(start=120 * SECOND, end=120 * SECOND)]
    for first, batches in ((0, [events[:middle]]), (1, [events[middle:], end])):
        write_batches(folder / "in", batches, first)
        rows = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        found = matches(programs, rows, shards=2, lateness=0)
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return ids_by_program(spark.read.schema(found.schema).parquet(str(folder / "out")).collect())


def compared(spark: SparkSession, cases: Sequence[Case], streamed: bool) -> Ids:
    """The ids of all programs, which the embedded engine found, too."""
    events = sorted((e for case in cases for e in case.events), key=lambda e: e.end)
    events = after_the_first_watermark(events)
    texts = {str(n): printing.program(case.program) for n, case in enumerate(cases)}
    policies = {str(n): case.policy for n, case in enumerate(cases)}
    programs = {name: compile(text + "\n", policy=policies[name]) for name, text in texts.items()}
    wanted = {name: embedded(text, events, policy=policies[name]) for name, text in texts.items()}
    wanted = {name: ids for name, ids in wanted.items() if ids}
    shuffled = random.Random(1).sample(events, len(events))
    assert of_a_batch(spark, programs, shuffled) == wanted
    if streamed:
        with TemporaryDirectory() as folder:
            assert of_a_stream(spark, programs, events, Path(folder)) == wanted
    return wanted


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.drawn")
    parser.add_argument("kind", choices=("classic", "connect"))
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    load_profile("default")
    cases = drawn_cases(asked.programs, asked.seed)
    streamed = CONNECT_STREAMS or asked.kind == "classic"
    ids: list[str] = []
    with session_of(asked.kind) as spark:
        for first in range(0, len(cases), TOGETHER):
            of_some = compared(spark, cases[first : first + TOGETHER], streamed)
            ids += [f"{first + int(name)} {id}" for name, found in of_some.items() for id in found]
    digest = sha256("\n".join(sorted(ids)).encode()).hexdigest()[:16]
    how = "in a batch and as a stream that restarts" if streamed else "in a batch"
    print(f"{len(cases)} drawn programs, {len(ids)} matches {how}, the same ids as the embedded engine's: {digest}")


if __name__ == "__main__":
    main(sys.argv[1:])
