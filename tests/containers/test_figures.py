"""[SC] Figures 3 to 6, with a real client against a real server; §3.3: what a client gets that times its requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyoxigraph as ox
import pytest

from etalis_py.events.clock import parse_datetime, render_datetime

PREFIXES = """
@prefix ldpsc: <https://solid.ti.rw.fau.de/public/ns/stream-containers#> .
@prefix ldp: <http://www.w3.org/ns/ldp#> .
@prefix sosa: <http://www.w3.org/ns/sosa/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ex: <http://example.org/> .
"""

# Figure 3, without what the server adds: the containment and the membership triples.
FIGURE_3 = (
    PREFIXES
    + """
<> a ldpsc:StreamContainer ;
   ldpsc:window [
       ldp:hasMemberRelation ex:inWindow ;
       ldp:membershipResource <#window1> ;
       ldpsc:contentTimestampRelation sosa:resultTime ;
       ldpsc:logical "PT2M"^^xsd:duration
   ].
"""
)

# Figure 3 as printed, its misprints repaired: </0> is a member of the container, and the list ends with a semicolon.
FIGURE_3_PRINTED = (
    PREFIXES
    + """
<> a ldpsc:StreamContainer ;
   ldp:contains <0> , <1> , <2> , <3> ;
   ldpsc:window [
       ldp:hasMemberRelation ex:inWindow ;
       ldp:membershipResource <#window1> ;
       ldpsc:contentTimestampRelation sosa:resultTime ;
       ldpsc:logical "PT2M"^^xsd:duration
   ].
<#window1> ex:inWindow <2> , <3> .
"""
)

# Figure 4, about the resource that is being created.
FIGURE_4 = (
    PREFIXES
    + """
<> a sosa:Observation ;
    sosa:observedProperty ex:temperature ;
    sosa:hasSimpleResult %s ;
    sosa:resultTime "%s"^^xsd:dateTimeStamp .
"""
)

TIMES = ["2021-07-20T10:48:08.657Z", "2021-07-20T10:49:08.657Z", "2021-07-20T10:50:08.657Z", "2021-07-20T10:51:08.657Z"]
NOW = "2021-07-20T10:51:40Z"

# Figure 5 as printed; NOW() is the time the request arrives, which the test gives.
FIGURE_5 = """
PREFIX ldpsc: <https://solid.ti.rw.fau.de/public/ns/stream-containers#>
PREFIX ldp: <http://www.w3.org/ns/ldp#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>

CONSTRUCT {
    ?memberResource ?memberRelation ?resource .
} WHERE {
    ?container a ldpsc:StreamContainer ;
    ldpsc:window ?window ;
    ldp:contains ?resource .
    ?window ldpsc:logical ?logicalWindow ;
    ldpsc:contentTimestampRelation ?timestampRelation ;
    ldp:hasMemberRelation ?memberRelation ;
    ldp:membershipResource ?memberResource .
    ?resource ?timestampRelation ?timestamp .
    FILTER(?timestamp >= ("%s"^^xsd:dateTime - ?logicalWindow))
}
"""

TURTLE = {"Content-Type": "text/turtle"}


def graph(response: httpx.Response) -> ox.Dataset:
    """The graph of a Turtle response, its blank nodes made comparable."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/turtle")
    return canonical(response.text, str(response.url).partition("?")[0])


def canonical(turtle: str, base: str) -> ox.Dataset:
    dataset = ox.Dataset(ox.parse(turtle, ox.RdfFormat.TURTLE, base_iri=base))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return dataset


@pytest.fixture
def stream(http: httpx.Client) -> str:
    """The container of Figure 3 with four graphs like the one of Figure 4."""
    response = http.post("/", content=FIGURE_3, headers=TURTLE)
    assert response.status_code == 201
    url = response.headers["location"]
    for i, time in enumerate(TIMES):
        response = http.post(url, content=FIGURE_4 % (20.3 + i, time), headers=TURTLE)
        assert response.status_code == 201
        assert response.headers["location"] == f"{url}{i}"
    return url


