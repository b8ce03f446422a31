"""LDP 1.0: every MUST and SHOULD for servers with basic containers, checked over HTTP; the table in docs/ is made here.

The requirements are paraphrased; the numbers are those of the recommendation.  To write the table anew after a change:
``UPDATE_DOCS=1 python -m pytest tests/containers/test_ldp.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyoxigraph as ox
import pytest

TABLE = Path(__file__).parents[2] / "docs" / "ldp-conformance.md"
LDP = "http://www.w3.org/ns/ldp#"
TURTLE = {"Content-Type": "text/turtle"}
BASIC = {"Link": f'<{LDP}BasicContainer>; rel="type"'}
DIRECT = {"Link": f'<{LDP}DirectContainer>; rel="type"'}


@dataclass(frozen=True)
class Clause:
    number: str
    level: str
    text: str
    check: Callable[[httpx.Client], None] | None
    why_not: str = ""


CLAUSES: list[Clause] = []


def clause(number: str, level: str, text: str) -> Callable[[Callable[[httpx.Client], None]], None]:
    def register(check: Callable[[httpx.Client], None]) -> None:
        CLAUSES.append(Clause(number, level, text, check))

    return register


def not_applicable(number: str, level: str, text: str, why: str) -> None:
    CLAUSES.append(Clause(number, level, text, None, why))


def container(c: httpx.Client, body: str = "", **headers: str) -> str:
    response = c.post("/", content=body, headers=TURTLE | BASIC | headers)
    assert response.status_code == 201, response.text
    return response.headers["location"]


def member(c: httpx.Client, where: str, body: str = '<> <http://ex.org/p> "1" .', **headers: str) -> str:
    response = c.post(where, content=body, headers=TURTLE | headers)
    assert response.status_code == 201, response.text
    return response.headers["location"]


def triples(response: httpx.Response) -> set[str]:
    assert response.status_code == 200, response.text
    base = str(response.url).partition("?")[0]
    return {str(q.triple) for q in ox.parse(response.content, ox.RdfFormat.TURTLE, base_iri=base)}


def types(response: httpx.Response) -> set[str]:
    links = response.headers.get("link", "").split(", ")
    return {link[1 : link.index(">")] for link in links if 'rel="type"' in link}


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


@clause("5.2.1.1", "MUST", "Containers are RDF sources.")
def _(c: httpx.Client) -> None:
    assert LDP + "RDFSource" in types(c.get(container(c)))


@clause("5.2.1.3", "SHOULD NOT", "rdf:Bag, rdf:Seq and rdf:List are not used.")
def _(c: httpx.Client) -> None:
    one = container(c)
    member(c, one)
    assert not [t for t in triples(c.get(one)) if "rdf-syntax-ns#" in t and "#type>" not in t]


@clause("5.2.1.4", "MUST", "The type of a container is in its Link headers, in all responses.")
def _(c: httpx.Client) -> None:
    one = container(c)
    for response in (c.get(one), c.head(one), c.options(one), c.post(one, content="x", headers=TURTLE)):
        assert LDP + "BasicContainer" in types(response)


@clause("5.2.1.5", "SHOULD", "Prefer: what a client leaves out is left out.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one)
    contained = f"<{one}> <{LDP}contains> <{two}>"
    for hint in (f'include="{LDP}PreferMinimalContainer"', f'omit="{LDP}PreferContainment"'):
        response = c.get(one, headers={"Prefer": f"return=representation; {hint}"})
        assert response.headers["preference-applied"] == "return=representation"
        assert contained not in triples(response)
    response = c.get(one, headers={"Prefer": f'return=representation; include="{LDP}PreferContainment"'})
    assert contained in triples(response)


@clause("5.2.3.1", "MUST", "POST creates a member: 201 and Location.")
def _(c: httpx.Client) -> None:
    one = container(c)
    response = c.post(one, content="<> a <x:y> .", headers=TURTLE)
    assert response.status_code == 201
    assert response.headers["location"].startswith(one)


@clause("5.2.3.2", "MUST", "What was created is contained, until it is deleted.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one)
    nested = c.post(one, headers=TURTLE | BASIC, content="").headers["location"]
    for url in (two, nested):
        assert f"<{one}> <{LDP}contains> <{url}>" in triples(c.get(one))


@clause("5.2.3.4", "MUST", "The interaction model asked for is honoured, or the request fails.")
def _(c: httpx.Client) -> None:
    one = container(c)
    basic = c.post(one, headers=TURTLE | BASIC, content="").headers["location"]
    assert LDP + "BasicContainer" in types(c.get(basic))
    body = f"<> <{LDP}membershipResource> <> ; <{LDP}hasMemberRelation> <http://ex.org/has> ."
    direct = c.post(one, headers=TURTLE | DIRECT, content=body).headers["location"]
    assert LDP + "DirectContainer" in types(c.get(direct))
    resource = {"Link": f'<{LDP}Resource>; rel="type"'}
    plain = c.post(one, headers=TURTLE | resource, content=f"<> a <{LDP}BasicContainer> .").headers["location"]
    assert LDP + "BasicContainer" not in types(c.get(plain))
    for model in ("IndirectContainer", "NonRDFSource"):
        refused = c.post(one, headers=TURTLE | {"Link": f'<{LDP}{model}>; rel="type"'}, content="")
        assert refused.status_code == 422


@clause("5.2.3.5", "MUST", "Members can be created with text/turtle.")
def _(c: httpx.Client) -> None:
    assert "text/turtle" in c.options(container(c)).headers["accept-post"]


@clause("5.2.3.6", "SHOULD", "Content-Type decides how the body is read.")
def _(c: httpx.Client) -> None:
    one = container(c)
    assert c.post(one, content="<> a <x:y> .", headers={"Content-Type": "application/ld+json"}).status_code == 400
    assert c.post(one, content="<> a <x:y> .", headers={"Content-Type": "text/plain"}).status_code == 415
    assert c.post(one, content='{"@id": "", "@type": "x:y"}', headers=TURTLE).status_code == 400


@clause("5.2.3.7", "MUST", "The null relative IRI names what is being created.")
def _(c: httpx.Client) -> None:
    two = member(c, container(c), '<> <http://ex.org/p> "1" .')
    assert f'<{two}> <http://ex.org/p> "1"' in triples(c.get(two))


@clause("5.2.3.8", "SHOULD", "The server gives addresses where the client suggests none.")
def _(c: httpx.Client) -> None:
    one = container(c)
    assert [member(c, one), member(c, one)] == [f"{one}0", f"{one}1"]


@clause("5.2.3.9", "SHOULD", "Resources can be created without knowledge of the server's own constraints.")
def _(c: httpx.Client) -> None:
    one = container(c)
    for body in ("", "<http://ex.org/a> <http://ex.org/b> _:c .", "_:a <http://ex.org/p> ( 1 2 3 ) ."):
        member(c, one, body)


@clause("5.2.3.10", "MAY", "Slug is taken as a suggestion.")
def _(c: httpx.Client) -> None:
    one = container(c)
    assert member(c, one, Slug="my reading!") == f"{one}my-reading"
    assert member(c, one, Slug="my reading!") == f"{one}my-reading-2"
    assert member(c, one, Slug="../../etc/passwd").startswith(one)


@clause("5.2.3.11", "SHOULD NOT", "Addresses are not used again (the last 100,000 chosen names are remembered).")
def _(c: httpx.Client) -> None:
    one = container(c)
    two, named = member(c, one), member(c, one, Slug="a")
    for url in (two, named):
        assert c.delete(url).status_code == 204
    assert member(c, one) == f"{one}1"
    assert member(c, one, Slug="a") == f"{one}a-2"
    assert c.put(named, content="", headers=TURTLE | {"If-None-Match": "*"}).status_code == 410


@clause("5.2.3.13", "MUST", "OPTIONS lists what can be posted in Accept-Post.")
def _(c: httpx.Client) -> None:
    offered = c.options(container(c)).headers["accept-post"]
    assert {"text/turtle", "application/ld+json", "application/n-triples", "application/trig"} <= set(
        offered.split(", ")
    )


@clause("5.2.3.14", "MUST", "Members can be created with application/ld+json.")
def _(c: httpx.Client) -> None:
    headers = {"Content-Type": "application/ld+json"}
    two = c.post(container(c), content='{"@id": "", "http://ex.org/p": "1"}', headers=headers).headers["location"]
    assert f'<{two}> <http://ex.org/p> "1"' in triples(c.get(two))


@clause("5.2.4.1", "SHOULD NOT", "PUT does not change containment; such a request is answered with 409.")
def _(c: httpx.Client) -> None:
    one = container(c)
    headers = TURTLE | {"If-Match": c.get(one).headers["etag"]}
    body = f"<> a <{LDP}BasicContainer> ; <{LDP}contains> <http://ex.org/elsewhere> ."
    assert c.put(one, content=body, headers=headers).status_code == 409


@clause("5.2.4.2", "SHOULD NOT", "PUT does not create resources under addresses used before.")
def _(c: httpx.Client) -> None:
    one = container(c)
    headers = TURTLE | {"If-None-Match": "*"}
    assert c.put(f"{one}x", content="", headers=headers).status_code == 201
    assert c.delete(f"{one}x").status_code == 204
    assert c.put(f"{one}x", content="", headers=headers).status_code == 410


@clause("5.2.5.1", "MUST", "What is deleted is no longer contained.")
def _(c: httpx.Client) -> None:
    one = container(c)
    two = member(c, one)
    nested = c.post(one, headers=TURTLE | BASIC, content="").headers["location"]
    for url in (two, nested):
        assert c.delete(url).status_code == 204
        assert f"<{one}> <{LDP}contains> <{url}>" not in triples(c.get(one))


@clause("5.2.7.1", "SHOULD", "PATCH changes the triples of the container itself.")
def _(c: httpx.Client) -> None:
    one = container(c)
    headers = {"Content-Type": "application/sparql-update", "If-Match": c.get(one).headers["etag"]}
    assert c.patch(one, content='INSERT DATA { <> <http://ex.org/p> "1" }', headers=headers).status_code == 204
    assert f'<{one}> <http://ex.org/p> "1"' in triples(c.get(one))


@clause("5.3.1.1", "MUST", "Basic containers are containers.")
def _(c: httpx.Client) -> None:
    assert {LDP + "Container", LDP + "BasicContainer"} <= types(c.get(container(c)))


@clause("5.4.1", "MUST", "Direct containers: one membership resource, one relation, and a triple for each member.")
def _(c: httpx.Client) -> None:
    for has in (True, False):
        relation = "hasMemberRelation" if has else "isMemberOfRelation"
        body = f"<> <{LDP}membershipResource> <#it> ; <{LDP}{relation}> <http://ex.org/r> ."
        one = c.post("/", headers=TURTLE | DIRECT, content=body).headers["location"]
        two = member(c, one)
        subject, obj = (f"{one}#it", two) if has else (two, f"{one}#it")
        assert f"<{subject}> <http://ex.org/r> <{obj}>" in triples(c.get(one))
        assert c.delete(two).status_code == 204
        assert f"<{subject}> <http://ex.org/r> <{obj}>" not in triples(c.get(one))
    refused = c.post("/", headers=TURTLE | DIRECT, content=f"<> <{LDP}membershipResource> <> .")
    assert refused.status_code == 422


@clause("6.1.2", "SHOULD NOT", "Addresses are not used again, however a resource was made.")
def _(c: httpx.Client) -> None:
    one = container(c, Slug="once")
    assert c.delete(one).status_code == 204
    assert c.get(one).status_code == 410
    assert container(c, Slug="once") != one


@clause("7.1.2", "SHOULD", "Accept-Post is in OPTIONS responses where POST is possible, and only there.")
def _(c: httpx.Client) -> None:
    one = container(c)
    assert "accept-post" in c.options(one).headers
    assert "accept-post" not in c.options(member(c, one)).headers


NOT_OURS = "there are no such resources: binary bodies are refused with 415"
not_applicable("5.2.3.12", "MUST", "Binary members link to their description.", NOT_OURS)
not_applicable("5.2.5.2", "MUST", "The description of a binary member goes with it.", NOT_OURS)
not_applicable("5.2.8.1", "MUST", "OPTIONS of a binary member links to its description.", NOT_OURS)
not_applicable("5.5", "MUST", "Indirect containers.", "not offered; asking for one is refused with 422")

IDS = [f"{c.number}-{c.level.lower().replace(' ', '-')}" for c in CLAUSES if c.check]


@pytest.mark.parametrize("given", [c for c in CLAUSES if c.check], ids=IDS)
def test_clause(given: Clause, http: httpx.Client) -> None:
    assert given.check is not None
    given.check(http)


def _verdict(given: Clause, client: httpx.Client) -> str:
    if given.check is None:
        return f"does not apply: {given.why_not}"
    try:
        given.check(client)
    except (AssertionError, KeyError, ValueError) as error:
        return f"**not kept**: {type(error).__name__}"
    return "kept"


def test_the_table_is_current(http: httpx.Client) -> None:
    lines = [
        "# Linked Data Platform 1.0: what the server keeps",
        "",
        "Every MUST and SHOULD that LDP 1.0 has for servers with basic containers, each checked over HTTP by",
        "`tests/containers/test_ldp.py`, which also writes this table. What is required of clients is left out.",
        "",
        "| clause | level | requirement | verdict |",
        "|---|---|---|---|",
    ]
    order = sorted(CLAUSES, key=lambda c: [int(n) for n in c.number.split(".")])
    lines += [f"| {c.number} | {c.level} | {c.text} | {_verdict(c, http)} |" for c in order]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        TABLE.write_text(text)
    assert TABLE.exists(), "write the table with UPDATE_DOCS=1"
    assert TABLE.read_text() == text, "the table is out of date: run this with UPDATE_DOCS=1 and commit it"
    assert "not kept" not in text
