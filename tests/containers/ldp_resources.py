"""Chapter 4 of LDP 1.0: what holds for every resource, and for RDF sources."""

from __future__ import annotations

import httpx
import pyoxigraph as ox

from tests.containers.ldp_clauses import LDP, TURTLE, clause, container, member, triples, types


@clause("4.2.1.1", "MUST", "The server speaks HTTP/1.1.")
def _(c: httpx.Client) -> None:
    assert c.get("/").http_version == "HTTP/1.1"


@clause("4.2.1.3", "MUST", "Responses with a representation, and to HEAD, carry an ETag.")
def _(c: httpx.Client) -> None:
    one = container(c)
    for url in (one, member(c, one)):
        for accept in ("text/turtle", "application/ld+json", "application/n-triples", "application/trig"):
            assert c.get(url, headers={"Accept": accept}).headers["etag"].startswith('"')
            assert c.head(url, headers={"Accept": accept}).headers["etag"].startswith('"')


@clause("4.2.1.4", "MUST", "Every response of a resource has Link: ldp:Resource; rel=type.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one)
    for response in (c.get(one), c.head(one), c.options(one), c.get(two), c.head(two), c.options(two)):
        assert LDP + "Resource" in types(response)
    refused = c.put(two, content="<> a <x:y> .", headers=TURTLE)
    assert refused.status_code == 428
    assert LDP + "Resource" in types(refused)
    refused = c.request("PROPFIND", one)
    assert refused.status_code == 405
    assert LDP + "Resource" in types(refused)


@clause("4.2.1.5", "MUST", "Relative IRIs are resolved against the resource, or the resource being created.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one, "<> <http://ex.org/p> <#it>, <other> .")
    found = triples(c.get(two))
    assert f"<{two}> <http://ex.org/p> <{two}#it>" in found
    assert f"<{two}> <http://ex.org/p> <{one}other>" in found


@clause("4.2.1.6", "MUST", "Refusals because of constraints link to them with ldp:constrainedBy.")
def _(c: httpx.Client) -> None:
    one = container(c)
    refused = c.post(one, content="<> <http://ex.org/p> <<( <a:b> <a:b> <a:b> )>> .", headers=TURTLE)
    assert refused.status_code == 422
    assert f'</-/constraints>; rel="{LDP}constrainedBy"' in refused.headers["link"]
    assert c.get("/-/constraints").status_code == 200


@clause("4.2.2.1", "MUST", "GET is supported.")
def _(c: httpx.Client) -> None:
    assert c.get(member(c, container(c))).status_code == 200


@clause("4.2.2.2", "MUST", "GET responses carry the headers of OPTIONS.")
def _(c: httpx.Client) -> None:
    one = container(c)
    for name in ("allow", "accept-post", "accept-patch"):
        assert c.get(one).headers[name] == c.options(one).headers[name]


@clause("4.2.4.1", "MUST", "PUT replaces the whole state of a resource.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c), '<> <http://ex.org/p> "1" ; <http://ex.org/q> "2" .')
    etag = c.get(two).headers["etag"]
    assert c.put(two, content='<> <http://ex.org/p> "3" .', headers=TURTLE | {"If-Match": etag}).status_code == 204
    said = {t for t in triples(c.get(two)) if "ex.org" in t}
    assert said == {f'<{two}> <http://ex.org/p> "3"'}


@clause("4.2.4.2", "SHOULD", "Resources can be updated without knowledge of the server's own constraints.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        got = c.get(url)
        changed = got.text + f'<{url}> <http://purl.org/dc/terms/title> "new" .'
        assert c.put(url, content=changed, headers=TURTLE | {"If-Match": got.headers["etag"]}).status_code == 204
        assert f'<{url}> <http://purl.org/dc/terms/title> "new"' in triples(c.get(url))


@clause("4.2.4.3", "MUST", "A PUT that changes what clients may not change is refused with 4xx.")
def _(c: httpx.Client) -> None:
    one = container(c)
    body = f"<> a <{LDP}DirectContainer> ; <{LDP}membershipResource> <> ; <{LDP}hasMemberRelation> <http://ex.org/p> ."
    refused = c.put(one, content=body, headers=TURTLE | {"If-Match": c.get(one).headers["etag"]})
    assert refused.status_code == 409


@clause("4.2.4.3", "SHOULD", "The response to it says which properties.")
def _(c: httpx.Client) -> None:
    one = container(c)
    body = f"<> a <{LDP}BasicContainer> ; <{LDP}contains> <nothing> ."
    refused = c.put(one, content=body, headers=TURTLE | {"If-Match": c.get(one).headers["etag"]})
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    assert "ldp#contains" in refused.json()["detail"]


@clause("4.2.4.4", "MUST", "A PUT with content that will not be kept is refused with 4xx.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c))
    body = "<> <http://ex.org/p> <<( <a:b> <a:b> <a:b> )>> ."
    refused = c.put(two, content=body, headers=TURTLE | {"If-Match": c.get(two).headers["etag"]})
    assert refused.status_code == 422


@clause("4.2.4.4", "SHOULD", "The response to it says which content.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c))
    body = "<> <http://ex.org/p> <<( <a:b> <a:b> <a:b> )>> ."
    refused = c.put(two, content=body, headers=TURTLE | {"If-Match": c.get(two).headers["etag"]})
    assert "triple terms" in refused.json()["detail"]


@clause("4.2.4.5", "SHOULD", "If-Match is required for PUT.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        assert c.put(url, content=f"<> a <{LDP}BasicContainer> .", headers=TURTLE).status_code == 428


@clause("4.2.4.5", "MUST", "A wrong ETag is answered with 412, a missing one (where required) with 428.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c))
    etag = c.get(two).headers["etag"]
    for expected in (204, 412):
        body = f'<> <http://ex.org/p> "{expected}" .'
        assert c.put(two, content=body, headers=TURTLE | {"If-Match": etag}).status_code == expected
    assert c.put(two, content="<> a <x:y> .", headers=TURTLE).status_code == 428


@clause("4.2.4.6", "MAY", "PUT can create resources.")
def _(c: httpx.Client) -> None:
    one = container(c)
    assert c.put(f"{one}mine", content="<> a <x:y> .", headers=TURTLE | {"If-None-Match": "*"}).status_code == 201
    assert c.put(f"{one}mine", content="<> a <x:y> .", headers=TURTLE | {"If-None-Match": "*"}).status_code == 412
    assert f"<{one}> <{LDP}contains> <{one}mine>" in triples(c.get(one))


@clause("4.2.5", "MAY", "DELETE is supported.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c))
    assert c.delete(two).status_code == 204
    assert c.get(two).status_code == 410


@clause("4.2.6.1", "MUST", "HEAD is supported.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        head, get = c.head(url), c.get(url)
        assert head.status_code == 200
        assert head.content == b""
        same = ("etag", "content-type", "content-length", "link", "allow")
        assert [head.headers[n] for n in same] == [get.headers[n] for n in same]


@clause("4.2.7.1", "MUST", "OPTIONS lists the patch formats in Accept-Patch.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        assert c.options(url).headers["accept-patch"] == "application/sparql-update"


@clause("4.2.8.1", "MUST", "OPTIONS is supported.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        assert c.options(url).status_code == 204


@clause("4.2.8.2", "MUST", "OPTIONS lists the methods in Allow.")
def _(c: httpx.Client) -> None:
    one = container(c)
    allowed = {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"}
    assert set(c.options(one).headers["allow"].split(", ")) == allowed | {"POST"}
    assert set(c.options(member(c, one)).headers["allow"].split(", ")) == allowed


@clause("4.3.1.1", "MUST", "RDF sources are LDP resources.")
def _(c: httpx.Client) -> None:
    assert {LDP + "Resource", LDP + "RDFSource"} <= types(c.get(member(c, container(c))))


@clause(
    "4.3.1.2", "SHOULD", "RDF sources have an explicit rdf:type (containers do; a graph has those its author gave)."
)
def _(c: httpx.Client) -> None:
    one = container(c)
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    assert f"<{one}> {rdf_type} <{LDP}BasicContainer>" in triples(c.get(one))
    two = member(c, one, "<> a <http://ex.org/Reading> .")
    assert f"<{two}> {rdf_type} <http://ex.org/Reading>" in triples(c.get(two))


@clause("4.3.1.4", "MUST", "RDF sources have an RDF representation.")
def _(c: httpx.Client) -> None:
    assert triples(c.get(container(c)))


@clause("4.3.1.5", "SHOULD", "Existing vocabularies are re-used: LDP, PROV, and that of the stream containers.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c), "")
    (only,) = triples(c.get(two))
    assert only.startswith(f"<{two}> <http://www.w3.org/ns/prov#generatedAtTime> ")


@clause("4.3.1.10", "MUST", "Clients need no inference: all triples of LDP are explicit.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one)
    assert f"<{one}> <{LDP}contains> <{two}>" in triples(c.get(one))


@clause("4.3.2.1", "MUST", "Turtle is given when it is asked for.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        response = c.get(url, headers={"Accept": "text/turtle"})
        assert response.headers["content-type"].startswith("text/turtle")
        assert triples(response)


@clause("4.3.2.2", "SHOULD", "Turtle is given when nothing is asked for.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        request = c.build_request("GET", url)
        del request.headers["accept"]
        assert c.send(request).headers["content-type"].startswith("text/turtle")


@clause("4.3.2.3", "MUST", "JSON-LD is given when it is asked for.")
def _(c: httpx.Client) -> None:
    for url in (one := container(c), member(c, one)):
        response = c.get(url, headers={"Accept": "application/ld+json"})
        assert response.headers["content-type"] == "application/ld+json"
        quads = ox.parse(response.content, ox.RdfFormat.JSON_LD, base_iri=url)
        assert {str(q.triple) for q in quads} == triples(c.get(url))
