"""The list of the clauses of LDP 1.0, and what the checks of clauses share: how to make and read resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pyoxigraph as ox

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
