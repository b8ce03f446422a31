"""CONSTRUCT rules: the Q-closure of [EP] §4.2, recursion and strata (docs/semantics.md, Rules)."""

from __future__ import annotations

import pytest

from . import Endless, Undetermined, Unstratified, answers, evaluation
from .compare import same
from .traces import at, background, graph, queries, run

TRANSITIVE = """
CONSTRUCT { ?x :reach ?y } WHERE { ?x :edge ?y } ;
CONSTRUCT { ?x :reach ?z } WHERE { ?x :reach ?y . ?y :edge ?z } ;
"""


def test_the_closure_is_the_least_set_closed_under_the_rules() -> None:
    found = evaluation(queries(TRANSITIVE), [at(1, "a edge b"), at(2, "b edge c"), at(3, "c edge a")])
    reach = {(s[5:-1] + o[5:-1], start, end) for s, p, o, start, end, _ in found.closure if p == "<urn:reach>"}
    at_one = {("ab", 1, 1), ("bc", 2, 2), ("ca", 3, 3), ("ac", 1, 2)}
    at_three = {("ba", 2, 3), ("aa", 1, 3), ("cb", 1, 3), ("bb", 1, 3), ("cc", 1, 3), ("ba", 1, 3), ("ca", 1, 3)}
    at_three |= {("ab", 1, 3), ("ac", 1, 3), ("bc", 1, 3)}
    assert reach == {(pair, s * 1_000_000, e * 1_000_000) for pair, s, e in at_one | at_three}


def test_derived_triples_join_with_others_of_the_same_instant() -> None:
    found = run(TRANSITIVE + "SELECT ?z { :a :reach ?z . ?z :is ?k }", at(1, "a edge b"), at(2, "b edge c ; c is k"))
    assert found == [("z=c", 1, 2)]


def test_negation_is_decided_stratum_by_stratum_whatever_the_order_of_the_rules() -> None:
    """At 2 the alarm is silenced by a triple that is derived at the same instant."""
    alarm = "CONSTRUCT { ?x :alarm ?y } WHERE { ?x :p ?y FILTER NOT EXISTS { ?x :quiet ?z } } ;"
    quiet = "CONSTRUCT { ?x :quiet ?y } WHERE { ?x :q ?y } ;"
    events = (at(1, "a p 1"), at(2, "a p 2 ; a q 0"))
    for rules in (alarm + quiet, quiet + alarm):
        assert run(rules + "SELECT ?y { ?x :alarm ?y }", *events) == [("y=1", 1, 1)]


def test_a_cycle_through_negation_is_refused() -> None:
    with pytest.raises(Unstratified):
        run("CONSTRUCT { ?x :p ?x } WHERE { ?x :q ?y FILTER NOT EXISTS { ?x :p ?z } }", at(1, "a q 1"))
    with pytest.raises(Unstratified):
        run("CONSTRUCT { ?x :n ?n } WHERE { { SELECT ?x (COUNT(?y) AS ?n) { ?x :n ?y } GROUP BY ?x } }", at(1, "a n 1"))


def test_a_strictly_delayed_cycle_through_negation_is_fine() -> None:
    """Every second p is marked: the mark's absence is looked up among what ended before the right side starts."""
    rule = """CONSTRUCT { ?x :marked ?y } WHERE { { ?x :p ?z FILTER NOT EXISTS { ?x :marked ?z } }
              SEQ { ?x :p ?y } } USING POLICY recent ;"""
    found = run(rule + "SELECT ?y { ?x :marked ?y }", *(at(t, f"a p {t}") for t in (1, 2, 3, 4)))
    assert [row[0] for row in found] == ["y=2", "y=4"]


def test_timeless_derived_triples_become_background() -> None:
    rule = "CONSTRUCT { ?x :is :k } WHERE { GRAPH ?g { ?x :a ?y } } ;"
    found = run(rule + "SELECT * { ?x :is ?k . ?x :p ?y }", at(1, "a p 1"), knowing=background(g="a a b"))
    assert found == [("k=k x=a y=1", 1, 1)]


def test_template_blank_nodes_are_one_per_solution() -> None:
    text = "CONSTRUCT { _:n :of ?x . _:n :is ?y } WHERE { ?x :p ?y } ; SELECT ?n ?y { ?n :is ?y . ?n :of ?x }"
    found = answers(queries(text), [at(1, "a p 1 ; a p 2"), at(2, "a p 1")])["q2"]
    assert len({row.bindings["n"] for row in found}) == 3  # type: ignore[union-attr]
    renamed = [row._replace(bindings=dict(row.bindings, n=f"_:x{i}")) for i, row in enumerate(found)]  # type: ignore
    assert same(found, renamed)
    assert not same(found, [row._replace(bindings=dict(row.bindings, n="_:x")) for row in found])  # type: ignore


def test_incomplete_and_impossible_triples_are_left_out() -> None:
    """As in SPARQL: the other triples of the template stay."""
    text = "CONSTRUCT { ?y :was ?x . ?x :has ?y . ?x :also ?z } WHERE { ?x :p ?y }"
    assert run(text, at(1, "a p 1")) == [("a has 1", 1, 1)]


