"""``etalis``: chooses the command, and turns what goes wrong into a message and an exit code.

0: done (also: stopped with Ctrl-C, or the reader of the output went away).  1: a run-time failure (``oracle``: never
right).  2: a usage or
query error.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version

from etalis_py.cli import explain, oracle, repl, replay, run, serve
from etalis_py.cli.errors import Failure, UsageError

DONE, FAILED, WRONG_USE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="etalis",
        description="Complex event processing and stream reasoning with EP-SPARQL.",
        epilog="etalis COMMAND --help tells the options of a command.",
    )
    made.add_argument("--version", action="version", version=f"etalis-py {version('etalis-py')}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (run, explain, oracle, replay, serve, repl):
        module.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    warnings.formatwarning = lambda message, *_, **__: f"etalis: warning: {message}\n"
    return guarded(lambda: options.command(options))


def guarded(command: Callable[[], int | None]) -> int:
    """Run a command; its exit code, after a message where it failed."""
    from etalis_compiler.diagnostics import QueryError

    from etalis_py.engine.runtime import LimitExceeded
    from etalis_py.knowledge import KnowledgeError
    from etalis_py.streams import ClosedPipe, StreamError, TimeError

    try:
        return command() or DONE
    except ClosedPipe:
        return DONE
    except QueryError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except UsageError as error:
        print(f"etalis: {error}", file=sys.stderr)
        return WRONG_USE
    except (Failure, StreamError, TimeError, KnowledgeError, LimitExceeded, OSError) as error:
        # What cannot be written, and containers that cannot be reached, are OSErrors.
        print(f"etalis: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("etalis: stopped", file=sys.stderr)
        return FAILED
    except MemoryError:
        print("etalis: out of memory; bound the patterns with WITHIN, or raise the limit", file=sys.stderr)
        os._exit(FAILED)  # an orderly end would need memory


if __name__ == "__main__":
    sys.exit(main())
