"""Following containers and writing to them: push, polling, other servers, lost connections."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from etalis_py.containers import ContainerError, ContainerSink, Follower, follow, token_for
from etalis_py.containers.feed import between
from etalis_py.containers.vocabulary import REL_FEED
from etalis_py.engine.inputs import opened
from etalis_py.events import Event
from etalis_py.streams import Patience, Stream
from tests.containers.fake_runner import FakeMatch
from tests.containers.server import Server
from tests.containers.test_programs import members

TURTLE = {"Content-Type": "text/turtle"}
STREAM = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
VALUE = "<http://ex.org/v>"


@pytest.fixture
def stream(http: httpx.Client) -> str:
    return http.post("/", content=STREAM, headers=TURTLE).headers["location"]


def post(http: httpx.Client, url: str, *values: int) -> None:
    for value in values:
        assert http.post(url, content=f"<> {VALUE} {value} .", headers=TURTLE).status_code == 201


def values(events: list[Event]) -> list[int]:
    return [int(o.split('"')[1]) for e in events for _, p, o in e.triples if p == VALUE]


@pytest.mark.parametrize("push", [True, False], ids=["push", "polling"])
def test_the_stored_events_come_first_then_the_new_ones(http: httpx.Client, stream: str, push: bool) -> None:
    post(http, stream, 1, 2)
    events = follow(stream, push=push, poll=0.05)
    found = [next(events), next(events)]
    post(http, stream, 3)
    found.append(next(events))
    events.close()
    assert values(found) == [1, 2, 3]
    assert found[0].stream == f"<{stream}>"
    assert found[0].graph == f"<{stream}0>"
    assert found[0].start == found[0].end <= found[1].end
    assert any(p == "<http://www.w3.org/ns/prov#generatedAtTime>" for _, p, _ in found[0].triples)


@pytest.mark.parametrize("push", [True, False], ids=["push", "polling"])
def test_texts_with_other_characters_that_end_a_line_come_whole(http: httpx.Client, stream: str, push: bool) -> None:
    texts = ["a\u2028b", "a\x85b", "a\x0bb"]
    for text in texts:
        assert http.post(stream, content=f'<> {VALUE} "{text}" .'.encode(), headers=TURTLE).status_code == 201
    events = follow(stream, push=push, poll=0.05)
    found = [next(events) for _ in texts]
    http.post(stream, content=f'<> {VALUE} "{texts[0]}" .'.encode(), headers=TURTLE)
    found.append(next(events))
    events.close()
    told = [
        o.encode().decode("unicode_escape") if "\\" in o else o for e in found for _, p, o in e.triples if p == VALUE
    ]
    assert told == [f'"{text}"' for text in [*texts, texts[0]]]


def test_the_address_of_a_container_is_a_stream_for_run(http: httpx.Client, stream: str) -> None:
    post(http, stream, 1, 2)
    taken = opened(stream)
    assert isinstance(taken, Stream)
    with taken:
        items = (item for item in taken if isinstance(item, Event))
        assert values([next(items), next(items)]) == [1, 2]
        assert taken.name == f"<{stream}>"
        assert taken.idle == 1.0


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/s/", "http://no-such-host.invalid/s/"])
def test_a_server_that_was_never_there_is_an_error_at_once(address: str) -> None:
    with pytest.raises(ContainerError, match=r"cannot be reached .*check the address"):
        next(follow(address))
    with pytest.raises(ContainerError, match=r"cannot be reached .*check the address"):
        ContainerSink(address)


def test_from_now_on(http: httpx.Client, stream: str) -> None:
    post(http, stream, 1)
    with Follower(stream, since="now") as follower:
        items = follower.items(Patience(0.3))
        assert next(items) is None, "nothing new, and time to close the open instant"
        post(http, stream, 2)
        assert values([e for e in (next(items), next(items)) if e]) == [2]


def test_a_cursor_takes_up_where_another_follower_stopped(http: httpx.Client, stream: str) -> None:
    post(http, stream, 1, 2, 3, 4)
    with Follower(stream) as follower:
        events = iter(follower)
        assert values([next(events), next(events)]) == [1, 2]
        cursor = follower.cursor
    with Follower(stream, since=cursor) as follower:
        events = iter(follower)
        assert values([next(events), next(events)]) == [3, 4]


def test_a_server_that_dies_and_comes_back_loses_no_event(start: Callable[..., Server]) -> None:
    server = start()
    port = int(server.url.rstrip("/").rpartition(":")[2])
    server.options["port"] = port
    with httpx.Client(base_url=server.url) as http:
        http.post("/", content=STREAM, headers=TURTLE | {"Slug": "s"})
        post(http, "/s/", 1, 2)
        with Follower(f"{server.url}s/") as follower:
            events = iter(follower)
            assert values([next(events), next(events)]) == [1, 2]
            server.kill()
            server.start()
            with httpx.Client(base_url=server.url) as again:
                post(again, "/s/", 3)
            assert values([next(events)]) == [3]


def test_a_server_that_dies_and_stays_away_is_an_error_when_patience_ends(start: Callable[..., Server]) -> None:
    server = start()
    with httpx.Client(base_url=server.url) as http:
        http.post("/", content=STREAM, headers=TURTLE | {"Slug": "s"})
        post(http, "/s/", 1)
    with Follower(f"{server.url}s/", patience=0.5) as follower:
        events = iter(follower)
        assert values([next(events)]) == [1]
        server.kill()
        with pytest.raises(ContainerError, match=r"out of reach for 0\.5 s .*start the server"):
            next(events)


@pytest.mark.parametrize("push", [True, False], ids=["push", "feed"])
def test_an_answer_in_an_encoding_that_nobody_asked_for_is_refused(push: bool) -> None:
    """Its bytes were taken for lines, among which there was no event, and nothing was told."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            discovers = self.headers["accept"] == "text/turtle"
            self.send_response(200)
            self.send_header("content-type", self.headers["accept"])
            self.send_header(*("link", f'</feed>; rel="{REL_FEED}"') if discovers else ("content-encoding", "zz"))
            self.end_headers()
            self.wfile.write(b"" if discovers else b"\x0b\x02\x80\n")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, reason = (
        f"http://127.0.0.1:{server.server_port}/s/",
        r"encoded as zz, although only gzip, .* a proxy in front",
    )
    with Follower(address, push=push, patience=0.5) as follower, pytest.raises(ContainerError, match=reason):
        next(iter(follower))
    server.shutdown()
    server.server_close()


