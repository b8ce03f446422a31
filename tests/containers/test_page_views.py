"""The page in a real browser with the real engine: what a newcomer meets, and the views of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import etalis_py
from tests.containers.axe import needs_axe, obstacles
from tests.containers.browser import CHROMIUM, Browser
from tests.containers.server import Server
from tests.processes import PATIENCE

PAGE = Path(etalis_py.__file__).parent / "containers" / "page"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture
def fresh(start: Callable[..., Server]) -> Iterator[httpx.Client]:
    """A client of a server that holds nothing yet."""
    with httpx.Client(base_url=start(store=None, engine="etalis").url, timeout=PATIENCE) as http:
        yield http


@needs_browser
def test_an_empty_server_says_what_it_is_and_runs_a_sample(browser: Browser, fresh: httpx.Client) -> None:
    browser.go(str(fresh.base_url))
    browser.until("!document.querySelector('#welcome').hidden")
    assert len(browser.evaluate("[...document.querySelectorAll('#welcome > p:not([class], :last-child)')]")) == 3
    links = browser.evaluate("[...document.querySelectorAll('#welcome a')].map(a => a.getAttribute('href'))")
    assert links
    assert all(fresh.get(link).status_code == 200 for link in links)
    browser.click("#sample")
    browser.until("location.pathname === '/sample/'")
    browser.until("document.querySelectorAll('.program .matches tbody tr').length === 3")
    browser.until("document.querySelector('#welcome').hidden")
    rooms = browser.evaluate("[...document.querySelectorAll('.matches tbody tr')].map(row => row.cells[0].innerText)")
    assert sorted(rooms) == ["fish", "fish", "fruit"], "the door of the dairy opened, too, but it stayed cold"


@needs_browser
def test_why_and_why_not_name_the_program(browser: Browser, fresh: httpx.Client) -> None:
    stream = fresh.put("/s/", content="", headers={"Content-Type": "text/turtle"}).headers["location"]
    query = "SELECT ?v { ?x <http://ex.org/v> ?v FILTER (?v > 30) }"
    headers = {"Content-Type": "application/sparql-query", "Slug": "warm"}
    assert fresh.post(stream, content=query, headers=headers).status_code == 201
    for value in (40, 20):
        graph = f"<> <http://ex.org/v> {value} ."
        assert fresh.post(stream, content=graph, headers={"Content-Type": "text/turtle"}).status_code == 201
    browser.go(stream)
    browser.until("document.querySelectorAll('.matches tbody tr').length === 1")
    browser.click(".matches .why")
    browser.until("document.querySelector('#why-body .rule')?.innerText === 'warm'")
    browser.press("Escape")
    browser.fill(".why-not [name=where]", "?v = 20")
    browser.evaluate("document.querySelector('.why-not form').requestSubmit()")
    browser.until("document.querySelector('.why-not-answer').textContent.startsWith('warm has no match')")


@needs_browser
def test_the_newest_events_are_rows_with_a_column_for_each_property(browser: Browser, fresh: httpx.Client) -> None:
    stream = fresh.put("/s/", content="", headers={"Content-Type": "text/turtle"}).headers["location"]

    def post(turtle: str) -> None:
        prefixes = "@prefix : <http://example.org/> .\n"
        answer = fresh.post(stream, content=prefixes + turtle, headers={"Content-Type": "text/turtle"})
        assert answer.status_code == 201, answer.text

    post(":hall :celsius 20 ; :lit true . :attic :celsius 9 .")
    post("[] :celsius 30 ; :by :ann , :bob .")
    browser.go(f"{stream}#events")
    browser.until("document.querySelectorAll('#events tbody tr').length === 3")
    table = "[...document.querySelectorAll('#events tr')].map(row => [...row.cells].slice(1).map(one => one.innerText))"
    assert browser.evaluate(table) == [
        ["about", "celsius", "lit", "by"],
        ["", "30", "", "ann, bob"],
        ["hall", "20", "true", ""],
        ["attic", "9", "", ""],
    ], "the newest first; a blank node has no name, and the time has a column of its own"
    post(":wide " + " ; ".join(f":p{i} {i}" for i in range(10)) + " .")
    browser.until("document.querySelectorAll('#events tbody tr').length === 4")
    head, first, *_ = browser.evaluate(table)
    assert (len(head), head[-1], first[-1]) == (10, "others", "p5 5; p6 6; p7 7; p8 8; p9 9")


@needs_browser
def test_four_views_are_one_click_apart(browser: Browser, fresh: httpx.Client) -> None:
    browser.size(1280, 900)
    browser.go(str(fresh.base_url))
    browser.until("!document.querySelector('#welcome').hidden")
    browser.click("#sample")
    browser.until("document.querySelectorAll('.program .matches tbody tr').length === 3")
    shown = "[...document.querySelectorAll('main > div')].filter(one => !one.hidden).map(one => one.id)"
    assert browser.evaluate(shown) == ["view-matches"], "from the sample one comes to its matches"
    for view in ("overview", "events", "query", "matches"):
        browser.click(f"#views [data-view={view}]")
        assert browser.evaluate(shown) == [f"view-{view}"]
        assert browser.evaluate("location.hash") == f"#{view}"
        assert browser.evaluate("document.querySelector('#views [aria-current]').dataset.view") == view
        assert browser.evaluate(f"document.querySelector('#view-{view}').offsetHeight") < 2_600
    counts = browser.evaluate("[...document.querySelectorAll('#views .count')].map(one => one.innerText)")
    assert counts == ["3", "51", "1"]
    browser.evaluate("history.back()")
    browser.until(f"({shown})[0] === 'view-query'")


@needs_browser
def test_the_timeline_shows_the_events_of_each_match(browser: Browser, fresh: httpx.Client) -> None:
    browser.size(1280, 900)
    browser.go(str(fresh.base_url))
    browser.until("!document.querySelector('#welcome').hidden")
    browser.click("#sample")
    browser.until("document.querySelectorAll('.program .match').length === 3")
    lanes = "[...document.querySelectorAll('.program .match')].map(lane => lane.querySelector('text').textContent)"
    assert browser.evaluate(lanes) == ["fruit, 9", "fish, 10", "fish, 9"], "the newest first"
    dots = "[...document.querySelectorAll('.match')].map(lane => lane.querySelectorAll('.event').length)"
    assert browser.evaluate(dots) == [2, 2, 2], "a door, and a temperature"
    legend = browser.evaluate("[...document.querySelectorAll('.legend li')].map(one => one.innerText)")
    assert legend == ["door", "celsius"]

    place = browser.evaluate(
        "(({ x, y }) => [x + 5, y + 5])(document.querySelector('.match .event').getBoundingClientRect())"
    )
    browser.mouse("mouseMoved", *place)
    tip = browser.until("!document.querySelector('.tip').hidden && document.querySelector('.tip').innerText")
    assert tip.startswith("fruit door open\n")
    browser.mouse("mouseMoved", 5, 5)
    browser.until("document.querySelector('.tip').hidden")

    fish = "(({ left, right, top }) => [left - 20, right + 3, top])"
    left, right, top = browser.evaluate(f"{fish}(document.querySelectorAll('.bar')[2].getBoundingClientRect())")
    browser.mouse("mousePressed", left + 30, top)
    browser.mouse("mouseMoved", right - 30, top)
    browser.mouse("mouseReleased", right, top)
    browser.until("document.querySelectorAll('.match').length === 2")
    assert browser.evaluate(lanes) == ["fish, 10", "fish, 9"]
    assert not browser.evaluate("document.querySelector('#why').open"), "to draw over a time is no question"
    browser.evaluate("[...document.querySelectorAll('.zoom button')].at(-1).click()")
    browser.until("document.querySelectorAll('.match').length === 3")
    browser.evaluate("document.querySelector('.zoom [aria-label=\"Zoom in\"]').click()")
    browser.evaluate("document.querySelector('.zoom [aria-label=\"Later\"]').click()")
    browser.until("document.querySelectorAll('.match').length < 3")

    browser.mouse("mousePressed", *place)
    browser.mouse("mouseReleased", *place)
    browser.until("document.querySelector('#why').open")
    assert browser.text("#why-title") == "Why ?room = fruit, ?celsius = 9"
    browser.press("Escape")


@needs_browser
@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_a_serious_obstacle_to_a_newcomer(
    browser: Browser, fresh: httpx.Client, width: int, dark: bool
) -> None:
    browser.size(width, 900)
    browser.dark(dark)
    browser.go(f"{fresh.base_url}-/docs/language.md")
    assert not obstacles(browser), "the documentation"
    browser.go(str(fresh.base_url))
    browser.until("!document.querySelector('#welcome').hidden")
    assert not obstacles(browser), "the first screen"
    browser.click("#sample")
    browser.until("document.querySelectorAll('.program .match').length === 3")
    browser.until("document.querySelectorAll('#events tbody tr').length === 50")
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    browser.fill("#table", "at,card,amount\n1700000000,c1,9")
    browser.until("document.querySelector('#table-preview').textContent")
    browser.fill(".why-not [name=where]", "?room = :dairy")
    browser.evaluate("document.querySelector('.why-not form').requestSubmit()")
    browser.until("!!document.querySelector('.why-not-answer pre')")
    for view in ("overview", "events", "query", "matches"):
        browser.click(f"#views [data-view={view}]")
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, view
        assert not obstacles(browser), view
    browser.click(".matches .why")
    browser.until("!!document.querySelector('#why-body .rule')")
    assert not obstacles(browser), "why"
    browser.press("Escape")
    browser.dark(False)


def test_the_server_carries_the_documentation(http: httpx.Client) -> None:
    page = http.get("/-/docs/language.md")
    assert page.headers["content-type"].startswith("text/html")
    assert "script" not in page.headers["content-security-policy"].replace("script-src 'self'", "")
    assert '<h2 id="event-what-one-event-says"' in page.text
    assert '<table tabindex="0">' in page.text
    for name in ("http.md", "index.md"):
        assert "<pre><code class" not in http.get(f"/-/docs/{name}").text, "what scrolls can be reached by keyboard"
    assert http.get("/-/docs/rises.svg").headers["content-type"] == "image/svg+xml"
    assert http.get("/-/docs/language.md", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    assert http.get("/-/docs/../app.py").status_code == 404
    assert http.get("/-/docs/nothing.md").status_code == 404


def test_what_scrolls_can_be_reached_and_is_named() -> None:
    """A box with a wide table scrolls, which a keyboard can only do where it has the focus."""
    boxes = re.findall(r'<div class="wide[^>]*>', (PAGE / "index.html").read_text(encoding="utf-8"))
    assert len(boxes) == 3
    assert all('tabindex="0" role="group" aria-label' in box for box in boxes)
