"""Why an answer did not come, as values that can be printed, and as JSON.

q1 has no match with ?c = :acme

one condition refuses it
  FILTER (?y > ?x * 1.3)                                              1 refused
    ?c = :acme, ?x = 10, ?y = 12.9 [1, 4]: 12.9 > 13 fails by 0.1

the plan, with the solutions of each part                            ?c = :acme   all
  FILTER (?y > ?x * 1.3)                                                      0     1
  └─ SEQ                                                                      1     3
     ├─ ?c :price ?x                                                          2     6
     └─ ?c :price ?y                                                          2     6
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Time = int | str


@dataclass(frozen=True, slots=True)
class Miss:
    """A solution that was refused; ``because`` has one text for each condition that refused it, saying by how much."""

    shown: str
    because: tuple[str, ...]
    bindings: Mapping[str, str]
    interval: tuple[Time, Time] | None
    data: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "bindings": dict(self.bindings),
            "start": None if self.interval is None else self.interval[0],
            "end": None if self.interval is None else self.interval[1],
            "because": [
                {"text": t, **d} for t, d in zip(self.because, self.data or ({},) * len(self.because), strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class Blame:
    """Conditions without which there would be ``refused`` more answers (a lower bound unless ``exact``).

    ``likely`` is false if removing the condition would change the query's purpose: a constant that is not a slip of any
    term in the stream, a key that compares two different things.
    """

    kinds: tuple[str, ...]
    conditions: tuple[str, ...]
    refused: int
    exact: bool
    misses: tuple[Miss, ...]
    likely: bool = True
    slip: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": list(self.kinds),
            "condition": list(self.conditions),
            "refused": self.refused,
            "exact": self.exact,
            "likely": self.likely,
            "slip": self.slip,
            "nearest": [miss.to_dict() for miss in self.misses],
        }


@dataclass(frozen=True, slots=True)
class Count:
    """The number of solutions; a lower bound unless ``exact``."""

    number: int
    exact: bool = True

    def __str__(self) -> str:
        return str(self.number) if self.exact else f"≥{self.number}"

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.number, "exact": self.exact}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the plan: how many solutions it has, how many of them fit the question, and its own misses.

    ``broken``: there are fitting solutions below it, but none at it.  ``notes`` say what was found instead.
    """

    title: str
    all: Count
    wanted: Count
    parts: tuple[Node, ...] = ()
    broken: bool = False
    notes: tuple[str, ...] = ()
    misses: tuple[Miss, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {"part": self.title, "all": self.all.to_dict(), "wanted": self.wanted.to_dict()}
        if self.broken:
            result["broken"] = True
        if self.notes:
            result["notes"] = list(self.notes)
        if self.misses:
            result["nearest"] = [miss.to_dict() for miss in self.misses]
        if self.parts:
            result["parts"] = [part.to_dict() for part in self.parts]
        return result


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to why there is no match; ``str()`` is the text.

    ``matches`` are those that exist after all.  ``blames`` are the single conditions (or pairs, if no single one does)
    that stand between the stream and an answer, the likeliest first; ``rules`` explain the rules of the program whose
    derived triples were wanted and did not come.
    """

    query: str
    asked: str
    matches: tuple[str, ...]
    blames: tuple[Blame, ...]
    plan: Node
    notes: tuple[str, ...] = ()
    rules: tuple[Report, ...] = ()
    restricted: bool = field(default=False)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "query": self.query,
            "asked": self.asked,
            "matches": list(self.matches),
            "blames": [blame.to_dict() for blame in self.blames],
            "plan": self.plan.to_dict(),
            "notes": list(self.notes),
            "rules": [rule.to_dict() for rule in self.rules],
        }

    def __str__(self) -> str:
        return "\n".join(_text(self))


# --- text ------------------------------------------------------------------------------------------------------

SHOWN, WIDTH = 3, 76


def _text(report: Report) -> Iterator[str]:
    of = f" {report.asked}" if report.asked else ""
    if report.matches:
        n = len(report.matches)
        yield f"{report.query} has {n} match{'es' * (n != 1)}{of}:"
        yield from (f"  {match}" for match in report.matches[:SHOWN])
        if n > SHOWN:
            yield f"  … and {n - SHOWN} more"
    else:
        yield f"{report.query} has no match{of}."
    for note in report.notes:
        yield f"  {note}"
    yield from _blames(report)
    yield ""
    yield from _plan(report)
    for rule in report.rules:
        yield ""
        yield from _text(rule)


def _blames(report: Report) -> Iterator[str]:
    shown = _shown_blames(report)
    if not shown:
        return
    yield ""
    alone = len(shown[0].conditions) == 1
    if report.matches:
        yield "More would match without" if alone else "More would match without two conditions at once"
    elif not alone:
        yield "No single condition is to blame; it would match without these two" + (
            ", or these" if len(shown) > 1 else ""
        )
    elif shown[0].likely:
        yield "One condition refuses it" if len(shown) == 1 else "Each of these conditions alone refuses it"
    else:
        yield "Nothing is a near miss; it would match if one of these were different"
    for blame in shown[: 2 * SHOWN]:
        yield f"  {' and '.join(blame.conditions)}{_refused(blame)}"
        for miss in blame.misses[:SHOWN]:
            yield from _miss(miss, "      ")
    if len(shown) > 2 * SHOWN:
        yield f"  … and {len(shown) - 2 * SHOWN} more (--json has all)"


def _shown_blames(report: Report) -> list[Blame]:
    return [blame for blame in report.blames if blame.likely] or list(report.blames)[:SHOWN]


def _refused(blame: Blame) -> str:
    if blame.kinds == ("term",) or blame.kinds == ("where",):
        return ""
    if blame.refused <= 1 and blame.exact:
        return ""
    count = f"{blame.refused}" if blame.exact else f"at least {blame.refused}"
    more = "" if len(blame.misses) >= blame.refused and blame.exact else ", the nearest"
    return f"   refuses {count}{more}"


def _miss(miss: Miss, lead: str) -> Iterator[str]:
    if miss.shown:
        yield f"{lead}{miss.shown}"
        lead += "  "
    yield from (f"{lead}{text}" for text in miss.because)


def _plan(report: Report) -> Iterator[str]:
    """The tree with its counts; if no single condition is to blame, with the nearest misses of each part."""
    likely = any(blame.likely and len(blame.conditions) == 1 for blame in report.blames)
    title = "How many solutions each part has"
    rows = list(_rows(report.plan, "", "", not likely))
    width = max(len(title), *(min(len(text), WIDTH) for text, node in rows if node is not None))
    yield (
        f"{title:<{width}}  {'asked for':>9}  {'in all':>6}"
        if report.restricted
        else f"{title:<{width}}  {'in all':>6}"
    )
    for text, node in rows:
        if node is None:
            yield text
            continue
        counts = f"{node.wanted!s:>9}  {node.all!s:>6}" if report.restricted else f"{node.all!s:>6}"
        yield f"{text:<{width}}  {counts}{'  ←' if node.broken else ''}"


def _rows(node: Node, first: str, rest: str, misses: bool) -> Iterator[tuple[str, Node | None]]:
    yield first + node.title, node
    bar = "│  " if node.parts else "   "
    shown = node.misses[:SHOWN] if misses else ()
    for line in (*node.notes, *(line for miss in shown for line in _miss(miss, ""))):
        yield f"{rest}{bar}· {line}", None
    for i, part in enumerate(node.parts):
        last = i == len(node.parts) - 1
        yield from _rows(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), misses)
