"""Checks on reading reports: answers of an ASK after the first are left out, and too many matches are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from etalis_py.kernel.batch import Report, as_reported
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits


def drop_reports(reports: list[Report], t: int) -> None:
    """Drop what was reported at ``t`` or later, where an instant was interrupted."""
    reports[:] = [report for report in as_reported(reports, one_by_one=True) if report[1] < t]


def check_matches(
    reports: Sequence[Report], limits: Limits, render: Callable[[int], int | str]
) -> tuple[list[Report], LimitExceeded] | None:
    """If an instant has more matches than the limit: the reports before the first such instant, and the error."""
    rows: dict[int, int] = {}
    ordered = as_reported(reports, one_by_one=True)
    for _, t, some in ordered:
        rows[t] = rows.get(t, 0) + len(some)
    first = min((t for t, count in rows.items() if count > limits.matches), default=None)
    if first is None:
        return None
    return [report for report in ordered if report[1] < first], LimitExceeded(
        f"{rows[first]} matches in the instant {render(first)}, the limit is {limits.matches}; narrow the query "
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
