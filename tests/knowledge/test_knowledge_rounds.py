"""Answer-set programs that are grounded in rounds: a search that goes on while there is something new."""

from __future__ import annotations

import pytest

from etalis_py.knowledge import Graph, KnowledgeError, LiveProgram, parse_program

EX = "http://example.org/"
CHAIN = """\
%! prefix : <http://example.org/>
%! reads edge(X, Y) from X :to Y
%! event start(X) from X a :Start over node(X)
%! event shut(X) from X a :Shut until X a :Open over node(X)
%! rounds 50 of look, step until done then finish
%! offers far(X, K:int) as X :steps K
%! offers last(K:int) as :search :ended K
node(X) :- edge(X,_).
node(X) :- edge(_,X).
at(X,0) :- start(X).
#program look(k).
next(Y,k) :- at(X,k-1), edge(X,Y), not shut(Y).
old(Y,k) :- next(Y,k), at(Y,_).
#program step(k).
at(Y,k) :- next(Y,k), not old(Y,k).
busy(k) :- at(_,k).
done(k) :- not busy(k).
#program finish(k).
far(X,K) :- at(X,K).
last(k).
"""


def n(name: str) -> str:
    return f"<{EX}{name}>"


TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
GRAPH = Graph((n(a), n("to"), n(b)) for a, b in ("ab", "bc", "cd", "ca", "bd"))


def steps(outcome) -> dict[str, str]:
    return {s[len(EX) + 1 : -1]: o.split('"')[1] for s, _, o in outcome.triples}


def test_each_round_knows_what_the_rounds_before_found():
    live = LiveProgram(parse_program(CHAIN, "chain"), GRAPH)
    assert steps(live.step(1, [(n("a"), TYPE, n("Start"))])) == {"a": "0", "b": "1", "c": "2", "d": "2", "search": "3"}


def test_events_change_what_is_grounded():
    live = LiveProgram(parse_program(CHAIN, "chain"), GRAPH)
    start = (n("a"), TYPE, n("Start"))
    assert steps(live.step(1, [start, (n("b"), TYPE, n("Shut"))])) == {"a": "0", "search": "1"}
    assert steps(live.step(2, [start, (n("b"), TYPE, n("Open"))]))["d"] == "2"
    assert steps(live.step(3, [])) == {"search": "1"}


def test_a_search_that_does_not_end_is_an_error():
    program = parse_program(CHAIN.replace("rounds 50", "rounds 2"), "chain.lp")
    with pytest.raises(KnowledgeError, match=r"chain\.lp: done was not reached in 2 rounds\n.*%! rounds"):
        LiveProgram(program, GRAPH).step(1, [(n("a"), TYPE, n("Start"))])


@pytest.mark.parametrize("line", ["rounds of look until done", "rounds 0 of look until done", "rounds 3 of look"])
def test_rounds_have_one_form(line):
    with pytest.raises(KnowledgeError, match="expected: %! rounds 100 of part"):
        parse_program(CHAIN.replace("rounds 50 of look, step until done then finish", line))


def test_a_static_program_has_no_rounds():
    static = "%! rounds 5 of a until b\n%! offers p(X) as X <urn:p> 1\np(1)."
    with pytest.raises(KnowledgeError, match="has rounds but reads no events"):
        parse_program(static)


def asking(condition: str) -> str:
    """The chain with a start that belongs to a request."""
    text = CHAIN.replace("start(X) from X a :Start over node(X)", f"start(R, X) from R :asks X over {condition}")
    text = text.replace("at(X,0) :- start(X).", "at(X,0) :- start(_,X).")
    return text.replace("%! rounds", "%! slots 2000\n%! rounds")


@pytest.mark.parametrize("condition", ["slot(R), node(X)", "node(X), slot( R )", "slot(R), bound(X)"])
def test_slots_cost_nothing_until_they_are_taken(condition):
    program = asking(condition) + "#program over.\nbound(X) :- node(X).\n"
    live = LiveProgram(parse_program(program, "chain"), GRAPH)
    asked = [(f"<urn:r{i}>", n("asks"), n("d")) for i in range(1500)]
    assert steps(live.step(1, asked)) == {"d": "0", "search": "1"}
    outcome = live.step(2, [(n("a"), n("asks"), n("b")), ("<urn:r>", n("asks"), n("z"))])
    assert outcome.ignored == 2  # a is no slot, as the background has it; z is no node
    with pytest.raises(KnowledgeError, match="all 2000 slots are taken"):
        live.step(3, [(f"<urn:s{i}>", n("asks"), n("d")) for i in range(2001)])


def test_slots_that_a_condition_compares_are_bounded_by_it():
    text = asking("node(X), slot(R), R > X")
    live = LiveProgram(parse_program(text, "chain"), GRAPH)
    assert live.step(1, [("<urn:r>", n("asks"), n("a"))]).ignored == 0
    text = asking("node(X), slot(R), R < X")
    live = LiveProgram(parse_program(text, "chain"), GRAPH)
    assert live.step(1, [("<urn:r>", n("asks"), n("a"))]).ignored == 1


def test_atoms_without_arguments_are_read_and_switched():
    program = """\
%! prefix : <http://example.org/>
%! reads open() from :shop :is :open
%! event ring() from :bell :is :rung
%! rounds 5 of go until done
%! offers come() as :owner :is :coming
#program go(k).
come :- ring, open.
done(k).
"""
    rung = (n("bell"), n("is"), n("rung"))
    live = LiveProgram(parse_program(program), Graph([(n("shop"), n("is"), n("open"))]))
    assert (live.step(1).triples, len(live.step(2, [rung]).triples)) == ((), 1)
    assert LiveProgram(parse_program(program), Graph()).step(1, [rung]).triples == ()
