"""Which form is faster for rules that columns evaluate row by row: measured on the first batches, and remembered.

``MEASURED`` rows are taken in rows, then as many in columns; the form that took less time takes what follows.  The
first batch in columns is not counted, as it loads kernels and converts goals.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MEASURED = 1 << 13
"""The rows that are measured in each form."""


@dataclass(slots=True)
class Trial:
    """The time and the rows of each form so far; ``decided`` says whether columns take what follows."""

    decided: bool | None = None
    _seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])
    _rows: list[int] = field(default_factory=lambda: [0, 0])
    _loaded: bool = False
    _began: float = 0.0

    @property
    def in_columns(self) -> bool:
        """Whether the next batch is for columns."""
        return self._rows[0] >= MEASURED if self.decided is None else self.decided

    def begin(self) -> None:
        """A batch begins."""
        self._began = time.process_time()

    def end(self, rows: int, *, columns: bool) -> None:
        """A batch of so many rows is over."""
        if self.decided is not None or not rows:
            return
        if columns and not self._loaded:
            self._loaded = True
            return
        self._seconds[columns] += time.process_time() - self._began
        self._rows[columns] += rows
        if min(self._rows) >= MEASURED:
            self.decided = self._seconds[True] * self._rows[False] < self._seconds[False] * self._rows[True]
