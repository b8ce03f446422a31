"""Real prices from CSV files, one company a file, with a header that names a column ``Date`` and a column ``Close``.

The company is the beginning of the file's name (``AAPL-2004….csv.gz`` → ``AAPL``).  Dates are ``2004-08-19`` or
``11/5/2019 9:30`` (month first); a price of a date without a time of day stands at the end of that day's trading, as
those of the made-up market do.  Times are taken as UTC.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from etalis_rules.calendar import SECOND
from etalis_rules.terms import XSD, literal

from etalis_py.events import Event
from etalis_py.events.clock import TimeError, parse_datetime
from etalis_py.events.errors import StreamError
from etalis_py.replays.market import CLOSING, HAS_PRICE, STOCK
from etalis_py.replays.texts import read_text

_AMERICAN = re.compile(r"(\d\d?)/(\d\d?)/(\d{4})(?: (\d\d?):(\d\d)(?::(\d\d))?)?")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?")
_PRICE = re.compile(r"\d+(?:\.\d+)?")
_EMPTY = ("", "null", "NaN", "nan", "NA", "N/A")


@dataclass(frozen=True, slots=True)
class PriceRecord:
    """The prices of one company in order of time; ``missing`` rows had none."""

    company: str
    prices: tuple[tuple[int, str], ...]
    missing: int

    @property
    def iri(self) -> str:
        return f"<{STOCK}{self.company}>"


def price_files(sources: Iterable[str | Path]) -> list[Path]:
    """The files that files, folders and globs name."""
    files: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            here = sorted(p for p in path.iterdir() if p.name.endswith((".csv", ".csv.gz")))
        elif has_magic(str(source)) and not path.exists():
            here = sorted(map(Path, glob(str(source))))
        else:
            here = [path]
        if not here:
            raise StreamError("no CSV file is here", source=str(source), hint="expected names such as AAPL.csv")
        files += here
    return list(dict.fromkeys(files))


def read_prices(path: Path) -> PriceRecord:
    """The prices of one file; a malformed row stops the reading, an empty price is counted."""
    named = re.match(r"[A-Za-z0-9]+", path.name)
    if named is None:
        raise StreamError("the file name does not begin with a company", source=str(path), hint="such as AAPL.csv")
    prices: dict[int, str] = {}
    missing = 0
    for line, when, price in _rows(path):
        if price.strip() in _EMPTY:
            missing += 1
            continue
        time = _time(when.strip())
        if time is None or not _PRICE.fullmatch(price.strip()):
            raise StreamError(
                "this row has no date and price" if time is None else "the price is not a number",
                source=str(path),
                line=line,
                text=f"{when},…,{price}",
                hint="a date is 2004-08-19 or 11/5/2019 9:30 (month first), a price a plain number",
            )
        prices[time] = price.strip()
    if not prices:
        raise StreamError("no price is in this file", source=str(path), hint="expected a header with Date and Close")
    return PriceRecord(named[0], tuple(sorted(prices.items())), missing)


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    columns = [c.strip() for c in reader.fieldnames or ()]
    reader.fieldnames = columns
    date = next((c for c in columns if c.lower() in ("date", "datetime", "time", "timestamp")), None)
    close = next((c for c in columns if c.lower() == "close"), None)
    if date is None or close is None:
        raise StreamError(
            "the header names no column Date or no column Close",
            source=str(path),
            line=1,
            text=",".join(columns),
            hint="rename the columns, or map the file with `etalis run … --stream FILE.csv` and a mapping",
        )
    for row in reader:
        yield reader.line_num, row[date] or "", row[close] or ""


def _time(text: str) -> int | None:
    try:
        if parsed := _AMERICAN.fullmatch(text):
            month, day, year, hour, minute, second = parsed.groups()
            date = parse_datetime(f"{year}-{month:0>2}-{day:0>2}")
            if hour is None:
                return date + CLOSING
            return date + (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * SECOND
        if parsed := _ISO.fullmatch(text):
            date = parse_datetime(parsed[1])
            if parsed[2] is None:
                return date + CLOSING
            clock = parsed[2] if len(parsed[2]) == 8 else parsed[2] + ":00"
            return parse_datetime(f"{parsed[1]}T{clock}Z")
    except TimeError:
        return None
    return None


def price_events(record: PriceRecord) -> Iterator[Event]:
    for time, price in record.prices:
        yield Event(time, time, ((record.iri, HAS_PRICE, literal(price, XSD + "decimal")),))