def test_figure_3_the_container_contains_its_graphs_and_relates_the_window_to_the_last_two_minutes(
    http: httpx.Client, stream: str
) -> None:
    response = http.get(stream, params={"at": NOW})
    assert graph(response) == canonical(FIGURE_3_PRINTED, stream)
    types = '<https://solid.ti.rw.fau.de/public/ns/stream-containers#StreamContainer>; rel="type"'
    assert types in response.headers["link"]


def test_figure_4_a_graph_is_given_back_as_it_was_posted(http: httpx.Client, stream: str) -> None:
    response = http.get(f"{stream}3")
    assert graph(response) == canonical(FIGURE_4 % (23.3, TIMES[3]), f"{stream}3")
    assert '"2021-07-20T10:51:08.657Z"' in response.text, "the lexical form is kept"


@pytest.mark.parametrize(
    ("now", "members"),
    [
        ("2021-07-20T10:51:40Z", {2, 3}),
        ("2021-07-20T10:51:08.657Z", {1, 2, 3}),  # >=: the graph that is exactly two minutes old is in
        ("2021-07-20T10:51:08.657001Z", {2, 3}),
        ("2021-07-20T10:48:30Z", {0, 1, 2, 3}),  # the rule has no upper end: what is yet to come is in
        ("2021-07-20T10:53:08.658Z", set()),
    ],
)
def test_figure_5_membership_is_what_the_printed_rule_constructs(
    http: httpx.Client, stream: str, now: str, members: set[int]
) -> None:
    listing = http.get(stream, params={"at": now}).text
    store = ox.Store()
    store.load(listing.encode(), ox.RdfFormat.TURTLE, base_iri=stream)
    inside = ox.NamedNode("http://example.org/inWindow")
    given = {str(q.triple) for q in store.quads_for_pattern(None, inside, None, None)}
    for quad in list(store.quads_for_pattern(None, inside, None, None)):
        store.remove(quad)
    for i in range(4):
        store.load(http.get(f"{stream}{i}").content, ox.RdfFormat.TURTLE, base_iri=f"{stream}{i}")
    constructed = {str(triple) for triple in store.query(FIGURE_5 % now)}
    assert given == constructed
    assert given == {f"<{stream}#window1> <http://example.org/inWindow> <{stream}{i}>" for i in members}


def test_figure_5_is_evaluated_at_each_request(http: httpx.Client, stream: str) -> None:
    assert len(http.get(stream, params={"at": TIMES[0]}).text) > len(http.get(stream, params={"at": NOW}).text)
    live = graph(http.get(stream))
    assert not [q for q in live if q.predicate.value == "http://example.org/inWindow"], "all is older than two minutes"


def test_figure_6_the_window_by_n_plus_1_requests_is_the_window_by_one(http: httpx.Client, stream: str) -> None:
    listing = graph(http.get(stream, params={"at": NOW}))
    members = [q.object.value for q in listing if q.predicate.value == "http://example.org/inWindow"]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda m: httpx.get(m, headers={"Accept": "application/n-triples"}), members))
    separately = {line for answer in answers for line in answer.text.splitlines()}
    whole = http.get(stream, params={"window": "window1", "at": NOW}, headers={"Accept": "application/n-triples"})
    assert set(whole.text.splitlines()) == separately
    assert len(members) == 2


def test_section_3_3_the_whole_window_is_open_below_and_closed_above(http: httpx.Client, stream: str) -> None:
    def window(at: str) -> set[str]:
        answer = http.get(stream, params={"window": "window1", "at": at}, headers={"Accept": "application/trig"})
        quads = ox.parse(answer.text, ox.RdfFormat.TRIG)
        return {q.graph_name.value for q in quads if not isinstance(q.graph_name, ox.DefaultGraph)}

    assert window("2021-07-20T10:51:08.657Z") == {f"{stream}2", f"{stream}3"}
    assert window("2021-07-20T10:51:08.656999Z") == {f"{stream}1", f"{stream}2"}
    assert window("2021-07-20T10:48:08.656Z") == set()


