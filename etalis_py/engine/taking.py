"""An engine takes what Python users have: events, frames, dicts, files (see ``inputs``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from types import MappingProxyType
from typing import Any, Unpack

from etalis_py.engine.inputs import opened, parts_of
from etalis_py.engine.tie_order import refuse_other_ties
from etalis_py.events import Dated, Event
from etalis_py.events.clock import render_datetime
from etalis_py.kernel.batch import InColumns
from etalis_py.kernel.kernel import Kernel, RecordOptions
from etalis_py.kernel.matches import Matches, join_matches
from etalis_py.kernel.options import Render, adaptable
from etalis_py.streams import Punctuation, Stream
from etalis_py.streams.drafting import Naming, naming_of
from etalis_py.streams.pushed import PushedRecords
from etalis_py.streams.records import is_record
from etalis_py.streams.refusals import check_complete, check_items, shown
from etalis_py.streams.unread import Unread
from etalis_py.values.keywords import check_keywords


def _given(call: str, options: RecordOptions) -> tuple[Any, str, str | None]:
    check_keywords(call, options, RecordOptions.__annotations__)
    return options.get("mapping"), options.get("time", ""), options.get("subject", "")


class Taking(Kernel):
    """What ``push`` and ``push_all`` do with things that are not simply events."""

    _show: Callable[[Render], None]
    _records: PushedRecords | None = None
    _prefixes: Mapping[str, str] = MappingProxyType({})

    def _showing(self, render: Render | None) -> Render:
        """How times are shown: as given, or else as the input spells them."""
        if render is not None:
            self._show = lambda _: None
            return render
        render, self._show = adaptable()
        return render

    def _know_prefixes(self, prefixes: Mapping[str, str], *, alone: bool) -> None:
        """Read records by the prefixes of one more program, so that its names are theirs.

        Unless it is alone, prefixes that are known keep their meaning.
        """
        self._prefixes = prefixes if alone else {**prefixes, **self._prefixes}
        if self._records is not None:
            self._records.change_prefixes(self._prefixes)

    def show_times(self, render: Render) -> None:
        """Show times so from now on, unless the options of the engine say how."""
        self._show(render)

    def push_all(self, events: Any, **options: Unpack[RecordOptions]) -> Matches:
        """Take events in order; returns the matches of the instants that they closed.

        They are given as ``run`` takes them: a list or iterator of events, a frame, a file or a stream with an end, or,
        with a ``mapping`` from columns or keys to triples, any frame and any list or iterator of dicts.
        ``time`` and ``subject`` name columns in place of a mapping, as for ``run``; the empty prefix of the programs
        begins their names.  Nothing is drafted here, since the next rows might be drafted differently.
        """
        mapping, time, subject = _given("push_all", options)
        plain = mapping is None and not time and subject == ""
        if not (plain and type(events) is list and events and type(events[0]) is Event):
            if plain and isinstance(events, InColumns):
                return super().push_all(events)
            events = self._recognized(events, mapping, naming_of(time, subject, mapping))
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
        revise, prefixes = bool(self.options.revise), self._prefixes
        events = opened(given, mapping, naming, drafts=False, revise=revise, in_order=in_order, prefixes=prefixes)
        if isinstance(events, Stream):
            return events
        once = isinstance(events, Unread)
        items = iter(events)
        first = next(items, None)
        if isinstance(first, Dated):
            self._show(render_datetime)
        if items is not events and not once:
            return events
        return items if first is None else chain((first,), items)

    def _push_stream(self, stream: Stream) -> Matches:
        """Take a whole stream, and time where it says that it has passed."""
        self._refuse_ties_of(stream.ties)
        self._show(stream.render)
        matches = [super().push_all(())]
        for part in parts_of(stream, as_records=self.reads_records):
            matches.append(self.advance(part.time) if isinstance(part, Punctuation) else super().push_all(part))
        return join_matches(matches)

    def _refuse_ties_of(self, said: Set[str]) -> None:
        """Refuse a mapping that orders events of one time otherwise than the engine."""
        ties = self.options.ties
        refuse_other_ties(said, ties, f"the engine has ties={ties!r}: give it the same when it is made")

    def _take_other(self, given: Any, options: RecordOptions) -> Matches | None:
        mapping, time, subject = _given("push", options)
        naming = naming_of(time, subject, mapping)
        if isinstance(given, Event) and mapping is None and not naming:
            if isinstance(given, Dated):
                self._show(render_datetime)
            return None
        if isinstance(given, Event) or (is_record(given) and mapping is None and not naming):
            return self.push_all([given], mapping=mapping, time=time, subject=subject)
        if is_record(given):
            return self._push_record(given, mapping, naming)
        raise TypeError(
            "push takes one event, as event(':a :price 3', 5) gives it, or one dict with time=… and subject=…, or with "
            f"mapping=…, not {shown(given)}; push_all takes several, as a list, a frame or a file"
        )

    def _push_record(self, record: Any, mapping: Any, naming: Naming) -> Matches:
        if mapping is None:
            check_complete(naming)
        if self._records is None:
            self._records = PushedRecords(
                lambda clock: self._show(clock.render), lambda ties: self._refuse_ties_of({ties}), self._prefixes
            )
        items = self._records.items(record, mapping, naming)
        if len(items) == 1 and type(items[0]) is Event:
            return super().push(items[0])
        return self.take_plain(items)
