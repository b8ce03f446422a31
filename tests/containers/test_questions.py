"""Questions to programs (why, why-not): whatever they cost, the program goes on, and so do all others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import httpx
import psutil
import pytest

from tests.containers.server import Server
from tests.containers.test_programs import HOT, JSON, QUERY, STREAM, TURTLE, post, until
from tests.processes import PATIENCE, comes

LIMITS = {"question_seconds": 0.4, "question_bytes": 64 * 2**20, "questions_per_minute": 1_000, "step_seconds": 0.5}
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(limits=LIMITS)


@pytest.fixture
def stream(http: httpx.Client) -> str:
    return http.post("/", content=STREAM, headers=TURTLE).headers["location"]


@pytest.fixture
def program(http: httpx.Client, stream: str) -> Iterator[str]:
    """A program that runs on, whatever it is asked."""
    url = http.post(stream, content=HOT, headers=QUERY).headers["location"]
    yield url
    before = until(http, url, "state", "running")["pushed"]
    post(http, stream, 20)
    until(http, url, "pushed", before + 1)


@pytest.mark.parametrize(
    ("where", "words"), [("SPIN", "question_seconds"), ("EAT", "question_bytes"), ("CRASH", "the program runs on")]
)
def test_a_question_that_costs_too_much_ends_alone(http: httpx.Client, program: str, where: str, words: str) -> None:
    answer = http.get(program, params={"where": where}, headers=JSON)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text


def test_a_program_reads_on_while_it_is_asked(http: httpx.Client, server: Server, stream: str, program: str) -> None:
    asked, stop = [], threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as reader:
            while not stop.is_set():
                asked.append(reader.get(program, params={"where": "SPIN"}, headers=JSON).status_code)

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(20):
            post(http, stream, 40 + number)
            until(http, program, "pushed", number + 1)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert set(asked) == {422, 429}, "of one client one question at a time is answered"


def test_a_question_is_about_what_the_program_has_read(http: httpx.Client, stream: str, program: str) -> None:
    for number in range(3):
        post(http, stream, 40 + number)
        found = until(http, program, "matches", number + 1)["found"]
        match = found[-1]["match"]["id"]
        why = http.get(program, params={"match": match}, headers=JSON).json()["why"]
        assert why["events"][-1]["graph"] == f"<{stream}{number}>"


def test_no_process_is_left_of_a_question(http: httpx.Client, server: Server, program: str) -> None:
    def processes() -> set[int]:
        return {child.pid for child in psutil.Process(server.process.pid).children(recursive=True)}

    until(http, program, "state", "running")
    before = processes()
    for where in ("?v = 1", "SPIN", "CRASH"):
        http.get(program, params={"where": where}, headers=JSON)
    assert comes(lambda: not processes() - before)


def test_a_client_asks_so_often_in_a_minute(start: Callable[..., Server]) -> None:
    server = start(store=None, limits={"questions_per_minute": 3})
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
        program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
        until(http, program, "state", "running")
        answers = [http.get(program, params={"where": ""}, headers=JSON) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert "questions_per_minute" in answers[-1].json()["detail"]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert http.get(program, headers=JSON).status_code == 200, "its state is no question"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # curl, or any program
        ({"Sec-Fetch-Site": "same-origin", **BROWSER}, 200),  # the page of the server
        ({"Sec-Fetch-Site": "none", **BROWSER}, 200),  # the address bar
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image", **BROWSER}, 403),  # <img>
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", **BROWSER}, 403),  # a link, a frame
        ({"Sec-Fetch-Site": "same-site", **BROWSER}, 403),  # another port of the same host
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.org", **BROWSER}, 403),  # fetch
        (
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://good.org", **BROWSER},
            200,
        ),  # of an origin that is allowed
        ({"Origin": "null", **BROWSER}, 403),  # a sandboxed frame
        # Browsers that leave Sec-Fetch-Site out: old ones, and all for plain HTTP on other machines.
        (BROWSER, 403),  # <img referrerpolicy="no-referrer">
        ({"Referer": "https://evil.org/page", **BROWSER}, 403),  # <img>
        ({"Referer": "{url}sensors/", **BROWSER}, 200),  # the page of the server
        ({"Referer": "https://good.org/", **BROWSER}, 200),
    ],
)
@pytest.mark.parametrize("question", [{"where": "?v = 3"}, {"at": "5"}, {"match": "hot-0"}])
def test_a_page_of_another_site_asks_nothing(
    open_to_good: tuple[httpx.Client, str], question: dict[str, str], headers: dict[str, str], status: int
) -> None:
    http, program = open_to_good
    given = {name: value.format(url=str(http.base_url)) for name, value in headers.items()}
    answer = http.get(program, params=question, headers=JSON | given)
    assert answer.status_code == status, answer.text


@pytest.fixture(scope="module")
def open_to_good(start: Callable[..., Server]) -> Iterator[tuple[httpx.Client, str]]:
    """A server that the pages of good.org may use, and a program there that has a match."""
    server = start(store=None, allow_origins=["https://good.org"], limits={"questions_per_minute": 1_000})
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
        program = http.post(stream, content=HOT, headers=QUERY).headers["location"]
        post(http, stream, 40)
        until(http, program, "matches", 1)
        yield http, program
