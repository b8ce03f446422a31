"""The stock replay: queries (1) to (6) of [EP] §4.1 over a made-up market or over real prices.

The queries are in ``programs/stock/*.rq``, the paper's text beside what is run.  The downratings that query (4)
constructs feed query (2) and ``financial_downratings``, which needs the ontology of sectors.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

from etalis_rules.calendar import DAY
from etalis_rules.messages import how_many
from etalis_rules.terms import literal, parts

from etalis_py.events import Event, Retraction
from etalis_py.events.clock import Clock
from etalis_py.replays.market import HAS_PRICE, STOCK, companies, market_events
from etalis_py.replays.prices import PriceRecord, price_events, price_files, read_prices
from etalis_py.replays.replay import Replay
from etalis_py.replays.resources import data, program
from etalis_py.replays.stock_findings import AVERAGING, MOST_AVERAGED, PRICE_QUERIES, Findings, collect, summary
from etalis_py.streams.elements import Item
from etalis_py.streams.timing import Punctuation

PROGRAMS = (
    "drop_and_rise",
    "drop_with_rating",
    "rise_without_acquisition",
    "downrated",
    "first_sum",
    "next_sum",
    "average",
    "financial_downratings",
)
SHOWN = (*PRICE_QUERIES, "average", "financial_downratings")
BACKGROUND = ("sectors", "companies")
ACME = f"<{STOCK}ACME>"
EACH = 100  # events of a company in a made-up market
WRONG = 20  # the price of a company that is wrong
HOUR = DAY // 24


def replay_stock(
    *,
    companies: int = 200,
    events: int | None = None,
    seed: int = 1,
    input: str | Path | Iterable[str | Path] | None = None,
    wrong_price: bool = False,
) -> Replay:
    """A made-up market from a seed, or real prices from CSV files (a file, a folder, a glob, or several).

    ``events``: without a number, a hundred for each company.  Query (2) has no time frame: the number of its matches
    grows faster than the square of a company's prices.
    ``wrong_price``: one price of the company that is averaged is wrong, and is corrected an hour later.
    """
    notes: list[str] = []
    programs: tuple[Path | str, ...] = tuple(program(f"stock/{name}") for name in PROGRAMS)
    averaged = ACME
    if input is None:
        many = EACH * companies if events is None else events
        _check(companies, many)

        def make() -> Iterator[Event]:
            return market_events(companies, many, seed)
    else:
        sources = [input] if isinstance(input, str | Path) else list(input)
        records = tuple(map(read_prices, price_files(sources)))
        notes = _notes(records)
        averaged = records[0].iri

        def make() -> Iterator[Event]:
            return heapq.merge(*map(price_events, records), key=lambda event: event.end)

        names: tuple[str, ...] = PROGRAMS
        often = _most_in_ten_days(records[0])
        if often > MOST_AVERAGED:
            names = tuple(name for name in PROGRAMS if name not in AVERAGING)
            notes.append(
                f"the average over ten days is left out: query (5) keeps a sum for every two prices within ten days, "
                f"and {records[0].company} has {often} in ten days (at most {MOST_AVERAGED} are averaged)"
            )
        elif averaged != ACME:
            notes.append(f"the average over ten days, ACME's in the paper, is that of {records[0].company}")
        programs = tuple(_about(program(f"stock/{name}"), averaged) for name in names)

    def items() -> Iterator[Item]:
        return with_wrong_price(make(), averaged) if wrong_price else make()

    return Replay(
        name="stock",
        programs=programs,
        background=tuple(data(f"stock/{name}.ttl") for name in BACKGROUND),
        clock=Clock("datetime"),
        shown=SHOWN,
        reads=SHOWN,
        notes=tuple(notes),
        make_events=items,
        tell=lambda matches: summary(collect(matches, averaged)),
        draw=lambda matches, path: _plot(make(), collect(matches, averaged), averaged, path),
        revise=DAY if wrong_price else 0,
    )


def _check(count: int, events: int) -> None:
    known = len(companies())
    if not 1 <= count <= known:
        raise ValueError(f"companies must be from 1 to {known} (data/stock/companies.ttl), found {count}")
    if events < 1:
        raise ValueError(f"events must be 1 or more, found {events}")


def _notes(records: tuple[PriceRecord, ...]) -> list[str]:
    names = [record.company for record in records]
    twice = sorted({name for name in names if names.count(name) > 1})
    notes = [
        f"{record.company}: {how_many(record.missing, 'row')} without a price" for record in records if record.missing
    ]
    if twice:
        notes.append(f"several files are about {', '.join(twice)}: their prices are taken together")
    notes.append("the files hold prices only: no ratings, no acquisitions")
    return notes


def _most_in_ten_days(record: PriceRecord) -> int:
    times = [time for time, _ in record.prices]
    return max(bisect_left(times, time + 10 * DAY) - i for i, time in enumerate(times))


def _about(path: Path | str, company: str) -> Path | str:
    """The program with the company in place of ACME, where it speaks of ACME; under the name its file gives it."""
    text = Path(path).read_text(encoding="utf-8")
    lines = [line if line.startswith("#") else line.replace(":ACME", company) for line in text.splitlines()]
    changed = "\n".join(lines) + "\n"
    return path if changed == text else f"REGISTER QUERY {Path(path).stem} AS\n{changed}"


# --- a wrong price ----------------------------------------------------------------------------------------------


def with_wrong_price(events: Iterable[Event], company: str) -> Iterator[Item]:
    """The events, in which one price of the company is a tenth of what it is until an hour later.

    By then the time of the stream has reached that hour: what the wrong price causes has been reported.
    """
    count = 0
    correction: list[Event] = []
    due = 0
    for event in events:
        if correction and event.end > due:
            yield Punctuation(due)
            yield from correction
            correction = []
        if event.triples[0][:2] == (company, HAS_PRICE):
            count += 1
            if count == WRONG:
                s, p, price = event.triples[0]
                value, datatype, _ = parts(price)
                wrong = event._replace(triples=((s, p, literal(f"{float(value) / 10:.2f}", datatype)),))
                correction, due = [Retraction._make(wrong), event], event.end + HOUR
                event = wrong
        yield event
    if correction:
        yield Punctuation(due)
        yield from correction


# --- what was found ---------------------------------------------------------------------------------------------


def _plot(events: Iterable[Event], findings: Findings, averaged: str, path: Path) -> None:
    from etalis_py.replays.plot_stock import draw  # matplotlib takes a while to import

    wanted = {match.company for match in findings.prices} | {averaged}
    prices: dict[str, list[tuple[int, float]]] = {company: [] for company in wanted}
    for event in events:
        for subject, predicate, value in event.triples:
            if predicate == HAS_PRICE and subject in wanted:
                prices[subject].append((event.end, float(parts(value)[0])))
    draw(prices, findings, averaged, path)
