"""Shared by ``run`` on either engine: the engine of a program, and the reports on events that were left out."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py import Engine, Event
    from etalis_py.engine.program import Program
    from etalis_py.streams import DeadLetters, Stream
    from etalis_py.streams.elements import Counters


def engine_for(program: Program, **options: Any) -> Engine:
    """The engine of a program; what it lacks, or what ties say nothing of, is reported as wrong use."""
    from etalis_py import Engine
    from etalis_py.executors.windows.refresh import MissingGraph
    from etalis_py.kernel.options import TiesError

    try:
        return Engine(program, **options)
    except (MissingGraph, TiesError) as error:
        raise UsageError(str(error)) from None


def ties_of(options: Namespace, program: Program, stream: Stream) -> str | None:
    """What orders events of one time (``--ties``, or a mapping); a column that no row has is wrong use."""
    from etalis_py.engine.tie_order import tie_order
    from etalis_py.kernel.options import TiesError

    try:
        ties = tie_order(options.ties, program.prefixes, stream)
    except TiesError as error:
        raise UsageError(f"{'' if options.ties is None else '--'}{error}") from None
    if ties is not None and options.ties is None:
        _refuse_with_ties(options, "the ties of the mapping")
    return ties


def check_ties(options: Namespace) -> None:
    """Refuse options that do not go together with ``--ties``."""
    if options.ties is not None:
        _refuse_with_ties(options, "--ties")


def refuse_ties_of(stream: Stream, reason: str) -> None:
    """Refuse a mapping with ties for a command that takes events by their times alone."""
    from etalis_py.engine.tie_order import refuse_other_ties
    from etalis_py.kernel.options import TiesError

    try:
        refuse_other_ties(stream.ties, None, reason)
    except TiesError as error:
        raise UsageError(str(error)) from None


def _refuse_with_ties(options: Namespace, ties: str) -> None:
    """Refuse options that do not go together with an order of events of one time."""
    together = {
        "--explain-matches": options.explain_matches,
        "--timeline": options.timeline,
        "--trace": options.trace is not None,
        f"--executor {options.executor}": options.executor in ("columns", "both"),
    }
    for name, given in together.items():
        if given:
            why = "only rows run with ties" if "executor" in name else "it shows events by the times that they share"
            raise UsageError(f"{name} has no place beside {ties}, as {why}: leave one of the two out")


def refuse_for_windows(options: Namespace) -> None:
    """Refuse options that do not work with windows."""
    if options.timeline:
        raise UsageError(
            "--timeline draws the events of a match; a row of a windowed query has none of its own, it is made of all "
            "that its windows hold: leave --timeline out"
        )
    if options.explain_matches and options.format == "trig":
        raise UsageError("--explain-matches with windows says which windows were looked at: write jsonl")


def late_reason(lateness: int) -> str:
    """Why an event is a dead letter."""
    return "came after its instant was over" + (f", later than the {lateness / 1e6:.15g} s allowed" if lateness else "")


def reason_for(lateness: int, revise: int) -> Callable[[Event], str]:
    """Why an event, or a correction, is a dead letter."""
    from etalis_py.events import Retraction

    late = late_reason(max(lateness, revise))
    nothing = f"withdraws what never was, or what is older than the {revise / 1e6:.15g} s that may be corrected"
    return lambda event: nothing if isinstance(event, Retraction) else late


def what_allows_more(revised: bool, started: bool = False) -> str:
    """The options that let in more events; what ends before ``--start`` is late, whatever else they say."""
    more = "--revise D" if revised else "--lateness D"
    return f"{more} allows for more" if not started else f"an earlier --start, or {more}, allows for more"


def report_first_late(event: Event, newest: int, render: Callable[[int], int | str], more: str) -> None:
    """Report the first event that is left out of a run which may last for months: the count comes at its end."""
    behind = (newest - event.end) / 1_000_000
    print(
        f"etalis: an event of {render(event.end)} was left out, as it came {behind:.15g} s behind the newest; {more}; "
        "how many there were is said at the end, and by --metrics",
        file=sys.stderr,
    )


def report_left_out(
    read: Counters, late: int, letters: DeadLetters | None, revised: bool = False, started: bool = False
) -> None:
    """Report what was left out, always."""
    if read.empty and read.events:  # else another warning says why there is no event at all
        _note(read.empty, "record", "made no event: no subject, or nothing beside it")
    errors = read.errors
    if letters is None:
        where = "; --dead-letters FILE keeps them"
    else:
        where = "" if letters.failed else "; see the dead letters"
    if errors:
        _note(errors, "part", f"of the input could not be read and was skipped{where}")
    if late:
        fate = "came too late, or withdrew what never was," if revised else "came too late"
        _note(late, "event", f"{fate} and was left out; {what_allows_more(revised, started)}{where}")


def report_unread(unrouted: int, inputs: frozenset[str]) -> None:
    """Report items that no query asked for, if that may be a slip."""
    if unrouted:
        reason = f"was of a stream that no query reads; they read {', '.join(sorted(inputs))}: --stream NAME=SOURCE"
        _note(unrouted, "event", reason)


def report_unmet(warnings: Iterable[str]) -> None:
    """Report what the queries ask for but no event had."""
    for warning in warnings:
        print(f"etalis: warning: {warning}", file=sys.stderr)


def _note(count: int, what: str, fate: str) -> None:
    if count != 1:
        what, fate = what + "s", fate.replace("was ", "were ")
    print(f"etalis: {count:,} {what} {fate}", file=sys.stderr)