def test_section_3_3_a_client_that_times_its_requests_gets_the_sliding_windows_of_rsp_ql(
    http: httpx.Client, stream: str
) -> None:
    """α = 2 min from the container, β = 1 min and t0 from the client: the windows are those of W(α, β, t0)."""
    alpha, beta, t0 = 120_000_000, 60_000_000, parse_datetime("2021-07-20T10:48:08.657Z")
    times = [parse_datetime(t) for t in TIMES]
    for i in range(6):
        close = t0 + alpha + (i - 2) * beta
        expected = {f"{stream}{n}" for n, t in enumerate(times) if close - alpha < t <= close}
        answer = http.get(
            stream,
            params={"window": "window1", "at": render_datetime(close)},
            headers={"Accept": "application/x-ndjson"},
        )
        assert {line["graph"] for line in map(json.loads, answer.text.splitlines())} == expected
        assert f'close="{render_datetime(close)}"' in answer.headers["window"]


def test_the_timestamp_may_stand_on_another_subject_and_is_then_said_of_the_graph_too(
    http: httpx.Client, stream: str
) -> None:
    """§3.2: "the object of a triple that has the predicate"; Figure 5 wants it said of the resource: both hold."""
    body = PREFIXES + f'ex:o sosa:resultTime "{TIMES[3]}"^^xsd:dateTime ; sosa:hasSimpleResult 1 .'
    location = http.post(stream, content=body, headers=TURTLE).headers["location"]
    assert f'<{location}> <http://www.w3.org/ns/sosa/resultTime> "2021-07-20T10:51:08.657Z"' in (
        http.get(location, headers={"Accept": "application/n-triples"}).text
    )
    listing = graph(http.get(stream, params={"at": NOW}))
    assert location in {q.object.value for q in listing if q.predicate.value == "http://example.org/inWindow"}


def test_a_graph_without_a_time_is_stamped_on_arrival(http: httpx.Client, stream: str) -> None:
    location = http.post(stream, content="<> a <http://example.org/Reading> .", headers=TURTLE).headers["location"]
    stamped = [q for q in graph(http.get(location)) if q.predicate.value == "http://www.w3.org/ns/sosa/resultTime"]
    assert len(stamped) == 1
    listing = graph(http.get(stream))
    assert location in {q.object.value for q in listing if q.predicate.value == "http://example.org/inWindow"}


def test_a_physical_window_holds_the_newest_graphs_of_so_many_triples(http: httpx.Client) -> None:
    """Each graph has 4 triples: 9 triples hold two of them whole."""
    body = FIGURE_3.replace('ldpsc:logical "PT2M"^^xsd:duration', "ldpsc:physical 9")
    url = http.post("/", content=body, headers=TURTLE).headers["location"]
    for i, time in enumerate(TIMES):
        http.post(url, content=FIGURE_4 % (i, time), headers=TURTLE)

    def members(at: str | None = None) -> set[str]:
        listing = graph(http.get(url, params={"at": at} if at else {}))
        return {q.object.value for q in listing if q.predicate.value == "http://example.org/inWindow"}

    assert members() == {f"{url}2", f"{url}3"}
    assert members(TIMES[2]) == {f"{url}1", f"{url}2"}, "a graph of the future is not there yet"
    whole = http.get(url, params={"window": "window1"}, headers={"Accept": "application/n-triples"}).text
    assert len(whole.splitlines()) == 8


def test_each_window_has_its_own_relation_and_size(http: httpx.Client) -> None:
    body = (
        PREFIXES
        + """
<> a ldpsc:StreamContainer ; ldpsc:contentTimestampRelation sosa:resultTime ;
   ldpsc:window <#results>, <#phenomena>, <#last> .
<#results> ldp:hasMemberRelation ex:in ; ldp:membershipResource <#results> ;
   ldpsc:contentTimestampRelation sosa:resultTime ; ldpsc:logical "PT2M"^^xsd:duration .
<#phenomena> ldp:hasMemberRelation ex:in ; ldp:membershipResource <#phenomena> ;
   ldpsc:contentTimestampRelation sosa:phenomenonTime ; ldpsc:logical "PT2M"^^xsd:duration .
<#last> ldp:hasMemberRelation ex:in ; ldp:membershipResource <#last> ;
   ldpsc:contentTimestampRelation sosa:resultTime ; ldpsc:physical 3 .
"""
    )
    url = http.post("/", content=body, headers=TURTLE).headers["location"]
    posts = [("10:49:00", "10:51:00"), ("10:51:00", "10:40:00"), ("10:51:30", None)]
    for result, phenomenon in posts:
        more = f'; sosa:phenomenonTime "2021-07-20T{phenomenon}Z"^^xsd:dateTime' if phenomenon else ""
        body = PREFIXES + f'<> sosa:resultTime "2021-07-20T{result}Z"^^xsd:dateTime {more} .'
        assert http.post(url, content=body, headers=TURTLE).status_code == 201
    listing = graph(http.get(url, params={"at": NOW}))
    inside = {
        (q.subject.value.rpartition("#")[2], q.object.value.rpartition("/")[2])
        for q in listing
        if q.predicate.value == "http://example.org/in"
    }
    assert inside == {("results", "1"), ("results", "2"), ("phenomena", "0"), ("last", "1"), ("last", "2")}
    answer = http.get(url, params={"window": "phenomena", "at": NOW}, headers={"Accept": "application/x-ndjson"})
    assert [line["graph"] for line in map(json.loads, answer.text.splitlines())] == [f"{url}0"]


