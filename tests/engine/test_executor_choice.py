"""Which executor runs rules and windows, and the reason where it is that of rows."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from etalis_py import Engine, compile, event, run
from etalis_py.engine.executor_choice import NO_NUMBA, choose, warn_without_numba
from etalis_py.executors.columns.executor import ColumnExecutor
from etalis_py.executors.columns.window_executor import ColumnWindowExecutor
from etalis_py.kernel.options import Options

RULE = "SELECT ?x { { ?c :p ?x } SEQ { ?c :q ?y } }"
WINDOW = (
    "REGISTER QUERY w AS SELECT ?c (SUM(?x) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S SLIDE PT2S] "
    "WHERE { WINDOW :w { ?c :p ?x } } GROUP BY ?c"
)


@pytest.mark.parametrize(
    ("options", "rules", "windows"),
    [
        ({}, None, None),
        ({"executor": "columns"}, None, None),
        ({"executor": "rows"}, "the option executor says so", "the option executor says so"),
        ({"explain": True}, "explanations are kept", "explanations or a journal are kept"),
        ({"journal": True}, None, "explanations or a journal are kept"),
        ({"duplicates": True}, None, "a window is a bag"),
        ({"listen": print}, None, "each evaluation is listened to"),
    ],
)
def test_the_engine_has_the_executors_that_were_chosen(
    options: dict[str, Any], rules: str | None, windows: str | None
) -> None:
    program = compile([RULE, WINDOW])
    choice = choose(program.plans, program.rules(), Options(**options))
    assert choice.rules is not None
    assert (choice.rules.reason, choice.windows) == (rules, windows)
    engine = Engine(program, **options)
    ((_, of_rules),), (of_windows,) = engine._rule_stages, engine._windows
    assert isinstance(of_rules, ColumnExecutor) == (rules is None)
    assert isinstance(of_windows, ColumnWindowExecutor) == (windows is None)


def test_pushes_that_close_their_instant_are_too_small_for_columns() -> None:
    (stage,) = Engine(RULE, eager=True)._rule_stages
    assert not isinstance(stage[1], ColumnExecutor)
    choice = choose((), compile(RULE).rules(), Options(eager=True))
    assert choice.rules is not None
    assert choice.rules.reason == "every push closes its instant"


def test_without_numba_everything_runs_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.engine.executor_choice.find_spec", lambda name: None)
    program = compile([RULE, WINDOW])
    choice = choose(program.plans, program.rules())
    assert choice.rules is not None
    assert choice.rules.reason == choice.windows == NO_NUMBA
    assert not isinstance(Engine(program)._rule_stages[0][1], ColumnExecutor)


def test_a_large_input_without_numba_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.engine.executor_choice.find_spec", lambda name: None)
    monkeypatch.setattr("etalis_py.engine.driver.LARGE", 3)
    warn_without_numba.cache_clear()
    events = [event(":a :p 1", n) for n in range(3)]
    list(run(RULE, events[:2]))  # too few to tell
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            list(run(RULE, events))
    (text,) = [str(one.message) for one in told if NO_NUMBA in str(one.message)]
    assert "pip install 'etalis-py[columns]'" in text
    warn_without_numba.cache_clear()
