"""The order in which joins are coupled: right-associative, by cost, and without a change of the answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.pipeline import Compilation, compile_documents, compile_sources, rules_of
from etalis_compiler.rewrites.reorder import coupling, reorder_select
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, compile
from tests.draws import examples
from tests.oracle import strategies
from tests.oracle.strategies import Case

NAMESPACE = "http://example.org/"
CHAIN = "SELECT * { ?c :a ?w } SEQ { ?c :b ?x } SEQ { ?c :c ?y } SEQ { ?c :d ?z }"


def coupled(text: str, order: str, rates: dict[str, float] | None = None) -> str:
    """The joins of a query as brackets over the local names of its predicates."""
    select = compile_sources([Source(text)]).queries[0].algebra
    named = {f"<{NAMESPACE}{name}>": rate for name, rate in (rates or {}).items()}

    def shown(p: alg.Pattern) -> str:
        match p:
            case alg.Join(Op.SEQ, left, right):
                return f"({shown(left)} {shown(right)})"
            case alg.Join(Op.AND, left, right):
                return f"[{shown(left)} {shown(right)}]"
            case alg.BGP(triples):
                return " ".join(t.predicate.term[1:-1].removeprefix(NAMESPACE) for t in triples)  # type: ignore[union-attr]
        return type(p).__name__ + "".join(f"{{{shown(c)}}}" for c in alg.children(p))

    return shown(reorder_select(select, coupling(order, named)).pattern)


def test_left_is_the_plan_as_written_and_right_couples_from_the_right() -> None:
    assert coupled(CHAIN, "left") == "(((a b) c) d)"
    assert coupled(CHAIN, "right") == "(a (b (c d)))"


@pytest.mark.parametrize(
    ("rates", "plan"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 1}, "(((a b) c) d)"),
        ({"a": 1, "b": 1, "c": 1, "d": 100}, "(((a b) c) d)"),
        ({"a": 100, "b": 1, "c": 1, "d": 1}, "(a ((b c) d))"),
        ({"a": 0.01, "b": 0.01, "c": 0.01, "d": 0.01}, "(((a b) c) d)"),
        ({"a": 10, "b": 10, "c": 0.1, "d": 0.1}, "(a (b (c d)))"),
    ],
)
def test_what_is_frequent_is_joined_late(rates: dict[str, float], plan: str) -> None:
    """[EP] §5: the left-associative plan is good when the rightmost events have a higher rate, and the other way."""
    assert coupled(CHAIN, "cost", rates) == plan


def test_a_cross_product_is_put_off() -> None:
    text = "SELECT * { ?c :a ?w } SEQ { ?d :b ?x } SEQ { ?d :c ?y }"
    assert coupled(text, "cost", {"a": 1, "b": 1, "c": 1}) == "(a (b c))"


def test_joins_and_triples_begin_with_the_rarest() -> None:
    rates = {"a": 5, "b": 1, "c": 3}
    assert coupled("SELECT * { ?x :a 1 ; :b 2 ; :c 3 }", "cost", rates) == "b c a"
    assert coupled("SELECT * { ?x :a 1 } AND { ?x :b 2 } AND { ?x :c 3 }", "cost", rates) == "[[b c] a]"
    # ?y has to wait for what connects it
    assert coupled("SELECT * { ?x :b 1 } AND { ?y :c 2 } AND { ?x :a ?y }", "cost", rates) == "[[b a] c]"


def test_what_stands_between_two_chains_stays_there() -> None:
    text = "SELECT * { { { ?c :a ?w } SEQ { ?c :b ?x } } WITHIN PT1S } SEQ { ?c :c ?y } SEQ { ?c :d ?z }"
    assert coupled(text, "right") == "(Within{(a b)} (c d))"


def test_a_consuming_policy_keeps_the_plan_as_written() -> None:
    written, right = compile(CHAIN).compilation, compile(CHAIN, order="right").compilation
    assert rules_of(right, policy="recent") == rules_of(written, policy="recent")
    assert rules_of(right) != rules_of(written)


def test_a_program_is_run_by_the_order_that_was_asked_for() -> None:
    program = compile(CHAIN, rates={NAMESPACE + "a": 100.0, NAMESPACE + "b": 1.0})
    rules = Engine(program).rules
    assert rules.outputs[0].source is not None
    top = rules.node(rules.outputs[0].source.node)
    assert isinstance(top, ir.Join)
    first = rules.node(top.left.node)
    assert isinstance(first, ir.Leaf)
    assert first.predicate == alg.Const(f"<{NAMESPACE}a>")


@pytest.mark.parametrize(
    ("order", "rates", "message"),
    [
        ("up", None, "unknown order 'up': use one of left, right, cost"),
        ("cost", None, "the order 'cost' needs rates"),
        ("", {"urn:p": -1.0}, "the rate of <urn:p> is not a number"),
    ],
)
def test_what_is_asked_for_wrongly(order: str, rates: dict[str, float] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile(CHAIN, order=order, rates=rates)


def answers(compiled: Compilation, case: Case) -> Counter[object]:
    engine = Engine(compiled)
    found = [*engine.push_all(case.events), *engine.close()]
    return Counter((m.query, tuple(sorted(m.bindings.items())), m.triples, m.start_us, m.end_us) for m in found)


def recoupled(compiled: Compilation, order: str, rates: dict[str, float]) -> Compilation:
    wanted = coupling(order, rates)
    return Compilation(tuple(replace(q, coupling=wanted) for q in compiled.queries))


CASES = st.one_of(
    strategies.core(), strategies.negation(), strategies.paths(), strategies.recursion(), strategies.optional_parts()
)
RATES = st.dictionaries(st.sampled_from(("<urn:p>", "<urn:q>", "<urn:r>")), st.floats(0.01, 100), min_size=1)


@settings(max_examples=examples(2 / 3))
@given(CASES, st.sampled_from(("right", "cost")), RATES)
def test_the_answers_do_not_change(case: Case, order: str, rates: dict[str, float]) -> None:
    try:
        compiled = compile_documents([(case.program, Source("", "<case>"))])
        before = answers(compiled, case)
    except QueryError:
        return
    assert answers(recoupled(compiled, order, rates), case) == before


CHAINS = [
    "SELECT * { ?x <urn:p> ?y } SEQ { ?x ?p ?z } SEQ { ?z ?q ?v }",
    "SELECT * { ?x <urn:p> ?y } SEQ { ?a ?p ?z } SEQ { { ?x ?q ?v } UNION { ?z ?q ?w } } SEQ { ?x ?q ?u }",
    "SELECT * { ?x <urn:p> ?y } SEQ { VALUES ?y { 1 2 } } SEQ { ?x ?q ?v } "
    "FILTER (getDURATION() < 'PT4S'^^xsd:duration)",
    "SELECT * { ?x <urn:p> ?y } AND { ?x ?p 1 } AND { ?z ?p ?y OPTIONAL { ?z <urn:q> ?w } }",
]


@pytest.mark.parametrize("text", CHAINS)
def test_the_answers_of_a_chain_do_not_change(text: str) -> None:
    compiled = compile_sources([Source(text)])

    @settings(max_examples=examples(1 / 5))
    @given(strategies.streams(8, 12), st.sampled_from(("right", "cost")), RATES)
    def same(events: tuple[strategies.Event, ...], order: str, rates: dict[str, float]) -> None:
        case = Case(strategies.document(), events)
        assert answers(recoupled(compiled, order, rates), case) == answers(compiled, case)

    same()
