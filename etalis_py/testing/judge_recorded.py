"""Checks whether the recorded output of an engine is right ([RSPQL] Definitions 25 and 26).

A query of C-SPARQL, CQELS or SPARQLstream leaves open when its first windows opened.  Its output is right if there is a
t0 for each of its windows with which RSP-QL gives the same answers; by Theorem 1 it is enough to try the t0 within one
slide of the registration time.  The comparison starts at the latest t0 that was tried (Definition 26): anything before
it belongs to the start-up of the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from etalis_compiler.rsp import Sliding

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program, compile
from etalis_py.events import Event
from etalis_py.executors.windows.executor import Evaluation
from etalis_py.values import decode, decode_number, eq
from etalis_py.values.types import to_double

SECOND = 1_000_000
MAX_COMBINATIONS = 100_000


class Unjudgeable(ValueError):
    """The output cannot be judged: several queries at a time, or too many combinations of t0."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer of an engine: when it was given in microseconds, and its rows (variable → term as N-Triples).

    A ``time`` of None means that times are not compared: the answers then only need to be in the right order.
    """

    rows: tuple[Mapping[str, str], ...]
    time: int | None = None


def which_t0(
    query: str | Program,
    stream: Iterable[Event],
    recorded: Iterable[Recorded],
    *,
    registered: int = 0,
    unit: int = SECOND,
    preset: str = "",
    **options: Any,
) -> list[tuple[int, ...]]:
    """The t0 (one for each sliding window, in the order of the text) for which the recorded output is right.

    Empty: the engine is wrong, or its clock or query is not as stated.  ``registered`` is the time a from which t0 is
    searched, in steps of ``unit`` (the unit of the engine's clock).  ``preset`` and ``options`` are those of
    ``compile`` and ``Engine``.
    """
    program = compile(query, preset=preset) if isinstance(query, str) else query
    if len(program.plans) != 1 or program.compilation.queries:
        raise Unjudgeable(f"one windowed query is judged at a time; this program has {', '.join(program.queries)}")
    events, given = list(stream), list(recorded)
    combinations = list(_combinations(program, registered, unit))
    begin = max((t for t0 in combinations for t in t0), default=registered)
    right = []
    for t0 in combinations:
        answers = _answers(with_t0(program, t0), events, options)
        if _agree(given, [a for a in answers if a.time is not None and a.time >= begin], begin):
            right.append(t0)
    return right


def with_t0(program: Program, t0: Sequence[int]) -> Program:
    """The program with its sliding windows starting at these times (microseconds, in the order of the text)."""
    times = iter(t0)

    def moved(shape: Any) -> Any:
        return replace(shape, t0=next(times)) if isinstance(shape, Sliding) else shape

    plans = tuple(replace(p, windows=tuple(replace(w, shape=moved(w.shape)) for w in p.windows)) for p in program.plans)
    return replace(program, plans=plans)


def _combinations(program: Program, registered: int, unit: int) -> Iterator[tuple[int, ...]]:
    """The t0 to try, one for each window: every time of the clock from the registration on, within one slide.

    In the paper these are Z, the product of the sets T0 = {a, a + 1, …, a + β − 1}.
    """
    slides = [w.shape.slide for p in program.plans for w in p.windows if isinstance(w.shape, Sliding)]
    number = 1
    for slide in slides:
        number *= max(1, slide // unit)
    if number > MAX_COMBINATIONS:
        raise Unjudgeable(
            f"there are {number:,} combinations of t0 to try, the limit is {MAX_COMBINATIONS:,}: give a larger unit "
            "(the one in which the stream's times are whole)"
        )
    return product(*(range(registered, registered + max(slide, unit), unit) for slide in slides))


def _answers(program: Program, events: list[Event], options: Mapping[str, Any]) -> list[Recorded]:
    heard: list[Evaluation] = []
    engine = Engine(program, listen=heard.append, **options)
    engine.push_all(events)
    engine.close()
    return [Recorded(tuple(m.bindings for m in a.matches), a.time) for a in heard]


def _agree(given: list[Recorded], answers: list[Recorded], begin: int) -> bool:
    """Whether the non-empty answers are the same multisets of rows, at the same times where times were recorded."""
    timed = all(r.time is not None for r in given)
    if timed:
        given = [r for r in given if r.time is not None and r.time >= begin]
    right = [r for r in answers if r.rows]
    judged = [r for r in given if r.rows]
    if not timed:  # the start-up cannot be cut off: the recorded answers must end as the right ones do
        judged = judged[max(0, len(judged) - len(right)) :]
    return len(judged) == len(right) and all(
        (not timed or a.time == b.time) and same_rows(a.rows, b.rows) for a, b in zip(judged, right, strict=True)
    )


def same_rows(rows: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]]) -> bool:
    """Whether the rows are the same multiset.

    Numbers are compared by SPARQL's ``=`` ("77.0" and "77" are the same), every other term by its spelling.
    """
    if len(rows) != len(others):
        return False
    alike: defaultdict[frozenset[tuple[str, Any]], list[Mapping[str, str]]] = defaultdict(list)
    for row in others:
        alike[_rounded(row)].append(row)
    for row in rows:
        candidates = alike[_rounded(row)]
        place = next((i for i, other in enumerate(candidates) if all(_same(row[v], other[v]) for v in row)), None)
        if place is None:
            return False
        del candidates[place]
    return True


def _rounded(row: Mapping[str, str]) -> frozenset[tuple[str, Any]]:
    """A key that is equal for rows that may be the same: numbers rounded to a double."""
    numbers = {v: decode_number(term) for v, term in row.items()}
    return frozenset((v, term if (n := numbers[v]) is None else to_double(n)) for v, term in row.items())


def _same(a: str, b: str) -> bool:
    return a == b or (decode_number(a) is not None and decode_number(b) is not None and eq(decode(a), decode(b)))
