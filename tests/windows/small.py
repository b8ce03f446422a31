"""Small streams and short answers, so that tests read as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from etalis_rules.terms import is_literal, parts

from etalis_py import Engine, compile
from etalis_py.events import Event, Triple, event
from etalis_py.executors.windows.executor import Evaluation
from etalis_py.knowledge import Knowledge, load

SECOND = 1_000_000
EX = "http://example.org/"


def item(time: Any, triples: str, stream: str = "s", graph: str = "") -> Event:
    """An item of the stream ``:s``; times in seconds."""
    return event(triples, time, stream=f"<{EX}{stream}>", graph=f"<{EX}{graph}>" if graph else "")


def short(term: str) -> str:
    """``<http://example.org/a>`` as ``a``, a literal by its lexical form."""
    if is_literal(term):
        return parts(term)[0]
    return term.removeprefix(f"<{EX}").removesuffix(">") if term.startswith(f"<{EX}") else term


def show(match: Any) -> str:
    """``x=a y=b @[1, 6]``."""
    when = f"@[{match.start}, {match.end}]"
    if match.triples is not None:
        return ". ".join(" ".join(map(short, t)) for t in match.triples) + " " + when
    if match.boolean is not None:
        return f"{str(match.boolean).lower()} {when}"
    return " ".join([f"{v}={short(t)}" for v, t in sorted(match.bindings.items())] + [when])


def facts(turtle: str, named: Mapping[str, str] | None = None) -> Knowledge:
    """Background knowledge from Turtle: the default graph, and named ones."""
    graphs = {name: [_triples(text)] for name, text in (named or {}).items()}
    return load(_triples(turtle), named=graphs, entailment="rdf", cache=False)


def _triples(turtle: str) -> list[Triple]:
    return list(event(turtle, 0).triples) if turtle else []


def run(query: str, events: Iterable[Event], **options: Any) -> list[str]:
    """All that a program answers, in its order."""
    compiling = {k: options.pop(k) for k in ("preset", "prefixes") if k in options}
    engine = Engine(compile(query, **compiling), **options)
    found = list(engine.push_all(events))
    return [show(m) for m in [*found, *engine.close()]]


def evaluations(query: str, events: Iterable[Event], **options: Any) -> list[tuple[float, list[str]]]:
    """The evaluation times, each with its answer; in seconds."""
    heard: list[Evaluation] = []
    run(query, events, listen=heard.append, **options)
    return [(a.time / SECOND, [show(m).rsplit(" @", 1)[0] for m in a.matches]) for a in heard]
