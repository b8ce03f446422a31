"""Events that rules derive of the past: a row that changes because something left ends before its instant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.judge import agree, in_rows_and_columns
from tests.oracle import past_strategies
from tests.oracle.strategies import Case

COUNTS = "CONSTRUCT { ?x :d ?n } WHERE { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } WITHIN 2 s GROUP BY ?x } ;"


@pytest.mark.parametrize("kind", past_strategies.ALL)
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_drawn_readers(kind: str, executor: str) -> None:
    @given(past_strategies.ALL[kind]())
    def agrees(case: Case) -> None:
        agree(case, executor=executor)

    agrees()
