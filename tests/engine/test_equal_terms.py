"""Triples of the background that only ``?z = ?y`` connects with an event are looked up by value, not all read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Literal

import pytest

from etalis_py import Engine, compile, event
from etalis_py.knowledge.graph import Graph
from etalis_py.values import SparqlError, decode
from etalis_py.values.equality_keys import equality_key
from etalis_py.values.operators import eq
from tests.draws import seeds
from tests.work import growth

Executor = Literal["rows", "columns"]
NAME = "<http://example.org/name>"
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = [
    *(f'"{n}"^^<{XSD}integer>' for n in ("1", "01", "2")),
    *(f'"{n}"^^<{XSD}double>' for n in ("1.0E0", "NaN", "x")),
    f'"1.0"^^<{XSD}decimal>',
    *('"1"', '"a"', '"a"@en', '"a"^^<urn:unit>', "<urn:a>"),
]
PATTERNS = {
    "EVENT": "EVENT { ?s :code ?y . ?k :name ?z FILTER (?z = ?y) }",
    "EVENT, the other way round": "EVENT { ?k :name ?z . ?s :code ?y FILTER (?y = ?z) }",
    "EVENT of groups": "EVENT { { ?s :code ?y } { ?k :name ?z } FILTER (?z = ?y) }",
    "EVENT with a filter inside": "EVENT { { ?s :code ?y . ?k :name ?z FILTER (?z IN (?y)) } FILTER (BOUND(?k)) }",
    "EVENT of the same term": "EVENT { ?s :code ?y . ?k :name ?z FILTER (sameTerm(?z, ?y)) }",
    "the same term": "?s :code ?y . ?k :name ?z FILTER (sameTerm(?y, ?z))",
    "EVENT of the same text": "EVENT { ?s :code ?y . ?k :name ?z FILTER (STR(?z) = STR(?y)) }",
    "the same text": "{ ?s :code ?y } { ?k :name ?z } FILTER (STR(?y) = STR(?z))",
    "EVENT of the same number": "EVENT { ?s :code ?y . ?k :name ?z FILTER (?z + 1 = ?y + 1) }",
    "a group": "?s :code ?y . ?k :name ?z FILTER (?z = ?y)",
    "joined groups": "{ ?s :code ?y } { ?k :name ?z } FILTER (?y = ?z)",
}
MAY_LACK = {
    "EVENT with OPTIONAL": "EVENT { ?s :code ?y OPTIONAL { ?k :name ?z FILTER (?z = ?y) } }",
    "OPTIONAL of the same text": "{ ?s :code ?y } OPTIONAL { ?k :name ?z FILTER (STR(?z) = STR(?y)) }",
    "OPTIONAL": "{ ?s :code ?y } OPTIONAL { ?k :name ?z FILTER (?z = ?y) }",
}
EXISTING = {
    "EVENT with EXISTS": "EVENT { ?s :code ?y FILTER EXISTS { ?k :name ?z FILTER (?z = ?y) } }",
    "EXISTS of the same text": "?s :code ?y FILTER EXISTS { ?k :name ?z FILTER (STR(?z) = STR(?y)) }",
    "EXISTS": "?s :code ?y FILTER EXISTS { ?k :name ?z FILTER (?z = ?y) }",
}


def equal(one: str, other: str) -> bool:
    try:
        return eq(decode(one), decode(other))
    except SparqlError:
        return False


def text_of(term: str) -> str:
    return term[1:-1] if term[0] == "<" else term[1 : term.rindex('"')]


def is_number(term: str) -> bool:
    return XSD in term and '"x"' not in term


OTHERWISE: dict[str, Callable[[str, str], bool]] = {
    "same term": str.__eq__,
    "same text": lambda one, other: text_of(one) == text_of(other),
    "same number": lambda one, other: is_number(one) and is_number(other) and equal(one, other),
}
"""What some of the patterns ask for instead of equal values."""


def names(terms: Iterable[str]) -> list[tuple[str, str, str]]:
    return [(f"<urn:k{i}>", NAME, term) for i, term in enumerate(terms)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("name", [*PATTERNS, *MAY_LACK, *EXISTING])
def test_what_is_found_is_what_is_equal(name: str, executor: Executor) -> None:
    """The background changes between the events, so what is indexed by value changes with it."""
    program = compile(f"SELECT * {{ {(PATTERNS | MAY_LACK | EXISTING)[name]} }}")
    for seed in seeds(12):
        draw = random.Random(seed)
        known = dict(enumerate(draw.choices(VALUES, k=6)))
        engine = Engine(program, background=[names(known.values())], changes=True, executor=executor)
        expected, found = [], []
        for t in range(1, 6):
            code = draw.choice(VALUES)
            found += engine.push(event(f":s :code {code} .", t))
            match = next((same for kind, same in OTHERWISE.items() if kind in name), equal)
            partners = [(f"urn:k{i}", term) for i, term in known.items() if match(code, term)]
            if name in EXISTING:
                expected += [(t, None, None)] * bool(partners)
            else:
                expected += [(t, k, z) for k, z in partners or ([(None, None)] if name in MAY_LACK else [])]
            found += engine.advance(t)
            place, term = draw.randrange(6), draw.choice(VALUES)
            engine.update(remove=[(f"<urn:k{place}>", NAME, known[place])], add=[(f"<urn:k{place}>", NAME, term)])
            known[place] = term
        found += engine.close()
        rows = [(m.end, m.bindings.get("k", "").strip("<>") or None, m.bindings.get("z")) for m in found]
        assert sorted(rows, key=repr) == sorted(expected, key=repr), seed


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_the_event_says_itself_is_found_too(executor: Executor) -> None:
    program = compile(f"SELECT ?k {{ {PATTERNS['EVENT']} }}")
    engine = Engine(program, background=[names([VALUES[0], VALUES[2]])], executor=executor)
    found = [*engine.push(event(":s :code 7 . :own :name 7.0 ; :name 3 .", 1)), *engine.close()]
    assert [m["k"] for m in found] == ["http://example.org/own"]


def test_what_has_the_value_of_a_subject_is_looked_up_by_it() -> None:
    engine = Engine(
        compile("SELECT ?z { EVENT { ?s :code ?y . ?k :name ?z FILTER (?k = ?y) } }"),
        background=[names(['"a"', '"b"'])],
    )
    assert [
        m["z"] for m in [*engine.push_all([event(":s :code <urn:k1>", 1), event(":s :code 5", 2)]), *engine.close()]
    ] == ["b"]


@pytest.mark.parametrize("name", [*PATTERNS, *MAY_LACK, *EXISTING])
def test_the_work_does_not_grow_with_the_background(name: str) -> None:
    program = compile(f"SELECT * {{ {(PATTERNS | MAY_LACK | EXISTING)[name]} }}")

    def events(size: int) -> Callable[[], object]:
        background = [names(f'"n{i}"' for i in range(size))]
        engine = Engine(program, background=background, executor="rows")
        list(engine.push_all([event(f':s :code "n{i % 2}"', i) for i in range(4)]))  # builds the index
        return lambda: list(engine.push_all([event(':s :code "n1"', i) for i in range(4, 20)]))

    assert growth(events, 50) < 1.5


def test_the_index_by_value_follows_the_graph() -> None:
    graph = Graph(names([VALUES[0], VALUES[1], VALUES[4]]))
    assert {*graph.objects_equal_to(equality_key(1), NAME)} == {VALUES[0], VALUES[1]}
    graph.add("<urn:k7>", NAME, VALUES[6])
    graph.add("<urn:k8>", NAME, VALUES[0])
    graph.remove("<urn:k0>", NAME, VALUES[0])
    graph.remove("<urn:k1>", NAME, VALUES[1])
    graph.remove("<urn:k2>", NAME, VALUES[4])
    assert {*graph.objects_equal_to(equality_key(1), NAME)} == {VALUES[0], VALUES[6]}
    assert not graph.objects_equal_to(equality_key(float("nan")), NAME)
