"""Sums and counts over a sliding window, in columns: the same as in rows, also where a summand is no integer."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, compile
from tests.executors.columns.judge import agree
from tests.work import growth


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


def test_a_window_with_groups_stays_in_columns_at_the_end() -> None:
    """What is left in it would be reported as it leaves; to move it to rows is as much work as there is in it."""

    def work(size: int) -> Callable[[], object]:
        text = "PREFIX : <urn:x:> SELECT ?s (AVG(?y) AS ?a) { ?s :p ?y } WITHIN 9 h GROUP BY ?s"
        engine = Engine(compile(text), executor="columns")
        engine.push_all(
            Event(n, n, ((f"<urn:x:{n % 7}>", "<urn:x:p>", f'"{n}"^^<{XSD}integer>'),)) for n in range(1, size + 1)
        )
        return engine.close

    assert growth(work, 500) < 1.2
