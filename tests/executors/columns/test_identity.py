"""Which terms of the input are told apart: those that rules compare, and those that are looked up, each once."""

from __future__ import annotations

import pytest

from etalis_py import compile
from etalis_py.executors.columns.identity import OBJECT, SUBJECT, unidentified
from etalis_py.executors.columns.network import network


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("SELECT ?x ?y { ?x <urn:p> ?y }", {SUBJECT, OBJECT}),
        ("SELECT ?x ?y { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }", {OBJECT}),
        ("SELECT ?x ?y { ?x <urn:p> ?y . GRAPH <urn:g> { ?x a <urn:c> } }", {OBJECT}),
        ("SELECT ?x ?w { ?x <urn:p> ?y . GRAPH <urn:g> { ?y <urn:near> ?w } }", {SUBJECT}),
    ],
)
def test_positions_that_need_no_identity(text: str, loose: set[int]) -> None:
    assert unidentified(network(compile(text).rules())) == loose
