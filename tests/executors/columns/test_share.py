"""How many programs run whole in columns: of those that the judges draw, and of those that are shipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import etalis_rules
import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import HealthCheck, Phase, given, settings

from etalis_py import compile
from tests.engine.judge import engine_for
from tests.executors.columns.judge import reason_for_rows, rule_executors
from tests.oracle import strategies
from tests.oracle.strategies import Case

FLOOR = 0.9
"""At least so many of the drawn programs, which are the same in each run."""


def test_most_drawn_programs_run_whole_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    reasons: Counter[str | None] = Counter()
    by_instant: Counter[bool] = Counter()
    parted: Counter[bool] = Counter()
    for group in sorted(strategies.ALL):

        @settings(max_examples=40, phases=[Phase.generate], derandomize=True, suppress_health_check=list(HealthCheck))
        @given(strategies.ALL[group]())
        def draw(case: Case) -> None:
            try:
                engine = engine_for(case, executor="columns")
            except QueryError:
                return
            reasons[reason_for_rows(engine)] += 1
            (executor,) = rule_executors(engine)
            parted[executor.reason is None and not executor.division.is_whole] += 1
            by_instant[bool(executor.division.by_row) and executor.division.is_whole] += 1

        draw()
    share = reasons[None] / reasons.total()
    with capsys.disabled():
        print(f"\n{reasons[None]} of {reasons.total()} drawn programs run whole in columns ({share:.0%}),")
        print(f"  {by_instant[True]} of them in part instant by instant; {parted[True]} others run in columns in part")
        print(*(f"  {count:3} {reason}" for reason, count in reasons.most_common() if reason), sep="\n")
    assert share >= FLOOR, reasons.most_common()


def test_shipped_queries_run_whole_in_columns_but_for_the_recursive_one() -> None:
    shipped = sorted((Path(etalis_rules.__file__).parent / "programs").rglob("*.rq"))
    assert shipped
    executors = {path.stem: compile(path).explain().executor for path in shipped}
    in_rows = {name: how for name, how in executors.items() if "in rows, because" in how}
    assert in_rows == {"next_sum": "run in rows, because the rules next_sum are recursive"}
