"""The stock replay: queries (1) to (6) of [EP] §4.1 over a made-up market or over real prices.

The queries are in ``programs/stock/*.rq``, the paper's text beside what is run.  The downratings that query (4)
constructs feed query (2) and ``financial_downratings``, which needs the ontology of sectors.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from etalis_rules.terms import iri_value, parts

from etalis_py.events import Event
from etalis_py.replays.market import HAS_PRICE, STOCK, companies, market_events
from etalis_py.replays.prices import PriceRecord, price_events, price_files, read_prices
from etalis_py.replays.replay import Found, Replay, Row
from etalis_py.replays.resources import data, program
from etalis_py.streams.clock import DAY, Clock, render_datetime

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
PRICE_QUERIES = ("drop_and_rise", "drop_with_rating", "rise_without_acquisition")
SHOWN = (*PRICE_QUERIES, "average", "financial_downratings")
BACKGROUND = ("sectors", "companies")
ACME = f"<{STOCK}ACME>"
LISTED = 8
AVERAGING = ("first_sum", "next_sum", "average")
MOST_AVERAGED = 60


def replay_stock(
    *,
    companies: int = 200,
    events: int = 20_000,
    seed: int = 1,
    input: str | Path | Iterable[str | Path] | None = None,
) -> Replay:
    """A made-up market from a seed, or real prices from CSV files (a file, a folder, a glob, or several)."""
    notes: list[str] = []
    programs: tuple[Path | str, ...] = tuple(program(f"stock/{name}") for name in PROGRAMS)
    averaged = ACME
    if input is None:
        _check(companies, events)

        def make() -> Iterator[Event]:
            return market_events(companies, events, seed)
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
    return Replay(
        name="stock",
        programs=programs,
        background=tuple(data(f"stock/{name}.ttl") for name in BACKGROUND),
        clock=Clock("datetime"),
        shown=SHOWN,
        reads=SHOWN,
        notes=tuple(notes),
        make_events=make,
        tell=lambda matches: _summary(collect(matches, averaged)),
        draw=lambda matches, path: _plot(make(), collect(matches, averaged), averaged, path),
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
    notes = [f"{record.company}: {record.missing} rows without a price" for record in records if record.missing]
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


# --- what was found ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PriceMatch:
    """A match of one of the queries about prices: which, of whom, when, and the prices as the query names them."""

    query: str
    company: str
    start: int
    end: int
    prices: tuple[float, ...]
    agency: str = ""


@dataclass(frozen=True, slots=True)
class Average:
    company: str
    start: int
    end: int
    value: float


@dataclass(frozen=True, slots=True)
class Downrating:
    company: str
    agency: str
    business: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Findings:
    """All matches, told apart by what they are about."""

    prices: tuple[PriceMatch, ...]
    averages: tuple[Average, ...]
    downratings: tuple[Downrating, ...]


def collect(matches: Iterable[Found], averaged: str) -> Findings:
    prices: list[PriceMatch] = []
    averages: list[Average] = []
    downratings: list[Downrating] = []
    for match in matches:
        start, end, b = match.start_us, match.end_us, match.bindings
        if start is None or end is None:
            continue
        if match.query in PRICE_QUERIES:
            found = tuple(float(parts(b[name])[0]) for name in ("price1", "price2", "price3") if name in b)
            agency = _name(b["ratingagency"]) if "ratingagency" in b else ""
            prices.append(PriceMatch(match.query, b["company"], start, end, found, agency))
        elif match.query == "average":
            averages.append(Average(_name(averaged), start, end, float(parts(b["average"])[0])))
        elif match.query == "financial_downratings":
            company, agency, business = _name(b["company"]), _name(b["ratingagency"]), parts(b["business"])[0]
            downratings.append(Downrating(company, agency, business, start, end))
    return Findings(tuple(prices), tuple(averages), tuple(downratings))


def _name(iri: str) -> str:
    return iri_value(iri).removeprefix(STOCK)


def _summary(findings: Findings) -> list[Row]:
    """For each query the companies in which prices moved most, and how many there are besides."""
    rows: list[Row] = []
    for query in PRICE_QUERIES:
        grouped: dict[str, list[PriceMatch]] = {}
        for match in findings.prices:
            if match.query == query:
                grouped.setdefault(match.company, []).append(match)
        ranked = sorted(grouped.items(), key=lambda item: (-change(strongest(item[1])), item[0]))
        rows += [_price_row(query, company, found) for company, found in ranked[:LISTED]]
        if rest := [match for _, found in ranked[LISTED:] for match in found]:
            rows.append(_row(query, f"{len(ranked) - LISTED} more", rest, ""))
    told: dict[str, list[Downrating]] = {}
    for downrating in findings.downratings:
        told.setdefault(downrating.business, []).append(downrating)
    for business, downratings in sorted(told.items()):
        names = sorted({d.company for d in downratings})
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        rows.append(_row("financial_downratings", f"{business}s", downratings, ", ".join(names[:LISTED]) + more))
    if averages := findings.averages:
        values = [average.value for average in averages]
        said = f"from {min(values):.2f} to {max(values):.2f}, at last {values[-1]:.2f}"
        rows.append(_row("average", averages[0].company, averages, said))
    return rows


def _price_row(query: str, company: str, found: list[PriceMatch]) -> Row:
    said = " → ".join(f"{price:.2f}" for price in strongest(found).prices)
    if agencies := sorted({match.agency for match in found if match.agency}):
        said += f" (downrated by {', '.join(agencies)})"
    return _row(query, _name(company), found, said)


def _row(query: str, company: str, found: Sequence[PriceMatch | Average | Downrating], said: str) -> Row:
    first, last = min(match.start for match in found), max(match.end for match in found)
    return {
        "query": query,
        "company": company,
        "matches": str(len(found)),
        "from": render_datetime(first)[:10],
        "to": render_datetime(last)[:10],
        "found": said,
    }


def change(match: PriceMatch) -> float:
    """How much the price moved from the first to the second price, as a ratio above 1."""
    first, second = match.prices[:2]
    return max(first, second) / min(first, second)


def strongest(matches: Iterable[PriceMatch]) -> PriceMatch:
    """The match in which the price moved most from the first to the second price; the shortest of several."""
    return max(matches, key=lambda m: (change(m), m.start - m.end))


def _plot(events: Iterable[Event], findings: Findings, averaged: str, path: Path) -> None:
    from etalis_py.replays.plot_stock import draw  # matplotlib takes a while to import

    wanted = {match.company for match in findings.prices} | {averaged}
    prices: dict[str, list[tuple[int, float]]] = {company: [] for company in wanted}
    for event in events:
        for subject, predicate, value in event.triples:
            if predicate == HAS_PRICE and subject in wanted:
                prices[subject].append((event.end, float(parts(value)[0])))
    draw(prices, findings, averaged, path)
