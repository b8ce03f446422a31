"""Programs and matches as notebooks show them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from etalis_py import Engine, compile, event
from etalis_py.notebook import rule_graph

QUERY = "SELECT ?c ?y WHERE { ?c :p ?x } SEQ { ?c :q ?y } FILTER (?x < ?y)"


def test_a_program_is_a_picture_of_its_rules() -> None:
    svg = ElementTree.fromstring(compile(QUERY)._repr_html_())
    texts = " ".join("".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert "triple(X0, :p, X1)" in texts
    assert "(X1 < X2)" in texts
    assert "query q1" in texts
    paths = list(svg.iter("{http://www.w3.org/2000/svg}path"))
    assert len(paths) == len(rule_graph(compile(QUERY).rules())["edges"]) >= 3


def test_a_recursive_program_is_drawn_too() -> None:
    rules = "CONSTRUCT { ?x :r ?z } WHERE { { ?x :r ?y } SEQ { ?y :r ?z } }"
    assert compile(rules)._repr_html_().startswith("<svg")


def test_matches_are_a_table() -> None:
    engine = Engine(compile(QUERY))
    engine.push_all([event(":a :p 1", 1), event(':a :q "<&>"', 2), event(":a :q 3", 3)])
    html = engine.close()._repr_html_()
    assert "<th>query</th><th>?c</th><th>?y</th><th>start</th><th>end</th>" in html
    assert "<td>1</td><td>3</td>" in html


def test_long_results_show_the_first_and_say_how_many_there_are() -> None:
    engine = Engine(compile("CONSTRUCT { ?c :seen ?x } WHERE { ?c :p ?x }"))
    engine.push_all([event(" . ".join(f':a :p "<{i}>"' for i in range(150)), 1)])
    html = engine.close()._repr_html_()
    assert "the first 100 of 150 matches" in html
    assert html.count("<tr>") == 101
    assert "&lt;0&gt;" in html
