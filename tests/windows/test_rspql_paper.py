"""[RSPQL] Examples 6 to 13 and Table 1, with the paper's numbers.  The unit of time is a second."""

from __future__ import annotations

import pytest
from etalis_compiler.rsp import Sliding, Strategy

from etalis_py.events import Event, Triple
from etalis_py.executors.windows import times
from tests.windows.small import EX, SECOND, evaluations, facts, item, run, short

# Box 3 and Box 5
NEARBY = [
    item(2, ":diana :isNearby :a", "nearby"),
    item(2, ":eve :isNearby :b", "nearby"),
    item(5, ":carl :isNearby :a", "nearby"),
    item(7, ":eve :isNearby :a", "nearby"),
    item(12, ":diana :isNearby :b", "nearby"),
]
COUPONS = [
    item(8, ':alice :offers "10% discount on …"', "coupon"),
    item(15, ':bob :offers "free coffee at …"', "coupon"),
]
BOTH = sorted(NEARBY + COUPONS, key=lambda e: e.end)
W1 = Sliding(width=5, slide=2, t0=1)


def people(items: list[Event]) -> list[str]:
    return [f"{short(s)} {short(o)}" for i in items for s, _, o in i.triples]


def seconds(items: list[Event]) -> list[Event]:
    """The stream with a clock that counts seconds."""
    return [Event(i.start // SECOND, i.end // SECOND, i.triples) for i in items]


def shops(t: int) -> list[Triple]:
    """Example 4: G_shops is empty before 2, holds both shops in [2, 13] and shop B alone after."""
    owns, kind = f"<{EX}owns>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    found = []
    if 2 * SECOND <= t <= 13 * SECOND:
        found += [(f"<{EX}a>", kind, f"<{EX}Shop>"), (f"<{EX}alice>", owns, f"<{EX}a>")]
    if t >= 2 * SECOND:
        found += [(f"<{EX}b>", kind, f"<{EX}Shop>"), (f"<{EX}bob>", owns, f"<{EX}b>")]
    return found


def test_example_6_a_window_from_4_to_8() -> None:
    window = Sliding(width=4, slide=4, t0=4)
    assert people(times.content(window, seconds(NEARBY), 8)) == ["carl a", "eve a"]


def test_example_7_the_windows_of_a_sliding_window() -> None:
    windows = [(c - 5, c) for c in times.closings(W1, 0, 10)]
    assert windows == [(1, 6), (3, 8), (5, 10)]


def test_example_7_at_9_the_present_window_is_the_third() -> None:
    """The printed condition would make it (7, 12]: the present window is the oldest that is open."""
    assert times.present(W1, 9) == (5, 10)
    assert people(times.content(W1, seconds(NEARBY), 9)) == ["eve a"]


COUPON_QUERY = """
SELECT RSTREAM ?shopper ?shop ?shop_owner ?coupon
FROM NAMED WINDOW :w1 ON :nearby [RANGE 5 SLIDE 2 T0 1]
FROM NAMED WINDOW :w2 ON :coupon [RANGE 2 SLIDE 2 T0 0]
WHERE {
  GRAPH :w1 { ?shopper :isNearby ?shop }
  GRAPH :w2 { ?shop_owner :offers ?coupon }
  ?shop_owner :owns ?shop
}"""
CLOSING_W2 = {"": (Strategy("WC", f"<{EX}w2>"), Strategy("NC", f"<{EX}w2>"))}


def test_examples_8_to_10_the_evaluation_times_are_8_and_16() -> None:
    found = evaluations(COUPON_QUERY, BOTH, report=CLOSING_W2, graphs={"": shops})
    assert [t for t, _ in found] == [8, 16]


def test_table_1() -> None:
    """The owner of shop A is printed as :adam there; the data of Example 1 say :alice."""
    ten, coffee = "10% discount on …", "free coffee at …"
    assert run(COUPON_QUERY, BOTH, report=CLOSING_W2, graphs={"": shops}) == [
        f"coupon={ten} shop=a shop_owner=alice shopper=carl @[3, 8]",
        f"coupon={ten} shop=a shop_owner=alice shopper=eve @[3, 8]",
        f"coupon={coffee} shop=b shop_owner=bob shopper=diana @[11, 16]",
    ]


def test_table_1_with_window_written_for_graph() -> None:
    """Box 10 reads windows by GRAPH; WINDOW says the same."""
    query = COUPON_QUERY.replace("GRAPH :w", "WINDOW :w")
    options = {"report": CLOSING_W2, "graphs": {"": shops}}
    assert run(query, BOTH, **options) == run(COUPON_QUERY, BOTH, **options)


def test_a_time_varying_graph_is_seen_as_it_is_at_the_evaluation() -> None:
    """Example 4: from 14 on Alice has left."""
    offer = [item(13, ':alice :offers "tea"', "coupon"), item(13, ":eve :isNearby :a", "nearby")]
    late = [item(14, ':alice :offers "tea"', "coupon"), item(14, ":eve :isNearby :a", "nearby")]
    query = COUPON_QUERY.replace("[RANGE 2 SLIDE 2 T0 0]", "[RANGE 1 SLIDE 1 T0 0]")
    assert len(run(query, offer, report=CLOSING_W2, graphs={"": shops})) == 1
    assert run(query, late, report=CLOSING_W2, graphs={"": shops}) == []


@pytest.mark.parametrize(
    ("t0", "first"),
    [
        (0, ["diana a", "eve b", "carl a"]),
        (1, ["diana a", "eve b", "carl a"]),
        (2, ["carl a", "eve a"]),
    ],
)
def test_example_11_the_first_window_depends_on_t0(t0: int, first: list[str]) -> None:
    """The paper lists s1, s2; s1, s2, s3; s3: these are the windows without their closing time, where Definition 12
    has (o, c].  By the definition s3 at 5 is in (0, 5], and s4 at 7 in (2, 7]."""
    window = Sliding(width=5, slide=2, t0=t0)
    close = times.next_close(window, 0)
    assert close == t0 + 5
    assert people(times.content(window, seconds(NEARBY), close)) == first


def test_example_12_named_windows_and_the_default_graph() -> None:
    """C-SPARQL merges the windows into the default graph; CQELS keeps them apart."""
    merged = """SELECT ?shopper ?coupon FROM STREAM :nearby [RANGE 20] FROM STREAM :coupon [RANGE 20]
        WHERE { ?shopper :isNearby ?shop . ?owner :offers ?coupon . ?owner :owns ?shop }"""
    apart = """SELECT ?shopper ?coupon WHERE { STREAM :nearby [RANGE 20] { ?shopper :isNearby ?shop }
        STREAM :coupon [RANGE 20] { ?owner :offers ?coupon } ?owner :owns ?shop }"""
    wrong = """SELECT ?shopper ?coupon WHERE { STREAM :nearby [RANGE 20] {
        ?shopper :isNearby ?shop . ?owner :offers ?coupon } ?owner :owns ?shop }"""
    options = {"background": facts(":alice :owns :a . :bob :owns :b")}

    def pairs(query: str) -> set[str]:
        return {row.rsplit(" @", 1)[0] for row in run(query, BOTH, **options)}

    ten, coffee = "coupon=10% discount on …", "coupon=free coffee at …"
    expected = {f"{ten} shopper={x}" for x in ("carl", "diana", "eve")} | {
        f"{coffee} shopper={x}" for x in ("eve", "diana")
    }
    assert pairs(merged) == pairs(apart) == expected
    assert pairs(wrong) == set()


def test_example_13_evaluation_times_of_cqels_and_c_sparql() -> None:
    """Figure 5: content change reports when something arrives, window close at every closing that is not empty."""
    window = "SELECT ?x FROM NAMED WINDOW :w ON :nearby [RANGE 5 SLIDE 2 T0 1] { WINDOW :w { ?x :isNearby ?y } }"
    assert [t for t, _ in evaluations(window, NEARBY, preset="cqels")] == [2, 5, 7, 12]
    closing = [6, 8, 10, 12, 14, 16]
    assert [t for t, _ in evaluations(window, NEARBY, preset="c-sparql")] == closing
    assert [t for t, _ in evaluations(window, NEARBY, preset="sparqlstream")] == closing


def test_theorem_1_t0_and_t0_plus_a_multiple_of_the_slide_agree() -> None:
    early, late = Sliding(5, 2, 1), Sliding(5, 2, 1 + 3 * 2)
    stream = seconds(NEARBY)
    for t in range(8, 20):
        if times.present(early, t) == times.present(late, t):
            assert times.content(early, stream, t) == times.content(late, stream, t)
    assert all(times.present(early, t) == times.present(late, t) for t in range(12, 20))
