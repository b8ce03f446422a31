"""Which executor runs the rules and the windows of a program, and why it is that of rows where it is.

What depends on the options and the text is decided here, once.  What depends on the events (how many come at a time,
whether they have a form in columns) the executor of columns decides for each batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from etalis_compiler.rsp import Fact, WindowPlan
from etalis_rules import program as ir

from etalis_py.executors.columns.rows_or_columns import Division, all_in_rows, divide
from etalis_py.executors.columns.supported_windows import unsuited_steps
from etalis_py.kernel.options import Options

NO_NUMBA = "Numba is not installed"


@dataclass(frozen=True, slots=True)
class Choice:
    """How large batches run.

    ``rules``: of each query why it runs in rows, if it does; None without rules.  ``windows``: why windowed queries and
    facts run in rows; None if they need not.
    """

    rules: Division | None
    windows: str | None


def choose(
    steps: Sequence[WindowPlan | Fact], rules: ir.Rules, options: Options | None = None, knowledge: Any = None
) -> Choice:
    """The executors of these windowed queries and facts, and of these rules, over this background."""
    options = options or Options()
    division = None
    if rules.outputs:
        reason = rules_in_rows(options)
        division = divide(rules, knowledge) if reason is None else all_in_rows(rules, reason)
    return Choice(division, windows_in_rows(steps, options) if steps else None)


def rules_in_rows(options: Options) -> str | None:
    """Why all rules run in rows, whatever they are; None if the rules themselves decide."""
    if options.explain:
        return "explanations are kept"
    if options.eager:
        return "every push closes its instant"
    if options.ties is not None:
        return "events of one time have an order"
    return _asked(options)


def windows_in_rows(steps: Sequence[WindowPlan | Fact], options: Options) -> str | None:
    """Why these windowed queries and facts run in rows; None if the events decide."""
    if options.explain or options.journal:
        return "explanations or a journal are kept"
    if options.listen is not None:
        return "each evaluation is listened to"
    if options.duplicates:
        return "a window is a bag"
    return _asked(options) or unsuited_steps(steps)


def _asked(options: Options) -> str | None:
    if options.executor == "rows":
        return "the option executor says so"
    return NO_NUMBA if find_spec("numba") is None else None


@cache
def warn_without_numba() -> None:
    """Say once, where much is read, what would be quicker."""
    if find_spec("numba") is None:
        text = "large inputs are run in rows, several times slower; pip install 'etalis-py[columns]'"
        warnings.warn(f"{NO_NUMBA}: {text}", stacklevel=2)