def test_what_is_wrong_is_said(http: httpx.Client, server: Server) -> None:
    with pytest.raises(ContainerError, match=r"404: there is no container /none/\. Look the address up"):
        next(follow(f"{server.url}none/"))
    with pytest.raises(ContainerError, match="not the address of a container"):
        next(follow("ftp://x/"))
    with pytest.raises(ContainerError, match="a cursor"):
        Follower(server.url, since="yesterday")


# -- the sink --------------------------------------------------------------------------------------------------------


def match(number: int) -> FakeMatch:
    triples = (("<x:s>", VALUE, f'"{number}"'), ("_:b", VALUE, "_:c"))
    return FakeMatch(f"q-{number}", {}, triples, number * 1_000_000, number * 1_000_000 + 500_000)


def test_matches_go_into_a_container_that_is_made_for_them_and_come_out_as_events(
    http: httpx.Client, server: Server
) -> None:
    url = f"{server.url}alarms/"
    with ContainerSink(url) as sink:
        for n in (1, 2):
            sink.write(match(n))
        assert (sink.written, sink.repeated) == (2, 0)
    with ContainerSink(url) as sink:
        sink.write(match(2))
        sink.write(FakeMatch("row", {"x": "<x:a>"}, (), 3_000_000, 3_000_000))
        assert (sink.written, sink.repeated) == (1, 1)
    events = follow(url)
    found = [next(events), next(events), next(events)]
    events.close()
    assert [(e.start, e.end) for e in found] == [(1_000_000, 1_500_000), (2_000_000, 2_500_000), (3_000_000, 3_000_000)]
    assert ("<x:s>", VALUE, '"1"') in found[0].triples
    assert found[0].graph == f"<{url}q-1>"


def test_a_match_that_is_taken_back_is_a_graph_that_names_the_first_one(http: httpx.Client, server: Server) -> None:
    url = f"{server.url}corrected/"
    back = dataclasses.replace(match(1), retracted=True)
    for _ in range(2):
        with ContainerSink(url, revised=True) as sink:
            for one in (match(1), back, match(1), back):
                sink.write(one)
    assert sink.repeated == 4
    assert members(http, url) == [f"{url}q-1", f"{url}q-1-retracted", f"{url}q-1-2", f"{url}q-1-2-retracted"]
    for name in ("q-1", "q-1-2"):
        text = http.get(f"{url}{name}-retracted", headers={"Accept": "application/n-triples"}).text
        assert f"<{url}{name}-retracted> <urn:etalis:retracts> <{url}{name}> ." in text


