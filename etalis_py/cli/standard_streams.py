"""Standard streams: closed ones, as a daemon's are (``etalis run … <&- >&- 2>&-``), and ones that are not UTF-8."""

from __future__ import annotations

import io
import os
import sys


def stand_in_for_closed() -> None:
    """Put a file that cannot be used in place of standard input and output where they are closed.

    To read from the one or to write to the other is then an ``OSError``, which ends a command with a message; and no
    file that is opened later gets the number of a standard stream.  Messages that nobody reads go nowhere.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def write_unicode() -> None:
    """Write UTF-8 to files and pipes, as the formats demand, whatever encoding the locale has.

    A terminal has the encoding of the locale.  What cannot be written is written as an escape: what a terminal does not
    show, and bytes of file names that are not UTF-8.
    """
    output = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(encoding=output.encoding if output.isatty() else "utf-8", errors="backslashreplace")
