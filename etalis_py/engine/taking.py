"""An engine takes what Python users have: events, frames, dicts, files (see ``inputs``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from etalis_py.engine.inputs import check_items, opened, parts_of, shown
from etalis_py.events import Dated, Event
from etalis_py.kernel.batch import Columns
from etalis_py.kernel.kernel import Kernel
from etalis_py.kernel.matches import Matches, as_one
from etalis_py.kernel.options import Render, adaptable
from etalis_py.streams import Punctuation, Stream
from etalis_py.streams.clock import render_datetime
from etalis_py.streams.drafting import Naming
from etalis_py.streams.records import is_record


class Taking(Kernel):
    """What ``push`` and ``push_all`` do with things that are not simply events."""

    _show: Callable[[Render], None]

    def _showing(self, render: Render | None) -> Render:
        """How times are shown: as given, or else as the input spells them."""
        if render is not None:
            self._show = lambda _: None
            return render
        render, self._show = adaptable()
        return render

    def push_all(self, events: Any, *, mapping: Any = None, time: str = "", subject: str | None = "") -> Matches:
        """Take events in order; returns the matches of the instants that they closed.

        They are given as ``run`` takes them: a list or iterator of events, a frame, a file or a stream with an end, or,
        with a ``mapping`` from columns or keys to triples, any frame and any list or iterator of dicts.
        ``time`` and ``subject`` name columns in place of a mapping, as for ``run``.  Nothing is drafted here, since the
        next rows might be drafted differently.
        """
        plain = mapping is None and not time and subject == ""
        if not (plain and type(events) is list and events and type(events[0]) is Event):
            if plain and isinstance(events, Columns):
                return super().push_all(events)
            events = self._recognized(events, mapping, Naming(time, subject))
            if isinstance(events, Stream):
                return self._push_stream(events)
        try:
            return super().push_all(events)
        except (TypeError, ValueError, LookupError):
            if isinstance(events, Sequence):
                check_items(events)
            raise

    def take_plain(self, events: Iterable[Any]) -> Matches:
        """Take events, or plain tuples of their fields, that are known to be right."""
        return super().push_all(events)

    def _recognized(self, given: Any, mapping: Any, naming: Naming) -> Any:
        """What was given as a stream or as events; if the first has a date, matches show dates from now on."""
        in_order = not (self.lateness or self.options.revise)
        events = opened(given, mapping, naming, drafts=False, revise=bool(self.options.revise), in_order=in_order)
        if isinstance(events, Stream):
            return events
        items = iter(events)
        first = next(items, None)
        if isinstance(first, Dated):
            self._show(render_datetime)
        if items is not events:
            return events
        return items if first is None else chain((first,), items)

    def _push_stream(self, stream: Stream) -> Matches:
        """Take a whole stream, and time where it says that it has passed."""
        self._show(lambda us: stream.clock.render(us))
        matches = [super().push_all(())]
        for part in parts_of(stream):
            matches.append(self.advance(part.time) if isinstance(part, Punctuation) else super().push_all(part))
        return as_one(matches)

    def _take_other(self, given: Any, mapping: Any) -> Matches | None:
        if isinstance(given, Event) and mapping is None:
            if isinstance(given, Dated):
                self._show(render_datetime)
            return None
        if isinstance(given, Event) or is_record(given):
            return self.push_all([given], mapping=mapping)
        raise TypeError(
            "push takes one event, as event(':a :price 3', 5) gives it, or one dict with mapping=…, not "
            f"{shown(given)}; push_all takes several, as a list, a frame or a file"
        )
