"""``--engine spark``: the same command on Spark: what is refused there and why, a quiet session, Ctrl-C.

Spark starts once all events have been read, and matches are written once it has all of them, in the order of the local
engine.  Spark's JVM logs to a file, which is kept if a run fails.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from etalis_rules.messages import how_many

from etalis_py.cli import options as shared
from etalis_py.cli.errors import Failure, UsageError
from etalis_py.cli.interrupt import Interrupt
from etalis_py.cli.limits import limits_of
from etalis_py.cli.progress import StatusLine, on_terminal
from etalis_py.cli.sources import is_live, mappings_of, open_streams, split_name
from etalis_py.durable.identity import file_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from etalis_py.engine.program import Program
    from etalis_py.engine.unseen_names import UnseenNames
    from etalis_py.events import Event
    from etalis_py.knowledge import Knowledge
    from etalis_py.replays.replay import Replay
    from etalis_py.spark.output.results import SparkMatch, SparkRun
    from etalis_py.spark.plan.options import RunOptions
    from etalis_py.spark.plan.parts import RoutedPart

JAVA = 17  # the oldest version that Spark runs on
NOTED = 1024  # events of which the census takes note at once
FEW = 1_000_000  # with fewer events the JVM's better compiler costs more than it gains
_MASTERS = re.compile(r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s|mesos)://.+|yarn")

_OF_JVM = re.compile(r"^: (?:[\w$]+\.)*")


class Stopped(Exception):
    """Ctrl-C was pressed before there was anything to write."""


# --- what can be asked for -----------------------------------------------------------------------------------------


def refuse_on_spark(options: Namespace) -> None:
    """Refuse options that do not work on Spark, before anything is read."""
    elsewhere = "leave it out, or run with --engine local"
    for asked, why in (
        ("explain_matches", "needs the events behind a match in one engine, and Spark has them in many"),
        ("timeline", "draws the events behind a match, and Spark has them in many engines"),
        ("duplicates", "is for the local engine; from Python it is an option of etalis_py.spark.matches"),
        ("start", "is for the local engine: no shard sees the start of the whole stream"),
        ("ties", "puts the events of a time in one order, and Spark has them in many engines"),
        ("speed", "takes events at the speed of their own time, and Spark takes all at once"),
        ("metrics", "is for the local engine; from Python, etalis_py.spark.matches counts with metrics= and observe="),
        ("background_refresh", "reads the tables of one engine again, and Spark has the background in many"),
    ):
        given = getattr(options, asked)
        if given is not None and given is not False:  # a length of 0 is given
            raise UsageError(f"--{asked.replace('_', '-')} {why}: {elsewhere}")
    for source in options.stream:
        name = split_name(source)[1]
        if name != "-" and is_live(name):
            raise UsageError(
                f"--stream {source}: it has no end, and Spark begins when all events are there: run with --engine "
                "local, or save the events to a file first"
            )


def check_spark(options: Namespace) -> None:
    """Check that Spark can be started."""
    if options.master is not None and not _MASTERS.fullmatch(options.master):
        raise UsageError(f"--master {options.master}: write local[2], local[*], spark://HOST:7077, yarn or k8s://…")
    check_pyspark()
    version = java_version()
    if version < JAVA:
        raise Failure(
            f"Spark needs Java {JAVA} or newer, found {version or 'none'}: install it (on Debian the package "
            f"openjdk-{JAVA}-jre-headless), or let JAVA_HOME name it"
        )


def check_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise Failure(
            "--engine spark needs the package pyspark, which is not installed: pip install 'etalis-py[spark]'"
        )


def java_version() -> int:
    """The version of the Java that Spark would start; 0 if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return 0
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(version[1]) if version else 0


def shards_of(options: Namespace) -> int:
    """The number of shards: as asked for, as in the checkpoint, or two per core."""
    from etalis_py.spark.errors import SparkError
    from etalis_py.spark.state.run_folder import read_state

    try:
        state = read_state(Path(options.checkpoint)) if getattr(options, "checkpoint", None) else None
    except SparkError as error:
        raise UsageError(str(error)) from None
    return options.shards or (2 * (os.cpu_count() or 1) if state is None else state.shards)


