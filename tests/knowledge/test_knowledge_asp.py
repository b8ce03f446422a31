"""Answer-set programs: their interface, static answers, events, slots, inconsistency."""

from dataclasses import replace

import pytest
from etalis_rules.terms import XSD

from etalis_py.knowledge import Graph, KnowledgeError, KnowledgeWarning, load
from etalis_py.knowledge.asp import LiveProgram, Outcome, parse_program, static_answers


def n(*names: str) -> tuple:
    return tuple(f"<urn:{name}>" if name.isalnum() and not name.isdecimal() else name for name in names)


def number(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


ROADS = Graph([n("a", "to", "b"), n("b", "to", "c"), n("a", "to", "d"), n("d", "to", "c"), n("c", "to", "e")])
HEAD = """
%! prefix : <urn:>
%! reads road(X, Y) from X :to Y
"""
REACH = """
reach(X,Y) :- road(X,Y).
reach(X,Z) :- reach(X,Y), road(Y,Z).
"""


# ------------------------------------------------------------------------------------------------------------ static


def test_offered_atoms_become_triples():
    program = parse_program(HEAD + "%! offers reach(X, Y) as X :reaches Y" + REACH)
    a_reaches = {o for s, _, o in static_answers(program, ROADS).triples if s == "<urn:a>"}
    assert a_reaches == set(n("b", "c", "d", "e"))


CHOICE = "%! offers pick(X) as X a :Picked\n1 { pick(Y) : road(a,Y) } 1. pick(X) :- X = a.\n%! const a = :a\n"


def test_cautious_by_default_brave_on_request():
    picked = ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:Picked>")
    assert static_answers(parse_program(HEAD + CHOICE), ROADS).triples == (("<urn:a>", *picked),)
    brave = static_answers(parse_program(HEAD + CHOICE + "%! answers brave"), ROADS).triples
    assert {s for s, _, _ in brave} == set(n("a", "b", "d"))


def test_the_lowest_number_is_that_of_the_first_spelling_however_the_graph_was_made():
    text = "%! offers first(X) as X a :First\nfirst(N) :- N = #min { X : road(X,_) ; Y : road(_,Y) }.\n"
    ask = "%! event asks(X) from X :asks :it over road(X, _)\n"
    roads = [n("d", "to", "b"), n("b", "to", "a"), n("c", "to", "d")]
    for graph in (Graph(roads), Graph(roads[::-1])):
        assert [s for s, _, _ in static_answers(parse_program(HEAD + text), graph).triples] == [*n("a")]
        live = LiveProgram(parse_program(HEAD + ask + text + "asked :- asks(_)."), graph)
        assert [s for s, _, _ in live.step(1, [n("d", "asks", "it")]).triples] == [*n("a")]


def test_no_answer_set_is_an_outcome_not_silence():
    program = parse_program(HEAD + "%! offers road(X, Y) as X :way Y\n:- road(X,Y).")
    assert static_answers(program, ROADS) == Outcome((), inconsistent=True)
    assert static_answers(program, Graph()) == Outcome(())


def test_integers_are_values_and_other_terms_are_themselves():
    program = parse_program(
        "%! prefix : <urn:>\n%! reads age(X, N:int) from X :age N\n%! reads tag(X, T) from X :tag T\n"
        "%! offers twice(X, N:int) as X :twice N\n%! offers old(X, T) as X :old T\n%! offers word(X, W) as X :word W\n"
        'twice(X,N*2) :- age(X,N). old(X,T) :- tag(X,T), age(X,N), N > 6. word(X,"a \\"b\\", (c)") :- age(X,_).'
    )
    graph = Graph([("<urn:x>", "<urn:age>", f'"07"^^<{XSD}integer>'), ("<urn:x>", "<urn:tag>", '"01"@en')])
    assert set(static_answers(program, graph).triples) == {
        ("<urn:x>", "<urn:twice>", number(14)),
        ("<urn:x>", "<urn:old>", '"01"@en'),
        ("<urn:x>", "<urn:word>", '"a \\"b\\", (c)"'),
    }


def test_a_value_that_is_no_integer_is_an_error():
    program = parse_program(
        "%! prefix : <urn:>\n%! reads age(X, N:int) from X :age N\n%! offers ok(X) as X a :Ok\nok(X) :- age(X,_).",
        "p.lp",
    )
    with pytest.raises(KnowledgeError, match=r"p.lp, line 2: .*32 bits"):
        static_answers(program, Graph([("<urn:x>", "<urn:age>", '"old"')]))


# ------------------------------------------------------------------------------------------------------------- events

LIVE = (
    HEAD
    + """
%! event closed(X, Y) from X :closedTo Y until X :openTo Y over road(X, Y)
%! event asks(A, X) from A :asksFrom X over slot(A), known(X)
%! slots 2
%! offers way(A, X) as A :canReach X
%! offers stuck(A) as A a :Stuck
open(X,Y) :- road(X,Y), not closed(X,Y).
way(A,Y) :- asks(A,X), open(X,Y).
way(A,Z) :- way(A,Y), open(Y,Z).
stuck(A) :- asks(A,_), not way(A,_).
"""
)


def reached(outcome: Outcome) -> set:
    return {(s, o) for s, p, o in outcome.triples if p == "<urn:canReach>"}


def test_events_switch_atoms_until_the_ending_triple():
    live = LiveProgram(parse_program(LIVE), ROADS)
    assert live.step(1).triples == ()
    assert reached(live.step(2, [n("v", "asksFrom", "d")])) == {("<urn:v>", "<urn:c>"), ("<urn:v>", "<urn:e>")}
    live.step(3, [n("c", "closedTo", "e")])
    assert reached(live.step(4, [n("v", "asksFrom", "d")])) == {("<urn:v>", "<urn:c>")}
    assert [t[2] for t in live.step(5, [n("v", "asksFrom", "c")]).triples] == ["<urn:Stuck>"]
    live.step(6, [n("c", "openTo", "e")])
    assert reached(live.step(7, [n("v", "asksFrom", "c")])) == {("<urn:v>", "<urn:e>")}


def test_an_event_is_over_after_its_instant():
    live = LiveProgram(parse_program(LIVE), ROADS)
    assert live.step(1, [n("v", "asksFrom", "c")]).triples
    assert live.step(2).triples == ()


def test_within_keeps_an_event_for_its_duration():
    text = HEAD + ("%! event seen(X) from X :seen Y within PT1.5S\n%! offers seen(X) as X a :Seen\n%! slots 1\n")
    live = LiveProgram(parse_program(text), ROADS)
    seen = n("z", "seen", "b")
    assert len(live.step(0, [seen]).triples) == 1
    assert len(live.step(1_500_000).triples) == 1
    assert live.step(1_500_001).triples == ()
    live.step(2_000_000, [seen])
    live.step(3_000_000, [seen])  # again: it lasts from here
    assert len(live.step(4_500_000).triples) == 1
    assert live.step(4_500_001).triples == ()


def test_slots_are_lent_and_given_back():
    live = LiveProgram(parse_program(LIVE), ROADS)
    for time in range(50):
        agent = f"fresh{time}"
        assert reached(live.step(time, [n(agent, "asksFrom", "c")])) == {(f"<urn:{agent}>", "<urn:e>")}
    with pytest.raises(KnowledgeError, match="all 2 slots are taken"):
        live.step(100, [n(agent, "asksFrom", "c") for agent in ("v", "w", "x")])


def test_events_outside_the_declared_atoms_are_counted():
    live = LiveProgram(parse_program(LIVE), ROADS)
    assert live.step(1, [n("e", "closedTo", "a"), n("v", "asksFrom", "nowhere"), n("a", "other", "b")]).ignored == 2
    bounded = HEAD + "%! event hot(N:0..9) from X :heat N\n%! offers hot(N:int) as :it :is N\n"
    live = LiveProgram(parse_program(bounded), ROADS)
    heat = [("<urn:x>", "<urn:heat>", value) for value in (number(3), number(10), '"3"')]
    assert live.step(1, heat) == Outcome((("<urn:it>", "<urn:is>", number(3)),), ignored=2)


def test_inconsistency_comes_and_goes_with_the_events():
    text = LIVE + ":- closed(X,Y), closed(Y,Z).\n"
    live = LiveProgram(parse_program(text), ROADS)
    live.step(1, [n("a", "closedTo", "b")])
    assert live.step(2, [n("b", "closedTo", "c")]).inconsistent
    assert not live.step(3, [n("b", "openTo", "c")]).inconsistent


def test_a_search_that_is_too_long_is_stopped():
    pigeons = "1 { in(P,H) : H = 1..9 } 1 :- P = 1..10. :- in(P,H), in(Q,H), P < Q.\n"
    live = LiveProgram(parse_program(LIVE + pigeons), ROADS, conflicts=50)
    with pytest.raises(KnowledgeError, match="50 conflicts"):
        live.step(1)


def test_a_snapshot_restores_what_is_true():
    live = LiveProgram(parse_program(LIVE), ROADS)
    live.step(1, [n("c", "closedTo", "e"), n("v", "asksFrom", "d")])
    other = LiveProgram(parse_program(LIVE), ROADS)
    other.step(1, [n("a", "closedTo", "b")])
    other.restore(live.snapshot())
    assert sorted(other.snapshot()) == sorted(live.snapshot())
    for time, triples in (
        (1, []),
        (2, [n("w", "asksFrom", "d")]),
        (3, [n("c", "openTo", "e"), n("w", "asksFrom", "d")]),
    ):
        assert other.step(time, triples) == live.step(time, triples)


def test_a_new_version_of_the_background_keeps_what_it_still_has():
    live = LiveProgram(parse_program(LIVE), ROADS)
    live.step(1, [n("a", "closedTo", "b"), n("c", "closedTo", "e"), n("v", "asksFrom", "a")])
    renewed, dropped = live.over(Graph([n("a", "to", "b"), n("a", "to", "f")]))
    assert dropped == 1  # there is no road from c to e any more
    assert reached(renewed.step(1)) == {n("v", "f")}


def test_live_answers_equal_static_ones_over_the_same_facts():
    closed = [n("a", "closedTo", "b"), n("d", "closedTo", "c")]
    live = LiveProgram(parse_program(LIVE), ROADS)
    live.step(1, closed)
    outcome = live.step(2, [n("b", "asksFrom", "a")])  # an agent that is known to the background has no slot
    assert outcome.ignored == 1
    outcome = live.step(3, [n("v", "asksFrom", "a")])
    static = HEAD + (
        "%! reads closed(X, Y) from X :closedTo Y\n%! reads asks(A, X) from A :asksFrom X\n"
        + "".join(line + "\n" for line in LIVE.splitlines() if "event" not in line and "reads" not in line)
    )
    graph = Graph([*ROADS, *closed, n("v", "asksFrom", "a")])
    assert static_answers(parse_program(static), graph).triples == outcome.triples


# --------------------------------------------------------------------------------------------- in the background


def files(folder, *, program: str, facts: str) -> list:
    (folder / "p.lp").write_text(program)
    (folder / "facts.ttl").write_text("@prefix : <urn:> .\n" + facts)
    return [folder / "facts.ttl", folder / "p.lp"]


def test_static_programs_offer_to_the_default_graph_in_every_version(tmp_path):
    program = HEAD + "%! offers reach(X, Y) as X :reaches Y" + REACH
    k = load(
        files(
            tmp_path,
            program=program,
            facts=":leads <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :to ."
            ":a :to :b . :b :leads :c . :z :reaches :z .",
        ),
        cache=False,
    )

    def reaches() -> set:
        return {(s, o) for s, o in k.default.pairs("<urn:reaches>") if s != "<urn:z>"}

    assert reaches() == {n("a", "b"), n("b", "c"), n("a", "c")}
    k.update(remove=[n("b", "leads", "c")], add=[n("b", "leads", "d")])
    assert reaches() == {n("a", "b"), n("b", "d"), n("a", "d")}
    k.update(add=[n("a", "reaches", "b")])  # now stated as well as offered
    k.update(remove=[n("a", "to", "b")])
    assert reaches() == {n("a", "b"), n("b", "d")}
    assert k.default.contains(*n("z", "reaches", "z"))


def test_a_static_program_without_answer_set_is_told(tmp_path):
    program = HEAD + "%! offers road(X, Y) as X :way Y\n:- road(X,Y), road(Y,X).\n"
    sources = files(tmp_path, program=program, facts=":a :to :b .")
    k = load(sources, cache=False)
    assert k.inconsistent == ()
    assert k.update(add=[n("b", "to", "a")]).inconsistent == (str(tmp_path / "p.lp"),)
    assert list(k.default.pairs("<urn:way>")) == []
    assert k.update(remove=[n("b", "to", "a")]).inconsistent == ()
    (tmp_path / "facts.ttl").write_text("@prefix : <urn:> . :a :to :b . :b :to :a .")
    with pytest.warns(KnowledgeWarning, match="no answer set"):
        load(sources, cache=False)


def test_an_update_that_a_program_cannot_read_changes_nothing(tmp_path):
    program = (
        "%! prefix : <urn:>\n%! reads age(X, N:int) from X :age N\n%! offers ok(X) as X :is :Ok\nok(X) :- age(X,_)."
    )
    k = load(files(tmp_path, program=program, facts=":x :age 7 ."), cache=False)
    before = set(k.default)
    assert n("x", "is", "Ok") in before
    with pytest.raises(KnowledgeError, match="32 bits"):
        k.update(add=[("<urn:y>", "<urn:age>", '"old"')], remove=[("<urn:x>", "<urn:age>", number(7))])
    assert (set(k.default), k.version) == (before, 0)
    k.update(remove=[("<urn:x>", "<urn:age>", number(7))])
    assert set(k.default) == set()


def test_programs_that_read_events_are_kept_for_the_stream(tmp_path):
    k = load(files(tmp_path, program=LIVE, facts=":a :to :b ."), cache=False)
    (program,) = k.programs
    assert reached(LiveProgram(program, k.default).step(1, [n("v", "asksFrom", "a")])) == {n("v", "b")}


# ------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "%! offer x(X) as X a :C": "is not a declaration",
    "%! reads road(X, Y) X :to Y": "expected: %! reads",
    "%! reads road(x) from X :to Y": "'x' is not an argument",
    "%! reads road(X, Z) from X :to Y": "Z is not in the pattern",
    "%! reads road(X, Y) from X ex:to Y": "the prefix ex: is not declared",
    "%! reads road(X, Y) from X :to Y Z": "expected: %! reads",
    '%! reads road(X, Y) from "x" :to Y': "a literal stands where",
    "%! offers road(X) as X :to Y": "Y is not an argument",
    "%! event e(X, N:int) from X :p N": "need bounds",
    "%! event e(X) from X :p Y within soon": "is not a duration",
    "%! event e(X) from X :p Y until X :q Y": "Y of the until pattern",
    "%! slots many": "expected: %! slots",
    "%! answers all": "cautious or answers brave",
    "%! prefix x": "expected: %! prefix",
    "%! const a = X": "expected: %! const",
    "#script (python)": "#script is not allowed",
    '%* %* *% " *% #script (python) "': "#script is not allowed",
    '#include "other.lp".': "#include is not allowed",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_named(line):
    with pytest.raises(KnowledgeError) as caught:
        parse_program(HEAD + line, "p.lp")
    assert WRONG[line] in str(caught.value)
    assert str(caught.value).startswith("p.lp, line 4: ")


def test_a_program_must_offer_something():
    with pytest.raises(KnowledgeError, match="offers nothing"):
        parse_program("a.")


OFFER = HEAD + "%! offers p(X) as X a :C\n"
EVENT = OFFER + "%! event e(X) from X :at Y over "
ROUNDS = EVENT + "slot(X)\n%! slots 3\n%! rounds 5 of go until done then end\np(X) :- e(X).\n#program go(k). done(k).\n"


@pytest.mark.parametrize(
    ("text", "line", "found", "advice"),
    [
        (OFFER + "p(X) :- road(X,Y.\n", 5, "syntax error, unexpected .", "ends with a dot"),
        (OFFER + "p(X) :- road(X,_)\n\n", 6, "unexpected end of the program", "ends with a dot"),
        (OFFER + "p(X).\n", 5, "the variable X is unsafe", "binds each variable"),
        (OFFER + "p(X) :- road(X,Z), W < V.\n", 5, "the variables .* are unsafe", "binds each variable"),
        (OFFER + "p(X) :- raod(X,_).\n", 5, "nothing defines raod/2", r"did you mean road/2\? declare it"),
        (OFFER + "p(X) :- road(X).\n", 5, "nothing defines road/1", r"did you mean road/2\?"),
        (OFFER + "{ p(X) : raod(X,_) }.\n", 5, "nothing defines raod/2", "#defined raod/2"),
        (OFFER + "p(X) :- road(X,_), -p(X).\n", 5, "nothing defines -p/1", "#defined -p/1"),
        (OFFER + "q(X) :- road(X,_).\n", 4, "p/1 is offered, but no rule derives it", r"with the head p\(X\)"),
        (OFFER + "#program more.\np(X) :- road(X,_).\n", 5, "#program more. would never be used", "without a part"),
        (EVENT + "room(X)\np(X) :- e(X).\n", 5, "nothing defines room/1", "declare it"),
        (EVENT + "road(X\np(X) :- e(X).\n", 5, "after over: syntax error", ""),
        (EVENT + "road(_,_)\np(X) :- e(X).\n", 5, "after over: the variable X is unsafe", r"argument of e\(X\)"),
        (ROUNDS, 7, "name a part end, but there is no #program end", "correct its name"),
        (ROUNDS.replace("done(k).", "gone(k)."), 7, "name a part end", ""),
        (ROUNDS.replace("(k). done", "(k). gone").replace("then end", "then go"), 7, "no rule derives it", "done"),
        (ROUNDS + "#program end(k).\n#program more(k).\n", 11, r"#program more\(k\). would never", "rounds line"),
    ],
)
def test_a_wrong_program_is_told_with_its_line(text, line, found, advice):
    with pytest.raises(KnowledgeError, match=rf"(?s)^p\.lp, line {line}\b.*{found}.*{advice}"):
        parse_program(text, "p.lp")


def test_names_that_are_defined_are_no_error():
    parse_program(OFFER + "#defined may/1.\np(X) :- road(X,_), not may(X), not -p(X).\n#defined -p/1.\n")
    parse_program(OFFER + "{ q(X;Y) : road(X,Y) }.\n#external s(X) : q(X).\np(X) :- s(X), not q(X).\n")
    parse_program(EVENT + "known(X), entity(X), bound(X)\np(X) :- e(X).\n#program over.\nbound(X) :- road(X,_).\n")


@pytest.mark.parametrize("solve", [static_answers, LiveProgram])
def test_what_clingo_says_while_it_runs_is_told(solve):
    program = replace(parse_program(OFFER + "p(X) :- road(X,_).\n", "p.lp"), text=OFFER + "\np(X).\n")
    with pytest.raises(KnowledgeError, match=r"^p\.lp[^\n]*unsafe") as caught:
        solve(program, ROADS)
    assert "Traceback" not in str(caught.value)


def test_an_offered_number_that_is_no_term_is_an_error():
    program = parse_program("%! prefix : <urn:>\n%! offers p(X) as X a :C\np(77).\n", "p.lp")
    with pytest.raises(KnowledgeError, match="stands for no term"):
        static_answers(program, ROADS)
    with pytest.raises(KnowledgeError, match="stands for no term"):
        LiveProgram(program, ROADS).step(1)
