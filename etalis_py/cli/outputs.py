"""The outlet for the matches of a run: a sink, and a count of matches that its format cannot represent."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etalis_rules import program as ir

from etalis_py.cli.errors import UsageError
from etalis_py.cli.sources import is_container
from etalis_py.connectors.contracts import Sink as Durable
from etalis_py.connectors.files import DurableFile, DurableFolder
from etalis_py.connectors.held import HeldText
from etalis_py.connectors.immediate import Immediate
from etalis_py.connectors.registry import Request, is_sink
from etalis_py.connectors.registry import open_sink as connected
from etalis_py.events.errors import resolved, sink_error
from etalis_py.kernel.matches import Matches
from etalis_py.streams import Match, open_sink
from etalis_py.streams.outputs import StandardOutput
from etalis_py.streams.writer import SUFFIXES, text_format

MANY = 256  # least number of matches for columns; fewer are written one by one


class Outlet:
    """Takes matches: those of queries that the format can represent go to the sink, the others are counted."""

    def __init__(self, sink: Any, skipped: Sequence[str] = (), *, buffered: bool = True) -> None:
        self._sink, self._buffered = sink, buffered
        self._skipped = frozenset(skipped)

    def write(self, match: Match) -> None:
        if match.query not in self._skipped and match.triples != ():
            self._sink.write(match)

    def write_all(self, matches: Matches) -> None:
        """Write the matches of a step: in columns if they are many and the sink takes columns, else one by one."""
        for part in matches.parts():
            if not self._wrote_results(self._sink, part):
                for match in part:
                    self.write(match)

    def _wrote_results(self, sink: Any, matches: Matches) -> bool:
        """Write matches in columns, if they are many of one query and the sink takes them so."""
        write_results = getattr(sink, "write_results", None)
        several = len(matches.outputs) != 1
        if write_results is None or self._skipped or several or len(matches) < MANY:
            return False
        from etalis_py.kernel.tabular import results  # takes a while to import

        (one,) = results(matches)
        empty = one.triples is not None and not all(one.triples)
        return not empty and bool(write_results(one))

    def flush(self) -> None:
        if self._buffered:
            self._sink.flush()

    def __enter__(self) -> Outlet:
        self._sink.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._sink.__exit__(*error)


class DurableOutlet(Outlet):
    """An outlet whose sink takes part in checkpoints.  Without a checkpoint it commits at every flush."""

    def __init__(self, sink: Durable, skipped: Sequence[str] = ()) -> None:
        super().__init__(None, skipped)
        self.sink = sink
        self.kept = False  # a keeper decides when to commit, and closes the sink

    def write(self, match: Match) -> None:
        self.write_all([match])

    def write_all(self, matches: Iterable[Match]) -> None:
        for part in matches.parts() if isinstance(matches, Matches) else (matches,):
            if not (isinstance(part, Matches) and self._wrote_results(self.sink, part)):
                self.sink.write([m for m in part if m.query not in self._skipped and m.triples != ()])

    def flush(self) -> None:
        if not self.kept:
            self.sink.commit(self.sink.prepare())

    def __enter__(self) -> DurableOutlet:
        if not self.kept:
            self.sink.recover(None)
        return self

    def __exit__(self, *error: Any) -> None:
        if not self.kept:
            if error[0] is None:
                self.flush()
            self.sink.close()


def check_outputs(options: Namespace) -> None:
    """Every output has a name, and none is written over a file that the run reads, or over another output."""
    from etalis_py.cli.watch import files_of

    for option, kind in (("sink", "file"), ("dead_letters", "file"), ("timeline", "file"), ("checkpoint", "folder")):
        if getattr(options, option, None) == "":
            raise UsageError(f"--{option.replace('_', '-')} is empty: name a {kind}, or leave the option out")
    inputs = [path for path in files_of(options) if path.is_file()]
    outputs: dict[Path, str] = {}
    for option in ("sink", "dead_letters", "timeline"):
        name = getattr(options, option)
        if not name or name == "-" or "://" in name or is_sink(name):
            continue
        spelled, path = f"--{option.replace('_', '-')} {name}", resolved(name)
        if any(one.samefile(path) for one in inputs if path.exists()):
            raise UsageError(f"{spelled}: the run reads this file: name another one")
        if path.exists() and not path.is_file():
            continue  # a folder, a pipe or a device
        for other, earlier in outputs.items():
            if path == other or (path.exists() and other.exists() and path.samefile(other)):
                raise UsageError(f"{spelled}: {earlier} writes this file: name another one")
        outputs[path] = spelled


def open_outlet(
    options: Namespace,
    outputs: Sequence[ir.Output],
    prefixes: Mapping[str, str],
    explain: bool,
    revised: bool = False,
    lasting: bool = False,
    settled: Callable[[], tuple[int, int]] | None = None,
) -> Outlet:
    """The outlet that the options ask for; matches that cannot be written are reported before the run.

    ``revised``: matches may be taken back.  ``lasting``: the sink takes part in checkpoints.  ``settled``: what the
    engine says of reports that do not change any more.
    """
    if is_sink(options.sink) or ("://" in options.sink and not is_container(options.sink)):
        if options.format != "jsonl":
            raise UsageError(f"{options.sink} takes JSON: leave --format {options.format} out")
        return DurableOutlet(connected(options.sink, Request(_columns(outputs), revised)))
    if is_container(options.sink):
        if options.format != "jsonl":
            raise UsageError(f"a stream container takes graphs: leave --format {options.format} out")
        if asked := [output.query for output in outputs if output.form == "ask"]:
            raise UsageError(f"a stream container has no place for the answer of {', '.join(asked)}: write jsonl")
        from etalis_py.containers.client import ContainerSink  # takes a while to import
        from etalis_py.containers.origin import token_for

        container = ContainerSink(options.sink, token=token_for(options.sink), revised=revised, settled=settled)
        if lasting:
            from etalis_py.containers.durable_sink import DurableContainer  # takes a while to import

            return DurableOutlet(DurableContainer(container))
        return Outlet(container, buffered=False)
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
        outputs = rows
        if not asked:
            variables = list(dict.fromkeys(v for output in rows for v in output.variables))
    elif options.format == "table" and len(outputs) == 1 and outputs[0].form == "select":
        variables = list(outputs[0].variables)
    if options.format in ("parquet", "arrow"):
        graphs = [output.query for output in outputs if output.form in ("construct", "describe")]
        if graphs and len(graphs) < len(outputs):
            raise UsageError(
                f"the triples of {graphs[0]} have no place beside rows in one table: write sqlite or jsonl"
            )
    given: dict[str, Any] = {
        "variables": variables,
        "columns": _columns(outputs),
        "prefixes": prefixes,
        "explain": explain,
        "revised": revised,
    }
    if lasting and options.sink != "-":
        return DurableOutlet(_durable(options, given), skipped)
    if lasting and revised and options.format in ("jsonl", "csv", "trig"):
        return DurableOutlet(HeldText(text_format(options.format, **given), StandardOutput()), skipped)
    if lasting and options.format == "json":
        raise _no_resuming(options.format, given["revised"])
    sink = open_sink(options.format, options.sink, **given)
    return DurableOutlet(Immediate(sink), skipped) if lasting else Outlet(sink, skipped)


def _columns(outputs: Iterable[ir.Output]) -> dict[str, list[str]]:
    """The variables of each query, of which those that construct have none to show."""
    return {output.query: list(output.variables) if output.form == "select" else [] for output in outputs}


def _durable(options: Namespace, given: dict[str, Any]) -> Durable:
    """The file or the folder of a run with a checkpoint."""
    from etalis_py.durable.disk import Disk

    name, format = options.sink, options.format
    folder = name.endswith(("/", os.sep)) or os.path.isdir(name)
    if format == "sqlite" and not folder:
        from etalis_py.connectors.sqlite import Database  # takes a while to import

        return Database(name, given["columns"])
    if format in ("parquet", "arrow", "sqlite", "table") or (format == "json" and (not folder or given["revised"])):
        raise _no_resuming(format, given["revised"])
    texts = text_format(format, **given)
    if folder:
        return DurableFolder(name, SUFFIXES[format], texts, Disk())
    path = resolved(name)
    if path.exists() and not path.is_file():
        raise UsageError(f"--sink {name} is no file, so what is in it cannot be known: write to - instead")
    if not path.parent.is_dir():
        raise sink_error(FileNotFoundError(), name)
    return DurableFile(name, texts, Disk())


def _no_resuming(format: str, revised: bool) -> UsageError:
    """The error for a format whose text ends only once, so that the next process could not go on with it."""
    whole = "; json can go to a folder, as --sink matches/" if format == "json" and not revised else ""
    return UsageError(f"--format {format} cannot be resumed from a checkpoint: write jsonl, csv or trig{whole}")
