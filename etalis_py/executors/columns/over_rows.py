"""What an executor of columns leaves to the executor of rows that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from etalis_py.events import Event
from etalis_py.kernel.protocol import Executor
from etalis_py.kernel.shapes import Shape

Rows = TypeVar("Rows", bound=Executor)


class OverRows(Generic[Rows]):
    """Passes on the calls that do not depend on the form of goals or items; reports are those of the rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.rows_next = False

    @property
    def shapes(self) -> Sequence[Shape]:
        return self.rows.shapes

    @property
    def reports(self) -> list[Any]:
        return self.rows.reports

    @property
    def derived(self) -> list[Event]:
        return self.rows.derived

    @property
    def warnings(self) -> Iterator[str]:
        return self.rows.warnings

    @property
    def feeding(self) -> bool:
        return self.rows.feeding

    @feeding.setter
    def feeding(self, on: bool) -> None:
        self.rows.feeding = on

    @property
    def entries(self) -> int:
        return self.rows.entries

    def begin(self, t: int) -> None:
        self.rows.begin(t)

    def started(self, t: int | None) -> None:
        self.rows.started(t)

    def renew(self) -> None:
        self.rows.renew()

    def fitted(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.rows.fitted(state)

    def fitted_journal(self, entries: Sequence[Any]) -> Sequence[Any]:
        return self.rows.fitted_journal(entries)
