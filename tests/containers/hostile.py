"""A client that means harm, on loopback only, bounded in connections, bytes and time.

``python -m tests.containers.hostile URL SECONDS`` runs until the time is over and prints what became of it, as JSON.
Further arguments are the addresses of somebody else's stream and program, and program of many queries, to be harmed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import httpx

from tests.processes import PATIENCE

TURTLE = {"Content-Type": "text/turtle"}
JSONLD = {"Content-Type": "application/ld+json"}
QUERY = {"Content-Type": "application/sparql-query"}
JSON = {"Accept": "application/json"}
STREAM = "<> a <https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer> ."
PREFIX = "PREFIX : <http://e/> "


def squarings(times: int) -> str:
    binds = " ".join(f"BIND(?x{i} * ?x{i} AS ?x{i + 1})" for i in range(times))
    return f"{PREFIX}SELECT ?x{times} {{ ?s :n ?x0 {binds} }}"


def doublings(times: int) -> str:
    binds = " ".join(f"BIND(CONCAT(?x{i}, ?x{i}) AS ?x{i + 1})" for i in range(times))
    return f"{PREFIX}SELECT (STRLEN(?x{times}) AS ?n) {{ ?s :t ?x0 {binds} }}"


QUERIES = {
    "a path that doubles": f"{PREFIX}SELECT * {{ ?x {'(:p|:q)/' * 30}:p ?y }}",
    "three patterns without a shared variable": f"{PREFIX}SELECT * {{ ?a :p ?b . ?c :p ?d . ?e :p ?f }}",
    "26 squarings": squarings(26),
    "40 doublings of a string": doublings(40),
    "a sum that never ends": PREFIX + "CONSTRUCT { ?s :m ?y } { { ?s :n ?x } UNION { ?s :m ?x } BIND(?x + 1 AS ?y) }",
    "braces": f"SELECT * {'{' * 3000}{'}' * 3000}",
    "parentheses": f"SELECT * {{ ?s ?p ?o FILTER({'(' * 3000}1{')' * 3000}) }}",
    "a long sum": f"SELECT * {{ ?s ?p ?o FILTER({' + '.join(['?o'] * 5000)} > 1) }}",
    "many binds": f"SELECT * {{ ?s ?p ?o {' '.join(f'BIND({i} AS ?v{i})' for i in range(3000))} }}",
}

_CONTEXT = {f"t{i}": f"http://e/{i}" for i in range(5_000)}


def documents() -> dict[str, tuple[bytes, dict[str, str]]]:
    contexts = [{"@context": _CONTEXT, "@graph": [{"@context": {"q": "http://q/"}, "t1": i} for i in range(9_000)]}]
    long = b"@prefix p: <http://x/" + b"a" * 400_000 + b"> . " + b"p:b p:c p:d .\n" * 9_000
    return {
        "10,000 open braces of JSON-LD": (b'{"http://e/p":' * 10_000, JSONLD),
        "10,000 nested objects": (b'{"http://e/p":' * 10_000 + b"1" + b"}" * 10_000, JSONLD),
        "contexts within a context": (json.dumps(contexts).encode(), JSONLD),
        "60,000 triple terms": (b"<a> <b> " + b"<<(<a> <b> " * 60_000 + b"<c>" + b")>>" * 60_000 + b" .", TURTLE),
        "60,000 brackets": (b"<a> <b> " + b"[<b> " * 60_000 + b"1" + b"]" * 60_000 + b" .", TURTLE),
        "a long prefix, often": (long, TURTLE),
        "a quote without end": (b'<a> <b> """' + b"'''\"" * 200_000, TURTLE),
        "more than is taken": (b"#" * 1_500_000, TURTLE),
    }


def triggers() -> list[bytes]:
    """Graphs on which the queries go wrong."""
    many = "".join(f"<x{i}> <http://e/p> {i} ." for i in range(9_000))
    return [
        b'<> <http://e/n> 12345 ; <http://e/t> "abcdefgh" .',
        many.encode(),
        b"<> <http://e/n> " + b"7" * 900_000 + b" .",
    ]


