"""Headers, descriptions and patches: small inputs, expected readings."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from etalis_py.containers import graphs, negotiation, patch
from etalis_py.containers import vocabulary as v
from etalis_py.containers.catalogue import ProgramRow
from etalis_py.containers.changes import check_name
from etalis_py.containers.limits import Limits
from etalis_py.containers.metrics import metrics
from etalis_py.containers.problems import KINDS, Problem, constraints_page
from etalis_py.containers.query_program import Clients, ManyQueries, Recent, Standing
from etalis_py.containers.run_server import ServeError, serve
from etalis_py.containers.running_program import KeptMatch
from etalis_py.containers.spec import Duration, read_spec
from tests.containers.test_store import make, open_store

OFFERED = ("text/turtle", "application/ld+json", "text/html")
BASE = graphs.Base("x-1://s/", "http://h/")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "text/turtle"),
        ("*/*", "text/turtle"),
        ("application/ld+json", "application/ld+json"),
        ("text/turtle;q=0.5, application/ld+json;q=0.8", "application/ld+json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("application/*", "application/ld+json"),
        ("text/*;q=0.3, text/turtle;q=0, */*;q=0.1", "text/html"),
        ("TEXT/TURTLE ; charset=utf-8", "text/turtle"),
    ],
)
def test_accept(accept: str | None, expected: str) -> None:
    assert negotiation.accepted(accept, OFFERED) == expected


def test_accept_nothing_offered() -> None:
    with pytest.raises(Problem, match=r"none of 'image/png' is offered here; offered: text/turtle"):
        negotiation.accepted("image/png", OFFERED)


@pytest.mark.parametrize(
    ("header", "containment", "membership", "page"),
    [
        (None, True, True, None),
        (f'return=representation; include="{v.PREFER_MINIMAL}"', False, False, None),
        (f'return=representation; include="{v.PREFER_EMPTY}"', False, False, None),
        (f'return=representation; include="{v.PREFER_MINIMAL} {v.PREFER_MEMBERSHIP}"', False, True, None),
        (f'return=representation; omit="{v.PREFER_MEMBERSHIP}"', True, False, None),
        ('return=representation; max-member-count="500"', True, True, 500),
        ('return=representation; max-member-count="many"', True, True, None),
        ("respond-async, wait=10", True, True, None),
    ],
)
def test_prefer(header: str | None, containment: bool, membership: bool, page: int | None) -> None:
    found = negotiation.prefer(header)
    assert (found.containment, found.membership, found.page) == (containment, membership, page)


def test_links() -> None:
    headers = ['<http://a>; rel="type", <b>; title="x, y"; rel="next prev"', "<c>; rel=type"]
    assert negotiation.links(headers) == [("type", "http://a"), ("next", "b"), ("prev", "b"), ("type", "c")]


def test_conditions() -> None:
    holds = negotiation.condition('"m1.1-ttl", "m1.2-jsonld"', None, needed=True)
    holds("m1.2")
    with pytest.raises(Problem, match="stale"):
        holds("m1.3")
    with pytest.raises(Problem, match="does not exist"):
        holds(None)
    with pytest.raises(Problem, match="stale"):
        negotiation.condition('W/"m1.2-ttl"', None, needed=True)("m1.2")
    with pytest.raises(Problem, match="need-match"):
        negotiation.condition(None, None, needed=True)("m1.2")
    negotiation.condition(None, "*", needed=True)(None)
    with pytest.raises(Problem, match="stale"):
        negotiation.condition(None, "*", needed=True)("m1.2")
    with pytest.raises(Problem, match="expected entity tags"):
        negotiation.condition("m1.2", None, needed=True)


WINDOW = f"""<> a {v.STREAM_CONTAINER} ; {v.WINDOW} [
  {v.MEMBERSHIP_RESOURCE} <#w> ; {v.HAS_MEMBER_RELATION} <x:in> ; {v.CONTENT_TIMESTAMP_RELATION} <x:t> ; %s ] . %s"""
DURATION = f'{v.LOGICAL} "%s"^^<http://www.w3.org/2001/XMLSchema#duration>'


def spec(body: str) -> object:
    graph = graphs.parse(body.encode(), graphs.TURTLE, "/s/", BASE, 1000)
    return read_spec(graph.me, graph.triples, Limits(windows_per_container=2))


def test_a_description_is_read() -> None:
    found = spec(WINDOW % (DURATION % "P1DT2H", f"<> {v.RETAIN_COUNT} 10 ."))
    assert found.windows[0].logical == Duration(0, 26 * 3600 * 1_000_000)
    assert (found.windows[0].name, found.order, found.retain_count) == ("w", "<x:t>", 10)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WINDOW % (DURATION % "-PT1S", ""), "duration above zero"),
        (WINDOW % (DURATION % "PT0S", ""), "duration above zero"),
        (WINDOW % (DURATION % "2 minutes", ""), "duration above zero"),
        (WINDOW % (DURATION % "P99999Y", ""), "10,000 years"),
        (WINDOW % (f'{v.LOGICAL} "PT1S"', ""), "duration above zero"),
        (WINDOW % (f"{v.PHYSICAL} 0", ""), "from 1 to"),
        (WINDOW % (f"{v.PHYSICAL} 1.5", ""), "from 1 to"),
        (WINDOW % (f"{DURATION % 'PT1S'} ; {v.PHYSICAL} 3", ""), "either one ldpsc:logical"),
        (WINDOW % ("<x:a> <x:b>", ""), "either one ldpsc:logical"),
        (WINDOW % (f"{v.PHYSICAL} 3 ; <{v.LDPSC}slide> 3", ""), "has no meaning"),
        (WINDOW % (f"{v.PHYSICAL} 3 ; {v.MEMBERSHIP_RESOURCE} <#v>", ""), "2 values"),
        (WINDOW.replace("<x:in>", v.CONTAINS) % (f"{v.PHYSICAL} 3", ""), "relation of your own"),
        (WINDOW.replace("<x:in>", '"x"') % (f"{v.PHYSICAL} 3", ""), "needs an IRI"),
        (WINDOW.replace(v.STREAM_CONTAINER, v.BASIC_CONTAINER) % (f"{v.PHYSICAL} 3", ""), "add the type"),
        (WINDOW % (f"{v.PHYSICAL} 3", f"<> {v.WINDOW} <#b>, <#c> ."), "windows_per_container"),
        (f"<> a {v.INDIRECT_CONTAINER} .", "IndirectContainer"),
        (f"<> a {v.DIRECT_CONTAINER} ; {v.MEMBERSHIP_RESOURCE} <> .", "a direct container has one"),
        (f"<> a {v.BASIC_CONTAINER} ; {v.HAS_MEMBER_RELATION} <x:in> .", "need the type ldp:DirectContainer"),
    ],
)
def test_a_wrong_description_is_refused_with_the_reason(body: str, said: str) -> None:
    with pytest.raises(Problem, match=said):
        spec(body)


