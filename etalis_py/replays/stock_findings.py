"""What the stock replay reads from its matches: for its table and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from etalis_rules.terms import iri_value, parts

from etalis_py.events.clock import render_datetime
from etalis_py.replays.market import STOCK
from etalis_py.replays.replay import ReplayMatch, Row

PRICE_QUERIES = ("drop_and_rise", "drop_with_rating", "rise_without_acquisition")
LISTED = 8
AVERAGING = ("first_sum", "next_sum", "average")
MOST_AVERAGED = 60


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
    """The matches that hold, by what they are about; ``retracted``: those about prices that a correction took back."""

    prices: tuple[PriceMatch, ...]
    averages: tuple[Average, ...]
    downratings: tuple[Downrating, ...]
    retracted: tuple[PriceMatch, ...] = ()


def collect(matches: Iterable[ReplayMatch], averaged: str) -> Findings:
    prices: list[PriceMatch] = []
    averages: list[Average] = []
    downratings: list[Downrating] = []
    retracted: list[PriceMatch] = []
    for match in matches:
        start, end, b = match.start_us, match.end_us, match.bindings
        if start is None or end is None:
            continue
        if match.query in PRICE_QUERIES:
            three = tuple(float(parts(b[name])[0]) for name in ("price1", "price2", "price3") if name in b)
            agency = _name(b["ratingagency"]) if "ratingagency" in b else ""
            about_prices = PriceMatch(match.query, b["company"], start, end, three, agency)
            if match.retracted:
                prices.remove(about_prices)
                retracted.append(about_prices)
            else:
                prices.append(about_prices)
        elif match.query == "average":
            average = Average(_name(averaged), start, end, float(parts(b["average"])[0]))
            (averages.remove if match.retracted else averages.append)(average)
        elif match.query == "financial_downratings":
            company, agency, business = _name(b["company"]), _name(b["ratingagency"]), parts(b["business"])[0]
            downrating = Downrating(company, agency, business, start, end)
            (downratings.remove if match.retracted else downratings.append)(downrating)
    gone = [match for match in retracted if match not in prices]
    return Findings(tuple(prices), tuple(averages), tuple(downratings), tuple(dict.fromkeys(gone)))


def _name(iri: str) -> str:
    return iri_value(iri).removeprefix(STOCK)


def summary(findings: Findings) -> list[Row]:
    """For each query the companies in which prices moved most, and how many there are besides."""
    rows: list[Row] = []
    for query in PRICE_QUERIES:
        grouped: dict[str, list[PriceMatch]] = {}
        for match in findings.prices:
            if match.query == query:
                grouped.setdefault(match.company, []).append(match)
        ranked = sorted(grouped.items(), key=lambda item: (-change(strongest(item[1])), item[0]))
        rows += [_price_row(query, company, matches_here) for company, matches_here in ranked[:LISTED]]
        if rest := [match for _, matches_here in ranked[LISTED:] for match in matches_here]:
            rows.append(_row(query, f"{len(ranked) - LISTED} more", rest, ""))
        if gone := [match for match in findings.retracted if match.query == query]:
            row = _price_row(query, gone[0].company, gone)
            rows.append(row | {"found": f"taken back: {row['found']}"})
    by_business: dict[str, list[Downrating]] = {}
    for downrating in findings.downratings:
        by_business.setdefault(downrating.business, []).append(downrating)
    for business, downratings in sorted(by_business.items()):
        names = sorted({d.company for d in downratings})
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        rows.append(_row("financial_downratings", f"{business}s", downratings, ", ".join(names[:LISTED]) + more))
    if averages := findings.averages:
        values = [average.value for average in averages]
        values_text = f"from {min(values):.2f} to {max(values):.2f}, at last {values[-1]:.2f}"
        rows.append(_row("average", averages[0].company, averages, values_text))
    return rows


def _price_row(query: str, company: str, matches: list[PriceMatch]) -> Row:
    rise = " → ".join(f"{price:.2f}" for price in strongest(matches).prices)
    if agencies := sorted({match.agency for match in matches if match.agency}):
        rise += f" (downrated by {', '.join(agencies)})"
    return _row(query, _name(company), matches, rise)


def _row(query: str, company: str, matches: Sequence[PriceMatch | Average | Downrating], result: str) -> Row:
    first, last = min(match.start for match in matches), max(match.end for match in matches)
    return {
        "query": query,
        "company": company,
        "matches": str(len(matches)),
        "from": render_datetime(first)[:10],
        "to": render_datetime(last)[:10],
        "found": result,
    }


def change(match: PriceMatch) -> float:
    """How much the price moved from the first to the second price, as a ratio above 1."""
    first, second = match.prices[:2]
    return max(first, second) / min(first, second)


def strongest(matches: Iterable[PriceMatch]) -> PriceMatch:
    """The match in which the price moved most from the first to the second price; the shortest of several."""
    return max(matches, key=lambda m: (change(m), m.start - m.end))
