"""A container in a run with a checkpoint: as a source it goes on by number, as a sink it has every match once."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from etalis_py import Engine, event, run
from etalis_py.containers import ContainerError, ContainerSink
from etalis_py.containers.durable_sink import DurableContainer
from etalis_py.containers.feed import check_position
from etalis_py.containers.follow_container import container_stream
from etalis_py.containers.match_graphs import MemberNames, match_name
from etalis_py.events import Event, Retraction
from etalis_py.testing.connectors import check_sink, some_matches, stored
from tests.cli import in_process
from tests.containers.test_client import STREAM, TURTLE, VALUE, post
from tests.containers.test_programs import members

QUERY = f"SELECT ?x {{ ?s {VALUE} ?x }}"


@pytest.fixture
def container(http: httpx.Client) -> str:
    return http.post("/", content=STREAM, headers=TURTLE).headers["location"]


def found(url: str, folder: Path, stops: list[int]) -> Iterator[int]:
    """The values of matches of runs that are stopped after so many, one after the other."""
    for count in stops:
        with (
            container_stream(url, idle=0.2) as stream,
            run(QUERY, stream, checkpoint=folder / "ck", checkpoint_every=0) as matches,
        ):
            yield from (match["x"] for match in islice(matches, count))


def test_a_run_goes_on_behind_the_last_member_that_it_has_used(
    http: httpx.Client, container: str, tmp_path: Path
) -> None:
    post(http, container, *range(10))
    values = list(found(container, tmp_path, [3, 4]))
    post(http, container, *range(10, 14))
    values += found(container, tmp_path, [7])
    assert sorted(set(values)) == list(range(max(values) + 1))
    assert len(values) == 14
    assert max(values) >= 11, "at most the last match before each stop comes again"


def test_a_member_that_was_deleted_meanwhile_costs_no_other(http: httpx.Client, container: str, tmp_path: Path) -> None:
    """Members are told apart by their numbers, not by how many came."""
    post(http, container, *range(8))
    values = list(found(container, tmp_path, [3]))
    for name in (0, 1, 2):
        assert http.delete(f"{container}{name}").status_code in (200, 204)
    values += found(container, tmp_path, [4])
    assert set(values) == set(range(max(values) + 1))


def kept_five(http: httpx.Client, url: str) -> None:
    """Wait until a container has deleted all but the newest five of its members."""
    while len(members(http, url)) > 5:
        time.sleep(0.02)


@pytest.mark.parametrize("revise", [0, 3600])
def test_a_run_tells_of_members_that_the_container_deleted_before_it_read_them(
    http: httpx.Client, tmp_path: Path, revise: int
) -> None:
    kept = f"{STREAM[:-1]} ; <urn:etalis:containers#retainCount> 5 ."
    short = http.post("/", content=kept, headers=TURTLE).headers["location"]
    post(http, short, *range(20))
    kept_five(http, short)

    def read(count: int) -> list[int]:
        with (
            container_stream(short, idle=0.2, revise=bool(revise)) as stream,
            run(QUERY, stream, checkpoint=tmp_path / "ck", checkpoint_every=0, revise=revise) as matches,
        ):
            return [match["x"] for match in islice(matches, count)]

    with warnings.catch_warnings(action="error"):
        # The last one comes when time has passed: after a checkpoint, with which the next run begins.
        assert read(5) == [15, 16, 17, 18, 19], "whoever begins asks for what is there"
    post(http, short, *range(20, 40))
    kept_five(http, short)
    with pytest.warns(UserWarning, match=f"{short}: graphs were deleted before they were read.*raise its retainCount"):
        assert 35 in read(3)


def test_a_run_says_nothing_of_deleted_members_that_it_has_read(http: httpx.Client, tmp_path: Path) -> None:
    kept = f"{STREAM[:-1]} ; <urn:etalis:containers#retainCount> 5 ."
    short = http.post("/", content=kept, headers=TURTLE).headers["location"]
    post(http, short, *range(5))
    with warnings.catch_warnings(action="error"):
        values = list(found(short, tmp_path, [4]))
        post(http, short, 5, 6)
        kept_five(http, short)
        values += found(short, tmp_path, [3])
    assert set(values) >= set(range(6))


def named(http: httpx.Client, url: str, name: str, text: str) -> None:
    when = f'<> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:{len(members(http, url)):02}Z"'
    body = f"<> {VALUE} {text} .\n{when}^^<http://www.w3.org/2001/XMLSchema#dateTimeStamp> ."
    answer = http.put(f"{url}{name}", content=body, headers=TURTLE | {"If-None-Match": "*"})
    assert answer.status_code in (200, 201), answer.text


def test_members_are_withdrawn_by_name_after_a_restart(http: httpx.Client, container: str) -> None:
    """The withdrawals come in other processes than what they withdraw, and a process ends between two of them."""
    for name, value in (("a", 1), ("b", 2), ("c", 3)):
        named(http, container, name, str(value))
    named(http, container, "d", f"4 . <> <urn:etalis:retracts> <{container}a>, <{container}b>")
    named(http, container, "e", "5")
    places: list[Any] | None = None
    taken: list[str] = []
    for count in (3, 1, 2):
        with container_stream(container, idle=0.2, revise=True) as stream:
            stream.track(places)
            for item in islice((item for item in stream if isinstance(item, Event)), count):
                taken.append("-" * isinstance(item, Retraction) + item.graph.rpartition("/")[2].rstrip(">"))
            stream.confirm(count)
            places = stored(stream.places())
    assert taken == ["a", "b", "c", "-a", "-b", "e"]


class _Plain(BaseHTTPRequestHandler):
    """A server of LDP that numbers nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/turtle")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


