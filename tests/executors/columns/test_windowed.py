"""Sums and counts over a sliding window, in columns: the same as in rows, also where a summand is no integer."""

from __future__ import annotations

import random

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from tests.executors.columns.judge import agree


@pytest.mark.parametrize("odd", ["", "x", "9" * 30])
@pytest.mark.parametrize("aggregate", ["SUM(?v)", "COUNT(*)"])
@pytest.mark.parametrize("window", ["3 EVENTS", "50 EVENTS", "PT5S"])
def test_the_row_of_each_instant(window: str, aggregate: str, odd: str) -> None:
    program = compile(f"SELECT ({aggregate} AS ?t) WHERE {{ ?s <urn:v> ?v }} WITHIN {window}")
    draw = random.Random(1)
    events = []
    for n in range(120):
        end = n // 2
        lexical = odd if odd and n == 60 else str(draw.randrange(1000))
        triple = (f"<urn:s{n % 10}>", "<urn:v>", f'"{lexical}"^^<{XSD}integer>')
        events.append(Event((end - draw.choice((0, 0, 3))) * 1_000_000, end * 1_000_000, (triple,)))
    assert agree(lambda executor: Engine(program, executor=executor), events, sizes=(7, 1000)) is None