def patched(text: str, *triples: tuple[str, str, str]) -> set[tuple[str, str, str]]:
    return set(patch.apply(patch.parse_patch(text, "/s/", BASE), triples))


A, P, Q = "<x:a>", "<x:p>", "<x:q>"


def test_patches() -> None:
    assert patched('INSERT DATA { <x:a> <x:p> "01"^^<x:int>, "x"@en }') == {(A, P, '"01"^^<x:int>'), (A, P, '"x"@en')}
    assert patched("DELETE DATA { <x:a> <x:p> <#it> }", (A, P, "<x-1://s/s/#it>"), (A, Q, A)) == {(A, Q, A)}
    assert patched("DELETE WHERE { ?s <x:p> ?o . ?o <x:q> ?x }", (A, P, "_:b"), ("_:b", Q, A), (A, Q, A)) == {(A, Q, A)}
    change = "PREFIX x: <x:> DELETE { ?s x:p ?o } INSERT { ?s x:q ?o } WHERE { ?s x:p ?o } ; INSERT DATA { x:a a x:b }"
    assert (A, Q, "_:b") in patched(change, (A, P, "_:b"))
    assert patched('INSERT DATA { <x:a> <x:p> """a } { ?x # ; \'b\' """ } # a comment }') == {
        (A, P, "\"a } { ?x # ; 'b' \"")
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no operation"),
        ("LOAD <http://127.0.0.1/>", "'LOAD' is not taken"),
        ("DELETE { ?s ?p ?o } WHERE { SERVICE <http://x/> { ?s ?p ?o } }", "no groups or graphs"),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o = 3) }", "cannot be read"),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o > 3) }", "cannot read .> 3.*taken are"),
        ("INSERT { <x:a> <x:p> 1 }", "with its WHERE"),
        ("INSERT DATA { ?s <x:p> 1 }", "no variables"),
        ("DELETE DATA { _:b <x:p> 1 }", "names nothing"),
        ("DELETE DATA { <x:a> <x:p> 1 }", "is not there"),
        ("DELETE WHERE { <x:a> <x:p> ?o }", "matches nothing"),
        ("INSERT DATA { <x:a> <x:p> ", "between braces"),
        ("INSERT DATA \x00", "expected {"),
        ("INSERT DATA {\n 'open", "line 2"),
    ],
)
def test_a_patch_that_is_not_taken_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(Problem, match=said):
        patched(text)


