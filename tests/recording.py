"""What the engine answers on many programs, written down, to compare with what it answers after a change of structure.

    python -m tests.recording write FILE [--examples 60]
    python -m tests.recording compare FILE

For every program that the strategies of the oracle draw (from a fixed seed), and for every query that ships with the
package or stands in its documentation, a line holds: what ``explain`` and ``check`` print, the generated Python, and,
in rows and in columns, the matches of every call, the counters, the dead letters, the warnings and a snapshot taken
half-way.  ``compare`` prints the first programs that differ, and in what.  The names of modules do not appear, so code
can move between two recordings; whatever is public stays as it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from etalis_compiler.diagnostics import QueryError
from hypothesis import HealthCheck, Phase, given, settings

from etalis_py import Engine, Event, LimitExceeded, compile
from tests.draws import take_no_constants_of_modules
from tests.engine.judge import knowledge_of, program_of
from tests.oracle import strategies
from tests.oracle.printing import program as printed
from tests.oracle.strategies import Case

ROOT = Path(__file__).parents[1]
GROUPS = (
    *("core", "negation", "policies", "aggregates", "recursion", "stratified", "several_streams", "background"),
    *("paths", "relations", "timed", "timed_among_all", "timed_policies", "timed_background", "timed_streams"),
    *("timed_aggregates", "timed_rules", "timed_stratified", "policies_and_negation", "nested", "open_sides"),
    *("optional_parts", "one_after_another", "ended_runs", "after_the_start"),
)
_PAGES = ("README.md", "docs/*.md", "rules/etalis_rules/programs/**/*.rq")
_SHOWN = 5


def drawn(group: str, examples: int) -> list[Case]:
    """The first so many cases of a strategy, the same ones in every run."""
    cases: list[Case] = []

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(getattr(strategies, group)())
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    return cases


def texts() -> Iterator[tuple[str, str]]:
    """Each query that ships or is documented, with its place."""
    for pattern in _PAGES:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text()
            if path.suffix == ".rq":
                yield path.name, text
                continue
            for number, block in enumerate(re.findall(r"^```sparql[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
                yield f"{path.name} block {number}", block


def short(value: object) -> str:
    """A hash, so that the file stays small."""
    text = value if isinstance(value, bytes) else json.dumps(value, default=str, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=9).hexdigest()


def answers(case: Case, executor: Any) -> dict[str, str]:
    """What an engine says in each call, and its state half-way."""
    engine = Engine(
        program_of(case.program), policy=case.policy, background=knowledge_of(case.background), executor=executor
    )
    half = len(case.events) // 2
    pieces: Sequence[Sequence[Event]] = [[event] for event in case.events[:half]]
    said = [[match.to_dict() for match in engine.push_all(piece)] for piece in (*pieces, case.events[half:])]
    snapshot = engine.snapshot()
    said.append([match.to_dict() for match in engine.close()])
    return {
        f"matches in {executor}": short(said),
        f"counters in {executor}": short(str(engine.counters)),
        f"dead letters in {executor}": short(engine.dead_letters),
        f"snapshot in {executor}": short(snapshot),
        f"generated code in {executor}": short(engine.source),
        f"warnings in {executor}": short(engine.warnings),
    }


def of_case(case: Case) -> dict[str, str]:
    """Everything about one program and its stream; a refusal is what is said of it."""
    try:
        program = program_of(case.program)
        record = {"explain": short(str(program.explain())), "check": short(str(program.check()))}
        for executor in ("rows", "columns"):
            record |= answers(case, executor)
    except (QueryError, LimitExceeded) as error:
        return {"error": short(f"{type(error).__name__}: {error}")}
    return record


def of_text(text: str) -> dict[str, str]:
    """How a query is explained, and the code that is generated for it."""
    try:
        program = compile(text + "\n")
        record = {"explain": short(str(program.explain())), "check": short(str(program.check()))}
        return {**record, "generated code": short(Engine(program).source)}
    except (QueryError, OSError) as error:
        return {"error": short(str(error))}


def records(examples: int) -> Iterator[dict[str, Any]]:
    """All records, in a fixed order."""
    for group in GROUPS:
        for number, case in enumerate(drawn(group, examples)):
            yield {"name": f"{group} {number}", "program": printed(case.program), **of_case(case)}
        print(f"{group}: {examples}", file=sys.stderr)
    for name, text in texts():
        yield {"name": name, "program": text, **of_text(text)}


def compare(recorded: Sequence[dict[str, Any]]) -> int:
    """Print what differs from a recording; returns the number of programs that do."""
    head, *old = recorded
    different = 0
    for before, now in zip(old, records(head["examples"]), strict=True):
        if before == now:
            continue
        different += 1
        if different <= _SHOWN:
            keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
            print(f"--- {now['name']}: other {', '.join(keys)}\n{now['program']}")
    print(f"{len(old)} programs, {different} differ")
    return different


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":  # snapshots hold sets in the order of their hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.recording", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.recording", description="compare answers across a change")
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--examples", type=int, default=60, help="programs of each strategy (default 60)")
    options = parser.parse_args()
    take_no_constants_of_modules()  # a module that is new would change what a seed draws
    if options.action == "compare":
        return 1 if compare([json.loads(line) for line in options.file.read_text().splitlines()]) else 0
    lines = [json.dumps(record) for record in ({"examples": options.examples}, *records(options.examples))]
    options.file.write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} programs recorded in {options.file}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