def reading_of(options: Namespace) -> dict[str, str]:
    """How rows become events, as far as the command line says it."""
    files = mappings_of(options, [split_name(source)[0] for source in options.stream])
    mapping = " ".join(sorted(map(file_digest, files.values())))
    given = {"time": options.time_column, "subject": options.subject_column, "mapping": mapping}
    said = {name: value for name, value in given.items() if value}
    return said | {"time_unit": options.time_unit} if said else said


def check_plan(
    program: Program, shards: int, knowledge: Any, *, warn: bool, streaming: bool = False, updates: bool = False
) -> None:
    """Refuse what cannot run on Spark; print a line for each part that will run in one shard."""
    for routed in parts_of(program, shards, knowledge, updates=updates):
        part = routed.part
        if warn and part.shards == 1 and shards > 1 and (routed.uncut or streaming):
            reason = part.reason.removeprefix("one shard: ")
            print(f"etalis: {', '.join(part.reports)}: in one shard, whatever --shards says: {reason}", file=sys.stderr)


def parts_of(program: Program, shards: int, knowledge: Any, *, updates: bool = False) -> list[RoutedPart]:
    """The parts that a program runs in on Spark; ``updates``: its background changes."""
    check_pyspark()
    from etalis_py.spark.errors import SparkError
    from etalis_py.spark.pipeline import plan
    from etalis_py.spark.plan.windows import WindowOptions

    try:
        return plan(program, shards, knowledge, "rdf", None, WindowOptions(updates=updates))[1]
    except SparkError as error:
        raise UsageError(str(error)) from None


# --- the run -------------------------------------------------------------------------------------------------------


def run(options: Namespace) -> int:
    """``etalis run --engine spark``."""
    from etalis_py.cli.engine_of_run import (
        engine_for,
        reason_for,
        refuse_for_windows,
        refuse_ties_of,
        report_left_out,
        report_unmet,
    )
    from etalis_py.cli.outputs import open_outlet
    from etalis_py.engine.rule_plans import knowledge_of
    from etalis_py.engine.unseen_names import UnseenNames
    from etalis_py.streams import DeadLetters
    from etalis_py.streams.sources import format_of
    from etalis_py.streams.updates import read_updates

    refuse_on_spark(options)
    program = shared.read_program(options)
    if program.windowed:
        refuse_for_windows(options)
    check_spark(options)
    changes = options.background_stream is not None
    if changes and format_of(options.background_stream) in ("csv", "parquet", "arrow"):
        raise UsageError(
            "--background-stream with a table is for the local engine: on Spark give JSON lines of updates"
        )
    given = shared.background_of(options, program.prefixes) or ([] if changes else None)
    limits = limits_of(options)
    knowledge = knowledge_of(given, options.entailment, shared.graph_files(program), limits)
    # The local engine refuses what can run nowhere.
    outputs = engine_for(program, background=knowledge, changes=changes, limits=limits).outputs
    shared.show_warnings(program.check() if options.checkpoint else program.warnings)
    streaming = options.checkpoint is not None
    check_plan(program, shards_of(options), knowledge, warn=True, streaming=streaming, updates=changes)
    late = 0
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        letters = stack.enter_context(DeadLetters(options.dead_letters)) if options.dead_letters else None
        stream, _ = open_streams(options, letters, program.prefixes)
        stack.callback(stream.close)
        refuse_ties_of(stream, "Spark has the events of a time in many engines")
        stack.callback(lambda: report_left_out(stream.counters, late, letters, bool(options.revise)))
        reason = reason_for(options.lateness, options.revise)

        def keep(event: Event) -> None:
            nonlocal late
            late += 1
            if letters is not None:
                letters.late(event, reason(event))

        work = SparkWork(options, interrupt)
        census = UnseenNames(program)
        try:
            with (
                # A batch is corrected before it is run; only a continued run has matches to take back.
                open_outlet(
                    options, outputs, program.prefixes, False, bool(options.revise and options.checkpoint)
                ) as outlet,
                work.opened(
                    program,
                    _noted(stream, census),
                    keep,
                    reading=reading_of(options),
                    background=knowledge,
                    lateness=options.lateness,
                    revise=options.revise,
                    checkpoint=options.checkpoint,
                    render=stream.render,
                    updates=read_updates(options.background_stream, options.time_unit) if changes else None,
                    limits=limits,
                ) as spark_run,
            ):
                spark_run.check_updates()
                for match in work.counted(spark_run):
                    outlet.write(match)
                for event in spark_run.late_events():
                    keep(event)
            spark_run.done()
        except Stopped:
            print("stopped before Spark was done: nothing was written", file=sys.stderr)
            return 0
        except KeyboardInterrupt:
            print(f"stopped: {work.summary()}", file=sys.stderr)
            return 0
    if not (work.matches or options.checkpoint):
        shared.show_why_nothing(program)
    # Earlier calls, and updates of the background, may have had what these events have not.
    known = bool(options.checkpoint) or changes
    unmet = () if known else census.warnings(knowledge, subjects=stream.subjects, times=stream.times_of_rows)
    report_unmet((*stream.warnings, *unmet))
    if work.line.shown:
        print(work.summary(), file=sys.stderr)
    return 0