def test_a_patch_cannot_run_away() -> None:
    triples = [(f"<x:{i}>", P, f"<x:{j}>") for i in range(30) for j in range(30)]
    pattern = " . ".join(f"?a{i} <x:p> ?b{i}" for i in range(9))
    with pytest.raises(Problem, match="100000 steps"):
        patched(f"DELETE WHERE {{ {pattern} }}", *triples)


def test_the_page_of_constraints_names_every_kind_and_limit() -> None:
    text = constraints_page({"body_bytes": 7})
    assert all(f"{kind} ({status})" in text for kind, (status, _, _) in KINDS.items())
    assert "body bytes: 7" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "give a token for writing"),
        ({"host": "0.0.0.0", "token": " "}, "empty"),
        ({"base_url": "https://x.org/path"}, "scheme and host only"),
        ({"allow_origins": ["x.org"]}, "scheme and host only"),
        ({"host": "203.0.113.1", "token": "t"}, "choose another port or host"),
        ({"store": "/nowhere/at/all/s.db"}, "folder"),
    ],
)
def test_a_server_that_cannot_start_says_why(options: dict, said: str) -> None:
    with pytest.raises(ServeError, match=said):
        serve(**({"store": None, "port": 0} | options))


def test_limits_are_above_zero() -> None:
    with pytest.raises(ValueError, match="body_bytes must be above 0"):
        Limits(body_bytes=0)


def test_the_dashboard_asks_for_metrics_that_the_server_gives() -> None:
    state = {"containers": [], "programs": [], "readers": 0}
    given = set(re.findall(r"^# TYPE (\S+)", metrics(state), re.MULTILINE))
    dashboard = json.loads((Path(__file__).parents[2] / "deploy" / "grafana.json").read_text())
    asked = {name for panel in dashboard["panels"] for name in re.findall(r"etalis_\w+", panel["targets"][0]["expr"])}
    assert asked
    assert asked <= given


def test_of_each_query_the_last_matches_are_kept_and_the_oldest_of_all_go_first() -> None:
    recent, quiet, busy = Recent(most_bytes=1_000), Standing(1, "a"), Standing(2, "b")
    recent.add(quiet, KeptMatch(1, "m1", b"x" * 10))
    for number in range(2, 202):
        recent.add(busy, KeptMatch(number, f"m{number}", b"x" * 10))
    assert [kept.number for kept in quiet.kept] == [1], "a busy query takes nothing from another one"
    assert [kept.number for kept in busy.kept] == list(range(182, 202))
    recent.add(busy, KeptMatch(202, "long", b"x" * 900))
    assert (len(quiet.kept), busy.kept[-1].number) == (0, 202)
    assert sum(len(kept.document) for kept in busy.kept) <= 1_000
    recent.forget(busy)
    recent.add(quiet, KeptMatch(203, "m203", b"x" * 950))
    assert [kept.number for kept in quiet.kept] == [203]


@pytest.mark.parametrize("name", ["größe", "a b", "a%zz", "-", "..", "x" * 129])
def test_a_name_that_cannot_be_chosen_is_told_what_one_may_have(name: str) -> None:
    with pytest.raises(Problem, match=r"cannot be chosen as a name; use letters from a to z and A to Z, digits and"):
        check_name(name)


def test_a_query_that_comes_while_its_program_starts_is_to_come_again() -> None:
    """After a restart of a server that takes some seconds, and no client can resume what starts."""
    store = open_store()
    owner = SimpleNamespace(store=store, tracing=None, clients=Clients(9, Counter()))
    program = ManyQueries(owner, ProgramRow(1, make(store).id, "many", "", "", 0, many=True))  # type: ignore[arg-type]
    with pytest.raises(Problem, match="the program is starting") as refused:
        asyncio.run(program.add("mine", "SELECT ?x { ?s :p ?x }", "a", None))
    assert (refused.value.status, "Retry-After" in refused.value.headers) == (503, True)
    assert not program.queries
    store.close()


def test_a_client_that_deletes_a_query_may_register_another() -> None:
    clients = Clients(2, Counter({"a": 1}))
    clients.take("a")
    with pytest.raises(Problem, match=r"the client a has 2 standing queries \(queries_per_client\)"):
        clients.take("a")
    clients.take("b")
    clients.leave("a")
    clients.take("a")
