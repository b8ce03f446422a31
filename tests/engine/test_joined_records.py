"""The trap of records is told: a group takes the columns of one thing from several of its rows.

What is told are the pairs that the group joins, counted from the events: per thing, all occurrences of one predicate
with all of the other, and how many of them stand in one event.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from etalis_py import compile, event, run
from etalis_py.engine.first_events import FirstEvents
from etalis_py.engine.joined_records import JoinedRecords
from etalis_py.engine.unseen_names import UnseenNames

MOST = FirstEvents.MOST

PAID = [{"at": n, "card": f"c{n % 2}", "city": f"t{n}", "amount": n} for n in range(1, 9)]  # four rows of each card
QUERY = "SELECT ?city ?amount { ?card :city ?city ; :amount ?amount }"
TOLD = (
    "q1 joins :city and :amount of one ?card across events, and events say both: 24 of 32 pairs joined values of "
    "different events; to ask one event, write EVENT { ?card :city ?city ; :amount ?amount }"
)


def told(query: str, events: Any, **options: Any) -> list[str]:
    """What a run warns of, after it has been told in the same words as a warning of Python."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matches = run(query, events, **options)
        list(matches)
    joined = [text for text in matches.warnings if "joined values" in text]
    assert [str(one.message) for one in caught if "joined values" in str(one.message)] == joined
    return joined


def test_a_group_over_records_tells_how_many_pairs_are_of_different_events() -> None:
    assert told(QUERY, PAID, time="at", subject="card") == [TOLD]
    assert told(QUERY, pd.DataFrame(PAID), time="at", subject="card") == [TOLD]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?city ?amount { EVENT { ?card :city ?city ; :amount ?amount } }",
        "SELECT ?city { ?card :city ?city }",
        "SELECT ?a ?b { { ?card :city ?a } SEQ { ?card :amount ?b } }",
        "SELECT ?a ?b { ?card :city ?a . ?other :amount ?b }",
        "SELECT ?a { ?card :city ?a ; :amount ?a }",
        "SELECT ?a ?b { { ?card :city ?a ; :amount ?b } WITHIN 0 s }",
    ],
)
def test_queries_that_join_no_columns_of_several_rows_are_told_nothing(query: str) -> None:
    assert told(query, PAID, time="at", subject="card") == []


def test_rows_that_are_nodes_of_their_own_are_told_nothing() -> None:
    assert told(QUERY, PAID, time="at", subject=None) == []


def test_what_two_events_say_alike_counts_once() -> None:
    """Equal rows are one event: they join with themselves only."""
    assert told(QUERY, [row for row in PAID[:4] for _ in range(3)], time="at", subject=None) == []
    alike = [event(":c :city 1 ; :amount 2", 1), event(":c :city 1 ; :amount 2 ; :more 3", 1)]
    assert told(QUERY, alike) == []


def test_triples_that_arrive_apart_are_told_nothing() -> None:
    """As in RFID, in the stock example of the paper, and where one side is background."""
    apart = [event(f":c :city {n}" if n % 2 else f":c :amount {n}", n) for n in range(1, 9)]
    assert told(QUERY, apart) == []
    firms = "SELECT ?x { ?c :price ?x ; a :Firm ; :limit ?l }"
    prices = [event(f":acme :price {n} ; :volume {n}", n) for n in range(1, 9)]
    assert told(firms, prices, background=":acme a :Firm ; :limit 5 .") == []


def test_a_bound_counts_only_what_it_lets_join() -> None:
    bound = "SELECT ?city ?amount { { ?card :city ?city ; :amount ?amount } WITHIN 2 s }"
    assert [text.split(": ")[1].split(" pairs")[0] for text in told(bound, PAID, time="at", subject="card")] == [
        "12 of 20"
    ]


def test_constants_count_only_what_fits_them() -> None:
    query = "SELECT ?amount { ?card :city 't1' ; :amount ?amount }"
    assert [text.split("different")[0].split(": ")[1] for text in told(query, PAID, time="at", subject="card")] == [
        "3 of 4 pairs joined values of "
    ]


def test_only_the_first_events_are_counted() -> None:
    events = [event(f":c :city {n} ; :amount {n}", n) for n in range(MOST + 50)]
    (text,) = told("SELECT ?x { { ?c :city ?x ; :amount ?y } WITHIN 1 s }", events)
    assert f"{2 * (MOST - 1):,} of {3 * MOST - 2:,} pairs of the first {MOST:,} events joined" in text


def test_rules_and_streams() -> None:
    stream = "SELECT ?x { STREAM <urn:a> { ?c :city ?x ; :amount ?y } }"
    events = [event(f":c :city {n} ; :amount {n}", n, stream="urn:a" if n < 3 else "urn:b") for n in range(1, 9)]
    (text,) = told(stream, events)
    assert "2 of 4 pairs" in text
    assert "write STREAM <urn:a> { EVENT { ?c :city ?x ; :amount ?y } }" in text


def test_the_command_tells_it(tmp_path: Path) -> None:
    from tests.cli.conftest import Folder

    folder = Folder(tmp_path)
    pd.DataFrame(PAID).to_csv(tmp_path / "paid.csv", index=False)
    done = folder.etalis("run", "-q", QUERY, "-s", "paid.csv", "--time", "at", "--subject", "card", "-f", "csv")
    assert done.stderr.count(TOLD) == 1


def test_a_query_without_such_a_group_is_not_looked_at() -> None:
    assert JoinedRecords.of(compile("SELECT ?x { EVENT { ?c :p ?x ; :q ?y } }")) is None
    census = UnseenNames(compile("SELECT ?x { ?c :p ?x }"))
    assert not census.counts


def test_check_offers_the_group_as_one_event() -> None:
    (warning,) = compile(QUERY).check()
    assert "if one event says all of it, as a row does: EVENT { ?card :city ?city ; :amount ?amount }" in str(warning)
    (warning,) = compile("SELECT ?x { ?c :price ?x . ?c a :Firm }").check()
    assert "EVENT" not in str(warning)


def test_after_the_first_events_nothing_is_looked_at() -> None:
    seen: list[str] = []
    census = UnseenNames(compile(QUERY), seen.append)
    census.see([event(f":c :city {n} ; :amount {n}", n) for n in range(MOST)])
    assert not census.counts
    assert [text.split(" of the first")[0].split(": ")[1] for text in seen] == ["999,000 of 1,000,000 pairs"]
