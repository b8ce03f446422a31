"""``--limit NAME=N``: another value for one of the limits of an engine, or of a server."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from etalis_py.cli.errors import Failure, UsageError

if TYPE_CHECKING:
    from etalis_py.values.limits import Limits

_IN_PYTHON = re.compile(r"raise Limits\(([^)]*)\)")


def add_limits(options: argparse._ActionsContainer, example: str, where: str) -> None:
    """Add the option; ``where``: what lists the limits."""
    options.add_argument(
        "--limit",
        action="append",
        type=_limit,
        default=[],
        metavar="NAME=N",
        help=f"another value for a limit, such as {example}; {where}; may be repeated",
    )


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, int(value) if value.removeprefix("-").isdecimal() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a limit is NAME=NUMBER, such as programs=8, found {text!r}") from None


def limits_of(options: Namespace) -> Limits:
    """The limits of an engine."""
    from etalis_py.values.limits import Limits

    return Limits(**given_limits(Limits, options.limit))


def given_limits(kind: type, given: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """The limits that are given of a kind of them, each a number that it can be."""
    kinds = {field.name: field.type for field in fields(kind)}
    limits: dict[str, Any] = {}
    for name, value in given:
        if name not in kinds:
            raise UsageError(f"--limit {name}: there is no such limit; there are {', '.join(kinds)}")
        if kinds[name] == "int" and not isinstance(value, int):
            raise UsageError(f"--limit {name}: it is a whole number, found {value:g}")
        if not value > 0:
            raise UsageError(f"--limit {name}: the limit {name} must be above 0, found {value:g}")
        limits[name] = value
    return limits


@contextmanager
def told_as_options() -> Iterator[None]:
    """An error that advises to raise ``Limits(goals=…)`` names the option instead."""
    try:
        yield
    except Exception as error:
        told = _IN_PYTHON.sub(lambda found: f"raise the limit: {_options(found[1])}", str(error))
        if told == str(error):
            raise
        raise Failure(told) from None


def _options(limits: str) -> str:
    """``--limit goals=N`` for each of ``goals=…, rounds=…``."""
    return " ".join(f"--limit {one.partition('=')[0].strip()}=N" for one in limits.split(","))
