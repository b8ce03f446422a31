"""The events that an engine left out, for its user to look at and to empty."""

from __future__ import annotations

import warnings

from etalis_py.events import Event

MANY = 100_000
"""More than one step of a run brings: whoever empties the list after each step is never warned."""


class LateEvents(list[Event]):
    """A list that warns once when nobody seems to empty it."""

    _warned = False

    def append(self, event: Event) -> None:
        """Keep one more."""
        super().append(event)
        if len(self) == MANY and not self._warned:
            self._warned = True
            warnings.warn(
                f"{MANY:,} events that came too late are kept in dead_letters: empty it from time to time "
                "(engine.dead_letters.clear()), and allow for late events with lateness='5 seconds' or more",
                stacklevel=2,
            )