def _noted(items: Iterable[Any], census: UnseenNames) -> Iterator[Any]:
    """The items, of which the census takes note, many at a time."""
    from etalis_py.events import Event

    batch: list[Event] = []
    for item in items:
        if isinstance(item, Event):
            batch.append(item)
        if len(batch) == NOTED:
            census.see(batch)
            batch = []
        yield item
    if batch:
        census.see(batch)


class SparkWork:
    """One run on Spark for the command line: the progress line, the session, the log."""

    def __init__(self, options: Namespace, interrupt: Interrupt) -> None:
        self.line = StatusLine(shown=on_terminal())
        self.events = self.matches = 0
        self._options, self._interrupt = options, interrupt
        self._began = time.monotonic()
        self._log = Path(os.devnull)
        self._shards = shards_of(options)
        self.place = f"{self._shards} shard{'s' * (self._shards != 1)}"

    @contextmanager
    def opened(
        self,
        program: Program,
        events: Iterable[Any],
        late: Callable[[Event], None],
        *,
        reading: Mapping[str, str] | None = None,
        **options: Unpack[RunOptions],
    ) -> Iterator[SparkRun]:
        """The run, once Spark has found all matches."""
        from etalis_py.spark.plan.options import JobSettings
        from etalis_py.spark.stream_runs import open_run

        handle, name = tempfile.mkstemp(prefix="etalis-spark-", suffix=".log")
        os.close(handle)
        self._log = Path(name)
        with ExitStack() as stack:
            stack.enter_context(self._failures())
            stack.callback(self.line.clear)
            asked = replace(JobSettings(**options), shards=self._shards, reading=reading or {})
            opened = open_run(program, self._counted(events), self._session, late, asked)
            try:
                spark_run = stack.enter_context(opened)
            except KeyboardInterrupt:
                raise Stopped from None
            yield spark_run
        self._log.unlink()

    def counted(self, spark_run: SparkRun) -> Iterator[SparkMatch]:
        """The matches, counted."""
        for match in spark_run:
            self.matches += 1
            if self.line.due():
                self.line.show(f"{self.matches:,} of {spark_run.count:,} matches")
            yield match
        self.line.clear()

    def summary(self) -> str:
        seconds = time.monotonic() - self._began
        counts = f"{how_many(self.events, 'event')}, {how_many(self.matches, 'match', 'matches')}"
        return f"{counts} in {seconds:.1f} s (Spark, {self.place})"

    def _counted(self, events: Iterable[Any]) -> Iterator[Any]:
        for event in events:
            self.events += 1
            if not self.events & 1023 and self.line.due():
                self.line.show(f"{self.events:,} events read")
            yield event

    @contextmanager
    def _session(self, shards: int | None) -> Iterator[SparkSession]:
        from etalis_py.cli.spark_watch import watching
        from etalis_py.spark.sessions import session

        with ExitStack() as stack:
            log = stack.enter_context(self._log.open("wb"))
            # If interrupted while it starts, the JVM would stay behind.
            with watching(self.line, self._log, self._began, None), self._interrupt.deferred():
                spark = session(self._options.master, shards=shards, config=self._config(), log=log)
            self._interrupt.listen()  # Spark takes over Ctrl-C
            stack.enter_context(without_traces(self._interrupt))
            self.place = f"{spark.sparkContext.master}, {self.place}"
            stack.callback(spark.stop)
            if self._interrupt.asked:
                raise KeyboardInterrupt
            # The command line has already warned of shards that share a core.
            stack.enter_context(_without_shard_warnings())
            with watching(self.line, self._log, self._began, spark):
                yield spark

    def _config(self) -> dict[str, str]:
        """Settings for Spark on this machine, which must not be reachable from outside; a cluster keeps its own."""
        master = self._options.master
        config = {"spark.ui.showConsoleProgress": "false"}
        if master.startswith("local") if master else not {"SPARK_HOME", "SPARK_CONF_DIR"} & set(os.environ):
            config |= {
                "spark.ui.enabled": "false",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
            }
            if self.events < FEW:
                config["spark.driver.defaultJavaOptions"] = "-XX:TieredStopAtLevel=1"
        return config

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Report a failure of Spark in one line, and keep the log."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from etalis_py.spark.errors import SparkError

        try:
            yield
        except SparkError as error:
            self._log.unlink()
            raise UsageError(str(error)) from None
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise Failure(f"{failure_of(str(error))}\n  Spark's own log is {self._log}") from None
        except BaseException:
            self._log.unlink()
            raise


