"""The queries of [EP] §4.1 on small streams, the made-up market, and real prices from files."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from etalis_rules.terms import parts
from running import run

from etalis_py import Engine, compile, event
from etalis_py.replays import replay_stock
from etalis_py.replays.market import AGENCIES, HAS_PRICE, STOCK, market_events
from etalis_py.replays.resources import data, program
from etalis_py.streams import StreamError

DAY = 86_400


def rows(names, items, *variables):
    """Run shipped queries over (day, Turtle) and give (start day, end day, values) of the last of them."""
    engine = Engine(
        compile([program(f"stock/{name}") for name in names]),
        background=[data("stock/sectors.ttl"), data("stock/companies.ttl")],
    )
    stream = [event(f"@prefix s: <{STOCK}> . {text}", int(day * DAY)) for day, text in items]
    found = [*engine.push_all(stream), *engine.close()]
    return [
        (m.start / DAY, m.end / DAY, *(m.get(v) for v in variables)) for m in found if m.query == names[-1]
    ]  # fmt: skip


def prices(company, *pairs):
    return [(day, f"s:{company} s:hasStockPrice {price:.2f}") for day, price in pairs]


def test_1_a_drop_and_a_rise_within_thirty_days():
    found = rows(["drop_and_rise"], prices("A", (0, 100), (5, 69), (10, 105), (29, 106), (31, 200)), "price3")
    assert found == [(0, 29, Decimal("106.00"))]
    # 105 is not more than 5 % above 100; 31 days are too long, also from day 5: 200 needs a drop before.


def test_1_a_drop_of_thirty_percent_is_not_more_than_thirty():
    assert rows(["drop_and_rise"], prices("A", (0, 100), (5, 70), (10, 200))) == []


def test_1_prices_of_two_companies_are_not_mixed():
    assert rows(["drop_and_rise"], prices("A", (0, 100)) + prices("B", (5, 50), (6, 200))) == []


def rating(number, agency, company, score):
    return f"s:r{number} s:rater s:{agency} ; s:rated s:{company} ; s:score {score}"


def test_4_a_lower_score_of_the_same_agency_is_a_downrating():
    items = [
        (0, rating(1, "Castor", "A", 7)),
        (1, rating(2, "Veritas", "A", 3)),
        (2, rating(3, "Castor", "B", 1)),
        (3, rating(4, "Castor", "A", 6)),
        (4, rating(5, "Veritas", "A", 3)),
    ]
    engine = Engine(compile([program("stock/downrated")]))
    found = engine.push_all(event(f"@prefix s: <{STOCK}> . {text}", int(day * DAY)) for day, text in items)
    found = [*found, *engine.close()]
    assert [m.triples for m in found] == [((f"<{STOCK}A>", f"<{STOCK}downratedby>", f"<{STOCK}Castor>"),)]
    assert [(m.start / DAY, m.end / DAY) for m in found] == [(0, 3)]


def test_2_the_agency_is_told_when_it_downrated_before_the_drop():
    items = [
        (0, rating(1, "Castor", "A", 7)),
        (1, rating(2, "Castor", "A", 5)),
        *prices("A", (2, 100), (3, 49)),
        *prices("B", (4, 100), (5, 49), (6, 50)),
    ]
    found = rows(["downrated", "drop_with_rating"], items, "company", "ratingagency")
    assert found == [(0, 3, STOCK + "A", STOCK + "Castor"), (4, 5, STOCK + "B", None)]


def test_2_a_downrating_after_the_higher_price_does_not_count():
    items = [(0, rating(1, "Castor", "A", 7)), *prices("A", (1, 100)), (2, rating(2, "Castor", "A", 5))]
    found = rows(["downrated", "drop_with_rating"], items + prices("A", (3, 49)), "ratingagency")
    assert found == [(1, 3, None)]


def test_3_a_rise_without_an_acquisition():
    items = prices("A", (0, 100), (14, 151), (16, 260))
    assert rows(["rise_without_acquisition"], items, "price2") == [
        (0, 14, Decimal("151.00")),
        (14, 16, Decimal("260.00")),
    ]
    bought = sorted([*items, (13, "s:A s:hasAcquired s:B")])
    assert rows(["rise_without_acquisition"], bought) == []


def averages(items):
    names = ["first_sum", "next_sum", "average"]
    return [(end, average) for _, end, average in rows(names, items, "average")]


def test_5_and_6_the_average_of_the_last_ten_days():
    quarter = [0, 0.5, 0.25, 0.75, 0.125]  # so that no price is exactly ten days old
    items = [(4 * i + quarter[i % 5], 10 * (i + 1)) for i in range(8)]
    expected = []
    for day, _ in items:
        window = [Decimal(price) for then, price in items if day - 10 < then <= day]
        if day - items[0][0] > 10:
            expected.append((day, sum(window) / len(window)))
    assert averages(prices("ACME", *items)) == expected
    assert len(expected) == 5


def test_5_and_6_no_average_before_ten_days_are_full():
    assert averages(prices("ACME", (0, 1), (3, 2), (9.9, 3))) == []


def test_financial_companies_are_found_through_the_ontology():
    made = data("stock/companies.ttl").read_text().splitlines()
    bank = next(line.split()[0][1:] for line in made if "a :RetailBank" in line)
    brewer = next(line.split()[0][1:] for line in made if "a :Brewer" in line)
    items: list[tuple[int, str]] = []
    for number, company in enumerate((bank, brewer)):
        items += [
            (number, rating(f"{number}a", "Castor", company, 7)),
            (5 + number, rating(f"{number}b", "Castor", company, 2)),
        ]
    found = rows(["downrated", "financial_downratings"], items, "company", "business")
    assert found == [(0, 5, STOCK + bank, "retail bank")]


# --- the made-up market -----------------------------------------------------------------------------------------


def test_the_market_is_the_same_for_the_same_seed():
    assert list(market_events(20, 500, seed=1)) == list(market_events(20, 500, seed=1))
    assert list(market_events(20, 500, seed=1)) != list(market_events(20, 500, seed=2))


def test_the_market_gives_as_many_events_as_asked_in_order():
    events = list(replay_stock(companies=30, events=1234, seed=1).events)
    assert len(events) == 1234
    assert all(a.end <= b.end for a, b in pairwise(events))
    assert {e.triples[0][1].rsplit("#")[-1][:-1] for e in events} >= {"hasStockPrice", "rater"}


@pytest.mark.parametrize("companies", [1, 30])
def test_without_a_number_the_events_are_as_many_as_the_companies_give_in_the_same_time(companies):
    assert len(list(replay_stock(companies=companies).events)) == 100 * companies


def drops_and_rises(events):
    """Query (1) by its definition: every three prices of a company."""
    by_company = {}
    for e in events:
        (s, p, o), *_ = e.triples
        if p == HAS_PRICE:
            by_company.setdefault(s, []).append((e.end, Decimal(parts(o)[0])))
    month = 30 * DAY * 1_000_000
    for company, series in by_company.items():
        for i, (t1, p1) in enumerate(series):
            within = [(t, p) for t, p in series[i + 1 :] if t - t1 < month]
            for j, (_, p2) in enumerate(within):
                if p2 < p1 * Decimal("0.7"):
                    yield from ((company, t1, t3) for t3, p3 in within[j + 1 :] if p3 > p1 * Decimal("1.05"))


def test_query_1_finds_what_its_definition_says():
    replay = replay_stock(companies=60, events=5000, seed=3)
    expected = sorted(drops_and_rises(replay.events))
    found = sorted((m.bindings["company"], m.start_us, m.end_us) for m in run(replay, keep=("drop_and_rise",)))
    assert found == expected
    assert len(expected) > 50


def test_the_summary_tells_of_every_query():
    replay = replay_stock(companies=100, events=9000, seed=1)
    table = replay.summary(run(replay))
    assert [*dict.fromkeys(row["query"] for row in table)] == [
        "drop_and_rise",
        "drop_with_rating",
        "rise_without_acquisition",
        "financial_downratings",
        "average",
    ]
    assert {tuple(row) for row in table} == {("query", "company", "matches", "from", "to", "found")}
    assert {row["company"] for row in table if row["query"] == "financial_downratings"} <= {
        "retail banks",
        "investment banks",
        "life insurers",
        "reinsurers",
    }
    assert any(f"downrated by {agency.rsplit('#')[-1][:-1]}" in row["found"] for row in table for agency in AGENCIES)


@pytest.mark.parametrize(("arguments", "reason"), [({"companies": 501}, "from 1 to 500"), ({"events": 0}, "1 or more")])
def test_what_the_market_cannot_give_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        replay_stock(**arguments)


# --- real prices ------------------------------------------------------------------------------------------------


def test_prices_from_files_with_the_first_company_in_acmes_place(tmp_path):
    days = "".join(f"2020-01-{d:02},{d},1,{10 * d}.50,9\n" for d in range(1, 29))
    (tmp_path / "AAA-2020.csv").write_text("Date,Open,High,Close,Volume\n" + days)
    (tmp_path / "BBB.csv").write_text("Date,Close\n1/2/2020 9:30,50\n1/3/2020 9:31,null\n1/3/2020 9:32,20\n")
    replay = replay_stock(input=tmp_path)
    assert replay.notes == (
        "BBB: 1 row without a price",
        "the files hold prices only: no ratings, no acquisitions",
        "the average over ten days, ACME's in the paper, is that of AAA",
    )
    assert [e.triples[0][0] for e in replay.events][:3] == [f"<{STOCK}AAA>", f"<{STOCK}BBB>", f"<{STOCK}AAA>"]
    found = {(m.query, m.bindings.get("company")) for m in run(replay)}
    assert ("drop_with_rating", f"<{STOCK}BBB>") in found
    assert ("rise_without_acquisition", f"<{STOCK}AAA>") in found


def test_a_price_every_minute_is_not_averaged_over_ten_days(tmp_path):
    minutes = "".join(f"11/5/2019 10:{m:02},100\n" for m in range(60)) + "11/6/2019 9:30,100\n"
    (tmp_path / "SP500.csv").write_text("Date,Close\n" + minutes)
    replay = replay_stock(input=tmp_path / "SP500.csv")
    assert "SP500 has 61 in ten days (at most 60 are averaged)" in replay.notes[-1]
    assert "average" not in compile(replay.programs).queries


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Day,Last\n2020-01-01,3\n", "the header names no column Date"),
        ("Date,Close\n01.02.2020,3\n", "this row has no date and price"),
        ("Date,Close\n2020-01-01,3\n2020-02-30,3\n", "CSV.csv:3"),
        ("Date,Close\n2020-01-01,three\n", "the price is not a number"),
        ("Date,Close\n", "no price is in this file"),
    ],
)
def test_a_file_that_is_no_price_list_is_an_error_with_file_line_and_reason(tmp_path, content, reason):
    path = tmp_path / "CSV.csv"
    path.write_text(content)
    with pytest.raises(StreamError, match=reason) as caught:
        replay_stock(input=path)
    assert str(path) in str(caught.value)
