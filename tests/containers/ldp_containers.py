"""Chapters 5 to 7 of LDP 1.0: what holds for containers, and what follows for the protocol."""

from __future__ import annotations

import httpx

from tests.containers.ldp_clauses import (
    BASIC,
    DIRECT,
    LDP,
    TURTLE,
    clause,
    container,
    member,
    not_applicable,
    triples,
    types,
)


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
    assert member(c, one, Slug="another%20r%C3%A9ading%7E7") == f"{one}another-r-ading~7"  # RFC 5023 9.7.1
    assert member(c, one, Slug="100%zz") == f"{one}100-zz"
    for hostile in ("../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc", "%00%0a%ff"):
        assert member(c, one, Slug=hostile).startswith(one)


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
