"""The client side: follow a container as a stream of events, and post matches to one.

Following uses push (server-sent events) if the server offers it, else its feed with conditional requests; any other LDP
server is read as in [SC] Figure 6: the container, then each new member.  A lost connection is resumed at the cursor, so
that no event is lost or seen twice.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin

import httpx
import pyoxigraph as ox
from etalis_rules.terms import iri

from etalis_py.events import Event, Triple
from etalis_py.events.clock import parse_datetime
from etalis_py.events.errors import without_password
from etalis_py.streams import Patience
from etalis_py.streams.retries import asked_pause

from . import negotiation
from . import vocabulary as v
from .graphs import NDJSON, TURTLE, stamped
from .match_graphs import MemberNames, match_graph, match_name
from .origin import ContainerError, bound_client, checked_address, no_token
from .runners import MatchLike

T = TypeVar("T")
_QUEUE = 1_000
_LONGEST_PAUSE = 15.0
_HINT = "start the server or check the address"
_FINAL = (400, 401, 403, 404, 405, 410, 421)


def follow(
    url: str,
    *,
    token: str | None = None,
    since: str | int = "oldest",
    poll: float = 1.0,
    push: bool = True,
    patience: float = 60.0,
) -> Iterator[Event]:
    """The events of a container: first those stored, then new ones as they come, without end; see ``Follower``."""
    with Follower(url, token=token, since=since, poll=poll, push=push, patience=patience) as follower:
        yield from follower


class _Member(NamedTuple):
    """An event on its way to who takes it; ``deleted``: of those before it, some up to this number will never come."""

    number: int
    event: Event
    deleted: int = 0


class Follower:
    """A reader of one container, in order of arrival.

    ``token`` is sent if the server asks for one to read.  Only the server of ``url`` is asked, wherever it points.
    ``since`` is "oldest", "now", or the ``cursor`` of an earlier follower.  ``poll`` is the pause between requests
    without push, ``patience`` how long a server that was reached once may be unreachable before that is an error; a
    refused first connection is an error at once.  Memory: a queue of at most a thousand events; a slow reader slows the
    connection down.

    ``deleted``: of the events so far, the server had deleted some up to this number before they were read; 0 if none.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        since: str | int = "oldest",
        poll: float = 1.0,
        push: bool = True,
        patience: float = 60.0,
    ) -> None:
        self.url = checked_address(url)
        if not isinstance(since, int) and since not in ("oldest", "now"):
            raise ContainerError(f"since is 'oldest', 'now' or a cursor (a number), found {since!r}")
        self.cursor = since if isinstance(since, int) else 0
        self.deleted = 0
        self._now, self._poll, self._push, self._patience = since == "now", poll, push, patience
        self._queue: queue.Queue[_Member | BaseException] = queue.Queue(_QUEUE)
        self._stop = threading.Event()
        self._reached = time.monotonic()
        self._known = False
        self._client = bound_client(url, token, httpx.Timeout(10.0, read=45.0), redirected=True)
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self._thread.start()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return (event for event in self.items(Patience(1.0)) if event is not None)

    def items(self, patience: Patience) -> Iterator[Event | None]:
        """The events, and None whenever the patience ends before one comes (time to close the open instant)."""
        while not self._stop.is_set():
            try:
                member = self._queue.get(timeout=patience.seconds())
            except queue.Empty:
                yield None
                continue
            if isinstance(member, BaseException):
                raise member
            self.cursor, self.deleted = max(self.cursor, member.number), max(self.deleted, member.deleted)
            yield member.event

    @property
    def more(self) -> bool:
        """Whether the next event is here already."""
        return not self._queue.empty()

    def close(self) -> None:
        """Stop reading; ``cursor`` stays after the last event that was taken."""
        self._stop.set()
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        # A request under way ends with its connection; the thread is a daemon and need not be waited for.
        self._client.close()

    # -- reading, in a thread of its own -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            feed = self._attempt(self._discover)
            if feed is None:
                self._follow_members()
            else:
                self._follow_feed(feed)
        except _Stopped:
            return
        except Exception as error:
            if not self._stop.is_set():
                self._put(error if isinstance(error, ContainerError) else _no_container(self.url, error))

    def _put(self, item: _Member | BaseException) -> None:
        while not self._stop.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=0.2)
                return
        raise _Stopped

    def _attempt(self, request: Callable[[], T]) -> T:
        """Repeat a request until it succeeds; a permanent failure, or one that lasts too long, is an error."""
        pause = 0.2
        while True:
            asked = 0.0
            try:
                result = request()
                self._reached, self._known = time.monotonic(), True
                return result
            except httpx.HTTPStatusError as error:
                if error.response.status_code in _FINAL:
                    raise refusal(self.url, error.response) from None
                reason = f"it answers {error.response.status_code}"
                asked = asked_pause(error.response.headers.get("retry-after"))
            except httpx.ConnectError as error:
                reason = str(error)
                if not self._known:
                    raise _not_there(self.url, reason) from None
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            if time.monotonic() - self._reached > self._patience:
                raise _out_of_reach(self.url, self._patience, reason)
            self._pause(max(pause, asked))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Stopped

    def _get(self, url: str, accept: str, etag: str | None = None, prefer: str | None = None) -> httpx.Response:
        headers = (
            {"Accept": accept} | ({"If-None-Match": etag} if etag else {}) | ({"Prefer": prefer} if prefer else {})
        )
        response = self._client.get(url, headers=headers)
        if response.status_code != 304:
            response.raise_for_status()
        return response

    def _discover(self) -> str | None:
        """The feed of the container, if the server has one."""
        minimal = f'return=representation; include="{v.PREFER_MINIMAL}"'
        response = self._get(self.url, TURTLE, prefer=minimal)
        for relation, target in negotiation.links(response.headers.get_list("link")):
            if relation == v.REL_FEED:
                return urljoin(self.url, target)
        return None

    def _follow_feed(self, feed: str) -> None:
        position = self.cursor
        if self._now:
            newest = self._attempt(lambda: self._get(f"{self.url}?newest=1", NDJSON))
            for number, _ in members_of(newest.text):
                position = number
        pushing, etag = self._push, None
        while True:
            if pushing:
                position, pushing = self._listen(position)
                continue
            url = urljoin(feed, f"?after={position}&limit=1000")
            response = self._attempt(lambda url=url, etag=etag: self._get(url, NDJSON, etag))  # type: ignore[misc]
            members = members_of(response.text) if response.status_code == 200 else []
            deleted = deleted_up_to(response)
            for number, event in members:
                self._put(_Member(number, event, deleted))
                position, deleted = number, 0
            etag = None if members else response.headers.get("etag")
            if not members:
                self._pause(self._poll)

    def _listen(self, position: int) -> tuple[int, bool]:
        """Take pushed events until the connection ends; returns the position reached, and whether push is offered."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(position)}
        try:
            with self._client.stream("GET", self.url, headers=headers) as response:
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    return position, False
                self._reached = time.monotonic()
                number = position
                for line in lines_of(response.iter_text()):
                    if line.startswith("id:"):
                        number = int(line[3:])
                    elif line.startswith("data:") and line[5:].strip():
                        item = json.loads(line[5:])
                        self._put(_Member(number, _event_of(item), item.get("deletedUpTo", 0)))
                        position = number
                    elif self._stop.is_set():
                        raise _Stopped
        except httpx.TransportError as error:
            if time.monotonic() - self._reached > self._patience:
                raise _out_of_reach(self.url, self._patience, str(error)) from None
        self._pause(0.3)
        return position, True

    def _follow_members(self) -> None:
        """Any LDP container: read it when it has changed, then every member not seen before ([SC] Figure 6)."""
        etag, seen, number = None, set[str](), 0
        first = self._now
        while True:
            response = self._attempt(lambda etag=etag: self._get(self.url, TURTLE, etag))  # type: ignore[misc]
            if response.status_code == 200:
                etag = response.headers.get("etag")
                triples = _triples(response.content, str(response.url))
                contained = {o for _, p, o in triples if p == v.CONTAINS}
                order = next((o for _, p, o in triples if p == v.CONTENT_TIMESTAMP_RELATION), v.GENERATED_AT)
                fresh = [] if first else [self._member(o, order) for o in sorted(contained - seen)]
                for event in sorted((e for e in fresh if e is not None), key=lambda e: (e.end, e.graph)):
                    number += 1
                    self._put(_Member(number, event))
                seen, first = contained, False
            self._pause(self._poll)

    def _member(self, member: str, order: str) -> Event | None:
        url = member[1:-1]
        response = self._attempt(lambda: self._client.get(url, headers={"Accept": TURTLE}))
        if response.status_code in (404, 410):
            return None
        if response.status_code != 200:
            raise refusal(url, response)
        triples = _triples(response.content, url)
        return _event(triples, member, iri(without_password(self.url)), order, time.time_ns() // 1000)


class _Stopped(Exception):
    """The follower was closed."""


def _not_there(url: str, reason: str) -> ContainerError:
    return ContainerError(f"{url} cannot be reached ({reason}); {_HINT}")


def _no_container(url: str, error: Exception) -> ContainerError:
    return ContainerError(
        f"{url} sends what a container does not ({type(error).__name__}: {error}); check the address, and whether a "
        "proxy answers in place of the server"
    )


def _out_of_reach(url: str, patience: float, reason: str) -> ContainerError:
    return ContainerError(f"{url} was out of reach for {patience:g} s ({reason}); {_HINT}")


def refusal(url: str, response: httpx.Response) -> ContainerError:
    """The error for a refusal, in the words of the problem document if there is one."""
    try:
        document = response.json()
        reason = f"{document['detail']}. {document.get('hint', '')}".strip()
    except (ValueError, KeyError, TypeError, httpx.ResponseNotRead):
        reason = response.reason_phrase
    if response.status_code == 401:
        reason = f"{reason} ({no_token(url)})"
    return ContainerError(f"{url} answers {response.status_code}: {reason}")


def deleted_up_to(response: httpx.Response) -> int:
    """Up to which member a server has deleted some that a reader of its feed asked for; 0 if none."""
    return int(response.headers.get("deleted-up-to", 0))


def _triples(data: bytes, url: str) -> tuple[Triple, ...]:
    quads = ox.parse(data, ox.RdfFormat.TURTLE, base_iri=url)
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)


def _event(triples: tuple[Triple, ...], member: str, stream: str, order: str, arrival: int) -> Event:
    graph = stamped(triples, member)
    end = graph.stamps[order].time if order in graph.stamps else arrival
    started = graph.stamps.get(v.STARTED_AT)
    start = started.time if started and started.own and started.time <= end else end
    return Event._make((start, end, triples, stream, member))


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in pieces; in JSON a character such as U+2028 or U+0085 ends none.

    >>> list(lines_of(['id: 1\\ndata: "a\\u2028', 'b"\\n']))
    ['id: 1', 'data: "a\\u2028b"']
    """
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from lines


