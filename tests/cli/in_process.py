"""A command line run inside this process, as a process of its own would run it.

File descriptors 0, 1 and 2, the working folder and the state of warnings are exchanged for the time of the call, so
that what the command reads and writes is what it would read and write alone, at a tenth of the cost of a new
interpreter.  What only a process has (signals, a broken pipe, the entry point) is shown by ``Folder.start`` and
``Folder.process``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from etalis_py.cli.main import main

SECONDS = 60


def run(
    arguments: Sequence[str], folder: Path, text: str = "", *, together: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``etalis`` with these arguments in a folder, with a text on its standard input.

    ``together``: errors go to the output, as with ``2>&1``.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, _input(text) as stdin:
        second = out if together else errors
        with _descriptors(stdin, out.fileno(), second.fileno()), _own_warnings(), _in_time(), _in(folder):
            code = _guarded(arguments)
        return subprocess.CompletedProcess(list(arguments), code, _read(out), _read(errors))


def _guarded(arguments: Sequence[str]) -> int:
    """The exit code that the interpreter would give."""
    try:
        return main(arguments)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
            return 1
        return stop.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


@contextmanager
def _input(text: str) -> Iterator[int]:
    """A pipe with the text in it; who reads it may stop before its end."""
    reading, writing = os.pipe()

    def write() -> None:
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                pipe.write(text)
        except BrokenPipeError:
            return

    thread = Thread(target=write)
    thread.start()
    try:
        yield reading
    finally:
        os.close(reading)
        thread.join()


@contextmanager
def _descriptors(*replacing: int) -> Iterator[None]:
    kept = [os.dup(number) for number in range(3)]
    files = sys.stdin, sys.stdout, sys.stderr
    for number, replacement in enumerate(replacing):
        os.dup2(replacement, number)
    try:
        with (
            open(0, encoding="utf-8", closefd=False) as sys.stdin,
            open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1) as sys.stderr,
        ):
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = files
        for number, before in enumerate(kept):
            os.dup2(before, number)
            os.close(before)


@contextmanager
def _own_warnings() -> Iterator[None]:
    """Warnings as in a new interpreter: each is shown, by the command's own format."""
    form = warnings.formatwarning
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", category=ResourceWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = _show
        try:
            yield
        finally:
            warnings.formatwarning = form


def _show(message: Warning | str, category: type[Warning], filename: str, line: int, *_: Any) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, line))


@contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"the command did not end within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _read(file: Any) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")  # type: ignore[no-any-return]
