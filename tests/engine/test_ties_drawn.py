"""With ties the engine answers as the definitions say (docs/semantics.md, Ties), over random programs and streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.draws import examples
from tests.engine.judge import agree
from tests.oracle import event_strategies, strategies
from tests.oracle.strategies import Case

DRAWN: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "core": strategies.core,
    "negation": strategies.negation,
    "policies": strategies.policies,
    "aggregates": strategies.aggregates,
    "recursion": strategies.recursion,
    "stratified": strategies.stratified,
    "streams": strategies.several_streams,
    "background": strategies.background,
    "paths": strategies.paths,
    "relations": strategies.relations,
    "timed": strategies.timed,
    "optional parts": strategies.optional_parts,
    "series": strategies.one_after_another,
    "ended runs": strategies.ended_runs,
    "start": strategies.after_the_start,
    "timed policies": strategies.timed_policies,
    "timed aggregates": strategies.timed_aggregates,
    "timed rules": strategies.timed_rules,
    "timed negation": strategies.timed_stratified,
    "events": lambda: st.one_of(*(make() for make in event_strategies.ALL.values())),
}


@pytest.mark.parametrize("ties", ["source", "<urn:q>"])
@pytest.mark.parametrize("kind", DRAWN)
@settings(max_examples=examples(0.25))
@given(st.data())
def test_events_of_one_time_are_ordered_by_their_places(kind: str, ties: str, data: Any) -> None:
    case = data.draw(DRAWN[kind]())
    try:
        agree(case, ties=ties)
    except ValueError as error:
        if isinstance(error, QueryError) or "SKIP goes by the place" not in str(error):
            raise
        reject()
