"""The input of every engine, and how far the engines give it the same meaning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from etalis_rules.terms import parts

from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.common import UNIT
from benchmarks.workloads.definition import Workload

JAVA = ("esper", "siddhi", "flink")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A workload with the engines that can express it.

    ``same`` are those that must have as many matches as ours; ``otherwise`` says what the others mean.  ``most`` bounds
    the events of an engine that would take many minutes for a million.
    """

    name: str
    engines: tuple[str, ...]
    same: tuple[str, ...]
    otherwise: str = ""
    most: tuple[tuple[str, int], ...] = ()

    @property
    def workload(self) -> Workload:
        return next(w for w in WORKLOADS if w.name == self.name)


FIRST = "Esper, Siddhi and Flink go on from each event to the first that fits; ours pairs the latest and uses it up"

COMPARISONS = (
    Comparison("W1", JAVA, JAVA),
    Comparison("W1r", ("esper", "flink", "duckdb"), ("esper", "flink", "duckdb")),
    Comparison("W2", JAVA, (), FIRST, most=(("flink", 100_000),)),
    Comparison("W2u", ("esper", "flink"), ("esper", "flink"), most=(("flink", 20_000),)),
    Comparison("W4", JAVA, (), FIRST, most=(("flink", 50_000),)),
    Comparison("W4n", JAVA, JAVA, most=(("flink", 50_000),)),
    Comparison("W5", ("esper", "siddhi", "duckdb", "polars"), ("esper", "siddhi", "duckdb", "polars")),
    Comparison("W10", ("esper",), ("esper",)),
    Comparison("W10n", ("esper",), ("esper",)),
    Comparison("W11", ("esper",), ("esper",)),
    Comparison(
        "W5t",
        ("esper", "siddhi", "duckdb", "polars"),
        ("duckdb", "polars"),
        "Esper and Siddhi also report when a value leaves the window",
    ),
)


def expected(workload: Workload, size: int) -> int:
    """The number of matches by the plain loop of the workload."""
    return len(workload.loop()(workload.events(size)))


def dump(workload: Workload, size: int, folder: Path) -> Path:
    """The events as lines of ``milliseconds,subject,predicate,value``, records of all values; made once for a size."""
    path = folder / f"{workload.name}-{size}.csv"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as out:
        for start, _, triples, _, _ in workload.events(size):
            told = [triples[0][0], *(o for _, _, o in triples)] if len(triples) > 1 else triples[0]
            out.write(",".join([str(start * 1000 // UNIT), *map(_word, told)]) + "\n")
    unfinished.rename(path)
    return path


def _word(term: str) -> str:
    """A term as other engines hold it: the last part of an IRI, the text of a literal."""
    return term[1:-1].rsplit(":", 1)[-1] if term.startswith("<") else parts(term)[0]
