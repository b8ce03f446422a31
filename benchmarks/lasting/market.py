"""The events that all sources give, and the query: pairs of prices of a company that differ by more than 97 in 10 s."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

QUERY = """SELECT ?c ?x ?y
WHERE { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT10S FILTER (?y > ?x + 97) }
"""
MAPPING = 'time = "{time}"\n[[triple]]\nsubject = ":{c}"\npredicate = ":price"\nobject = "{price}"\n'
COMPANIES = 10
REST = 11  # seconds of events at the end in which nothing matches, so that all before them is complete


@dataclass(frozen=True, slots=True)
class Quote:
    """One event: the price of a company."""

    number: int
    time: str
    company: str
    price: int

    def fields(self) -> dict[str, str]:
        return {"time": self.time, "c": self.company, "price": str(self.price)}

    def plain(self) -> str:
        return json.dumps({"time": self.time, "c": self.company, "price": self.price})

    def line(self) -> str:
        return json.dumps({"time": self.time, "triples": f":{self.company} :price {self.price} ."})

    def row(self) -> str:
        return f"{self.time},{self.company},{self.price}"


class Market:
    """A quote every ``1/rate`` seconds from ``begin`` on, whatever the moments at which they are asked for."""

    def __init__(self, begin: float, rate: int) -> None:
        self._begin, self._rate = datetime.fromtimestamp(int(begin), UTC), rate
        self.count = 0

    def due(self, now: float) -> Iterator[Quote]:
        """The quotes up to this time that did not come yet."""
        until = int((now - self._begin.timestamp()) * self._rate)
        while self.count < until:
            yield self.quote(self.count)
            self.count += 1

    def rest(self) -> Iterator[Quote]:
        """What ends the stream: the same price again and again."""
        for _ in range(REST * self._rate):
            yield self.quote(self.count, 50)
            self.count += 1

    def quote(self, number: int, price: int | None = None) -> Quote:
        at = self._begin + timedelta(microseconds=number * 1_000_000 // self._rate)
        value = number * number * 7919 % 10007 % 101 if price is None else price
        return Quote(number, at.isoformat().replace("+00:00", "Z"), f"c{number % COMPANIES}", value)

    def number_at(self, time: str | int) -> int:
        """The number of the quote of this time (microseconds, or as text)."""
        begin = self._begin.timestamp()
        passed = time / 1e6 - begin if isinstance(time, int) else datetime.fromisoformat(time).timestamp() - begin
        return round(passed * self._rate)
