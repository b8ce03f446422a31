"""``--background-refresh D``: the tables of a database are read again while the run is at work.

What has changed in them holds from the first event that is later than all that had come when they were read.  None of
their rows belongs to the background that the run was given: they are updates of it, so a checkpoint has them, and
another process goes on with the rows that the goals have seen until it has read the tables itself.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from etalis_rules.calendar import SECOND

from etalis_py.cli.errors import Failure, UsageError
from etalis_py.cli.options import table_mappings
from etalis_py.engine.driver import Driver
from etalis_py.engine.engine import Engine
from etalis_py.events import Event, Triple
from etalis_py.events.errors import StreamError
from etalis_py.streams.postgres_table import is_postgres, name_of
from etalis_py.streams.reference import reference_table
from etalis_py.streams.updates import TimedUpdate

_APART = {
    "background_stream": "both would change the background",
    "revise": "an update in the past would depend on when the table was read",
    "timeline": "it draws the events alone",
}


class Refreshed:
    """State: when the tables are read next, the change that waits for an event, and whether they could not be read."""

    def __init__(
        self, tables: Mapping[str, Path], prefixes: Mapping[str, str], every: float, say: Callable[[str], None]
    ) -> None:
        self.tables, self._prefixes, self._every, self._say = tables, prefixes, every, say
        self._due = 0.0
        self._change: TimedUpdate | None = None
        self._began = self._failing = False

    def between(self, items: Iterator[Any], driver: Callable[[], Driver]) -> Iterator[Any]:
        """The items of a stream, and between them what has changed in the tables."""
        for item in items:
            run = driver()
            if time.monotonic() >= self._due:
                self._look(run)
                self._due = time.monotonic() + self._every
            if self._change is not None and self._holds_before(item, run):
                yield self._change
                self._change = None
            yield item

    def _holds_before(self, item: Any, run: Driver) -> bool:
        assert self._change is not None
        if run.newest is None:
            return True
        return isinstance(item, Event) and item.end - run.engine.lateness > self._change.time

    def _look(self, run: Driver) -> None:
        try:
            there = {t for name, mapping in self.tables.items() for t in _triples(name, mapping, self._prefixes)}
        except StreamError as error:
            if not (self._began or run.newest is not None):
                raise
            if not self._failing:
                self._say(
                    f"warning: {error.source}: {error.reason}; what was read before holds until it can be read again"
                )
            self._failing = True
            return
        if self._failing:
            self._say(f"{', '.join(map(name_of, self.tables))}: it can be read again")
        self._began, self._failing = True, False
        add, remove = _changes(run.engine, there)
        self._change = TimedUpdate(run.newest or 0, add, remove, "", "the tables", 0) if add or remove else None


def _changes(engine: Engine, there: set[Triple]) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
    """What the background lacks of the tables, and what it has of them that is there no more."""
    graphs = engine.knowledge.snapshot()["graphs"]
    held = set(map(tuple, graphs.get("", {"added": ()})["added"]))  # since the start: that is from the tables
    stated = engine.knowledge.stated()
    return tuple(sorted(t for t in there - held if t not in stated)), tuple(sorted(held - there))


def _triples(name: str, mapping: Path, prefixes: Mapping[str, str]) -> list[Triple]:
    triples = reference_table(name, mapping=mapping, prefixes=prefixes)
    if any(term.startswith("_:") for triple in triples for term in triple):
        raise Failure(
            f'{mapping}: a row that changes must be known again: give it a subject, such as subject = ":{{id}}"'
        )
    return triples


def refreshed_tables(options: Namespace, prefixes: Mapping[str, str]) -> Refreshed | None:
    """The tables of a run with ``--background-refresh``; ``prefixes`` are those of the queries."""
    if options.background_refresh is None:
        return None
    if not options.background_refresh:
        raise UsageError("--background-refresh 0s would read the tables before each event: give a time such as 60s")
    tables = [name for name in options.background if is_postgres(name)]
    if not tables:
        raise UsageError("--background-refresh is for tables of PostgreSQL: -b 'postgresql://user@host/db?table=NAME'")
    for option, reason in _APART.items():
        if getattr(options, option, None):
            raise UsageError(f"--background-refresh has no place beside --{option.replace('_', '-')}: {reason}")
    if options.engine != "local" or options.cores > 1 or options.executor == "both":
        raise UsageError("--background-refresh is for one engine here: leave --engine, --cores and --executor both out")
    mappings = table_mappings(options)
    for name in tables:
        if name not in mappings and "" not in mappings:
            raise UsageError(
                f"--background-refresh: {name_of(name)} needs --background-mapping FILE, because another draft may be "
                f"made when the rows have changed; etalis map --background '{name_of(name)}' drafts one"
            )
    read_by = {name: Path(mappings.get(name, mappings.get("", ""))) for name in tables}
    every = options.background_refresh / SECOND
    return Refreshed(read_by, prefixes, every, lambda text: print(f"etalis: {text}", file=sys.stderr))


__all__ = ["Refreshed", "refreshed_tables"]