def test_the_sink_writes_the_time_by_the_relation_that_orders_the_container(http: httpx.Client, server: Server) -> None:
    order = "<https://solid.ti.rw.fau.de/public/ns/stream-containers#contentTimestampRelation> <http://ex.org/at>"
    url = http.post("/", content=f"{STREAM} <> {order} .", headers=TURTLE).headers["location"]
    with ContainerSink(url) as sink:
        sink.write(match(7))
    text = http.get(f"{url}q-7", headers={"Accept": "application/n-triples"}).text
    assert '<http://ex.org/at> "1970-01-01T00:00:07.5Z"' in text
    assert "generatedAtTime" not in text


def test_a_sink_needs_the_token(start: Callable[..., Server]) -> None:
    server = start(store=None, token="secret")
    with pytest.raises(ContainerError, match="401: this server takes changes only with its token"):
        ContainerSink(f"{server.url}alarms/")
    with ContainerSink(f"{server.url}alarms/", token="secret") as sink:
        sink.write(match(1))
    assert sink.written == 1
    with pytest.raises(ContainerError, match="404"):
        ContainerSink(f"{server.url}none/", token="secret", create=False)


def test_a_reader_sends_its_token_if_reading_needs_one(start: Callable[..., Server]) -> None:
    server = start(store=None, token="secret", read_token="look", reading_needs_token=True)
    with httpx.Client(base_url=server.url, headers={"Authorization": "Bearer secret"}) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
        post(http, stream, 1)
    for push in (True, False):
        assert values([next(follow(stream, token="look", push=push))]) == [1]
    with pytest.raises(ContainerError, match=r"401: this server is read only with its token.*ETALIS_TOKEN_FILE"):
        next(follow(stream))


# -- where a client goes, and with which token ------------------------------------------------------------------------


