"""Where the matches of a run go: a sink, and what it has no place for."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from etalis_rules import program as ir

from etalis_py.cli.errors import UsageError
from etalis_py.cli.sources import is_container
from etalis_py.engine.matches import Match
from etalis_py.streams import open_sink

TOKEN = "ETALIS_TOKEN"


class Outlet:
    """Takes matches: those of the queries that have a place in the format go to the sink, the others are counted."""

    def __init__(self, sink: Any, skipped: Sequence[str] = (), *, buffered: bool = True) -> None:
        self._sink, self._buffered = sink, buffered
        self._skipped = frozenset(skipped)

    def write(self, match: Match) -> None:
        if match.query not in self._skipped and match.triples != ():
            self._sink.write(match)

    def flush(self) -> None:
        if self._buffered:
            self._sink.flush()

    def __enter__(self) -> Outlet:
        self._sink.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._sink.__exit__(*error)


def open_outlet(options: Namespace, outputs: Sequence[ir.Output], prefixes: Mapping[str, str], explain: bool) -> Outlet:
    """The outlet that the options ask for; what cannot be written is said before the run."""
    if is_container(options.sink):
        if options.format != "jsonl":
            raise UsageError(f"a stream container takes graphs: leave --format {options.format} out")
        if asked := [output.query for output in outputs if output.form == "ask"]:
            raise UsageError(f"a stream container has no place for the answer of {', '.join(asked)}: write jsonl")
        from etalis_py.containers.client import ContainerSink  # takes a while to import

        return Outlet(ContainerSink(options.sink, token=os.environ.get(TOKEN)), buffered=False)
    if explain and options.format not in ("jsonl", "trig"):
        raise UsageError(f"--explain-matches has no place in {options.format}: write jsonl or trig")
    skipped: list[str] = []
    variables: list[str] | None = None
    if options.format in ("csv", "json"):
        rows = [output for output in outputs if output.form in ("select", "ask")]
        skipped = [output.query for output in outputs if output not in rows]
        if not rows:
            raise UsageError(f"--format {options.format} has no place for triples: write jsonl or trig")
        if skipped:
            names = ", ".join(skipped)
            print(f"etalis: {names}: constructed triples have no place in {options.format}, left out", file=sys.stderr)
        asked = [output.query for output in rows if output.form == "ask"]
        if asked and len(rows) > (1 if options.format == "json" else len(asked)):
            raise UsageError(f"the answer of {asked[0]} has no place beside rows in {options.format}: write jsonl")
        if not asked:
            variables = list(dict.fromkeys(v for output in rows for v in output.variables))
    elif options.format == "table" and len(outputs) == 1 and outputs[0].form == "select":
        variables = list(outputs[0].variables)
    sink = open_sink(options.format, options.sink, variables=variables, prefixes=prefixes, explain=explain)
    return Outlet(sink, skipped)
