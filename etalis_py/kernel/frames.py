"""Converts matches for other libraries: to Arrow tables, frames of pandas and polars, and plain dicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from etalis_rules.terms import is_iri, parts

from etalis_py.events import Triple
from etalis_py.events.clock import is_date
from etalis_py.extras import named
from etalis_py.kernel.shapes import Shape
from etalis_py.values import BlankValue, Date, DateTime, Duration, IriValue, LangString, Opaque, Time, decode

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Terms = Literal["full", "short"]
Decimals = Literal["exact", "float"]


@dataclass(frozen=True, slots=True)
class Look:
    """The settings by which a table shows its values.

    ``terms``: IRIs in full, or ``short``: ``acme`` for the empty prefix of the query, ``s:acme`` for another one.
    ``decimals``: exact, or as a ``float``.
    """

    terms: Terms = "full"
    decimals: Decimals = "exact"

    def __post_init__(self) -> None:
        for name, kinds in (("terms", Terms), ("decimals", Decimals)):
            known, given = get_args(kinds), getattr(self, name)
            if given not in known:
                raise ValueError(f"{name}= is {' or '.join(map(repr, known))}, not {given!r}")


class Solution(Protocol):
    """What a row of a table is made of: the bindings or triples of a match, and its interval."""

    shape: Shape

    @property
    def start_us(self) -> int | None: ...

    @property
    def end_us(self) -> int | None: ...

    @property
    def start(self) -> int | str | None: ...

    @property
    def end(self) -> int | str | None: ...

    @property
    def bindings(self) -> dict[str, str]: ...

    @property
    def boolean(self) -> bool | None: ...

    @property
    def triples(self) -> tuple[Triple, ...] | None: ...


class Tabular(ABC):
    """A table of matches, also in the forms of other libraries.

    ``query`` names one of several queries; ``terms`` and ``decimals`` are those of ``Look``.
    """

    __slots__ = ()

    @abstractmethod
    def to_arrow(self, *, query: str | None = None, terms: Terms = "full", decimals: Decimals = "exact") -> pa.Table:
        """A table with native types."""

    @abstractmethod
    def __iter__(self) -> Iterator[Solution]: ...

    def to_pandas(
        self, *, query: str | None = None, terms: Terms = "full", decimals: Decimals = "exact"
    ) -> pd.DataFrame:
        """The table as a frame of pandas."""
        try:
            import pandas  # noqa: F401  Arrow needs it
        except ModuleNotFoundError as error:
            raise named(error, "to_pandas") from None
        table = self.to_arrow(query=query, terms=terms, decimals=decimals)
        try:
            return table.to_pandas()
        except ValueError:  # a date before the year 1 or after 9999, which Python's has not
            return table.to_pandas(date_as_object=False)

    def to_polars(
        self, *, query: str | None = None, terms: Terms = "full", decimals: Decimals = "exact"
    ) -> pl.DataFrame:
        """The table as a frame of polars, which has to be installed."""
        return polars_frame(self.to_arrow(query=query, terms=terms, decimals=decimals))

    def to_dicts(self, *, terms: Terms = "full", decimals: Decimals = "exact") -> list[dict[str, Any]]:
        """A dict for each match, of the variables, ``start`` and ``end``: Python values, None where one is unbound.

        Times are datetimes if the stream has dates.  A CONSTRUCT gives a dict for each triple (``s``, ``p``, ``o``).
        """
        look = Look(terms, decimals)
        return [record for match in self for record in _records_of(match, look)]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table of ``to_arrow``, for any library that reads Arrow's C interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _records_of(match: Solution, look: Look) -> Iterator[dict[str, Any]]:
    shape = match.shape
    short: Callable[[str], str] | None = None
    if look.terms == "short":
        from etalis_py.streams.columns.results import shortened  # loads Arrow

        short = shortened(shape.prefixes)

    def value(term: str) -> Any:
        if short is not None and is_iri(term):
            return short(term)
        found = python_value(term) if term else None
        return float(found) if isinstance(found, Decimal) and look.decimals == "float" else found

    times = {"start": _time(match.start_us, match.start), "end": _time(match.end_us, match.end)}
    triples = match.triples
    if triples is not None:
        yield from ({**dict(zip("spo", map(value, triple), strict=True)), **times} for triple in triples)
    elif match.boolean is not None:
        yield {"boolean": match.boolean, **times}
    else:
        from etalis_py.streams.added_columns import bounds  # only tables need it

        bindings = match.bindings
        names = shape.output.variables
        yield {
            **{name: value(bindings.get(name, "")) for name in names},
            **dict(zip(bounds(names), times.values(), strict=True)),
        }


def _time(micros: int | None, shown: int | str | None) -> Any:
    """A time as the stream counts it, or the datetime."""
    if micros is None or shown is None or not is_date(shown):
        return shown
    try:
        return _datetime(micros)
    except OverflowError:  # before the year 1, or after 9999
        return shown


def python_value(term: str) -> Any:
    """A term as the Python object a user expects: dates, times and durations of the standard library where it has them.

    >>> python_value('"2026-01-31"^^<http://www.w3.org/2001/XMLSchema#date>')
    datetime.date(2026, 1, 31)
    >>> python_value('"P1Y"^^<http://www.w3.org/2001/XMLSchema#yearMonthDuration>')
    'P1Y'
    """
    value = decode(term)
    match value:
        case IriValue() | BlankValue():
            return str(value)
        case LangString():
            return value.text
        case Opaque():
            return value.lexical
        case DateTime() | Date() | Time() | Duration():
            try:
                return _moment(value)
            except (OverflowError, ValueError):  # beyond the years 1 to 9999, or too long
                return parts(term)[0]
    return value


def _moment(value: DateTime | Date | Time | Duration) -> datetime | date | time | timedelta:
    """A time or a duration of the standard library; raises ValueError or OverflowError if it has none."""
    match value:
        case DateTime():
            moment = _datetime(value.us)
            return moment.replace(tzinfo=None) if value.offset is None else moment
        case Date(offset=None):
            return _datetime(value.us).date()
        case Time():
            zone = None if value.offset is None else timezone(timedelta(minutes=value.offset))
            return (_datetime(value.us).astimezone(zone) if zone else _datetime(value.us)).time().replace(tzinfo=zone)
        case Duration(0, micros):
            return timedelta(microseconds=micros)
    raise ValueError("a date with a zone, or a duration with months")


def _datetime(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """An Arrow table as a frame of polars."""
    try:
        import polars
    except ImportError:
        raise ImportError("polars is not installed: pip install 'etalis-py[polars]'") from None
    return polars.DataFrame(table)