@contextmanager
def without_traces(interrupt: Interrupt) -> Iterator[None]:
    """After Ctrl-C: without the traces that py4j logs of the calls that it cut."""

    def wanted(record: logging.LogRecord) -> bool:
        return not interrupt.asked

    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver", "py4j.java_gateway")]
    for logger in loggers:
        logger.addFilter(wanted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(wanted)


@contextmanager
def _without_shard_warnings() -> Iterator[None]:
    import warnings

    from etalis_py.spark.pipeline import ShardWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShardWarning)
        yield


def failure_of(text: str) -> str:
    """The relevant line in Spark's message about a failure: the error raised in Python, if there is one.

    >>> failure_of("An exception was thrown from the Python worker:\\nTraceback …\\nKeyError: 3")
    'Spark failed: KeyError: 3'
    >>> failure_of("An error occurred while calling o1.x.\\n: java.lang.IllegalArgumentException: no such pool\\n")
    'Spark failed: IllegalArgumentException: no such pool'
    """
    from etalis_py.spark.errors import message_of_ours, raised_in_python

    if ours := message_of_ours(text):
        return ours
    if raised := raised_in_python(text):
        return f"Spark failed: {raised[-1][0]}: {raised[-1][1]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return f"Spark failed: {_OF_JVM.sub('', lines[1])}"
    return f"Spark failed: {lines[0] if lines else 'it is gone'}"


# --- replays -------------------------------------------------------------------------------------------------------


def check_replay(options: Namespace, replay: Replay, program: Program) -> Knowledge:
    """Check that the worked example can run on Spark; returns its background knowledge."""
    from etalis_py.knowledge import load

    check_spark(options)
    knowledge = load(list(replay.background))
    check_plan(program, shards_of(options), knowledge, warn=False)
    return knowledge


@contextmanager
def replayed(work: SparkWork, program: Program, replay: Replay, knowledge: Knowledge) -> Iterator[Iterator[SparkMatch]]:
    """The matches of a worked example; its events come in order."""
    opened = work.opened(
        program, replay.events, _never_late, background=knowledge, lateness=None, render=replay.clock.render
    )
    with opened as spark_run:
        yield work.counted(spark_run)


def _never_late(event: Event) -> None:
    raise AssertionError(f"without a lateness no event is late, but this one is said to be: {event}")


def difference(local: Counter[tuple[str, str]], spark: Counter[tuple[str, str]]) -> str:
    """The differences between the matches of two engines, by query and id; empty if there are none."""
    parts = []
    for query in sorted({query for query, _ in local | spark}):
        missing = sum(n for (q, _), n in (local - spark).items() if q == query)
        extra = sum(n for (q, _), n in (spark - local).items() if q == query)
        if missing or extra:
            parts.append(f"{query}: {missing:,} only found by the local engine, {extra:,} only on Spark")
    return "; ".join(parts)