def test_a_container_without_numbers_is_refused(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Plain)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/s/"
        with (
            pytest.raises(ContainerError, match="has no feed of numbered members"),
            container_stream(url) as stream,
            run(QUERY, stream, checkpoint=tmp_path / "ck") as matches,
        ):
            next(matches)
    finally:
        server.shutdown()
        server.server_close()


def test_another_container_of_this_name_is_refused(http: httpx.Client, container: str) -> None:
    post(http, container, 1)
    check_position(container, 0)
    with pytest.raises(ContainerError, match="the run has used them up to number 1000000: it is another container"):
        check_position(container, 1_000_000)


# --- the sink ---


def test_a_container_keeps_the_contract_of_sinks(http: httpx.Client, container: str) -> None:
    names = {match_name(match.id): match.id for match in some_matches(9)}
    check_sink(
        lambda: DurableContainer(ContainerSink(container)),
        lambda: [names[address.rpartition("/")[2]] for address in members(http, container)],
    )


def test_a_match_that_comes_again_after_a_restart_gets_a_name_of_its_own(http: httpx.Client, container: str) -> None:
    """How often it was taken back is in the token."""
    (match,) = some_matches(1)
    first, second = (DurableContainer(ContainerSink(container, revised=True)) for _ in range(2))
    first.recover(None)
    first.write([match, match.taken_back()])
    first.commit(token := first.prepare())
    first.close()
    second.recover(token)
    second.write([match])
    second.commit(second.prepare())
    second.close()
    own = match_name(match.id)
    names = [address.rpartition("/")[2] for address in members(http, container)]
    assert names == [own, f"{own}-retracted", f"{own}-2"]


def names_of(engine: Engine, names: MemberNames, given: list[Event]) -> list[str]:
    """The names of the members for the matches of events that come one after another."""
    return [names.of(match)[0] for one in given for match in engine.push(one)]


@pytest.mark.parametrize("seed", range(20))
def test_a_match_is_remembered_until_it_cannot_be_taken_back(seed: int) -> None:
    """Drawn events, most of which are withdrawn and said again: names are those of a memory without bound."""
    draw, horizon = Random(seed), 20_000_000
    given: list[Event] = []
    for at in range(300):
        given.append(event(f":c{draw.randrange(3)} :p {at} .", at))
        for _ in range(draw.randrange(3)):
            one = draw.choice(given[-30:])
            given.append(one.withdrawn() if isinstance(one, Retraction) else Retraction._make(one))
    query = "SELECT ?c ?x ?y { { { ?c :p ?x } SEQ { ?c :p ?y } } WITHIN 6 SECONDS }"
    engines = [Engine(query, revise=horizon) for _ in range(2)]
    bounded, whole = MemberNames(engines[0].settled), MemberNames()
    assert names_of(engines[0], bounded, given) == names_of(engines[1], whole, given)
    assert len(bounded.state()) < len(whole.state()) / 2


def test_the_token_of_a_run_does_not_grow(container: str) -> None:
    """Every event is withdrawn a second later, within a horizon of five; there is a portion every twenty events."""
    engine = Engine("SELECT ?x { ?c :p ?x }", revise=5_000_000)
    sink = DurableContainer(ContainerSink(container, revised=True, settled=engine.settled))
    sink.recover(None)
    sizes = []
    for at in range(100):
        sink.write(engine.push(event(f":c :p {at} .", at)))
        if at:
            sink.write(engine.push(event(f":c :p {at - 1} .", at - 1, retract=True)))
        if at % 20 == 19:
            token = stored(sink.prepare())
            sizes.append(len(token["taken back"]))
            sink.commit(token)
    sink.close()
    assert max(sizes) <= 8
    assert min(sizes) >= 4


@pytest.mark.parametrize("more", [[], ["--revise", "5s"]], ids=["plain", "revised"])
def test_the_command_keeps_a_run_into_a_container(
    http: httpx.Client, container: str, tmp_path: Path, more: list[str]
) -> None:
    (tmp_path / "s.jsonl").write_text("".join(f'{{"time": {n}, "triples": ":c :p {n} ."}}\n' for n in range(5)))
    arguments = ["run", "-q", "SELECT ?x { ?c :p ?x }", "-s", "s.jsonl", "-o", container, "--checkpoint", "ck", *more]
    for said in ("", "has come to its end"):
        done = in_process.run(arguments, tmp_path)
        assert done.returncode == 0, done.stderr
        assert said in done.stderr
        assert len(members(http, container)) == 5
    assert list((tmp_path / "ck").glob("checkpoint-*"))