class Hostile:
    def __init__(self, url: str, seconds: float, victims: list[str]) -> None:
        self.victims = victims
        self.url, self.end = url, time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.unstopped: list[str] = []
        self.address = (httpx.URL(url).host, httpx.URL(url).port or 80)

    def run(self) -> None:
        jobs = [self.programs, self.programs, self.documents, self.documents, self.heads, self.connections, self.reads]
        if self.victims:
            jobs = [self.questions, self.questions, self.questions, self.withdrawals, self.registrations, self.images]
        threads = [threading.Thread(target=self._repeat, args=(job, 2 + n)) for n, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, job: Callable[[httpx.Client], None], number: int) -> None:
        # Those who harm somebody come from several addresses, for the limits of one client would stop them.
        transport = httpx.HTTPTransport(local_address=f"127.0.0.{number}" if self.victims else None)
        with httpx.Client(base_url=self.url, timeout=PATIENCE, transport=transport) as client:
            while time.monotonic() < self.end:
                try:
                    job(client)
                except (httpx.TransportError, OSError) as error:
                    self.counts[f"{type(error).__name__} in {job.__name__}"] += 1
                    time.sleep(0.1)

    def programs(self, client: httpx.Client) -> None:
        """Register what is costly, set it off, wait until it is stopped, look for the reason, delete it."""
        stream = client.post("/", content=STREAM, headers=TURTLE).headers["location"]
        registered = {}
        for name, query in QUERIES.items():
            answer = client.post(stream, content=query, headers=QUERY)
            self.counts[f"programs: {answer.status_code}"] += 1
            if answer.status_code == 201:
                registered[name] = answer.headers["location"]
            else:
                assert answer.json()["detail"], name
        for graph in triggers():
            client.post(stream, content=graph, headers=TURTLE)
        deadline = min(time.monotonic() + 60, self.end + 45)
        waiting = dict(registered)
        while waiting and time.monotonic() < deadline:
            for name, url in list(waiting.items()):
                state = client.get(url, headers=JSON).json()
                if state["state"] == "stopped" or (state["state"] == "running" and state["pushed"] == 3):
                    del waiting[name]
                    self.counts[f"{name}: {state['error'] or 'ran to its end'}"[:150]] += 1
                    assert state["state"] == "running" or state["error"], "a program stops with a reason"
            time.sleep(0.2)
        self.unstopped += waiting
        for url in registered.values():
            assert client.delete(url).status_code == 204

    def documents(self, client: httpx.Client) -> None:
        for name, (data, kind) in documents().items():
            answer = client.post("/", content=data, headers=kind)
            self.counts[f"{name}: {answer.status_code}"] += 1
            if time.monotonic() > self.end:
                return

    def heads(self, client: httpx.Client) -> None:
        """Heads of requests that never end."""
        with contextlib.ExitStack() as held:
            opened = []
            for _ in range(100):
                connection = held.enter_context(socket.create_connection(self.address, timeout=5))
                connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
                opened.append(connection)
            for _ in range(20):
                time.sleep(0.2)
                for connection in opened:
                    with contextlib.suppress(OSError):
                        connection.sendall(b"a")
        self.counts["half-sent heads"] += 100

    def connections(self, client: httpx.Client) -> None:
        """More connections than one address may have; those that are held do nothing."""
        with contextlib.ExitStack() as held:
            for _ in range(200):
                held.enter_context(socket.create_connection(self.address, timeout=5))
            time.sleep(1)
        self.counts["idle connections"] += 200

    def reads(self, client: httpx.Client) -> None:
        """Answers that are long, and that nobody takes."""
        for path in ("/?after=0&limit=10000", "/-/status", "/?newest=10000", "/-/constraints"):
            self.counts[f"GET {path}: {client.get(path).status_code}"] += 1
        with socket.create_connection(self.address, timeout=5) as connection:
            connection.sendall(b"GET /?after=0&limit=10000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
            time.sleep(0.5)

    # -- against the stream, the program and the program of many queries of somebody else ------------------------------

    def questions(self, client: httpx.Client) -> None:
        """Questions without end, about everything."""
        program = self.victims[1]
        for parameters in (
            {"where": ""},
            {"where": "?high > ?low"},
            {"at": "1970-01-01T00:00:00Z/2100-01-01T00:00:00Z"},
        ):
            answer = client.get(program, params=parameters, headers=JSON)
            self.counts[f"question: {answer.status_code}"] += 1
        found = client.get(program, headers=JSON).json()["found"]
        for match in found[-3:]:
            answer = client.get(program, params={"match": match["match"]["id"]}, headers=JSON)
            self.counts[f"why: {answer.status_code}"] += 1

    def images(self, client: httpx.Client) -> None:
        """Questions as a page of another site makes its visitors ask them."""
        headers = {"User-Agent": "Mozilla/5.0", "Accept": "image/*,*/*;q=0.8"}
        for more in ({"Sec-Fetch-Site": "cross-site"}, {"Referer": "http://evil.org/"}, {}):
            answer = client.get(self.victims[1], params={"where": ""}, headers=headers | more)
            self.counts[f"image: {answer.status_code}"] += 1
        time.sleep(0.05)

    def withdrawals(self, client: httpx.Client) -> None:
        """Graphs, each withdrawn at once, one by one."""
        stream = self.victims[0]
        answers = [client.post(stream, content=b"<> <http://e/price> 1 .", headers=TURTLE) for _ in range(20)]
        self.counts["withdrawn"] += len(answers)
        for answer in answers:
            body = f"<> <urn:etalis:retracts> <{answer.headers['location']}> ."
            assert client.post(stream, content=body, headers=TURTLE).status_code == 201

    def registrations(self, client: httpx.Client) -> None:
        """Queries of new kinds, or, where a program takes corrections, programs."""
        number = self.counts["registered"]
        many = len(self.victims) > 2
        joins = " ".join(f"?s :r{number % 50}x{k} ?v{k} ." for k in range(1 + number % 5))
        query = (
            f"{PREFIX}SELECT * {{ {{ ?s :price ?x }} SEQ {{ {joins} }} WITHIN PT{1 + number}S FILTER (?x > {number}) }}"
        )
        answer = client.post(self.victims[2] if many else self.victims[0], content=query, headers=QUERY)
        self.counts["registered"] += 1
        self.counts[f"registration: {answer.status_code}"] += 1
        if answer.status_code == 201:
            assert client.delete(answer.headers["location"]).status_code == 204


if __name__ == "__main__":
    hostile = Hostile(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
    hostile.run()
    print(json.dumps({"counts": hostile.counts, "unstopped": hostile.unstopped}))