def test_register_stream_names_the_stream_of_the_derived_triples() -> None:
    rule = "REGISTER STREAM :s AS CONSTRUCT { ?x :d ?y } WHERE { ?x :p ?y } ;"
    assert run(rule + "SELECT ?y { STREAM :s { ?x :d ?y } }", at(1, "a p 1")) == [("y=1", 1, 1)]
    assert run(rule + "SELECT ?y { STREAM :t { ?x :d ?y } }", at(1, "a p 1")) == []


def test_new_nodes_do_not_lead_to_newer_ones() -> None:
    """The rule is not applied to its own new nodes; so it says what it says in SPARQL."""
    found = run("CONSTRUCT { ?y :p [] . ?x :p [] . [] :p ?y } WHERE { ?x :p ?y }", at(1, "a p b"))
    assert len(found) == 1
    text = "CONSTRUCT { [] :of ?x } WHERE { ?x ?p ?y } ; CONSTRUCT { [] :on ?x } WHERE { ?x ?p ?y }"
    both = answers(queries(text), [at(1, "a p b")])
    # Of a and of the other rule's node on a: two each.
    assert {name: len(rows) for name, rows in both.items()} == {"q1": 2, "q2": 2}  # type: ignore[arg-type]


def test_a_new_node_is_like_any_other_at_a_later_instant() -> None:
    rule = "CONSTRUCT { [] :of ?x } WHERE { ?x :p ?y } SEQ { ?z :of ?x } ; CONSTRUCT { ?n :p 1 } WHERE { ?n :of ?m }"
    found = answers(queries(rule), [at(1, "a p b"), at(2, "b of a"), at(3, "c of b"), at(4, "d of c")])
    assert [len(rows) for rows in found.values()] == [3, 6]  # type: ignore[arg-type]


def test_an_endless_derivation_is_stopped() -> None:
    with pytest.raises(Endless):
        run("CONSTRUCT { ?x :p ?more } WHERE { ?x :p ?y BIND (?y + 1 AS ?more) }", at(1, "a p 1"))


def test_entailed_triples_have_the_interval_of_what_entails_them() -> None:
    schema = [
        ("<urn:dog>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:animal>"),
        ("<urn:barks>", "<http://www.w3.org/2000/01/rdf-schema#domain>", "<urn:dog>"),
    ]
    document = queries("SELECT ?x { ?x a :animal }")
    (rows,) = answers(document, [at((1, 2), "rex barks cat")], schema_entailment=schema).values()
    assert [(dict(r.bindings), r.start, r.end) for r in rows] == [({"x": "<urn:rex>"}, 10**6, 2 * 10**6)]  # type: ignore
    assert graph("a p b") == [("<urn:a>", "<urn:p>", "<urn:b>")]


def test_which_of_two_made_nodes_is_the_least_is_left_open() -> None:
    rules = "CONSTRUCT { ?x :of _:new } WHERE { ?x :p ?y } ; CONSTRUCT { ?x :of ?y } WHERE { ?x :q ?y } ;"
    least = rules + "SELECT ?x (MIN(?y) AS ?n) { ?x :of ?y } GROUP BY ?x"
    made, other = at(1, "a p 1"), at(1, "a q 1")
    assert len(run(least, made, other)) == 1
    assert run(least.replace("MIN", "MAX"), made, other) == [("n=1 x=a", 1, 1)]
    with pytest.raises(Undetermined):
        run(least, made, at(2, "a p 2"))


def test_which_of_two_made_nodes_comes_first_is_left_open() -> None:
    rule = "CONSTRUCT { ?x :of _:new } WHERE { ?x :p ?y } ;"
    events = at(1, "a p 1"), at(1, "b p 1"), at(2, "c p 1")
    assert run(rule + "SELECT ?x { ?x :of ?y } LIMIT 1", *events) == [("x=a", 1, 1)]
    assert len(run(rule + "SELECT ?y { ?x :of ?y } LIMIT 2", *events)) == 2
    with pytest.raises(Undetermined):
        run(rule + "SELECT ?y { ?x :of ?y } LIMIT 1", *events)


@pytest.mark.parametrize(
    "late",
    [
        "{ ?x :p ?y } SEQ NOT { ?x :q ?z } WITHIN 1 s",
        "{ ?x :p ?y } SEQ OPTIONAL { ?x :q ?z } WITHIN 1 s",
        "{ ?x :p ?y } REPEAT 1 OR MORE BY ?x GAP 1 s MAXIMAL",
    ],
)
def test_what_the_clock_decides_after_the_last_event_is_read_by_other_rules(late: str) -> None:
    rules = (
        f"CONSTRUCT {{ ?x :late :once }} WHERE {{ {late} }} ; CONSTRUCT {{ ?x :late ?x }} WHERE {{ ?x :late :once }} ;"
    )
    assert run(rules + "SELECT ?x { ?x :late ?x }", at(0, "a p b")) == [("x=a", 0, 1)]
