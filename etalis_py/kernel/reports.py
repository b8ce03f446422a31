"""Checks on reading reports: answers of an ASK after the first are left out, and too many matches are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

from etalis_py.kernel.batch import Report, as_reported
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits


def check_matches(reports: Sequence[Report], limits: Limits, render: Callable[[int], int | str]) -> None:
    """Fail if a single instant has more matches than the limit."""
    rows: dict[int, int] = {}
    for _, t, some in as_reported(reports, one_by_one=True):
        rows[t] = rows.get(t, 0) + len(some)
    t, most = max(rows.items(), key=itemgetter(1))
    if most > limits.matches:
        raise LimitExceeded(
            f"{most} matches in the instant {render(t)}, the limit is {limits.matches}; narrow the query "
            "with a FILTER, WITHIN or a join variable, use a consuming policy, or raise Limits(matches=…)"
        )


def first_answers(reports: Iterable[Report], once: Mapping[int, str], answered: set[str]) -> list[Report]:
    """The reports, with only the first answer of each ASK.

    ``once`` has the ASK queries by the numbers of their outputs, ``answered`` those that have answered before; those
    that answer now are added to it.
    """
    first = []
    for report in reports:
        number, t, rows = report
        query = once.get(number)
        if query is None:
            first.append(report)
            continue
        if query in answered:
            continue
        answered.add(query)
        row = rows[0]
        first.append((number, t, [row if row[2:] == ("false",) else (row[0], row[1], "true")]))
    return first
