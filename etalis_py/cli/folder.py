"""``etalis run --queries DIR``: the queries of a folder, which come, change and go while a live stream runs.

With ``--watch`` the folder is looked at all the time, without it when SIGHUP asks for it.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from etalis_rules.messages import how_many

from etalis_py.cli.errors import UsageError
from etalis_py.cli.sources import is_live, split_name
from etalis_py.cli.watch import LOOK_EVERY, ON_SPARK, Stamp, stamps

if TYPE_CHECKING:
    from etalis_py import Engine, Program

T = TypeVar("T")
_SHARE = 20  # the wait between two looks is at least this many times as long as a look


def files_in(folder: str) -> list[Path]:
    """The query files in a folder, sorted by name."""
    if not Path(folder).is_dir():
        raise UsageError(f"--queries {folder}: there is no such folder")
    return sorted(Path(folder).glob("*.rq"))


def with_files(options: Namespace) -> Namespace:
    """The options, with the files of the folder among the queries."""
    if options.queries is None or follows_folder(options):
        return options
    files = files_in(options.queries)
    if not (files or options.query or options.texts):
        raise UsageError(f"--queries {options.queries}: no file in this folder ends in .rq")
    return Namespace(**{**vars(options), "query": [*options.query, *map(str, files)]})


def follows_folder(options: Namespace) -> bool:
    """Whether queries are added and removed while a live stream runs."""
    return is_for_folder(options) and (options.watch or not fixed_by(options))


def is_for_folder(options: Namespace) -> bool:
    """Whether a live stream runs through the queries of a folder."""
    if options.queries is None:
        return False
    return bool(options.follow) or any(text == "-" or is_live(split_name(text)[1]) for text in options.stream)


def fixed_by(options: Namespace) -> str:
    """The option because of which the queries of a run stay the same; empty if SIGHUP may change them."""
    reasons = {
        "--engine spark": options.engine == "spark",
        "--checkpoint": getattr(options, "checkpoint", None) is not None,
        f"--format {options.format}": options.format != "jsonl",
        f"--cores {options.cores}": options.cores > 1,
        "--trace": options.trace is not None,
        "--executor both": options.executor == "both",
    }
    return next((name for name, so in reasons.items() if so), "")


def check_folder(options: Namespace) -> None:
    """Refuse options that are impossible while queries are added and removed."""
    if options.engine == "spark":
        raise UsageError(ON_SPARK)
    if options.format != "jsonl":
        raise UsageError(
            f"--queries DIR --watch: what a query that is yet to come answers may not fit into --format "
            f"{options.format}: write jsonl"
        )
    files_in(options.queries)


class QueryFolder:
    """The queries of a folder while an engine runs: each file is a program that is added, changed and removed with it.

    For a file that cannot be used, the error is shown and its earlier content keeps running.  The cost of ``look`` is
    proportional to the number of files; adding a query of a known kind takes a fraction of a millisecond.

    ``asked`` says whether to look now; without it, the folder is looked at five times a second.
    """

    def __init__(
        self,
        folder: str,
        policy: str,
        say: Callable[[str], None] | None = None,
        asked: Callable[[], bool] | None = None,
    ) -> None:
        self._folder, self._policy, self._asked = folder, policy, asked
        self._say = say or (lambda line: print(line, file=sys.stderr, flush=True))
        self._seen: dict[Path, Stamp] = {}
        self._running: dict[Path, str] = {}

    def begin(self, engine: Engine) -> None:
        """Add all files that are there, with a one-line message.  If only SIGHUP changes them, all must be right."""
        for path, stamp in self._look().items():
            self._seen[path] = stamp
            if self._asked is None:
                self._add(engine, path, path)
            else:
                self._running[path] = engine.add(path, policy=self._policy, name=str(path))
        count = len(self._running)
        files = f"{self._folder}, {how_many(count, 'file')}"
        if self._asked is None:
            self._say(f"etalis: watching {files} (Ctrl-C stops)")
        else:
            self._say(f"etalis: running {files}; SIGHUP reads them again")

    def look(self, engine: Engine) -> None:
        """Apply what has changed since the last look."""
        now = self._look()
        for path in [path for path in self._seen if path not in now]:
            del self._seen[path]
            if path in self._running:
                engine.remove(self._running.pop(path))
            self._say(f"etalis: {path}: removed")
        for path, stamp in now.items():
            known = path in self._running
            if self._seen.get(path) == stamp:
                continue
            self._seen[path] = stamp
            program = self._usable(engine, path) if known else path
            if program is None:
                continue
            if known:
                engine.remove(self._running.pop(path))
            if self._add(engine, path, program):
                self._say(f"etalis: {path}: {'changed, begins anew' if known else 'added'}")

    def between(self, items: Iterable[T], engine: Engine) -> Iterator[T]:
        """The items of a stream; before handing one on, look at the folder, unless that has just been done."""
        if self._asked is not None:
            yield from self._when_asked(items, engine, self._asked)
            return
        due = 0.0
        for item in items:
            began = time.monotonic()
            if began >= due:
                self.look(engine)
                took = time.monotonic() - began
                due = began + took + max(LOOK_EVERY, _SHARE * took)
            yield item

    def _when_asked(self, items: Iterable[T], engine: Engine, asked: Callable[[], bool]) -> Iterator[T]:
        for item in items:
            if asked():
                self.look(engine)
                self._say(f"etalis: {self._folder} has been read again, {len(self._running):,} files run")
            yield item

    def _look(self) -> dict[Path, Stamp]:
        files = stamps(sorted(Path(self._folder).glob("*.rq")))
        return {path: stamp for path, stamp in files.items() if stamp[1] >= 0}

    def _usable(self, engine: Engine, path: Path) -> Program | Path | None:
        """The content of a file, compiled unless it is one more query of a running kind; None if it cannot be used."""
        from etalis_py import compile

        try:
            return path if engine.knows(path) else compile(path, policy=self._policy)
        except (ValueError, OSError) as error:
            self._tell(path, error, "what it held before runs on")
            return None

    def _add(self, engine: Engine, path: Path, program: Program | Path) -> bool:
        try:
            self._running[path] = engine.add(program, policy=self._policy, name=str(path))
        except (ValueError, OSError) as error:
            self._tell(path, error, "left out")
            return False
        return True

    def _tell(self, path: Path, error: Exception, fate: str) -> None:
        from etalis_compiler.diagnostics import QueryError

        if isinstance(error, QueryError):
            self._say(str(error))
            self._say(f"etalis: {path}: {fate}; the run goes on")
        else:
            self._say(f"etalis: {path}: {fate}: {str(error).removeprefix(f'{path}, ')}")
