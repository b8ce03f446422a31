"""kill -9 in the middle of a thousand posts: what was acknowledged is there after the restart, once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx

from tests.containers.server import Server

TURTLE = {"Content-Type": "text/turtle"}


def test_every_acknowledged_member_survives_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    body = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
    assert httpx.post(server.url, content=body, headers=TURTLE | {"Slug": "s"}).status_code == 201
    acknowledged: dict[str, int] = {}
    enough = threading.Event()

    def post(worker: int) -> None:
        with httpx.Client(base_url=server.url) as http:
            for i in range(worker * 125, worker * 125 + 125):
                try:
                    answer = http.post("/s/", content=f"<> <http://ex.org/n> {i} .", headers=TURTLE)
                except httpx.TransportError:
                    return
                assert answer.status_code == 201
                acknowledged[httpx.URL(answer.headers["location"]).path] = i
                if len(acknowledged) > 400:
                    enough.set()

    workers = [threading.Thread(target=post, args=(w,)) for w in range(8)]
    for worker in workers:
        worker.start()
    assert enough.wait(30)
    server.kill()
    for worker in workers:
        worker.join()
    assert 400 < len(acknowledged) < 1000, "the kill came in the middle"
    server.start()
    with httpx.Client(base_url=server.url) as http:
        found: dict[str, int] = {}
        url = "/s/?after=0&limit=1000"
        for line in http.get(url, headers={"Accept": "application/n-quads"}).text.splitlines():
            if "<http://ex.org/n>" in line:
                _, _, number, graph, _ = line.split(" ")
                assert graph not in found
                found[httpx.URL(graph[1:-1]).path] = int(number.split('"')[1])
        assert acknowledged.items() <= found.items()
        lost = len(found) - len(acknowledged)
        assert 0 <= lost <= 8, "at most one request of each worker was on its way"
        assert len(set(found.values())) == len(found)
        name = http.post("/s/", content="", headers=TURTLE).headers["location"].rpartition("/")[2]
        assert f"/s/{name}" not in found
