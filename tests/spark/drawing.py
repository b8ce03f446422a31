"""Random programs for Spark: every group of features, without a background."""

from __future__ import annotations

from etalis_compiler.diagnostics import QueryError
from hypothesis import strategies as st

from tests.engine.judge import engine_for
from tests.oracle import strategies
from tests.oracle.strategies import Case

DRAWN = st.one_of(
    strategies.core(),
    strategies.negation(),
    strategies.policies(),
    strategies.aggregates(),
    strategies.recursion(),
    strategies.paths(),
    strategies.several_streams(),
)


def is_accepted(case: Case) -> bool:
    try:
        engine_for(case)
    except QueryError:
        return False
    return True
