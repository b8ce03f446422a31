"""What the parts of patterns and the inputs of nodes are for, against the fields that hold them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_sources, rules_of
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import inputs
from etalis_rules.relations import Op, OuterOp
from etalis_rules.roles import Role

A, B, C = (alg.BGP((alg.Triple(alg.Var("x"), alg.Const(p), alg.Var(p[1])),)) for p in ("<a>", "<b>", "<c>"))
PATTERNS = [
    alg.Join(Op.SEQ, A, B),
    alg.Union(A, B),
    alg.Minus(A, B, ("x",)),
    alg.Outer(OuterOp.OPTIONAL, A, B),
    alg.Outer(OuterOp.OPTIONALSEQ, A, B),
    alg.Absence(A, B),
    alg.Absence(A, B, C),
    alg.Join(Op.SEQ, A, B, deadline=alg.Bound(5)),
    alg.Runs(A, 2, None, ("x",), absent=B),
    alg.Runs(A, 2, None, ("x",), absent=B, until=C),
    alg.SubSelect(alg.Select(A, ("x",))),
    alg.GraphNames(alg.Var("g"), alg.Var("i"), A),
    alg.Table(("x",), ()),
]
QUERIES = [
    "SELECT * { { ?c :p ?x } NEXT { ?c :q ?y } }",
    "SELECT * { { ?c :p ?x } SEQ NOT { ?c :q ?y } SEQ { ?c :r ?z } }",
    "SELECT * { { ?c :p ?x } SEQ NOT { ?c :q ?y } WITHIN 5 s }",
    "SELECT * { { ?c :p ?x } SEQ OPTIONAL { ?c :q ?y } SEQ OPTIONAL { ?c :r ?z } SEQ { ?c :s ?w } }",
    "SELECT * { { ?c :p ?x } SEQ OPTIONAL { ?c :q ?y } WITHIN 5 s }",
    "SELECT * { { ?c :p ?x } OPTIONALSEQ { ?c :q ?y } }",
    "SELECT * { { ?c :p ?x } REPEAT 2 BY ?c NOT { ?c :q ?y } }",
    "SELECT * { { ?c :p ?x } REPEAT 2 BY ?c NOT { ?c :q ?y } UNTIL { ?c :r ?z } }",
    "SELECT ?c (COUNT(*) AS ?n) { { ?c :p ?x } UNION { ?c :q ?x } } GROUP BY ?c HAVING (EXISTS { ?c :r ?y })",
    "SELECT * { ?c :p+ ?x FILTER NOT EXISTS { ?c :q ?y FILTER (?y > ?x) } }",
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: type(p).__name__)
def test_a_pattern_is_made_of_its_parts(pattern: alg.Pattern) -> None:
    assert alg.with_children(pattern, alg.children(pattern)) == pattern
    others = (C,) * len(alg.children(pattern))
    assert alg.children(alg.with_children(pattern, others)) == others


def test_the_optional_side_of_optionalseq_is_written_first() -> None:
    optional, mandatory = alg.parts(alg.Outer(OuterOp.OPTIONALSEQ, A, B))
    assert (optional.pattern, optional.role, optional.last) == (B, Role.OPTIONAL, False)
    assert (mandatory.pattern, mandatory.role, mandatory.last) == (A, Role.SIDE, True)


def test_what_is_next_decides_and_what_follows_does_not() -> None:
    assert [part.decides for part in alg.parts(alg.Join(Op.NEXT, A, B))] == [False, True]
    assert [part.decides for part in alg.parts(alg.Join(Op.SEQ, A, B))] == [False, False]


def test_what_must_be_absent_binds_nothing() -> None:
    assert alg.scope(alg.Absence(A, B, C)) == {"x", "a", "c"}
    assert alg.certain(alg.Runs(A, 2, None, ("x",), absent=B)) == {"x"}


@pytest.mark.parametrize("text", QUERIES)
def test_a_nodes_inputs_are_its_parts_and_the_history_it_looks_back_at(text: str) -> None:
    for _, node in rules_of(compile_sources([Source(text)])).nodes:
        below = inputs(node)
        assert tuple(part.ref for part in below if part.role is not Role.PAST) == ir.refs(node)
        assert tuple(part.ref.node for part in below) == ir.made_from(node)


def test_a_window_ends_what_a_join_keeps() -> None:
    rules = rules_of(compile_sources([Source("SELECT * { { ?c :p ?x } SEQ { ?c :q ?y } }")]))
    (join,) = (node for _, node in rules.nodes if isinstance(node, ir.Join))
    left, right = inputs(join)
    assert left.forever is not None
    assert right.forever is None
    assert not any(part.forever for part in inputs(replace(join, bound=alg.Bound(1))))
