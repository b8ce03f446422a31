"""Programs that prefer some answer sets: ``#minimize``, ``#maximize`` and ``:~``, in the background and in the loop.

By definition: all answer sets are listed by hand, the best by priority and sum are kept, and what all of them (or one
of them) have is offered.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from etalis_rules.terms import RDF_TYPE, XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, event
from etalis_py.knowledge import Graph, KnowledgeError, load
from etalis_py.knowledge.asp import LiveProgram, Outcome, parse_program, static_answers
from tests.draws import examples

PICKED = (RDF_TYPE, "<urn:Picked>")
STORES = ("<urn:a>", "<urn:b>", "<urn:c>", "<urn:d>")
PROGRAM = """
%! prefix : <urn:>
%! reads costs(X, N:int) from X :costs N
%! reads rivals(X, Y) from X :rivals Y
%! offers pick(X) as X a :Picked
{ pick(X) } :- store(X).
:- pick(X), pick(Y), rivals(X,Y).
:- #count { X : pick(X) } < 1.
many :- #count { X : pick(X) } > 2.
#maximize { 1@2,X : pick(X), many }.
:~ pick(X), costs(X,N). [N@1,X]
"""
STATIC = PROGRAM + "store(X) :- costs(X,_).\n"
LIVE = (
    PROGRAM
    + "store(X) :- costs(X,_), not shut(X).\n%! event shut(X) from X :shuts X until X :opens X over costs(X,_)\n"
)
BRAVE = "%! answers brave\n"

Costs = dict[str, int]
Pairs = frozenset[tuple[str, str]]


def graph(costs: Costs, rivals: Pairs) -> Graph:
    priced = [(store, "<urn:costs>", f'"{cost}"^^<{XSD}integer>') for store, cost in costs.items()]
    return Graph([*priced, *((x, "<urn:rivals>", y) for x, y in rivals)])


def by_definition(costs: Costs, rivals: Pairs, shut: frozenset[str], brave: bool) -> set[str] | None:
    """What the best answer sets have in common, or have at all; None where there is no answer set."""
    stores = [store for store in costs if store not in shut]
    answer_sets = [
        set(chosen)
        for size in range(1, len(stores) + 1)
        for chosen in combinations(stores, size)
        if not any((x, y) in rivals for x in chosen for y in chosen)
    ]
    if not answer_sets:
        return None

    def penalty(chosen: set[str]) -> tuple[int, int]:
        return -len(chosen) if len(chosen) > 2 else 0, sum(costs[store] for store in chosen)

    best = min(map(penalty, answer_sets))
    optimal = [chosen for chosen in answer_sets if penalty(chosen) == best]
    return set.union(*optimal) if brave else set.intersection(*optimal)


def outcome(picked: set[str] | None) -> Outcome:
    return Outcome((), inconsistent=True) if picked is None else Outcome(tuple((s, *PICKED) for s in sorted(picked)))


TIED: Costs = dict(zip(STORES, (3, 1, 1, 2), strict=True))
ALL_RIVALS: Pairs = frozenset(combinations(STORES, 2))


@pytest.mark.parametrize("brave", [False, True], ids=["cautious", "brave"])
@pytest.mark.parametrize("rivals", [frozenset(), ALL_RIVALS, ALL_RIVALS - {STORES[1:3]}], ids=["none", "all", "most"])
def test_a_static_program_offers_what_its_optimal_answer_sets_have(rivals: Pairs, brave: bool) -> None:
    program = parse_program(STATIC + BRAVE * brave)
    expected = by_definition(TIED, rivals, frozenset(), brave)
    assert static_answers(program, graph(TIED, rivals)) == outcome(expected)


def test_a_preference_that_applies_to_nothing_prefers_nothing() -> None:
    text = "%! prefix : <urn:>\n%! reads p(X) from X :p :o\n%! offers p(X) as X a :Picked\n:~ p(X), X < 0. [1,X]\n"
    assert static_answers(parse_program(text), Graph([("<urn:a>", "<urn:p>", "<urn:o>")])) == outcome({"<urn:a>"})


def test_no_answer_set_is_none_of_an_optimizing_program_either() -> None:
    assert static_answers(parse_program(STATIC), Graph()) == Outcome((), inconsistent=True)


@given(
    st.tuples(*(st.integers(0, 4) for _ in STORES)),
    st.frozensets(st.tuples(st.sampled_from(STORES), st.sampled_from(STORES)), max_size=4),
    st.lists(st.tuples(st.sampled_from(STORES), st.booleans()), max_size=6),
    st.booleans(),
)
@settings(max_examples=examples(4 / 15))
def test_a_live_program_is_solved_anew_after_every_event(
    prices: tuple[int, ...], rivals: Pairs, switches: list[tuple[str, bool]], brave: bool
) -> None:
    costs = dict(zip(STORES, prices, strict=True))
    live = LiveProgram(parse_program(LIVE + BRAVE * brave), graph(costs, rivals))
    shut: frozenset[str] = frozenset()
    assert live.step(0) == outcome(by_definition(costs, rivals, shut, brave))
    for time, (store, opens) in enumerate(switches, 1):
        shut = shut - {store} if opens else shut | {store}
        step = live.step(time, [(store, "<urn:opens>" if opens else "<urn:shuts>", store)])
        assert step == outcome(by_definition(costs, rivals, shut, brave))


def test_queries_see_the_cheapest_choice_at_each_instant(tmp_path) -> None:
    (tmp_path / "stores.lp").write_text(
        "%! prefix : <http://example.org/>\n"
        "%! reads costs(X, N:int) from X :costs N\n"
        "%! event order(O) from O a :Order over slot(O)\n"
        "%! event shut(X) from X a :Shut until X a :Open over costs(X,_)\n"
        "%! slots 5\n"
        "%! offers serves(X, O) as X :serves O\n"
        "1 { serves(X,O) : costs(X,_), not shut(X) } 1 :- order(O).\n"
        "#minimize { N,O : serves(X,O), costs(X,N) }.\n"
    )
    (tmp_path / "stores.ttl").write_text("@prefix : <http://example.org/> . :near :costs 2 . :far :costs 5 .")
    knowledge = load([tmp_path / "stores.lp", tmp_path / "stores.ttl"])
    engine = Engine("SELECT ?x ?o { ?x :serves ?o }", background=knowledge)
    events = [event(":o1 a :Order", 1), event(":near a :Shut", 2), event(":o2 a :Order", 3), event(":near a :Open", 4)]
    matches = engine.push_all([*events, event(":o3 a :Order", 5)]) + engine.close()
    assert [(m["x"].rsplit("/")[-1], m["o"].rsplit("/")[-1], m.end) for m in matches] == [
        ("near", "o1", 1),
        ("far", "o2", 3),
        ("near", "o3", 5),
    ]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("pick(@cheapest(X)) :- costs(X,_).", 6),
        ("pick(X) :- costs(X,N), N < @limit().", 28),
        ("#minimize { @w() }.", 13),
    ],
)
def test_functions_of_code_are_refused_by_name(line: str, column: int) -> None:
    name = line.partition("@")[2].partition("(")[0]
    head = "%! prefix : <urn:>\n%! reads costs(X, N:int) from X :costs N\n%! offers pick(X) as X a :Picked\n"
    with pytest.raises(KnowledgeError, match=rf"p.lp, line 4, column {column}: the function @{name} is not allowed"):
        parse_program(head + line + "\npick(X) :- costs(X,_).", "p.lp")


def test_a_search_for_an_optimum_that_is_too_long_is_an_error() -> None:
    holes = 8
    text = (
        "%! prefix : <urn:>\n%! event asks(X) from X :asks X over slot(X)\n%! slots 1\n"
        "%! offers sits(P, H) as P :in H\n"
        f"1 {{ sits(P,H) : H = 1..{holes} }} 1 :- P = 0..{holes}, asks(_).\n"
        ":~ sits(P,H), sits(Q,H), P < Q. [1,P,Q]\n"
    )
    live = LiveProgram(parse_program(text), Graph(), conflicts=50)
    with pytest.raises(KnowledgeError, match="the program was not solved within 50 conflicts"):
        live.step(1, [("<urn:x>", "<urn:asks>", "<urn:x>")])
