"""Members as events, and matches as members: the input and output of a program that runs on a container."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from etalis_rules.terms import literal

from etalis_py.events import Event, Triple
from etalis_py.events.clock import render_datetime
from etalis_py.streams.elements import RETRACTS

from . import vocabulary as v
from .changes import is_name
from .graphs import DATE_TIME, DATE_TIME_STAMP, Base, ntriples, stamped, triples_of
from .runners import MatchLike
from .transaction import StoredMember

_EVENTS, _TERM = 24, 120


def match_document(match: MatchLike) -> dict[str, object]:
    """The match as JSON, its interval as ``from`` and ``to`` in xsd:dateTime whatever the stream's own clock is.

    ``events``: the first events behind it, in short.
    """
    interval = (match.start_us, match.end_us)
    start, end = (None if time is None else render_datetime(time) for time in interval)
    return {"match": match.to_dict(), "from": start, "to": end, "events": _events(match)}


def _events(match: MatchLike) -> list[dict[str, object]]:
    """What was said at one time is one event; of long terms the beginning."""
    said: dict[tuple[int, int], dict[Triple, None]] = {}
    for (s, p, o), start, end in match.events(_EVENTS):
        said.setdefault((end, start), {})[_short(s), _short(p), _short(o)] = None
    return [
        {"from": render_datetime(start), "to": render_datetime(end), "triples": list(triples)}
        for (end, start), triples in sorted(said.items())
    ]


def _short(term: str) -> str:
    return term if len(term) <= _TERM else f"{term[:_TERM]}…{'>' if term[0] == '<' else term[0]}"


def as_event(member: StoredMember, base: Base) -> Event:
    """A member as an event: it ends at its time, and starts at its ``prov:startedAtTime`` if it has one."""
    triples = triples_of(base.out(member.body))
    me = f"<{base.out_iri(member.path + member.name)}>"
    started = stamped(triples, me).stamps.get(v.STARTED_AT)
    start = started.time if started and started.own and started.time <= member.time else member.time
    return Event._make((start, member.time, triples, f"<{base.out_iri(member.path)}>", me))


def match_name(match_id: str) -> str:
    """The name of the member that a match becomes."""
    if is_name(match_id) and not match_id.isdigit():
        return match_id
    return "m-" + hashlib.blake2b(match_id.encode(), digest_size=16).hexdigest()


class MemberNames:
    """The names of matches as members.

    State: how often each was retracted.  ``settled`` says, as ``Engine.settled`` does, before which time no report
    changes any more, and the newest time of one: a match that was retracted is forgotten when its report has settled.
    The matches at hand may come from any moment since the last change of these times, so those before it decide.

    A retraction is a member of its own, which names the member that it retracts; a match that is reported again after
    that is a new member.

        m reported    m
        m taken back  m-retracted    takes back m
        m reported    m-2
        m taken back  m-2-retracted  takes back m-2
    """

    def __init__(self, settled: Callable[[], tuple[int, int]] | None = None) -> None:
        self._settled = settled
        self._times: tuple[int, int] | None = None  # what it said last
        self._taken_back: dict[str, tuple[int, int]] = {}  # the count, and a time not before the report

    def state(self) -> dict[str, list[int]]:
        """How often each match was retracted, and a time not before its report, as plain data."""
        return {name: list(one) for name, one in self._taken_back.items()}

    def go_to(self, state: Mapping[str, Sequence[int]]) -> None:
        self._taken_back = {name: (count, at) for name, (count, at) in state.items()}

    def _forget(self) -> None:
        """Forget what had settled before the matches at hand came about."""
        times = None if self._settled is None else self._settled()
        before, self._times = self._times, times
        if before is not None and before != times:
            over = [name for name, (_, at) in self._taken_back.items() if at < before[0]]
            for name in over:
                del self._taken_back[name]

    def of(self, match: MatchLike) -> tuple[str, str]:
        """The name of a match, and of the member that it retracts, if any."""
        self._forget()
        count, _ = self._taken_back.get(match.id, (0, 0))
        name = f"{match.id}-{count + 1}" if count else match.id
        if not match.retracted:
            return name, ""
        self._taken_back[match.id] = (count + 1, 0 if self._times is None else self._times[1])
        return f"{name}-retracted", name


def match_graph(match: MatchLike, order: str, taken_back: str = "") -> bytes:
    """The graph for a match (Turtle, about ``<>``): its triples, or its row, and its interval.

    A timeless match has no interval, and gets its time of arrival.  A retraction names the member that it retracts, so
    that a program that reads the container retracts it as well.
    """
    lines = [ntriples(match.triples) if match.triples else _row(match.bindings)]
    if taken_back:
        lines.append(f"<> {RETRACTS[0]} <{match_name(taken_back)}> .\n".encode())
    if match.start_us is not None and match.end_us is not None:
        start = literal(render_datetime(match.start_us), DATE_TIME)
        end = literal(render_datetime(match.end_us), DATE_TIME_STAMP)
        lines.append(f"<> {v.STARTED_AT} {start} .\n<> {order} {end} .\n".encode())
    return b"".join(lines)


def _row(bindings: Mapping[str, str]) -> bytes:
    """A row of SELECT in the result-set vocabulary of the SPARQL tests."""
    pairs = [
        f"[ <{v.RS}variable> {literal(name)} ; <{v.RS}value> {term} ]"
        for name, term in sorted(bindings.items())
        if term
    ]
    names = ", ".join(literal(name) for name in sorted(bindings)) or '""'
    listed = f" ; <{v.RS}binding> {', '.join(pairs)}" if pairs else ""
    solution = f"<{v.RS}solution> [ a <{v.RS}Solution>{listed} ]"
    return f"<> a <{v.RS}ResultSet> ; <{v.RS}resultVariable> {names} ; {solution} .\n".encode()
