"""Errors at the command line: messages and exit codes."""

from __future__ import annotations

import os
from collections.abc import Callable

from etalis_py.cli.log import say_error, say_uncaught

DONE, FAILED, WRONG_USE = 0, 1, 2


class UsageError(ValueError):
    """Options or arguments that do not fit together: exit code 2."""


class Failure(RuntimeError):
    """The command cannot do what was asked: exit code 1."""


def guarded(command: Callable[[], int | None]) -> int:
    """Run a command; returns its exit code, after a message if it failed."""
    try:
        return _guarded(command)
    except KeyboardInterrupt:
        say_error("etalis: stopped")
        return FAILED


def _guarded(command: Callable[[], int | None]) -> int:
    from etalis_compiler.diagnostics import QueryError

    from etalis_py.events import UnexpectedRetraction
    from etalis_py.extras import MissingExtra, named
    from etalis_py.knowledge import KnowledgeError
    from etalis_py.streams import ClosedPipe, StreamError, TimeError
    from etalis_py.values.errors import LimitExceeded

    try:
        return command() or DONE
    except ClosedPipe:
        return DONE
    except QueryError as error:
        say_error(str(error))
        return WRONG_USE
    except UsageError as error:
        say_error(f"etalis: {error}")
        return WRONG_USE
    except (Failure, UnexpectedRetraction, StreamError, TimeError, KnowledgeError, LimitExceeded, OSError) as error:
        # Failed writes and unreachable containers are OSErrors.
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            say_error(f"etalis: {error.filename}: {error.strerror}")
        else:
            say_error(f"etalis: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        missing = named(error)
        if not isinstance(missing, MissingExtra):
            raise
        say_error(f"etalis: {missing}")
        return FAILED
    except MemoryError:
        say_error("etalis: out of memory; bound the patterns with WITHIN, or raise the limit")
        os._exit(FAILED)  # an orderly exit would need memory
    except Exception as error:  # a defect
        if not say_uncaught(error):
            raise
        return FAILED
