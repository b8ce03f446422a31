"""Columns report what rows report, over random programs and streams, however the input is cut into batches."""

from __future__ import annotations

from collections import Counter

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings

from etalis_py import Engine
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.executors.columns.judge import agree, reason_for_rows
from tests.oracle import strategies
from tests.oracle.strategies import Case

pytestmark = pytest.mark.usefixtures("forgetful")

reasons: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _share(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Say at the end how many of the drawn programs ran whole in columns."""
    yield
    total = reasons.total()
    whole = reasons["whole"]
    lines = [f"{whole} of {total} drawn programs ran whole in columns ({100 * whole // max(total, 1)} %)"]
    lines += [f"  {count:5} {reason}" for reason, count in reasons.most_common() if reason != "whole"]
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")
    terminal.write_line("\n" + "\n".join(lines))


@pytest.mark.parametrize("group", sorted(strategies.ALL))
def test_the_same_reports(group: str) -> None:
    @settings(max_examples=examples(2 / 15))
    @given(strategies.ALL[group]())
    def test(case: Case) -> None:
        def making(executor: str) -> Engine:
            return engine_for(case, executor=executor)

        try:
            making("rows")
        except QueryError:
            return
        nothing = agree(making, case.events)
        reasons[_kind(reason_for_rows(making("columns")), "in part: " if nothing is None else "")] += 1

    test()


def _kind(reason: str | None, how: str) -> str:
    if reason is None:
        return "whole"
    return how + ("recursive" if "recursive" in reason else "beside one in rows" if "shares" in reason else reason)
