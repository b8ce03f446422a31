"""The queries printed in [EP] §4.1 on small streams, with their misprints repaired, and the principles of §4.2."""

from __future__ import annotations

from .traces import at, run

DAY = 86_400


def day(n: int, text: str):
    return at(n * DAY, text)


# (1), the FILTER's signs as its own text says: a fall by over 30 %, then a rise by more than 5 % over the first price.
FALL_AND_RISE = """
SELECT ?company WHERE { ?company :hasStockPrice ?price1 }
  SEQ { ?company :hasStockPrice ?price2 }
  SEQ { ?company :hasStockPrice ?price3 }
  FILTER (?price2 < ?price1 * 0.7 && ?price3 > ?price1 * 1.05 && getDURATION() < "P30D"^^xsd:duration)
"""


def test_example_1_fall_and_rise_within_thirty_days() -> None:
    events = (day(0, "acme hasStockPrice 100"), day(9, "acme hasStockPrice 69"), day(20, "acme hasStockPrice 106"))
    assert run(FALL_AND_RISE, *events) == [("company=acme", 0, 20 * DAY)]


def test_example_1_does_not_hold_over_exactly_thirty_days_or_another_company() -> None:
    late = (day(0, "acme hasStockPrice 100"), day(9, "acme hasStockPrice 69"), day(30, "acme hasStockPrice 106"))
    other = (day(0, "acme hasStockPrice 100"), day(9, "acme hasStockPrice 69"), day(20, "corp hasStockPrice 106"))
    assert run(FALL_AND_RISE, *late) == []
    assert run(FALL_AND_RISE, *other) == []


# (2): OPTIONALSEQ binds like SEQ, from the left: (downrated OPTIONALSEQ price1) SEQ price2.
DOWNRATED = """
SELECT ?company ?ratingagency WHERE { ?company :downratedby ?ratingagency }
  OPTIONALSEQ { ?company :hasStockPrice ?price1 }
  SEQ { ?company :hasStockPrice ?price2 }
  FILTER (?price2 < ?price1 * 0.5)
"""


def test_example_2_names_the_agency_where_one_downrated_before() -> None:
    events = (
        at(1, "acme downratedby sp"),
        at(2, "acme hasStockPrice 100 ; corp hasStockPrice 100"),
        at(3, "acme hasStockPrice 40 ; corp hasStockPrice 40"),
        at(4, "corp downratedby sp"),
    )
    assert run(DOWNRATED, *events) == [("company=acme ratingagency=sp", 1, 3), ("company=corp", 2, 3)]


# (3): an increase by more than half in less than 15 days without an acquisition; [EP] prints ``<`` for ``>``.
NO_ACQUISITION = """
SELECT ?company WHERE { ?company :hasStockPrice ?price1 }
  SEQ { { ?company :hasAcquired ?othercompany } OPTIONALSEQ { ?company :hasStockPrice ?price2 } }
  FILTER (?price2 > ?price1 * 1.5 && !BOUND(?othercompany) && getDURATION() < "P15D"^^xsd:duration)
"""


def test_example_3_reads_absence_as_absence_in_all_the_past() -> None:
    """The optional part has no lower bound but the SEQ's: an acquisition before the first price forbids it too."""
    rise = (day(1, "acme hasStockPrice 100"), day(5, "acme hasStockPrice 151"))
    bought_between = (rise[0], day(3, "acme hasAcquired corp"), rise[1])
    bought_before = (day(0, "acme hasAcquired corp"), *rise)
    bought_after = (*rise, day(6, "acme hasAcquired corp"))
    assert run(NO_ACQUISITION, *rise) == [("company=acme", DAY, 5 * DAY)]
    assert run(NO_ACQUISITION, *bought_between) == []
    assert run(NO_ACQUISITION, *bought_before) == []
    assert run(NO_ACQUISITION, *bought_after) == [("company=acme", DAY, 5 * DAY)]