def members_of(text: str) -> list[tuple[int, Event]]:
    """The members in lines of JSON, as (cursor, event)."""
    items = [json.loads(line) for line in text.split("\n") if line.strip()]
    return [(item["id"], _event_of(item)) for item in items]


def _event_of(item: dict[str, Any]) -> Event:
    triples = _triples(item["triples"].encode(), item["graph"])
    end = parse_datetime(item["time"])
    started = stamped(triples, iri(item["graph"])).stamps.get(v.STARTED_AT)
    start = started.time if started and started.own and started.time <= end else end
    return Event._make((start, end, triples, iri(item["stream"]), iri(item["graph"])))


class ContainerSink:
    """Posts matches to a container, each as one graph with its interval (``prov:startedAtTime`` and the end).

    On a server of ours each match is written under its id, so that a repeated run writes nothing twice
    (``repeated`` counts those); elsewhere it is POSTed with the id as Slug.  ``create``: create the container if it
    does not exist.  ``revised``: matches may be retracted, each by a graph that names the original (see
    ``MemberNames``); that needs a server that lets the writer choose names.  ``settled``: the method of this name of
    the engine; without it, every match that was retracted is remembered.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        create: bool = True,
        patience: float = 60.0,
        revised: bool = False,
        settled: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self.url = checked_address(url if url.endswith("/") else url + "/")
        self._client = bound_client(self.url, token, 30.0, redirected=False)
        self._patience = patience
        self._known = False
        self.written = self.repeated = 0
        self.names_members, self._order = self._prepare(create)
        self.names = MemberNames(settled)
        if revised and not self.names_members:
            self.close()
            raise ContainerError(
                f"{self.url}: this server names graphs itself, so none can say which match it takes back: write to a "
                "container of etalis serve or to a file, or leave --revise out"
            )

    def _prepare(self, create: bool) -> tuple[bool, str]:
        prefer = f'return=representation; include="{v.PREFER_MINIMAL}"'
        response = self._send("GET", self.url, {"Accept": TURTLE, "Prefer": prefer}, b"")
        if response.status_code == 404 and create:
            body = f"<> a {v.STREAM_CONTAINER} .".encode()
            headers = {"Content-Type": TURTLE, "If-None-Match": "*", "Link": f'{v.BASIC_CONTAINER}; rel="type"'}
            answer = self._send("PUT", self.url, headers, body)
            if answer.status_code not in (200, 201, 204, 412):
                raise refusal(self.url, answer)
            response = self._send("GET", self.url, {"Accept": TURTLE, "Prefer": prefer}, b"")
        if response.status_code != 200:
            raise refusal(self.url, response)
        relations = [relation for relation, _ in negotiation.links(response.headers.get_list("link"))]
        triples = _triples(response.content, self.url)
        own = [o for s, p, o in triples if p == v.CONTENT_TIMESTAMP_RELATION and s == iri(self.url)]
        windows = {o for _, p, o in triples if p == v.CONTENT_TIMESTAMP_RELATION}
        order = own[0] if own else windows.pop() if len(windows) == 1 else v.GENERATED_AT
        return v.REL_FEED in relations, order

    def _send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        """Send a request; if repeating it does no harm, until the server is reachable."""
        started, pause = time.monotonic(), 0.2
        while True:
            asked = 0.0
            try:
                response = self._client.request(method, url, headers=headers, content=body)
                self._known = True
                asked = asked_pause(response.headers.get("retry-after"))
                if response.status_code != 503 and not (response.status_code == 429 and asked):
                    return response
                reason = f"it answers {response.status_code}"
            except httpx.TransportError as error:
                if method == "POST" and not isinstance(error, httpx.ConnectError):
                    raise ContainerError(
                        f"{url}: the connection broke ({error}); the last match may have been written"
                    ) from None
                reason = str(error) or type(error).__name__
                if not self._known and isinstance(error, httpx.ConnectError):
                    raise _not_there(url, reason) from None
            if time.monotonic() - started > self._patience:
                raise _out_of_reach(url, self._patience, reason)
            time.sleep(max(pause, asked))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def write(self, match: MatchLike) -> None:
        """Write one match; it is durable when this returns."""
        self.put(*self.member_of(match))

    def member_of(self, match: MatchLike) -> tuple[str, bytes]:
        """The name of the member for a match, and its graph."""
        own, taken_back = self.names.of(match)
        return match_name(own), match_graph(match, self._order, taken_back)

    def put(self, name: str, body: bytes) -> None:
        """Write a member; one of this name that is there already stays as it is."""
        if self.names_members:
            response = self._send("PUT", urljoin(self.url, name), {"Content-Type": TURTLE, "If-None-Match": "*"}, body)
        else:
            response = self._send("POST", self.url, {"Content-Type": TURTLE, "Slug": name}, body)
        if self.names_members and response.status_code in (410, 412):
            self.repeated += 1
        elif response.status_code in (200, 201, 204):
            self.written += 1
        else:
            raise refusal(self.url, response)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> ContainerSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