class _Elsewhere(BaseHTTPRequestHandler):
    """A server that leads its readers to another one, and one that notes who comes."""

    leads_to = ""
    by_link = False
    came: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.came.append((self.path, self.headers["Authorization"]))
        self.send_response(200 if self.by_link or not self.leads_to else 307)
        self.send_header("Location", self.leads_to)
        self.send_header("Link", f'<{self.leads_to}>; rel="{REL_FEED}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_PUT = do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def two() -> Iterator[tuple[str, type[_Elsewhere], type[_Elsewhere]]]:
    """The address of a server that leads to another one, the server, and the other one."""
    servers = []
    for name in ("There", "Here"):
        handler = type(name, (_Elsewhere,), {"came": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append((server, handler))
    (there, other), (here, first) = servers
    first.leads_to = f"http://127.0.0.1:{there.server_port}/internal/"
    yield f"http://127.0.0.1:{here.server_port}/s/", first, other
    for server, _ in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("by_link", [False, True], ids=["redirected", "by the link to its feed"])
def test_a_reader_goes_to_no_other_server(two: tuple[str, type[_Elsewhere], type[_Elsewhere]], by_link: bool) -> None:
    url, first, other = two
    first.by_link = by_link
    with pytest.raises(ContainerError, match=r"/s/ leads to http://127.* on another server, which is not followed"):
        next(follow(url, token="secret", push=False))
    with pytest.raises(ContainerError, match="on another server"):
        list(between(url, 0, 1))
    assert first.came
    assert not other.came


def test_a_sink_goes_to_no_other_server(two: tuple[str, type[_Elsewhere], type[_Elsewhere]]) -> None:
    url, first, other = two
    with pytest.raises(ContainerError, match="answers 307"):
        ContainerSink(url, token="secret")
    assert first.came == [("/s/", "Bearer secret")]
    assert not other.came


def test_a_redirect_within_the_server_is_followed_with_the_token(
    two: tuple[str, type[_Elsewhere], type[_Elsewhere]],
) -> None:
    url, first, _ = two
    first.leads_to = "/elsewhere/"
    with pytest.raises(ContainerError, match="redirect"):
        next(follow(url, token="secret", patience=0.1))
    assert first.came[1] == ("/elsewhere/", "Bearer secret")


def test_a_token_goes_to_the_origin_that_it_was_given_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text('"https://Streams.example.org:443/" = "theirs"\n"http://127.0.0.1:8080" = "ours"')
    monkeypatch.setenv("ETALIS_TOKEN", "bare")
    bare = {"http://localhost:1/s/": "bare", "http://[::1]:1/": "bare", "https://streams.example.org/s/": None}
    assert {url: token_for(url) for url in bare} == bare, "without an origin it stays on this machine"
    monkeypatch.setenv("ETALIS_TOKEN_FILE", str(table))
    tokens = {
        "https://streams.example.org/s/": "theirs",
        "http://streams.example.org/s/": None,  # in clear
        "https://streams.example.org:8443/s/": None,
        "https://streams.example.org.evil.org/": None,
        "http://10.0.0.1/": None,
        "http://127.0.0.1:8080/a/b/": "ours",
        "http://127.0.0.1:8081/": "bare",
    }
    assert {url: token_for(url) for url in tokens} == tokens


@pytest.mark.parametrize(
    "text", ["nonsense", '"streams.example.org" = "t"', '"https://x.org/s/" = "t"', '"https://x.org" = 1']
)
def test_a_table_of_tokens_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (table := tmp_path / "tokens.toml").write_text(text)
    monkeypatch.setenv("ETALIS_TOKEN_FILE", str(table))
    with pytest.raises(ContainerError, match=r'tokens.toml \(ETALIS_TOKEN_FILE\).*a line such as "https://streams'):
        token_for("http://127.0.0.1/")


# -- another LDP server, which has neither feed nor push --------------------------------------------------------------


class _Plain(BaseHTTPRequestHandler):
    members: dict[str, str]
    posted: list[tuple[str, bytes]]
    not_modified = 0

    def do_GET(self) -> None:
        if self.path == "/s/":
            tag = f'"{len(self.members)}"'
            if self.headers["If-None-Match"] == tag:
                type(self).not_modified += 1
                return self._answer(304, "", tag)
            contained = ", ".join(f"<{name}>" for name in self.members) or "<none>"
            body = f"""@prefix ldp: <http://www.w3.org/ns/ldp#> . <> a ldp:BasicContainer ; ldp:contains {contained} ;
                <https://solid.ti.rw.fau.de/public/ns/stream-containers#contentTimestampRelation> <x:t> ."""
            return self._answer(200, body, tag)
        name = self.path.rpartition("/")[2]
        return self._answer(200, self.members[name]) if name in self.members else self._answer(404, "")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append((self.headers["Slug"], body))
        self._answer(201, "")

    def _answer(self, status: int, body: str, tag: str = '"x"') -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/turtle")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def plain() -> Iterator[tuple[str, type[_Plain]]]:
    handler = type("Plain", (_Plain,), {"members": {}, "posted": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/s/", handler
    server.shutdown()
    server.server_close()


def test_any_ldp_container_is_followed_by_n_plus_1_conditional_requests(plain: tuple[str, type[_Plain]]) -> None:
    url, handler = plain
    time_ = '<> <x:t> "1970-01-01T00:00:0{}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> ; <http://ex.org/v> {} .'
    handler.members |= {"a": time_.format(2, 2), "b": time_.format(1, 1)}
    events = follow(url, poll=0.05)
    assert values([next(events), next(events)]) == [1, 2]
    time.sleep(0.3)
    handler.members["c"] = time_.format(3, 3)
    third = next(events)
    assert (values([third]), third.end, third.graph) == ([3], 3_000_000, f"<{url}c>")
    assert handler.not_modified >= 2
    events.close()


def test_matches_are_posted_to_any_ldp_container(plain: tuple[str, type[_Plain]]) -> None:
    url, handler = plain
    with ContainerSink(url) as sink:
        sink.write(match(5))
    with pytest.raises(ContainerError, match="this server names graphs itself"):
        ContainerSink(url, revised=True)
    ((slug, body),) = handler.posted
    assert slug == "q-5"
    assert b'<> <x:t> "1970-01-01T00:00:05.5Z"' in body


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"id": 1, "graph": "http://x/", "time": "yesterday"}'])
def test_a_server_that_sends_something_else_is_told(body: str) -> None:
    """The message was that of whatever failed first, such as ``'id'``."""

    class Feed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("link", f'<?after=0>; rel="{REL_FEED}"')
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Feed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/c/?token=3f9c"
            with pytest.raises(
                ContainerError, match=r"sends what a container does not \(.*check the address"
            ) as raised:
                next(follow(url))
        finally:
            server.shutdown()
    assert "3f9c" not in str(raised.value)