# (4): each occurrence of a rating is a rating of its own; the derived triple re-enters the stream.
DOWNRATING = """
CONSTRUCT { ?company :downratedby ?ratingagency }
WHERE { ?rating1 :rater ?ratingagency ; :rated ?company ; :score ?score1 }
  SEQ { ?rating2 :rater ?ratingagency ; :rated ?company ; :score ?score2 }
  FILTER (?score2 < ?score1) ;
"""
RATINGS = (
    at(1, "r1 rater sp ; r1 rated acme ; r1 score 9"),
    at(2, "r2 rater sp ; r2 rated acme ; r2 score 7"),
)


def test_example_4_derives_an_event_with_the_interval_of_its_solution() -> None:
    assert run(DOWNRATING, *RATINGS) == [("acme downratedby sp", 1, 2)]
    assert run(DOWNRATING + "SELECT * { ?c :downratedby ?a }", *RATINGS) == [("a=sp c=acme", 1, 2)]


def test_example_4_is_found_when_a_rating_is_distributed_over_events() -> None:
    spread = (at(1, "r1 rater sp"), at(2, "r1 rated acme ; r1 score 9"), *(e for e in (at(3, "r2 rater sp"),)))
    spread += (at(4, "r2 rated acme"), at(5, "r2 score 7"))
    assert run(DOWNRATING, *spread) == [("acme downratedby sp", 1, 5)]


def test_examples_4_and_2_together_query_the_closure() -> None:
    events = (*RATINGS, at(3, "acme hasStockPrice 100"), at(4, "acme hasStockPrice 40"))
    assert run(DOWNRATING + DOWNRATED, *events) == [("company=acme ratingagency=sp", 1, 4)]


# (5) and (6): a sum and a count passed from price to price, and the average they give.  [EP]'s text lacks a seed rule,
# and its EQUALSOPTIONAL asks that no price lies between; here as two recursive rules with NOT EXISTS, prices distinct.
AVERAGE = """
CONSTRUCT { _:aaa :hasCount 1 ; :hasSum ?price ; :last ?price }
WHERE { :ACME :hasStockPrice ?price FILTER NOT EXISTS { :ACME :hasStockPrice ?older
        FILTER(?older != ?price) } } ;
CONSTRUCT { _:aaa :hasCount ?count ; :hasSum ?sum ; :last ?price }
WHERE { { ?point :hasCount ?prevcount ; :hasSum ?prevsum ; :last ?prev }
        SEQ { :ACME :hasStockPrice ?price }
        BIND(?prevcount + 1 AS ?count) BIND(?prevsum + ?price AS ?sum)
        FILTER NOT EXISTS { { ?point :hasCount ?c } SEQ { :ACME :hasStockPrice ?mid } SEQ
                            { :ACME :hasStockPrice ?price } } } ;
SELECT (?sum / ?count AS ?average) WHERE { ?point :hasCount ?count ; :hasSum ?sum }
"""


def test_examples_5_and_6_pass_sum_and_count_along() -> None:
    events = (at(1, "ACME hasStockPrice 10"), at(2, "ACME hasStockPrice 20"), at(3, "ACME hasStockPrice 60"))
    assert run(AVERAGE, *events) == [("average=10", 1, 1), ("average=15", 1, 2), ("average=30", 1, 3)]


def test_timewise_monotonicity_and_why_there_is_no_seqoptional() -> None:
    """[EP] (7): x ↦ a at 0 is an answer before and after b arrives; the optional part may only be earlier."""
    query = "SELECT ?x ?y WHERE { ?x ?x ?x OPTIONAL { ?y ?y ?y FILTER(?x != ?y) } }"
    first = run(query, at(0, "a a a"))
    both = run(query, at(0, "a a a"), at(1, "b b b"))
    assert first == [("x=a", 0, 0)]
    assert both == [("x=a", 0, 0), ("x=b y=a", 0, 1)]
