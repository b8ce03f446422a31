"""Property paths over the stream: the least relation of ⟨x, y, hull⟩ (docs/semantics.md, Property paths)."""

from __future__ import annotations

from .traces import at, background, run

CHAIN = (at(1, "a p b"), at(2, "b p c"), at(4, "b p c"))


def test_one_or_more_gives_every_hull() -> None:
    assert run("SELECT * { :a :p+ ?y }", *CHAIN) == [("y=b", 1, 1), ("y=c", 1, 2), ("y=c", 1, 4)]


def test_a_constants_zero_length_step_is_timeless() -> None:
    assert run("SELECT * { :a :p* ?y }", at(1, "a p b")) == [("y=b", 1, 1), ("y=a", None, None)]


def test_a_constant_on_a_cycle_is_one_answer() -> None:
    """The W3C's pp37, :A0 ((:P)*)* ?X on a complete graph: ALP visits :A0 once, before any step."""
    cycle = (at(1, "a p b ; b p a ; a p c ; c p a ; b p c ; c p b"),)
    for path in ("((:p)*)*", ":p*", "(:p*)+", "(:p?)+", "(:p?/:p?)+", "(:p|:p*)+", "^((^:p?)+)"):
        assert sorted(run(f"SELECT * {{ :a {path} ?y }}", *cycle)) == [
            ("y=a", None, None),
            ("y=b", 1, 1),
            ("y=c", 1, 1),
        ]
        assert run(f"SELECT * {{ :a {path} :a }}", *cycle) == [("", None, None)]
    assert ("y=a", 1, 1) in run("SELECT * { :a :p+ ?y }", *cycle)


def test_a_nodes_zero_length_step_has_the_interval_of_its_occurrence() -> None:
    found = run("SELECT * { ?x :p? ?y }", at(1, "a p b"), at(3, "a q b"))
    assert found == [("x=a y=a", 1, 1), ("x=a y=b", 1, 1), ("x=b y=b", 1, 1), ("x=a y=a", 3, 3), ("x=b y=b", 3, 3)]


def test_sequences_and_alternatives_count_as_in_sparql() -> None:
    events = (at(1, "a p b ; a q b ; b p c ; a p d ; d p c"),)
    assert run("SELECT ?y { :a :p|:q ?y FILTER(?y = :b) }", *events) == [("y=b", 1, 1)] * 2
    assert run("SELECT ?y { :a :p/:p ?y }", *events) == [("y=c", 1, 1)] * 2
    assert run("SELECT ?y { :a (:p/:p)+ ?y }", *events) == [("y=c", 1, 1)]


def test_inverse_and_negated_sets() -> None:
    events = (at(1, "a p b ; a q b"), at(2, "a r c"))
    assert run("SELECT * { ?x ^:r ?y }", *events) == [("x=c y=a", 2, 2)]
    assert run("SELECT ?y { ?x !:r ?y }", *events) == [("y=b", 1, 1)]
    assert run("SELECT ?y { ?x !(:p|:q|^:r) ?y }", *events) == [("y=a", 1, 1), ("y=c", 2, 2)]


def test_paths_run_over_stream_and_background_together() -> None:
    found = run("SELECT * { :a :p+ ?y }", at(3, "b p c"), knowing=background("a p b ; c p d"))
    assert found == [("y=c", 3, 3), ("y=d", 3, 3), ("y=b", None, None)]
