"""Push and the feed: each member once, in order, for quick readers and slow ones; cursors; limits."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.containers.server import Server
from tests.processes import PATIENCE, comes

TURTLE = {"Content-Type": "text/turtle"}
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def stream(http: httpx.Client) -> str:
    body = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
    return http.post("/", content=body, headers=TURTLE).headers["location"]


def post(http: httpx.Client, url: str, count: int, first: int = 0) -> None:
    for i in range(first, first + count):
        assert http.post(url, content=f"<> <http://ex.org/n> {i} .", headers=TURTLE).status_code == 201


@contextmanager
def events(url: str, **headers: str) -> Iterator[Iterator[tuple[int, dict]]]:
    """The events of a container as (id, data); entering waits until the server has answered."""
    with httpx.stream("GET", url, headers=STREAM | headers, timeout=PATIENCE) as response:
        assert response.status_code == 200, response.read()
        lines = response.iter_lines()
        assert next(lines).startswith(": after ")

        def read() -> Iterator[tuple[int, dict]]:
            number = 0
            for line in lines:
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    yield number, json.loads(line[6:])

        yield read()


def test_members_are_pushed_as_they_come(http: httpx.Client, stream: str) -> None:
    post(http, stream, 1)
    with events(stream) as found:
        post(http, stream, 3, first=1)
        items = [next(found) for _ in range(3)]
    assert [data["graph"] for _, data in items] == [f"{stream}{i}" for i in (1, 2, 3)]
    assert items[0][1]["stream"] == stream
    assert '<http://ex.org/n> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' in items[0][1]["triples"]
    assert items[0][1]["time"].endswith("Z")


def test_a_reader_comes_back_with_its_cursor(http: httpx.Client, stream: str) -> None:
    post(http, stream, 5)
    with events(f"{stream}?after=0") as found:
        seen = [next(found) for _ in range(2)]
    with events(stream, **{"Last-Event-ID": str(seen[-1][0])}) as found:
        seen += [next(found) for _ in range(3)]
        post(http, stream, 1, first=5)
        seen.append(next(found))
    assert [data["graph"].rpartition("/")[2] for _, data in seen] == list("012345")


def test_a_reader_far_behind_gets_everything_once(http: httpx.Client, stream: str) -> None:
    """More members than are kept in memory, posted while the reader reads."""
    post(http, stream, 300)
    writer = threading.Thread(target=post, args=(http, stream, 200), kwargs={"first": 300})
    with events(f"{stream}?after=0") as found:
        writer.start()
        graphs = [next(found)[1]["graph"] for _ in range(500)]
    writer.join()
    assert graphs == [f"{stream}{i}" for i in range(500)]


def test_websocket(http: httpx.Client, stream: str) -> None:
    post(http, stream, 1)
    with connect(stream.replace("http", "ws") + "?after=0") as socket_:
        assert json.loads(socket_.recv(PATIENCE))["graph"] == f"{stream}0"
        post(http, stream, 1, first=1)
        assert json.loads(socket_.recv(PATIENCE))["graph"] == f"{stream}1"
        socket_.send("hello")
        with pytest.raises(Exception, match="1003"):
            socket_.recv(PATIENCE)
    with pytest.raises(InvalidStatus, match="404"):
        connect(stream.replace("http", "ws") + "none/")
    with pytest.raises(InvalidStatus, match="403"):
        connect(stream.replace("http", "ws"), origin="https://elsewhere.org")
    with pytest.raises(InvalidStatus, match="400"):
        connect(stream.replace("http", "ws") + "?after=x")


def first_kept(http: httpx.Client, url: str, count: int) -> int:
    """Wait until the container has deleted all but so many of its members; the number of the oldest."""
    while (
        len(lines := http.get(f"{url}?newest=1000", headers={"Accept": "application/x-ndjson"}).text.splitlines())
        > count
    ):
        time.sleep(0.02)
    return int(json.loads(lines[0])["id"])


@pytest.fixture
def short(http: httpx.Client) -> str:
    """A container that keeps five graphs."""
    body = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
    kept = f"{body[:-1]} ; <urn:etalis:containers#retainCount> 5 ."
    return http.post("/", content=kept, headers=TURTLE).headers["location"]


def test_a_reader_is_told_that_graphs_behind_its_cursor_were_deleted(http: httpx.Client, short: str) -> None:
    post(http, short, 3)
    place = first_kept(http, short, 3)
    post(http, short, 17, first=3)
    oldest = first_kept(http, short, 5)
    deleted = oldest - 1
    assert place < deleted

    with events(f"{short}?after={place}") as found:
        items = [next(found)[1] for _ in range(5)]
    assert [item.get("deletedUpTo") for item in items] == [deleted, None, None, None, None]
    with connect(short.replace("http", "ws") + f"?after={place}") as socket_:
        assert json.loads(socket_.recv(PATIENCE))["deletedUpTo"] == deleted
    for accept in ("application/x-ndjson", "application/trig"):
        answer = http.get(f"{short}?after={place}", headers={"Accept": accept})
        assert answer.headers["deleted-up-to"] == str(deleted)

    for complete in (deleted, oldest):
        with events(f"{short}?after={complete}") as found:
            assert "deletedUpTo" not in next(found)[1]
        assert "deleted-up-to" not in http.get(f"{short}?after={complete}", headers={"Accept": accept}).headers
    with events(short) as found:
        post(http, short, 1, first=20)
        assert "deletedUpTo" not in next(found)[1], "it began after all that was deleted"


def test_a_feed_that_is_empty_tells_of_deleted_graphs(http: httpx.Client, short: str) -> None:
    """Also whoever has the newest ETag, as deleting changes no graph of an empty page."""
    body = '<> <urn:etalis:containers#retainFor> "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration> .'
    kept = http.post(short, content=f"<> a <http://www.w3.org/ns/ldp#BasicContainer> . {body}", headers=TURTLE)
    url = kept.headers["location"]
    post(http, url, 1)
    place = first_kept(http, url, 1)
    accept = {"Accept": "application/x-ndjson"}
    before = http.get(f"{url}?after={place}", headers=accept)
    stamp = '"2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTimeStamp>'
    old = f"<> <http://www.w3.org/ns/prov#generatedAtTime> {stamp} ."
    assert http.post(url, content=old, headers=TURTLE).status_code == 201
    while http.get(f"{url}?after={place}", headers=accept).text:
        time.sleep(0.02)
    after = http.get(f"{url}?after={place}", headers=accept | {"If-None-Match": before.headers["etag"]})
    assert (after.status_code, "deleted-up-to" in after.headers) == (200, True)


def test_readers_end_with_their_container(http: httpx.Client, stream: str) -> None:
    with events(stream) as found:
        assert http.delete(stream).status_code == 204
        assert list(found) == []


def test_the_feed_pages_in_order_of_arrival(http: httpx.Client, stream: str) -> None:
    post(http, stream, 5)
    accept = {"Accept": "application/x-ndjson"}
    url, graphs = f"{stream}?after=0&limit=2", []
    for size in (2, 2, 1, 0):
        answer = http.get(url, headers=accept)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert len(lines) == size
        graphs += [line["graph"] for line in lines]
        url = stream + answer.links["next"]["url"] + "&limit=2"
    assert graphs == [f"{stream}{i}" for i in range(5)]
    again = http.get(url, headers=accept | {"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    newest = http.get(f"{stream}?newest=2", headers=accept).text.splitlines()
    assert [json.loads(line)["graph"] for line in newest] == [f"{stream}3", f"{stream}4"]


def test_a_listing_is_paged_on_request_and_the_pages_make_the_whole(http: httpx.Client, stream: str) -> None:
    post(http, stream, 25)
    whole = set(http.get(stream, headers={"Accept": "application/n-triples"}).text.splitlines())
    first = http.get(stream, headers={"Prefer": 'return=representation; max-member-count="10"'})
    assert first.status_code == 303
    url, found, pages = first.headers["location"], set(), 0
    while url:
        page = http.get(url, headers={"Accept": "application/n-triples"})
        assert "ldp#Page" in page.headers["link"]
        lines = page.text.splitlines()
        assert not found & set(lines)
        found |= set(lines)
        pages += 1
        url = page.links["next"]["url"] if "next" in page.links else None
        post(http, stream, 1, first=100)  # what comes meanwhile is not in the pages
    assert found == whole
    assert pages == 3


def test_a_large_container_is_paged_by_itself(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"listing_members": 5, "page_members": 4})
    with httpx.Client(base_url=server.url) as http:
        post(http, server.url, 6)
        assert http.get("/").status_code == 303
        answer = http.get("/", follow_redirects=True, headers={"Accept": "application/n-triples"})
        assert answer.text.count("ldp#contains") == 4
        minimal = 'return=representation; include="http://www.w3.org/ns/ldp#PreferMinimalContainer"'
        assert http.get("/", headers={"Prefer": minimal}).status_code == 200


def test_places_for_push_clients_are_limited(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"push_clients": 2})
    with events(server.url), connect(server.url.replace("http", "ws")):
        refused = httpx.get(server.url, headers=STREAM)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        assert "push_clients" in refused.json()["detail"]
    assert comes(lambda: not httpx.get(server.url + "-/status").json()["readers"])
    with events(server.url):
        pass


@pytest.mark.parametrize("what", ["push", "window"])
def test_a_reader_that_does_not_read_is_cut_off(start: Callable[..., Server], what: str) -> None:
    server = start(store=None, limits={"slow_reader_seconds": 1})
    text = "x" * 500_000
    with httpx.Client(base_url=server.url) as http:
        body = """<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ;
          <https://solid.ti.rw.fau.de/public/ns/stream-containers#window> [
            <http://www.w3.org/ns/ldp#membershipResource> <#w> ; <http://www.w3.org/ns/ldp#hasMemberRelation> <x:in> ;
            <https://solid.ti.rw.fau.de/public/ns/stream-containers#contentTimestampRelation> <x:t> ;
            <https://solid.ti.rw.fau.de/public/ns/stream-containers#physical> 100000 ] ."""
        assert http.post("/", content=body, headers=TURTLE | {"Slug": "s"}).status_code == 201
        for _ in range(60):
            http.post("/s/", content=f'<> <http://ex.org/n> "{text}" .', headers=TURTLE)
        host, port = server.url[7:-1].split(":")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        path, accept = ("/s/?after=0", "text/event-stream") if what == "push" else ("/s/?window=w", "application/trig")
        slow.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n".encode())
        time.sleep(3)
        slow.settimeout(10)
        received = 0
        try:
            while data := slow.recv(65536):
                received += len(data)
        except ConnectionResetError:
            pass
        assert received < 20_000_000, "the connection was ended long before all of it had gone out"
        assert http.get("/-/status").json()["readers"] == 0
