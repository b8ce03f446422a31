"""Streams and predicates that a program asks for but no event has had: they are probably misspelt.

The census runs beside the engine, a batch at a time.  It looks at predicates until every one that the program asks for
has occurred, so it costs a correct program next to nothing.

>>> from etalis_py import compile, event
>>> census = UnseenNames(compile("SELECT ?x { ?c :pirce ?x }"))
>>> census.see([event(":acme :price 3", 1)])
>>> census.warnings()
('the predicate :pirce never occurred; did you mean :price? (spelt a little differently)',)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import RDF

from etalis_py.engine.first_events import FirstEvents
from etalis_py.engine.first_values import FirstValues
from etalis_py.engine.joined_records import JoinedRecords
from etalis_py.engine.shared_times import SharedTimes
from etalis_py.events import SOURCE_ORDER
from etalis_py.kernel.batch import Columns, InColumns, count_events
from etalis_py.streams.draft import local_names

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.events import Event

MOST = 2000  # names kept for comparison
_VOCABULARIES = (RDF, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#")


class UnseenNames:
    """Compares the streams and predicates that occurred with those that a program asks for.

    A predicate that every answer needs is reported if it never occurred; one that may be missing (in OPTIONAL, UNION,
    MINUS, NOT EXISTS) is reported only if a similar name did.  State: the distinct names, at most ``MOST`` of each.
    """

    def __init__(
        self, program: Program, notice: Callable[[str], None] | None = None, *, ties: str | None = None
    ) -> None:
        """``ties`` is the engine's option: with it events of one time have an order, and nothing is said of them.

        A predicate that orders them is one that is needed.
        """
        self._term = Spelling(program.prefixes).term
        units = program.units
        reads = {stream for unit in units for stream, _ in unit.reads}
        makes = {triple[1] for unit in units for triple in unit.makes} | {
            alg.constant_of(triple.predicate) for query in program.compilation.queries for triple in query.template
        }
        patterns = list(program.patterns)
        self._needed = {p for pattern in patterns for p in _predicates(alg.needed_triples(pattern))}
        read = (part for pattern in patterns for part in alg.read_of_stream(pattern))
        every = {p for part in read for p in _predicates(alg.triples_of(part) or ())}
        # A rule whose predicate is a variable may derive any predicate.
        self._missing = set() if "" in makes else every - makes
        if ties is not None and ties != SOURCE_ORDER:
            self._needed.add(ties)
            self._missing.add(ties)
        self._reads_all = "" in reads
        self._streams = reads - {"", *(unit.stream for unit in units)}
        self._read = reads
        self._unnamed = program.unnamed
        self._seen: set[str] = set()
        self._came: set[str] = set()
        self._any = False
        self._apart = list(asking_for_several(program))
        """The queries with EVENT over several triples, until an event comes that has several."""
        counting = JoinedRecords.of(program), SharedTimes.of(program) if ties is None else None
        self._counting: list[FirstEvents] = [counter for counter in counting if counter is not None]
        """What counts the first events, until enough have been counted."""
        self._values = FirstValues(program)
        self._program = program
        self._notice = notice
        self._trap: tuple[str, ...] = ()

    def see(self, events: Iterable[Event]) -> None:
        """Take note of a batch of events."""
        if self._missing:
            self._note({triple[1] for event in events for triple in event.triples})
        if self._asks_streams():
            self._came |= {event.stream or self._unnamed for event in events}
        if self._apart and any(len(event.triples) > 1 for event in events):
            self._apart.clear()
        self._values.see(events)
        for counter in self._counting:
            counter.see(events)
        self._tell_when_full()
        self._any = True

    def see_columns(self, columns: InColumns) -> None:
        """Take note of events in columns."""
        if self._missing:
            self._note(columns.predicates)
        if self._asks_streams():
            names = [""] if columns.stream is None else columns.stream.unique().to_pylist()
            self._came |= {name or self._unnamed for name in names}
        if self._apart and count_events(columns) < columns.triples:
            self._apart.clear()
        self._values.see_columns(columns)
        for counter in self._counting:
            if isinstance(columns, Columns):  # what reads only records joins none of them
                counter.see_columns(columns)
        self._tell_when_full()
        self._any = True

    @property
    def counts(self) -> bool:
        """Whether it still counts first events."""
        return bool(self._counting)

    def _tell_when_full(self) -> None:
        if self._counting:
            self._tell(counter for counter in self._counting if counter.full)

    def tell(self) -> None:
        """Tell of groups that join the columns of several records, and of shared times, and count no more."""
        self._tell(self._counting)

    @property
    def told(self) -> tuple[str, ...]:
        """What it has told at once."""
        return self._trap if self._notice is not None else ()

    def _tell(self, counters: Iterable[FirstEvents]) -> None:
        for counter in tuple(counters):
            self._counting.remove(counter)
            texts = tuple(counter.warnings())
            self._trap += texts
            for text in texts if self._notice is not None else ():
                self._notice(text)  # type: ignore[misc]

    def _asks_streams(self) -> bool:
        return len(self._came) < MOST and not (self._reads_all and self._streams <= self._came)

    def _note(self, predicates: set[str]) -> None:
        self._missing -= predicates
        if len(self._seen) < MOST:
            self._seen |= predicates

    def warnings(
        self, knowledge: Any = None, *, unread: bool = True, subjects: Collection[str] = (), times: Collection[str] = ()
    ) -> tuple[str, ...]:
        """The probable slips.

        ``knowledge`` is the background: if it has changed, predicates are not reported.  ``unread``: also name the
        streams that no query reads.  ``subjects``: columns that say what a row is about, and ``times`` those that say
        when it was; both are no predicates.
        If there were no events at all, nothing is reported.
        """
        if not self._any:
            return ()
        streams = chain(self._no_reader() if unread else (), self._no_source())
        counted = (*self._trap, *(text for counter in self._counting for text in counter.warnings()))
        return (
            *streams,
            *self._never_occurred(knowledge, subjects, times),
            *self._unmet(knowledge),
            *self._values.warnings(knowledge),
            *self._single_triples(knowledge),
            *counted,
        )

    def foreseen(self, given: Mapping[str, Collection[str]], knowledge: Any = None) -> tuple[str, ...]:
        """The probable slips, before any event, where it is known what events can have.

        ``given``: their ``predicates``; those of them whose objects are all ``texts``, or all ``numbers``; their
        ``streams``, unless they can have any; and ``subjects`` and ``times``, which are, as ``knowledge``, those of
        ``warnings``.
        """
        self._note(set(given["predicates"]))
        found: list[Iterator[str]] = []
        if (streams := given.get("streams")) is not None:
            self._came |= {stream or self._unnamed for stream in streams}
            found = [self._no_reader('name their stream, as stream="…"'), self._no_source()]
        columns = given["subjects"], given.get("times", ())
        found.append(self._never_occurred(knowledge, *columns, "no column gives the predicate {}"))
        found.append(self._values.by_type(given["texts"], given["numbers"], background=knowledge is not None))
        found.append(self._unmet(knowledge))
        return tuple(chain(*found))

    @property
    def missing(self) -> set[str]:
        """The predicates that are asked for and have not occurred."""
        return self._missing

    def never_occurred(self, predicates: set[str], knowledge: Any = None) -> tuple[str, ...]:
        """The predicates that are probably slips, where events have had ``predicates``: for who has seen the events."""
        self._missing.difference_update([predicate for predicate in self._missing if predicate in predicates])
        self._seen = predicates
        return tuple(self._never_occurred(knowledge, (), ()))

    def _single_triples(self, knowledge: Any) -> Iterator[str]:
        for query in self._apart if knowledge is None else ():
            yield (
                f"{query} asks in EVENT for several triples, and no event had more than one: give the rows of one "
                "event the same number in the column event, or ask the group without EVENT"
            )

    def _no_reader(self, remedy: str = "--stream NAME=SOURCE") -> Iterator[str]:
        if self._reads_all or not self._read:
            return
        known = ", ".join(map(self._term, sorted(self._read)))
        for stream in sorted(self._came - self._read):
            what = (
                f"no query reads the stream {self._term(stream)}" if stream else "events that name no stream are unread"
            )
            yield f"{what}; the queries read {known}{self._slip(stream, self._read)}: {remedy}"

    def _no_source(self) -> Iterator[str]:
        for stream in sorted(self._streams - self._came):
            slip = self._slip(stream, self._came - self._read - {""})
            yield f"no event came of the stream {self._term(stream)}{slip}"

    def _never_occurred(
        self,
        knowledge: Any,
        subjects: Collection[str],
        times: Collection[str],
        told: str = "the predicate {} never occurred",
    ) -> Iterator[str]:
        if knowledge is not None and (knowledge.programs or knowledge.version):
            return  # answer sets may have any predicate, and an earlier version of the background may have had this one
        for predicate in sorted(self._missing):
            if knowledge is not None and _mentions(knowledge, predicate):
                continue
            slip = (
                self._subject(predicate, subjects) or self._time(predicate, times) or self._slip(predicate, self._seen)
            )
            if slip or predicate in self._needed:
                yield told.format(self._term(predicate)) + (slip or self._end_of(predicate))

    def _unmet(self, knowledge: Any) -> Iterator[str]:
        from etalis_py.engine.unmet_knowledge import unmet_knowledge  # it needs why-not, which not every run loads

        return unmet_knowledge(self._program, knowledge)

    def _subject(self, predicate: str, subjects: Collection[str]) -> str:
        for column, name in local_names([*subjects]).items():
            if self._seen and self._term(predicate) == f":{name}":
                shown = self._term(min(self._seen))
                return f": the column {column} is the subject of its rows, as in {{ ?{name} {shown} ?value }}"
        return ""

    def _time(self, predicate: str, times: Collection[str]) -> str:
        column = next((c for c, name in local_names([*times]).items() if self._term(predicate) == f":{name}"), "")
        return column and f": the column {column} is the time of its rows, which BIND (getENDTIME() AS ?time) gives"

    def _end_of(self, predicate: str) -> str:
        """The predicates whose names end in this one, as that of a key in a JSON object does: ``:trade_price``."""
        longer = sorted(map(self._term, (p for p in self._seen if p.endswith(f"_{predicate[1:].rpartition('/')[2]}"))))
        return f"; did you mean {' or '.join(longer[:3])}? (the same name at its end)" if longer else ""

    def _slip(self, name: str, among: Iterable[str]) -> str:
        from etalis_py.values.term_likeness import did_you_mean  # few runs need it, and difflib takes a while to import

        return did_you_mean(name, among, self._term)


def asking_for_several(program: Program) -> Iterator[str]:
    """The queries with an EVENT that needs more than one triple, unless rules derive events for it."""
    if any(query.template for query in program.compilation.queries):
        return
    for query in program.compilation.queries:
        if any(len(list(alg.needed_triples(event))) > 1 for event in alg.events_in(query.algebra)):
            yield query.name


def _predicates(triples: Iterable[alg.Triple]) -> Iterator[str]:
    """The predicates of triple patterns; names with a dot are the engine's own."""
    named = (alg.constant_of(triple.predicate) for triple in triples)
    return (predicate for predicate in named if predicate and not predicate.startswith("<."))


def _mentions(knowledge: Any, predicate: str) -> bool:
    """Whether the background has it in any position: then its schema may entail it, like the vocabularies of RDF."""
    graphs = [knowledge.graph(name) for name in ("", *knowledge.names())]
    if predicate[1:].startswith(_VOCABULARIES) and any(map(len, graphs)):
        return True
    places = ((predicate, None, None), (None, predicate, None), (None, None, predicate))
    return any(next(iter(graph.match(*place)), None) is not None for graph in graphs for place in places)
