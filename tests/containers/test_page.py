"""The page in a real browser: post events, see them, run a query, see the match and its explanation.

With ``SCREENSHOTS=folder`` pictures of each step are written there, to be looked at.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.containers.axe import needs_axe, obstacles
from tests.containers.browser import CHROMIUM, Browser
from tests.containers.server import Server
from tests.processes import PATIENCE

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
)

VIEWS = ("overview", "matches", "events", "query")
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


def open_view(browser: Browser, view: str) -> None:
    browser.click(f"#views [data-view={view}]")
    browser.until(f"!document.querySelector('#view-{view}').hidden")


def test_the_page_shows_the_stream_live_and_runs_a_query(browser: Browser, http: httpx.Client, stream: str) -> None:
    browser.size(1200, 900)
    browser.go(stream)
    browser.until("document.querySelector('#windows tbody')?.innerText.includes('twoMinutes')")
    assert "Temperatures in the cold store" in browser.text("main")
    open_view(browser, "events")
    post(http, stream, 18.5, 35.0)
    browser.until("document.querySelectorAll('#events tbody tr').length === 2")
    table = (
        "[...document.querySelectorAll('#events tr')].map(row => [...row.cells].slice(1).map(cell => cell.innerText))"
    )
    assert browser.evaluate(table) == [
        ["about", "type", "v", "place"],
        ["<1>", "Observation", "35.0", "<b>shelf</b>"],
        ["<0>", "Observation", "18.5", "<b>shelf</b>"],
    ], "a column for each property, the newest first, and what comes from a stream is text, not markup"
    browser.until("[...document.querySelectorAll('#windows tbody tr')].every(row => row.cells[3].innerText === '2')")
    browser.until("document.querySelector('#facts').innerText.includes('2')")

    open_view(browser, "query")
    browser.fill("#query", "nonsense")
    browser.evaluate("document.querySelector('#query-form').requestSubmit()")
    browser.until("document.querySelector('#query-said').innerText.includes('line 1, column 1')")
    picture(browser, "1-refused")
    browser.fill("#query", "HOT <http://ex.org/v> 30")
    browser.fill("#query-name", "hot")
    browser.evaluate("document.querySelector('#query-form').requestSubmit()")
    browser.until("document.querySelector('#query-said').innerText.includes('Running as /cold-store')")
    browser.until("document.querySelectorAll('.program .match').length === 1")
    open_view(browser, "matches")
    assert len(browser.evaluate("[...document.querySelectorAll('.rules .node')].map(n => n.textContent)")) == 3
    post(http, stream, 20.0, 41.5)
    browser.until("document.querySelectorAll('.program .match').length === 2")
    time.sleep(1)
    picture(browser, "2-matches")

    browser.evaluate("document.querySelector('.program .match').dispatchEvent(new MouseEvent('click'))")
    browser.until(
        "document.querySelector('#why').open && document.querySelector('#why-body').innerText.includes('events')"
    )
    assert f"<{stream}3>" in browser.text("#why-body")
    assert "hotterThan" in browser.text("#why-title")
    picture(browser, "3-why")
    browser.press("Escape")
    browser.until("!document.querySelector('#why').open")
    output = browser.until(
        "[...document.querySelectorAll('#containers a')].map(a => a.dataset.path).find(p => p.includes('hot-matches'))"
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
        browser.until("document.querySelectorAll('#events tbody tr').length === 3")
        small = "[...document.querySelectorAll('nav a, button')].filter(e => e.offsetHeight && e.offsetHeight < 32)"
        for view in VIEWS:
            open_view(browser, view)
            assert browser.evaluate("document.documentElement.scrollWidth") <= 360, "nothing sticks out to the right"
            assert browser.evaluate(f"{small}.length") == 0, "everything to press is large enough for a finger"
            picture(browser, f"4-phone-{view}")
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
    browser.go(f"{stream}#matches")
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
    assert browser.evaluate("location.hash") == "#matches", "one stays in the view"
    browser.until("document.querySelector('#windows-none').innerText.includes('Only a stream container has windows')")
    assert browser.evaluate("document.querySelector('#window-add').hidden"), "the server would refuse one"


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
    browser.until("document.querySelector('#events').textContent.includes('Thing')")


def test_a_program_is_checked_run_paused_edited_and_deleted_from_the_page(
    browser: Browser, http: httpx.Client, stream: str
) -> None:
    browser.go(stream)
    browser.until("document.querySelector('#programs').innerText.includes('No program reads this stream')")

    def check(query: str, answer: str) -> None:
        browser.fill("#query", query)
        browser.evaluate("document.querySelector('#query-form button[type=button]:not(.chip)').click()")
        browser.until(f"document.querySelector('#query-said').textContent.includes('{answer}')")

    check("nonsense", "line 1, column 1")
    check("HOT <http://ex.org/v> 0", "a limit of 0 reports every reading")
    check("HOT <http://ex.org/v> 30", "No errors, no warnings")
    browser.fill("#query-name", "mild")
    browser.evaluate("document.querySelector('#query-form').requestSubmit()")
    browser.until("document.querySelector('.program .badge')?.innerText === 'running'")
    browser.until("document.querySelector('.program .timeline').innerText === 'No matches yet.'")
    path = httpx.URL(stream).path
    row = f"document.querySelector('#overview a[data-program=\"{path}mild\"]').closest('tr')"
    browser.until(f"{row}.innerText.includes('running')")

    browser.click(".program .pause")
    browser.until("document.querySelector('.program .badge').innerText === 'paused'")
    browser.click(".program .pause")
    browser.until("document.querySelector('.program .badge').innerText === 'running'")

    browser.fill(".program-text textarea", "ROWS <http://ex.org/v> 60")
    browser.evaluate("document.querySelector('.program-text form').requestSubmit()")
    browser.until("document.querySelector('.program-text .check-answer').textContent === 'Saved and running'")
    post(http, stream, 50, 70, 10)
    browser.until("document.querySelectorAll('.program .match').length === 1")
    assert browser.text(".matches td") == "70", "a value as a person writes it"
    assert "shown here only" in browser.text(".program .counts")
    browser.until(f"{row}.innerText.includes('?value = 70')")
    browser.evaluate("URL.createObjectURL = blob => { window.saved = blob; return '#' }")
    browser.evaluate("document.querySelectorAll('.program .export button')[0].click()")
    csv = browser.evaluate("saved.text()").splitlines()
    assert (csv[0], csv[1].split(",")[0], len(csv)) == ("?value,from,to,id", "70", 2)
    browser.evaluate("document.querySelectorAll('.program .export button')[1].click()")
    (line,) = browser.evaluate("saved.text()").splitlines()
    match = json.loads(line)
    assert csv[1].split(",")[1:] == [match["from"], match["to"], match["id"]]
    assert match["bindings"] == {"value": '"70"^^<http://www.w3.org/2001/XMLSchema#integer>'}
    link = browser.evaluate("document.querySelector('.matches .why').href")
    browser.until("/ 2\\.0/.test(document.querySelector('#rate path.line').getAttribute('d'))")
    browser.go("about:blank")
    browser.go(link)
    browser.until("!!document.querySelector('#rate path.line')")
    assert " 2.0" in browser.evaluate("document.querySelector('#rate path.line').getAttribute('d')"), "rates of before"
    browser.until(
        "document.querySelector('#why').open && document.querySelector('#why-body').innerText.includes('hot')"
    )
    browser.press("Escape")

    browser.evaluate("window.confirm = () => true")
    browser.evaluate("document.querySelectorAll('.program .actions button')[1].click()")
    browser.until("!document.querySelector('.program')")


def test_a_program_of_many_queries_shows_whose_each_match_is(browser: Browser, http: httpx.Client, stream: str) -> None:
    text = {"Content-Type": "application/sparql-query"}
    many = http.post(stream, params={"queries": "many"}, headers=text).headers["location"]
    for limit in (30, 40):
        slug = {"Slug": f"above-{limit}"}
        assert http.post(many, content=f"ROWS <http://ex.org/v> {limit}", headers=text | slug).status_code == 201
    post(http, stream, 45.0)
    browser.go(stream)
    browser.until("document.querySelectorAll('.program .matches tbody tr').length === 2")
    assert "2 queries · 1 graph read" in browser.text(".program .counts")
    assert "above-40" in browser.text(".program .matches")
    assert browser.evaluate("document.querySelectorAll('.rules, .program-text').length") == 0
    picture(browser, "7-many")


def test_what_is_taken_back_is_struck_out_and_why_not_is_answered(
    browser: Browser, start: Callable[..., Server]
) -> None:
    with httpx.Client(base_url=start(engine="etalis", revise=3_600_000_000).url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE).headers["location"]
        query = "SELECT ?v { ?x <http://ex.org/v> ?v FILTER (?v > 30) }"
        http.post(stream, content=query, headers={"Content-Type": "application/sparql-query"})
        browser.go(stream)
        browser.until("document.querySelector('.program .badge')?.innerText === 'running'")
        post(http, stream, 40, 20)
        browser.until("document.querySelectorAll('.matches tbody tr').length === 1")
        assert not browser.evaluate("!!document.querySelector('.matches tr.retracted')")
        withdrawal = f"<> <urn:etalis:retracts> <{stream}0> ."
        assert http.post(stream, content=withdrawal, headers=TURTLE).status_code == 201
        browser.until("document.querySelectorAll('.matches tr.retracted').length === 2")
        style = "getComputedStyle(document.querySelector('.matches tr.retracted td')).textDecorationLine"
        assert browser.evaluate(style) == "line-through"

        browser.evaluate("document.querySelector('.why-not').open = true")
        browser.fill(".why-not [name=where]", "?v = 20.0")
        browser.evaluate("document.querySelector('.why-not form').requestSubmit()")
        browser.until("document.querySelector('.why-not-answer').innerText.includes('fails by 10')")
        picture(browser, "9-why-not")
        browser.fill(".why-not [name=where]", "nonsense")
        browser.evaluate("document.querySelector('.why-not form').requestSubmit()")
        browser.until("document.querySelector('.why-not-answer').innerText.includes('where is not a condition')")


def test_rows_of_csv_and_json_are_posted(browser: Browser, http: httpx.Client, stream: str) -> None:
    browser.go(f"{stream}#events")
    browser.until("document.querySelector('#facts').innerText.includes('graphs')")
    browser.fill("#table", 'time,symbol,price,note\n1700000000,A B,10.5,"first, ""of""\nall"\n1700000001,ACME,11,\n')
    columns = "[document.querySelector('#table-subject').value, document.querySelector('#table-time').value]"
    assert browser.evaluate(columns) == ["symbol", "time"]
    preview = browser.until("document.querySelector('#table-preview').textContent")
    assert preview.startswith(":A\\%20B :price 10.5 ;")
    browser.evaluate("document.querySelector('#table-form').requestSubmit()")
    browser.until("document.querySelector('#table-said').textContent === 'Posted 2 rows'")
    graph = http.get(f"{stream}0", headers={"Accept": "application/n-triples"}).text
    assert '<http://example.org/A%20B> <http://example.org/note> "first, \\"of\\"\\nall"' in graph
    assert '<http://www.w3.org/ns/sosa/resultTime> "2023-11-14T22:13:20Z"' in graph, "as the stream orders"
    browser.fill("#table", '{"time": "2024-01-01T00:00:00Z", "symbol": "X", "price": 1.5, "open": true}')
    browser.evaluate("document.querySelector('#table-form').requestSubmit()")
    browser.until("document.querySelector('#table-said').textContent === 'Posted 1 row'")
    assert '"true"^^' in http.get(f"{stream}2", headers={"Accept": "application/n-triples"}).text
    browser.fill("#table", "time,x\nnoon,1")
    browser.until("document.querySelector('#table-said').textContent.includes('noon')")
    many = "\n".join(f'{{"time": {1_700_000_100 + i}, "id": "a", "n": {i}}}' for i in range(1_200))
    browser.fill("#table", many)
    browser.evaluate("document.querySelector('#table-form').requestSubmit()")
    browser.until("document.querySelector('#table-said').textContent === 'Posted 1,200 rows'")


def test_a_stream_is_created_from_the_page(browser: Browser, http: httpx.Client, stream: str) -> None:
    browser.go(stream)
    browser.fill("#stream-name", "inner")
    browser.fill("#stream-title", 'A "new" one')
    browser.evaluate("document.querySelector('#stream-window').value = 'PT1M'")
    browser.evaluate("document.querySelector('#stream-form').requestSubmit()")
    path = f"{httpx.URL(stream).path}inner/"
    browser.until(f"document.querySelector('#stream-said').textContent === 'Created {path}'")
    assert browser.evaluate("location.pathname") == path, "one stands in the new stream"
    browser.until(f"!!document.querySelector('#containers a[data-path=\"{path}\"][aria-current]')")
    browser.until("document.querySelector('#title').innerText === 'A \"new\" one'")
    browser.until("document.querySelector('#windows tbody').innerText.includes('1 minute')")

    browser.evaluate("window.confirm = () => true")
    post(http, path, 1, 2)
    for name, size, unit, shown in (("burst", 4, "triples", "4 triples"), ("brief", 90, "S", "1 minute 30 seconds")):
        browser.fill("#window-name", name)
        browser.fill("#window-size", str(size))
        browser.evaluate(f"document.querySelector('#window-unit').value = '{unit}'")
        browser.evaluate("document.querySelector('#window-form').requestSubmit()")
        browser.until(f"document.querySelector('#window-said').textContent === 'Added {name}'")
        browser.until(f"document.querySelector('#windows tbody').innerText.includes('{shown}')")
    assert len(http.get(path, params={"window": "burst"}, headers={"Accept": "text/turtle"}).text) > 0
    browser.evaluate("document.querySelector('#window-form').requestSubmit()")
    browser.until("document.querySelector('#window-said').textContent.includes('There is a window brief already')")
    browser.click("#windows [data-window=burst]")
    browser.until("document.querySelector('#windows-said').textContent === 'Deleted burst'")
    browser.until("!document.querySelector('#windows tbody').innerText.includes('burst')")
    assert "brief" in browser.text("#windows tbody")

    browser.click("#stream-delete")
    browser.until("document.querySelector('#stream-delete-said').textContent.startsWith('Deleted ')")
    assert browser.evaluate("location.pathname") == httpx.URL(stream).path
    assert http.get(path).status_code == 410
    headers = {"Content-Type": "application/sparql-query", "Slug": "hot"}
    assert http.post(stream, content="HOT <http://ex.org/v> 30", headers=headers).status_code == 201
    browser.click("#stream-delete")
    browser.until("document.querySelector('#stream-delete-said').textContent.includes('holds containers or programs')")


def test_the_editor_completes_predicates_and_prefixes(browser: Browser, http: httpx.Client, stream: str) -> None:
    post(http, stream, 1)
    browser.go(stream)
    browser.until("document.querySelectorAll('#events tbody tr').length === 1")
    offered = "[...document.querySelectorAll('#query-form .chip')].map(one => one.innerText)"

    def offers(text: str) -> list[str]:
        browser.fill("#query", text)
        return browser.evaluate(offered)

    assert {"PREFIX ex:", "PREFIX rdf:", "PREFIX sosa:", "place", "v"} <= set(offers(""))
    assert offers("PREFIX sosa: <http://www.w3.org/ns/sosa/>\nSELECT * { ?x sosa:") == ["resultTime"]
    assert offers("SELECT * { ?x pla") == ["place"]
    browser.click("#query-form .chip")
    query = "document.querySelector('#query').value"
    assert browser.evaluate(query) == "SELECT * { ?x <http://ex.org/place> "
    assert offers("SELECT * { ?x ex") == ["PREFIX ex:"]
    browser.click("#query-form .chip")
    assert browser.evaluate(query) == "PREFIX ex: <http://ex.org/>\nSELECT * { ?x ex:"
    assert set(browser.evaluate(offered)) == {"v", "place"}
    assert offers("SELECT * { ?x nowhere:") == []
    copy = "[...document.querySelectorAll('#query-form .copy span')].map(one => `${one.className} ${one.innerText}`)"
    browser.fill("#query", 'SELECT ?v { ?x :p "SEQ" } # SEQ')
    assert browser.evaluate(copy) == [
        "keyword SELECT",
        "variable ?v",
        "variable ?x",
        "iri :p",
        'literal "SEQ"',
        "comment # SEQ",
    ]


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_on_the_page_is_a_serious_obstacle(
    browser: Browser, http: httpx.Client, stream: str, width: int, dark: bool
) -> None:
    browser.size(width, 900)
    browser.dark(dark)
    headers = {"Content-Type": "application/sparql-query", "Slug": "values"}
    assert http.post(stream, content="ROWS <http://ex.org/v> 10", headers=headers).status_code == 201
    post(http, stream, 18.5, 35.0)
    browser.go(stream)
    browser.until("document.querySelectorAll('.program .match').length > 0")
    browser.until("document.querySelectorAll('#events tbody tr').length === 2")
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    for view in VIEWS:
        open_view(browser, view)
        assert not obstacles(browser), view
    browser.dark(False)
