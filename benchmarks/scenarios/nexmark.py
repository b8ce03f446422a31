"""The queries of NEXMark: people, their auctions, and bids on these, 1 : 3 : 46, a hundred events a second.

Tucker, Tufte, Papadimos, Maier: NEXMark, a benchmark for queries over data streams, 2002.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal

from benchmarks.scenarios.definition import (
    MINUTE,
    MS,
    PREFIX,
    SECOND,
    STREAM,
    TEN,
    Scenario,
    decimal,
    integer,
    mean,
    name,
    record,
    tumbling,
    value,
)
from benchmarks.workloads.definition import Answer
from etalis_py.events import Event

STATES = ("OR", "ID", "CA", "WA", "AZ", "WY")
CITIES = ("Phoenix", "Portland", "Boise", "Kent", "Bend")
ASKED = {f"a{n}" for n in (7, 20, 101, 2_001, 2_019)}


def events(size: int) -> list[Event]:
    draw = random.Random(8)
    found: list[Event] = []
    people = auctions = 0
    for n in range(1, size + 1):
        place, time = n % 50, 10 * n * MS
        if place == 1 or not people:
            columns = {"name": f'"n{draw.randrange(1_000)}"', "city": f'"{draw.choice(CITIES)}"'}
            columns["state"] = f'"{draw.choice(STATES)}"'
            found.append(record(time, name(f"p{people}"), columns))
            people += 1
        elif place in (2, 3, 4) or not auctions:
            seller = name(f"p{max(0, people - 1 - draw.randrange(20))}")
            columns = {"seller": seller, "category": name(f"c{draw.randrange(5)}")}
            found.append(record(time, name(f"a{auctions}"), columns))
            auctions += 1
        else:
            auction = max(0, auctions - 1 - int(draw.expovariate(1 / 20)))
            columns = {"auction": name(f"a{auction}"), "bidder": name(f"p{draw.randrange(people)}")}
            columns["price"] = integer(draw.randrange(1, 10_000))
            found.append(record(time, name(f"b{n}"), columns))
    return found


def said(event: Event) -> dict[str, str]:
    """The columns of a record by their names."""
    return {p[len("<urn:p:") : -1]: o for _, p, o in event.triples}


def currency(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    for event in stream:
        columns = said(event)
        if price := columns.get("price"):
            euro = decimal(Decimal(value(price)) * Decimal("0.908"))
            answers.append((event.start, event.end, (columns["auction"], columns["bidder"], euro)))
    return answers


def selection(stream: Sequence[Event]) -> list[Answer]:
    wanted = {name(local) for local in ASKED}
    bids = ((event, said(event)) for event in stream)
    return [(e.start, e.end, (c["auction"], c["price"])) for e, c in bids if c.get("auction") in wanted]


def local_sellers(stream: Sequence[Event]) -> list[Answer]:
    people: dict[str, tuple[int, str, str]] = {}
    answers: list[Answer] = []
    for event in stream:
        columns, subject = said(event), event.triples[0][0]
        if columns.get("state", "").strip('"') in ("OR", "ID", "CA"):
            people[subject] = event.start, columns["city"], columns["name"]
        elif columns.get("category") == name("c1") and columns["seller"] in people:
            start, city, who = people[columns["seller"]]
            answers.append((start, event.end, (subject, city, who)))
    return answers


def mean_of_best(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    for close, held in tumbling(stream, TEN):
        best: dict[str, int] = defaultdict(int)
        category: dict[str, str] = {}
        for event in held:
            columns = said(event)
            if "price" in columns:
                best[columns["auction"]] = max(best[columns["auction"]], value(columns["price"]))
            elif "category" in columns:
                category[event.triples[0][0]] = columns["category"]
        finals: dict[str, list[int]] = defaultdict(list)
        for auction, of in category.items():
            if auction in best:
                finals[of].append(best[auction])
        answers += [(close - TEN, close, (c, mean(sum(f), len(f)))) for c, f in finals.items()]
    return answers


def hottest(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    counts: Counter[str] = Counter()
    bids = [(event.end, auction) for event in stream if (auction := said(event).get("auction"))]
    first = last = 0
    times = range(MINUTE, bids[-1][0] + MINUTE, SECOND)  # the first window begins with the time 0
    for close in times:
        while last < len(bids) and bids[last][0] <= close:
            counts[bids[last][1]] += 1
            last += 1
        while first < last and bids[first][0] <= close - MINUTE:
            counts[bids[first][1]] -= 1
            first += 1
        held = [(-count, auction) for auction, count in counts.items() if count]
        if held:
            count, auction = min(held)
            answers.append((close - MINUTE, close, (auction, integer(-count))))
    return answers


def highest(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    for close, held in tumbling(stream, TEN):
        if prices := [value(columns["price"]) for event in held if "price" in (columns := said(event))]:
            answers.append((close - TEN, close, (integer(max(prices)),)))
    return answers


def new_sellers(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    for close, held in tumbling(stream, TEN):
        people = {event.triples[0][0]: columns["name"] for event in held if "name" in (columns := said(event))}
        for event in held:
            seller = said(event).get("seller", "")
            if seller in people:
                answers.append((close - TEN, close, (event.triples[0][0], people[seller], seller)))
    return answers


def _over(select: str, window: str, where: str, rest: str = "") -> str:
    return f"{PREFIX}SELECT {select} FROM NAMED WINDOW :w ON {STREAM} [{window}] WHERE {{ {where} }} {rest}"


BID = "EVENT { ?bid :auction ?auction ; :price ?price }"
OPENED = "EVENT { ?auction :category ?c }"
SCENARIOS = (
    Scenario(
        "N1",
        "NEXMark 1: each bid in another currency",
        f"{PREFIX}SELECT ?auction ?bidder (?price * 0.908 AS ?euro) WHERE {{\n"
        "  EVENT { ?bid :auction ?auction ; :bidder ?bidder ; :price ?price } }",
        events,
        currency,
        dense=True,
    ),
    Scenario(
        "N2",
        "NEXMark 2: the bids on five auctions",
        f"{PREFIX}SELECT ?auction ?price WHERE {{\n"
        "  EVENT { ?bid :auction ?auction ; :price ?price FILTER (?auction IN (:a7, :a20, :a101, :a2001, :a2019)) } }",
        events,
        selection,
    ),
    Scenario(
        "N3",
        "NEXMark 3: sellers of three states and their auctions in a category",
        f"{PREFIX}SELECT ?name ?city ?auction WHERE {{\n"
        "  EVENT { ?p :name ?name ; :city ?city ; :state ?state FILTER (?state IN ('OR', 'ID', 'CA')) }\n"
        "  EVENT { ?auction :seller ?p ; :category :c1 } }",
        events,
        local_sellers,
    ),
    Scenario(
        "N4",
        "NEXMark 4: the mean of the best bids by category, of every ten seconds",
        _over(
            "?c (AVG(?best) AS ?mean)",
            "RANGE PT10S SLIDE PT10S",
            "{ SELECT ?auction ?c (MAX(?price) AS ?best) WHERE { WINDOW :w { "
            f"{OPENED} {BID} }} }} GROUP BY ?auction ?c }}",
            "GROUP BY ?c",
        ),
        events,
        mean_of_best,
    ),
    Scenario(
        "N5",
        "NEXMark 5: the auction with most bids within a minute, each second",
        _over(
            "?auction (COUNT(*) AS ?n)",
            "RANGE PT60S SLIDE PT1S",
            "WINDOW :w { EVENT { ?bid :auction ?auction } }",
            "GROUP BY ?auction ORDER BY DESC(?n) ?auction LIMIT 1",
        ),
        events,
        hottest,
    ),
    Scenario(
        "N7",
        "NEXMark 7: the highest bid of every ten seconds",
        _over("(MAX(?price) AS ?top)", "RANGE PT10S SLIDE PT10S", "WINDOW :w { EVENT { ?bid :price ?price } }"),
        events,
        highest,
    ),
    Scenario(
        "N8",
        "NEXMark 8: who came and opened an auction in the same ten seconds",
        _over(
            "?p ?name ?auction",
            "RANGE PT10S SLIDE PT10S",
            "WINDOW :w { EVENT { ?p :name ?name } EVENT { ?auction :seller ?p } }",
        ),
        events,
        new_sellers,
    ),
)
