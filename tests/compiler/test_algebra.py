"""What the algebra says of its patterns and expressions, so that nobody has to know their classes."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_sources
from etalis_rules import algebra as alg
from etalis_rules.relations import Op

X, Y = alg.Var("x"), alg.Var("y")
A, B = (alg.BGP((alg.Triple(X, alg.Const(p), Y),)) for p in ("<a>", "<b>"))
IS_TRUE = alg.Apply("BOUND", (X,))
EXISTS = alg.Exists(alg.Filter(A, (alg.Apply("=", (X, Y)),)))
BOUND = alg.Bound(5)


def pattern_of(text: str) -> alg.Pattern:
    (query,) = compile_sources([Source(f"SELECT * {{ {text} }}")]).queries
    return query.algebra.pattern


def test_a_filter_without_conditions_is_none() -> None:
    assert alg.filtered(A, ()) is A
    assert alg.unfiltered(alg.filtered(A, (IS_TRUE,))) == (A, (IS_TRUE,))
    assert alg.unfiltered(A) == (A, ())


def test_the_patterns_of_exists_come_from_left_to_right_and_those_inside_others_do_not() -> None:
    nested = alg.Exists(alg.Filter(B, (alg.Exists(A),)))
    either = alg.Apply("||", (nested, alg.Apply("!", (alg.Exists(A),))))
    assert list(alg.patterns_of_exists(either)) == [nested.pattern, A]
    assert alg.without_exists(either, lambda pattern: X if pattern == A else Y) == alg.Apply(
        "||", (Y, alg.Apply("!", (X,)))
    )


def test_a_substitution_stops_at_exists() -> None:
    e = alg.Apply("&&", (alg.Apply("=", (X, Y)), EXISTS))
    assert alg.substitute(e, X, Y) == alg.Apply("&&", (alg.Apply("=", (Y, Y)), EXISTS))


def test_the_calls_of_a_function_are_told_once_and_not_those_inside_exists() -> None:
    now, start = alg.Apply("NOW"), alg.Apply("GETSTARTTIME")
    inside = alg.Exists(alg.Filter(A, (alg.Apply("=", (X, alg.Apply("GETENDTIME"))),)))
    e = alg.Apply("&&", (alg.Apply("<", (start, now)), alg.Apply("&&", (alg.Apply("=", (X, start)), inside))))
    assert alg.calls(e, alg.INTERVAL | {"NOW"}) == (start, now)


def test_a_list_of_constants_after_a_variable() -> None:
    one, other = alg.Const('"1"'), alg.Const('"2"')
    assert alg.listed(alg.Apply("IN", (X, one, other))) == ("x", ('"1"', '"2"'))
    assert alg.listed(alg.Apply("IN", (X,))) == ("x", ())
    assert alg.listed(alg.Apply("IN", (X, one, Y))) is None
    assert alg.listed(alg.Apply("IN", (one, other))) is None
    assert alg.listed(alg.Apply("=", (X, one))) is None


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("{ ?c :p ?x } SEQ OPTIONAL { ?c :q ?y } SEQ { ?c :r ?z }", True),
        ("{ ?c :p ?x } SEQ OPTIONAL { ?c :q ?y } WITHIN 5 s", True),
        ("{ ?c :p ?x } SEQ { ?c :q ?y }", False),
        ("{ ?c :p ?x } UNION { ?c :q ?x }", False),
        ("{ { ?c :p ?x } SEQ OPTIONAL { ?c :q ?y } WITHIN 5 s } SEQ { ?c :r ?z }", False),
    ],
)
def test_seq_optional_is_known_by_its_halves(text: str, is_one: bool) -> None:
    assert alg.is_seq_optional(alg.unconditional(pattern_of(text))) is is_one


def test_only_the_end_of_the_stream_ends_a_maximal_run_without_a_gap() -> None:
    run = alg.Runs(A, 2, None, ("x",), maximal=True)
    assert alg.ends_with_stream(run)
    assert not alg.ends_with_stream(alg.Runs(A, 2, None, ("x",), maximal=True, gap=BOUND))
    assert not alg.ends_with_stream(alg.Runs(A, 2, None, ("x",)))


def test_what_asks_stored_graphs_is_found_in_exists_and_event() -> None:
    (triple,) = A.triples
    stored = alg.BGP((triple,), graph=alg.Const("<g>"))
    in_stream = alg.BGP((triple,), stream="<s>", graph=alg.Const("<g>"))  # a window's items: each is a graph
    names = alg.GraphNames(alg.Var("g"))
    whole = alg.Filter(alg.Join(Op.AND, alg.Record(stored), in_stream), (alg.Exists(names),))
    assert list(alg.read_of_graphs(whole)) == [stored, names]


def test_a_single_triple_pattern_is_told_from_several_and_from_a_path() -> None:
    assert alg.is_one_triple(A)
    assert not alg.is_one_triple(alg.BGP((*A.triples, *B.triples)))
    path = alg.PathPattern(X, alg.Repeated(alg.Step("<a>"), 1, True), Y)
    assert not alg.is_one_triple(path)
    assert alg.reads_triples(path)
    assert not alg.reads_triples(alg.Record(A))


def test_each_select_is_changed_and_what_is_inside_is_left_to_the_change() -> None:
    inner = alg.Select(A, ("x",))
    outer = alg.Select(alg.SubSelect(inner), ("x",))
    seen: list[alg.Select] = []
    alg.with_selects(alg.SubSelect(outer), lambda select: seen.append(select) or select)
    assert seen == [outer]
