"""The page in a real browser: post events, see them, run a query, see the match and its explanation.

With ``SCREENSHOTS=folder`` pictures of each step are written there, to be looked at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.containers.browser import CHROMIUM, Browser
from tests.containers.server import Server

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
)

TURTLE = {"Content-Type": "text/turtle"}
STREAM = """
@prefix ldpsc: <https://solid.ti.rw.fau.de/public/ns/stream-containers#> .
@prefix ldp: <http://www.w3.org/ns/ldp#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
<> a ldpsc:StreamContainer ; dcterms:title "Temperatures in the cold store" ;
   ldpsc:contentTimestampRelation <http://www.w3.org/ns/sosa/resultTime> ;
   ldpsc:window <#twoMinutes> , <#lastTriples> .
<#twoMinutes> ldp:hasMemberRelation ldp:member ; ldp:membershipResource <#twoMinutes> ;
   ldpsc:contentTimestampRelation <http://www.w3.org/ns/sosa/resultTime> ; ldpsc:logical "PT2M"^^xsd:duration .
<#lastTriples> ldp:hasMemberRelation ldp:member ; ldp:membershipResource <#lastTriples> ;
   ldpsc:contentTimestampRelation <http://www.w3.org/ns/sosa/resultTime> ; ldpsc:physical 12 .
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def stream(http: httpx.Client) -> str:
    return http.post("/", content=STREAM, headers=TURTLE | {"Slug": "cold-store"}).headers["location"]


def picture(browser: Browser, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder) / f"{name}.png")


def post(http: httpx.Client, url: str, *values: float) -> None:
    for value in values:
        body = f'<> a <http://ex.org/Observation> ; <http://ex.org/v> {value} ; <http://ex.org/place> "<b>shelf</b>" .'
        assert http.post(url, content=body, headers=TURTLE).status_code == 201


def test_the_page_shows_the_stream_live_and_runs_a_query(browser: Browser, http: httpx.Client, stream: str) -> None:
    browser.size(1200, 900)
    browser.go(stream)
    browser.until("document.querySelector('#windows tbody')?.innerText.includes('twoMinutes')")
    assert "Temperatures in the cold store" in browser.text("main")
    post(http, stream, 18.5, 35.0)
    browser.until("document.querySelectorAll('#graphs > li ul').length === 2")
    graphs = browser.text("#graphs")
    assert '"35.0"' in graphs
    assert '"<b>shelf</b>"' in graphs, "what comes from a stream is text, not markup"
    assert graphs.index('"35.0"') < graphs.index('"18.5"'), "the newest first"
    browser.until("[...document.querySelectorAll('#windows tbody tr')].every(row => row.cells[3].innerText === '2')")
    browser.until("document.querySelector('#facts').innerText.includes('2')")

    browser.evaluate("document.querySelector('#run').open = true")
    browser.fill("#query", "nonsense")
    browser.evaluate("document.querySelector('#query-form').requestSubmit()")
    browser.until("document.querySelector('#query-said').innerText.includes('line 1, column 1')")
    picture(browser, "1-refused")
    browser.fill("#query", "HOT <http://ex.org/v> 30")
    browser.fill("#query-name", "hot")
    browser.evaluate("document.querySelector('#query-form').requestSubmit()")
    browser.until("document.querySelector('#query-said').innerText.includes('Running as /cold-store')")
    browser.until("document.querySelectorAll('.program .match').length === 1")
    assert len(browser.evaluate("[...document.querySelectorAll('.rules .node')].map(n => n.textContent)")) == 3
    post(http, stream, 20.0, 41.5)
    browser.until("document.querySelectorAll('.program .match').length === 2")
    time.sleep(1)
    picture(browser, "2-matches")

    browser.evaluate("document.querySelectorAll('.program .match')[1].dispatchEvent(new MouseEvent('click'))")
    browser.until(
        "document.querySelector('#why').open && document.querySelector('#why-body').innerText.includes('events')"
    )
    assert f"<{stream}3>" in browser.text("#why-body")
    assert "hotterThan" in browser.text("#why-title")
    picture(browser, "3-why")
    browser.press("Escape")
    browser.until("!document.querySelector('#why').open")
    output = browser.until(
        "[...document.querySelectorAll('nav a')].map(a => a.dataset.path).find(p => p.includes('hot-matches'))"
    )
    assert "-hot-3" in http.get(output).text
    errors = [line for line in browser.console if "400" not in line]
    assert not errors, "one refused query is all that went wrong"


def test_the_page_asks_nobody_but_its_server(browser: Browser, http: httpx.Client, stream: str, server: Server) -> None:
    browser.requests.clear()
    browser.go(stream)
    browser.until("document.querySelector('#state').innerText.includes('container')")
    assert browser.requests
    assert all(url.startswith((server.url, "data:")) for url in browser.requests), browser.requests


def test_the_page_fits_a_phone(browser: Browser, http: httpx.Client, stream: str) -> None:
    browser.size(360, 740, mobile=True)
    try:
        http.post(
            stream,
            content="HOT <http://ex.org/v> 30",
            headers={"Content-Type": "application/sparql-query"},
            params={"from": "oldest"},
        )
        post(http, stream, 31, 15, 42)
        browser.go(stream)
        browser.until("document.querySelectorAll('.program .match').length >= 1")
        browser.until("document.querySelectorAll('#graphs > li ul').length === 3")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360, "nothing sticks out to the right"
        small = browser.evaluate(
            "[...document.querySelectorAll('nav a, button')].filter(e => e.offsetHeight && e.offsetHeight < 32).length"
        )
        assert small == 0, "everything to press is large enough for a finger"
        picture(browser, "4-phone")
    finally:
        browser.size(1200, 900)


def test_the_page_works_by_keyboard(browser: Browser, http: httpx.Client, stream: str) -> None:
    http.post(
        stream,
        content="HOT <http://ex.org/v> 30",
        headers={"Content-Type": "application/sparql-query"},
        params={"from": "oldest"},
    )
    post(http, stream, 31, 15, 42)
    browser.go(stream)
    browser.until("document.querySelectorAll('.program .match').length === 2")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.className") == "skip"
    browser.press("Enter")
    for _ in range(40):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.classList.contains('match')"):
            break
    assert browser.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Why ")
    picture(browser, "5-focus")
    browser.press("Enter")
    browser.until("document.querySelector('#why').open")
    browser.press("Escape")
    browser.until("!document.querySelector('#why').open")
    browser.evaluate("document.querySelector('#containers a').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('#name').innerText === '/'")
    time.sleep(1.5)
    assert browser.evaluate("location.pathname") == "/"


def test_writing_from_the_page_with_a_token(browser: Browser, start: Callable[..., Server]) -> None:
    server = start(store=None, token="s3cret")
    browser.go(server.url)
    browser.until("document.querySelector('#state').innerText.includes('writing needs a token')")
    browser.fill("#graph", "<> a <http://ex.org/Thing> .")
    browser.evaluate("document.querySelector('#post-form').requestSubmit()")
    browser.until("document.querySelector('#post-said').textContent.includes('only with its token')")
    browser.fill("#token", "s3cret")
    browser.evaluate("document.querySelector('#token-form').requestSubmit()")
    browser.evaluate("document.querySelector('#post-form').requestSubmit()")
    browser.until("document.querySelector('#post-said').textContent.includes('Created /0')")
    browser.until("!document.querySelector('#state').innerText.includes('writing needs a token')")
    browser.until("document.querySelector('#graphs').innerText.includes('Thing')")
