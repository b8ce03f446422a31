"""``etalis``: runs a command, and turns errors into a message and an exit code.

0: done (also: stopped with Ctrl-C, or the reader of the output has closed it).  1: a run-time failure (``oracle``:
never right).  2: a usage or query error.

Hardly anything is imported before Ctrl-C ends the process in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from etalis_py.cli.at_once import ended_at_once


def main(arguments: Sequence[str] | None = None) -> int:
    with ended_at_once():
        from etalis_py.cli.commands import carried_out, chosen
        from etalis_py.cli.errors import WRONG_USE, guarded
        from etalis_py.cli.log import log_as

        options = chosen(arguments)
    if options is None:
        return WRONG_USE
    with log_as(getattr(options, "log", "text")):
        return guarded(lambda: carried_out(options))


if __name__ == "__main__":
    sys.exit(main())
