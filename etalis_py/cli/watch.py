"""``etalis run --watch``: runs again whenever one of its files has changed."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from glob import glob
from pathlib import Path

from etalis_py.cli.errors import UsageError, guarded
from etalis_py.cli.sources import is_live, mappings_of, split_name

LOOK_EVERY = 0.2  # seconds; to a person this is immediate, and looking costs almost nothing

Stamp = tuple[int, int]


ON_SPARK = (
    "--watch is for the local engine, because Spark begins when all events are there: leave --engine spark out; from "
    "Python, etalis_py.spark.matches(…, queries=…) takes queries that come and go while a stream runs"
)


def check_watch(options: Namespace) -> None:
    """Refuse options with which a run cannot be repeated."""
    if options.engine == "spark":
        raise UsageError(ON_SPARK)
    if options.follow:
        raise UsageError("--watch runs again over files that are complete, and --follow is for those that grow")
    for text in options.stream:
        if text == "-" or is_live(split_name(text)[1]):
            raise UsageError(f"--watch runs again over files, and --stream {text} is read once only: leave one out")
    if "-" in options.query:
        raise UsageError("--watch reads a query again, and standard input can be read once only: name a file")


def files_of(options: Namespace) -> list[Path]:
    """The files of a run: its queries, streams, mappings and background, as they are now."""
    named = [split_name(text) for text in options.stream]
    mappings = mappings_of(options, [name for name, _ in named])
    patterns = [*options.query, *(source for _, source in named), *options.background, *mappings.values()]
    patterns += [text.rpartition("=")[2] for text in options.background_mapping]
    if options.queries is not None:
        patterns.append(f"{options.queries}/*.rq")
    patterns += [name for name in (options.context, options.background_stream) if name is not None]
    return [Path(name) for pattern in patterns for name in (glob(pattern) or [pattern])]


def watch(
    run: Callable[[], int],
    files: Callable[[], Iterable[Path]],
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Run, and run again after each change of a file, until Ctrl-C."""
    while True:
        before = stamps(files())
        guarded(run)
        print(f"etalis: watching {', '.join(map(str, before))} (Ctrl-C stops)", file=sys.stderr)
        try:
            while (after := stamps(files())) == before:
                wait(LOOK_EVERY)
        except KeyboardInterrupt:
            return 0
        changed = [str(path) for path in {**before, **after} if before.get(path) != after.get(path)]
        print(f"\netalis: {', '.join(changed)} changed", file=sys.stderr)


def stamps(files: Iterable[Path]) -> dict[Path, Stamp]:
    """The modification time and size of each file; an editor may have removed one for a moment."""
    stamped = {}
    for path in files:
        try:
            status = path.stat()
        except OSError:
            stamped[path] = (0, -1)
        else:
            stamped[path] = (status.st_mtime_ns, status.st_size)
    return stamped