def test_windows_are_changed_with_put_and_patch_under_if_match(http: httpx.Client, stream: str) -> None:
    etag = http.get(stream).headers["etag"]
    shorter = FIGURE_3.replace("PT2M", "PT1M")
    assert http.put(stream, content=shorter, headers=TURTLE).status_code == 428
    assert http.put(stream, content=shorter, headers=TURTLE | {"If-Match": '"c0.0.0"'}).status_code == 412
    # A post in between changes the stream, but not the description that is being replaced.
    http.post(stream, content=FIGURE_4 % (1, TIMES[3]), headers=TURTLE)
    assert http.put(stream, content=shorter, headers=TURTLE | {"If-Match": etag}).status_code == 204
    assert http.put(stream, content=shorter, headers=TURTLE | {"If-Match": etag}).status_code == 412
    window = http.get(stream, params={"window": "window1", "at": NOW}, headers={"Accept": "application/x-ndjson"})
    assert len(window.text.splitlines()) == 2
    patch = """PREFIX ldpsc: <https://solid.ti.rw.fau.de/public/ns/stream-containers#>
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        DELETE { ?w ldpsc:logical ?d } INSERT { ?w ldpsc:logical "P1M"^^xsd:duration } WHERE { ?w ldpsc:logical ?d }"""
    headers = {"Content-Type": "application/sparql-update", "If-Match": http.get(stream).headers["etag"]}
    assert http.patch(stream, content=patch, headers=headers).status_code == 204
    window = http.get(stream, params={"window": "window1", "at": NOW}, headers={"Accept": "application/x-ndjson"})
    assert len(window.text.splitlines()) == 5


def test_the_round_trip_of_figure_3_is_no_change(http: httpx.Client, stream: str) -> None:
    """A client may PUT back what it got, containment and membership triples included."""
    got = http.get(stream, params={"at": NOW})
    assert http.put(stream, content=got.text, headers=TURTLE | {"If-Match": got.headers["etag"]}).status_code == 204
    assert graph(http.get(stream, params={"at": NOW})) == canonical(FIGURE_3_PRINTED, stream)


def test_figure_1_results_are_posted_to_another_container(http: httpx.Client) -> None:
    """The R2S operator: any client computes, and posts what it found."""
    source = http.post("/", content=FIGURE_3, headers=TURTLE).headers["location"]
    target = http.post("/", content=FIGURE_3, headers=TURTLE).headers["location"]
    http.post(source, content=FIGURE_4 % (41.0, TIMES[3]), headers=TURTLE)
    window = http.get(source, params={"window": "window1", "at": NOW}, headers={"Accept": "text/turtle"})
    store = ox.Store()
    store.load(window.content, ox.RdfFormat.TURTLE)
    query = """PREFIX sosa: <http://www.w3.org/ns/sosa/>
        CONSTRUCT { ?o a <http://example.org/Hot> ; sosa:resultTime ?t }
        WHERE { ?o sosa:hasSimpleResult ?v ; sosa:resultTime ?t FILTER(?v > 40) }"""
    result = ox.serialize(store.query(query), format=ox.RdfFormat.TURTLE)
    assert http.post(target, content=result, headers=TURTLE).status_code == 201
    stored = http.get(f"{target}0", headers={"Accept": "application/n-triples"}).text
    assert f"<{source}0> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Hot>" in stored
