"""Small traces for tests: ``at(3, "a p 1 ; b p c")`` and ``run(query, *events)``.

Words become terms: a number an integer literal, a quoted word a string, any other an IRI in the default namespace
``urn:``.  Times are written in seconds, and answers are given back in the same short notation.
"""

from __future__ import annotations

from typing import Any

from etalis_compiler import ast
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD, literal, parts

from etalis_py.events import Event

from . import Asked, Background, answers

SECOND = 1_000_000
PROLOGUE = f"PREFIX : <urn:> PREFIX xsd: <{XSD}> "
Short = tuple[str, float | None, float | None]


def term(word: str) -> str:
    if word.lstrip("-").isdigit():
        return literal(word, XSD + "integer")
    return word if word.startswith(('"', "_:")) else f"<urn:{word}>"


def short(spelling: str) -> str:
    if spelling.startswith("<urn:"):
        return spelling[5:-1]
    return parts(spelling)[0] if spelling.startswith('"') else "_"


def graph(text: str) -> list[tuple[str, str, str]]:
    """``"a p 1 ; b p c"`` as triples."""
    return [tuple(term(word) for word in line.split()) for line in text.split(";")]  # type: ignore[misc]


def at(time: float | tuple[float, float], text: str, stream: str = "") -> Event:
    start, end = time if isinstance(time, tuple) else (time, time)
    return Event(int(start * SECOND), int(end * SECOND), tuple(graph(text)), stream and f"<urn:{stream}>")


def background(default: str = "", **named: str) -> Background:
    triples = frozenset(graph(default)) if default else frozenset()
    return Background(triples, {f"<urn:{name}>": set(graph(text)) for name, text in named.items()})


def queries(text: str) -> ast.Document:
    return parse(PROLOGUE + text)


def run(text: str, *events: Event, policy: str = "unrestricted", knowing: Background | None = None) -> Any:
    """The last query's answer: ``[("x=a y=1", start, end), …]`` in the order of reporting, or an ASK's answer.

    A CONSTRUCT's row is its triples, ``"a p b"``, joined by ``;``.
    """
    return in_short(list(answers(queries(text), events, knowing, policy).values())[-1])


def in_short(answer: Any) -> Any:
    """An answer in the notation of ``run``."""
    if isinstance(answer, Asked):
        return answer.value, seconds(answer.instant)
    return [(_content(row[0]), seconds(row.start), seconds(row.end)) for row in answer]


def _content(content: Any) -> str:
    if isinstance(content, frozenset):
        return " ; ".join(sorted(" ".join(short(t) for t in triple) for triple in content))
    return " ".join(f"{v}={short(t)}" for v, t in sorted(content.items()))


def seconds(t: int | None) -> float | None:
    return None if t is None else t / SECOND
