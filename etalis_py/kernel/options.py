"""The options of an engine: one frozen value, and the same names as keywords of ``Engine`` and ``run``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from etalis_rules.durations import seconds

from etalis_py.events.clock import Length, Moment, micros_of, time_in_micros
from etalis_py.values.limits import Limits

Render = Callable[[int], int | str]
"""How a time is shown: microseconds to the form that the stream used."""


class EngineOptions(TypedDict, total=False):
    """The keywords of ``Engine``; see ``Options``."""

    background: Any
    entailment: str
    named: Mapping[str, Any] | None
    changes: bool
    graphs: Mapping[str, Callable[[int], Iterable[tuple[str, str, str]]]] | None
    policy: str | None
    lateness: Length
    revise: Length
    eager: bool
    explain: bool
    journal: bool
    limits: Limits
    render: Render | None
    sweep_every: int
    report: Mapping[str, Any] | None
    duplicates: bool
    start: Moment | None
    stream: str | None
    listen: Callable[[Any], None] | None
    executor: Literal["auto", "rows", "columns"]
    nodes: bool
    ties: str | None


class TiesError(ValueError):
    """Something that has no place beside an order of events of one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of an engine beside its program.

    Knowledge: ``background`` (files, triples, or loaded knowledge), its ``entailment`` regime, ``named`` graphs by
    IRI; ``changes``: it will be updated while the engine runs.  ``graphs``: time-varying graphs by name (``""``: the
    default graph), read by windowed queries at every evaluation, or as often as RESCAN says.

    Input: ``lateness``, in microseconds or as ``"5 seconds"`` or a ``timedelta``; ``revise``, likewise: how long
    earlier input may still be corrected, by late events and by retractions; ``eager``: close after every push;
    ``ties``: events of one time have the order in which they come (``"source"``), or that of their values in a column,
    ``"seq"`` (its property, ``":seq"`` or ``"<iri>"``); lengths go by the times all the same;
    ``start``, in microseconds or as a datetime or dateTime: the stream starts then instead of with the first event, for
    START and for windowed queries, and what ends before is late; ``stream``: the stream of events that name none (None:
    the program's, if it reads only one).

    Answers: the ``policy`` of queries that name none, ``explain``: matches can say why; ``render``: how times are
    shown; ``report``: report policies of windowed queries by name (``""``: all); ``duplicates``: windows count a triple
    as often as items state it; ``listen`` is called with each ``Evaluation`` of a windowed query, including the empty
    ones.

    Running: the ``executor`` of rules: one event at a time (``rows``), a batch of columns at a time (``columns``), or
    whichever is quicker (``auto``); ``limits``; ``journal``: keep what ``take_journal`` needs; ``sweep_every``: the
    number of events between two sweeps of expired goals; ``nodes``: each node of the rules reports its solutions, as
    a query of the node's name, to look into a run.
    """

    background: Any = None
    entailment: str = "rdfs"
    named: Mapping[str, Any] | None = None
    changes: bool = False
    graphs: Mapping[str, Callable[[int], Iterable[tuple[str, str, str]]]] | None = None
    policy: str | None = None
    lateness: int = 0
    revise: int = 0
    eager: bool = False
    explain: bool = False
    journal: bool = False
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    render: Render | None = None
    sweep_every: int = 8192
    report: Mapping[str, Any] | None = None
    duplicates: bool = False
    start: int | None = None
    stream: str | None = None
    listen: Callable[[Any], None] | None = None
    executor: Literal["auto", "rows", "columns"] = "auto"
    nodes: bool = False
    ties: str | None = None

    def __post_init__(self) -> None:
        for option in ("lateness", "revise"):
            object.__setattr__(self, option, micros_of(option, getattr(self, option)))
        if self.start is not None:
            object.__setattr__(self, "start", time_in_micros("start", self.start))
        if self.executor not in ("auto", "rows", "columns"):
            raise ValueError(f'there is no executor "{self.executor}"; choose "auto", "rows" or "columns"')
        _check_kinds(self)
        if self.ties is not None:
            check_ties(self)


_FLAGS = ("changes", "eager", "explain", "journal", "duplicates", "nodes")


def _check_kinds(options: Options) -> None:
    """Refuse a value of another kind than the option has: it would be taken for true, or be an error much later."""
    for name in _FLAGS:
        given = getattr(options, name)
        if not isinstance(given, bool):
            raise TypeError(f"{name}={given!r}: it is True or False")
    if not isinstance(options.limits, Limits):
        raise TypeError(f"limits={options.limits!r}: give Limits(…), of etalis_py, such as Limits(goals=100_000)")
    if options.entailment != "rdfs":
        from etalis_py.knowledge.closed_graph import check_regime  # few runs name one

        check_regime(options.entailment)
    if options.report is not None and not isinstance(options.report, Mapping):
        raise TypeError(
            f"report={options.report!r}: give the report policy of each windowed query by its name, as "
            '{"q1": [Strategy("WC")]}'
        )


def check_ties(options: Options) -> None:
    """Refuse what does not go together with an order of events of one time."""
    if not isinstance(options.ties, str) or not options.ties:
        raise TiesError(
            f'ties={options.ties!r} is no order of events: give "source", the order in which they come, or the name of '
            "a column"
        )
    reasons = {
        "eager": options.eager and "an instant is over when all its events are there",
        "explain": options.explain and "explanations show events by their times, which ties have in common",
        "executor": options.executor == "columns" and "only rows run with ties",
    }
    for name, reason in reasons.items():
        if reason:
            raise TiesError(f"{name} has no place beside ties, as {reason}: leave one of the two out")


def options_of(given: EngineOptions) -> Options:
    """The options of these keywords."""
    return Options(**cast(Any, given))


def adaptable() -> tuple[Render, Callable[[Render], None]]:
    """Shows times as ``seconds`` does, until the second function is told to show them in another way.

    (It is a function, not an object with a state, because matches call it very often.)
    """
    other: Render | None = None

    def show(us: int) -> int | str:
        if other is not None:
            return other(us)
        whole, rest = divmod(us, 1_000_000)
        return whole if not rest else seconds(us)

    def adapt(render: Render) -> None:
        nonlocal other
        other = render

    return show, adapt
