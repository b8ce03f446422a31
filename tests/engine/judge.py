"""Running one case through the engine and through the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.pipeline import compile_documents
from hypothesis import reject

from etalis_py import Engine, Event, LimitExceeded, Limits, Match
from etalis_py.engine.program import Program
from etalis_py.knowledge import Knowledge, load
from tests.oracle import Asked, Background, Derived, Endless, Refused, Row, Undetermined, Unstratified, evaluation
from tests.oracle.compare import same
from tests.oracle.strategies import Case
from tests.oracle.traces import in_short, queries


def knowledge_of(background: Background) -> Knowledge | None:
    """The oracle's background as the engine's, without entailment."""
    named = {name: list(triples) for name, triples in (background.named or {}).items()}
    if not background.default and not named:
        return None
    return (
        load([list(background.default)] if background.default else [], named={}, entailment="rdf", cache=False)
        if (not named)
        else load(
            [list(background.default)] if background.default else [],
            named={k: [v] for k, v in named.items()},
            entailment="rdf",
            cache=False,
        )
    )


def engine_for(case: Case, **options: Any) -> Engine:
    return Engine(program_of(case.program), policy=case.policy, background=knowledge_of(case.background), **options)


@lru_cache(maxsize=8)
def program_of(document: ast.Document) -> Program:
    """A drawn program, compiled once for all engines of a case."""
    return Program(compile_documents([(document, Source("", "<case>"))]))


def answers_of(matches: Iterable[Match], names: Iterable[str], document: Any) -> dict[str, Any]:
    """The engine's matches in the form of the oracle's answers."""
    found: dict[str, Any] = {}
    rows: dict[str, list[Match]] = {}
    for match in matches:
        rows.setdefault(match.query, []).append(match)
    for name, query in zip(names, document.queries, strict=True):
        mine = rows.get(name, [])
        match query.form:
            case ast.Ask():
                assert len(mine) == 1, f"an ASK answers once, not {len(mine)} times"
                found[name] = Asked(bool(mine[0].boolean), mine[0].end_us if mine[0].boolean else None)
            case ast.Construct():
                found[name] = [Derived(frozenset(m.triples or ()), m.start_us, m.end_us) for m in mine if m.triples]
            case _:
                found[name] = [Row(m.bindings, m.start_us, m.end_us) for m in mine]
    return found


def run(case: Case, feed: Callable[[Engine], Iterable[Match]] | None = None, **options: Any) -> dict[str, Any]:
    engine = engine_for(case, **options)
    matches = feed(engine) if feed else [*engine.push_all(case.events), *engine.close()]
    names = [o.query for o in engine.rules.outputs]
    return answers_of(matches, names, case.program)


def in_rows_and_columns(text: str, *events: Event, policy: str = "unrestricted") -> list[Any]:
    """The last query's answer as ``tests.oracle.traces.run`` gives it, by each of the engine's executors."""
    case = Case(queries(text), events, policy=policy)
    return [in_short(list(run(case, executor=executor).values())[-1]) for executor in ("rows", "columns")]


def agree(case: Case, **options: Any) -> None:
    """The engine answers as the oracle does, or both refuse the program.

    The engine refuses what may be timeless, the oracle what is.
    """
    try:
        ties = options.get("ties")
        expected = evaluation(case.program, case.events, case.background, case.policy, ties=ties).answers
    except (Unstratified, Refused) as refused:
        codes = {"unstratified", "timeless-side", "exists-across", "seq-optional"} | (
            {"not-backwards"} if _only_forward(case) else set()
        )
        try:
            engine_for(case, **options)
        except QueryError as error:
            assert error.diagnostics[0].code in codes  # noqa: PT017
            return
        raise AssertionError(f"the oracle refuses the program ({refused}), the engine takes it") from None
    except Endless:
        with pytest.raises(LimitExceeded):
            run(case, **options, limits=Limits(rounds=50))
        return
    except Undetermined:
        reject()
    try:
        actual = run(case, **options)
    except QueryError as error:
        if _only_forward(case) and error.diagnostics[0].code == "not-backwards":
            reject()
        if error.diagnostics[0].code in ("seq-optional", "late-side"):
            reject()  # several optional parts share what may be unbound; or what decides would look back at late events
        if error.diagnostics[0].code not in _MAY_BE_TIMELESS or case.background == Background():
            raise
        reject()  # the background might hold what it does not hold
    assert expected.keys() == {*actual}
    for name, mine in actual.items():
        assert same(expected[name], mine), difference(expected[name], mine)


_MAY_BE_TIMELESS = frozenset({"timeless-side", "timeless-mandatory"})
"""The codes of refusals because of what the background might hold."""


def _only_forward(case: Case) -> bool:
    """Whether some query has EVENT, or START in an EXISTS: refused where a pattern is looked for backwards."""
    asked = [node for node in ast.walk(case.program) if isinstance(node, ast.EventGroup | ast.Exists)]
    return any(isinstance(node, ast.EventGroup | ast.Start) for part in asked for node in ast.walk(part))


def difference(expected: Any, actual: Any) -> str:
    if isinstance(expected, Asked) or isinstance(actual, Asked):
        return f"oracle {expected}, engine {actual}"
    wanted, got = Counter(map(_key, expected)), Counter(map(_key, actual))
    lines = [f"missing {k} × {n}" for k, n in (wanted - got).items()]
    lines += [f"too much {k} × {n}" for k, n in (got - wanted).items()]
    return "\n".join(lines) or "blank nodes differ"


def _key(row: Any) -> Any:
    if isinstance(row, Row):
        return tuple(sorted(row.bindings.items())), row.start, row.end
    return tuple(sorted(row.triples)), row.start, row.end


def matches_whatever_snapshot(program: Program, events: Sequence[Event], **options: Any) -> list[Match]:
    """The matches of the events; an engine that goes on from a snapshot, taken after any of them, finds the rest."""
    whole = Engine(program, **options)
    expected = [*whole.push_all(events), *whole.close()]
    for cut in range(len(events) + 1):
        first, second = Engine(program, **options), Engine(program, **options)
        found = [*first.push_all(events[:cut])]
        second.restore(first.snapshot())
        found += [*second.push_all(events[cut:]), *second.close()]
        assert [m.to_dict() for m in found] == [m.to_dict() for m in expected]
    return expected


def event_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda e: e.end)
