"""Times in a time zone and in loose spellings: in columns as in rows, in every year, also where clocks are changed."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.streams import read_stream
from etalis_py.streams.columns import times as times_in_columns
from etalis_py.streams.columns.times import formatted_times, steps_of
from tests.draws import examples

from .reading import outcome

ZONES = [
    "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Amsterdam", "Europe/Lisbon", "Europe/Moscow",
    "Europe/Istanbul", "Africa/Casablanca", "Africa/Monrovia", "Africa/Cairo", "Asia/Kolkata", "Asia/Kathmandu",
    "Asia/Tehran", "Asia/Jerusalem", "Asia/Tokyo", "Asia/Gaza", "Asia/Manila", "Australia/Sydney",
    "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham", "America/New_York",
    "America/St_Johns", "America/Sao_Paulo", "America/Caracas", "America/Anchorage", "Antarctica/Troll", "Etc/GMT+5",
    "UTC",
]  # fmt: skip
FORM = "%Y-%m-%d %H:%M:%S"


def mapping(zone: str) -> dict[str, str]:
    return {"subject": ":{a}", "predicate": ":p", "object": "1", "time": "{t}", "time_format": FORM, "time_zone": zone}


def changes(zone: ZoneInfo) -> list[datetime]:
    """Days (in UTC) in which the clocks are changed, one in each of a few years."""
    days = []
    for year in (1883, 1916, 1945, 1981, 2024, 2037, 2038, 2040, 2110, 2199):
        offsets = [(datetime(year, 1, 1, tzinfo=UTC) + timedelta(d)).astimezone(zone).utcoffset() for d in range(366)]
        days += [datetime(year, 1, 1) + timedelta(d) for d in range(365) if offsets[d] != offsets[d + 1]][:2]
    return days


def spelled(zone: str, draws: random.Random) -> list[str]:
    """Local times of the years 1800 to 2200, and of the hours around changes: those that occur twice, or never."""
    first, last = datetime(1800, 1, 1), datetime(2200, 12, 31)
    times = [first + timedelta(seconds=draws.randrange(int((last - first).total_seconds()))) for _ in range(150)]
    days = changes(ZoneInfo(zone))
    times += [day + timedelta(minutes=draws.randrange(-900, 2400), seconds=draws.randrange(60)) for day in days * 10]
    return [time.strftime(FORM) for time in times]


@pytest.mark.parametrize("zone", ZONES)
def test_a_local_time_is_the_same_instant_in_columns_and_in_rows(zone: str) -> None:
    data = "a,t\n" + "".join(f"acme,{text}\n" for text in spelled(zone, random.Random(zone)))

    def read(bulk: bool) -> tuple[object, ...]:
        options: Any = {"format": "csv", "mapping": mapping(zone)}
        return outcome(lambda: read_stream(io.BytesIO(data.encode()), **options), bulk=bulk)

    assert read(bulk=True) == read(bulk=False)


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2037-07-01 12:00:00", "2037-07-01 10:00:00"),
        ("2040-07-01 12:00:00", "2040-07-01 10:00:00"),
        ("2199-01-15 12:00:00", "2199-01-15 11:00:00"),
        ("2040-10-28 02:30:00", "2040-10-28 00:30:00"),  # twice: the first
        ("2040-03-25 02:30:00", "2040-03-25 01:30:00"),  # never: counted with the offset before the change
        ("1880-01-01 00:53:28", "1880-01-01 00:00:00"),  # the sun's time in Berlin
    ],
)
def test_summer_time_has_no_last_year(local: str, utc: str) -> None:
    data = f"a,t\nacme,2000-01-01 12:00:00\nacme,{local}\n".encode()
    expected = datetime.strptime(utc, FORM).replace(tzinfo=UTC)
    for bulk in (False, True):
        items, *_ = outcome(
            lambda: read_stream(io.BytesIO(data), format="csv", mapping=mapping("Europe/Berlin")), bulk=bulk
        )
        assert items[1].end == int(expected.timestamp()) * 1_000_000


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@settings(max_examples=examples(1 / 3))
@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime(1700, 1, 1), datetime(2300, 1, 1)),
            st.sampled_from(["T", " ", "  "]),
            st.sampled_from(["%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H", "25:00"]),
            st.sampled_from(["", "Z", " UTC", "+01", "-0330", "+05:45", " +00", "+15", "x"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_times_as_sql_and_logs_write_them(many: bool, drawn: list[tuple[datetime, str, str, str]]) -> None:
    """A space for the T, a comma for the point, no seconds, an offset of hours: the same in columns and in rows."""
    texts = [f"{moment:%Y-%m-%d}{between}{moment.strftime(form)}{zone}" for moment, between, form, zone in drawn]
    times = ["2000-01-01", *texts]
    data = "a;t\n" + "".join(f"acme;{text}\n" for text in times)
    options: Any = {
        "format": "csv", "on_error": "skip",
        "mapping": {"subject": ":{a}", "predicate": ":p", "object": "1", "time": "{t}", "delimiter": ";"},
    }  # fmt: skip

    def read(bulk: bool) -> Any:
        return outcome(lambda: read_stream(io.BytesIO(data.encode()), **options), bulk=bulk)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times_in_columns, "MANY", 1 if many else 1 << 20)
        assert read(bulk=True) == read(bulk=False)
    expected = sorted(moment for one in drawn if (moment := meant(*one)) is not None)
    assert sorted(event.end for event in read(bulk=False)[0][1:]) == expected


def meant(moment: datetime, between: str, form: str, zone: str) -> int | None:
    """The definition, by Python's own reading of ISO dates; None if the text is no time."""
    if between == "  " or form in ("%H", "25:00") or zone in ("+15", "x"):
        return None
    offsets = {"+01": "+01:00", "-0330": "-03:30", "+05:45": "+05:45", " +00": "+00:00"}
    shown = form.replace(",", ".")
    whole = datetime.fromisoformat(f"{moment:%Y-%m-%d}T{moment.strftime(shown)}{offsets.get(zone, '')}")
    whole = whole if whole.tzinfo else whole.replace(tzinfo=UTC)
    return (whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


FORMATS = [
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%y%m%d%H%M%S",
    "%Y%m%d %H%M%S%f",
    "%Y-%m-%d",
    "%d/%m/%y %H:%M %z",
    "am %d.%m.%Y um %H Uhr",
    "%d.%m.%Y  %H",
    "%Y%m%d.%f",
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %Y",
    "%A, %d %B %Y %I:%M %p",
    "%m/%d/%y %I:%M:%S%p",
    "%I%p %d%b%y",
    "%y%j%H%M",
    "%Y-%j %I.%f %z",
    "%B %Y",
    "%Y %p %H:%M",
]
MORE = list("mdbBjHIMSfpaAz")
"""Fields beside that of the year."""


@st.composite
def formats(draw: st.DrawFn) -> str:
    """A year and some other fields in any order, most of them with something between them."""
    fields = draw(st.lists(st.sampled_from(MORE), unique=True, max_size=7))
    fields.insert(draw(st.integers(0, len(fields))), draw(st.sampled_from("Yy")))
    gaps = st.sampled_from([" ", "-", ":", ".", "/", "", "", "  ", "T", " at ", "é", "1", "\t"])
    return "".join(f"%{name}{draw(gaps)}" for name in fields).strip()


def odd_spelling(form: str, draws: random.Random) -> str:
    """A time in this format, or nearly: with fewer digits, beyond any range, or with more in it."""
    year, small = draws.choice([1000, 1900, 1999, 2000, 2024, 2026, 9999, 999]), lambda top: draws.randrange(top)
    moment = datetime(2024, 1, 1) + timedelta(hours=small(366 * 24))
    cases: list[Callable[[str], str]] = [str, str.upper, str.lower]
    fields = {
        "Y": f"{year:04}", "y": f"{year % 100:02}", "m": f"{small(14):02}", "d": f"{small(33):02}",
        "H": f"{small(26):02}", "M": f"{small(62):02}", "S": f"{small(63):02}", "f": f"{small(10**6):06}",
        "I": f"{small(14):02}", "j": f"{small(369):03}", "z": draws.choice(ODD_ZONES),
    } | {name: draws.choice(cases)(moment.strftime(f"%{name}")) for name in "bBaAp"}  # fmt: skip
    text = form
    for name, spelled_field in fields.items():
        short = draws.random() < 0.2
        text = text.replace(f"%{name}", spelled_field.lstrip("0") if short and name in "mdHMSIj" else spelled_field)
    if draws.random() < 0.2:
        place = draws.randrange(len(text) + 1)
        text = text[:place] + draws.choice(ODD_TEXTS) + text[place + draws.randrange(2) :]
    return text


ODD_ZONES = ["Z", "+01:00", "-0130", "+2400", "+01", "+01:00:30", "z", ""]
ODD_TEXTS = ["", " ", "0", "1", "T", "\u0663", "\t", "\u017f", "a", "\x1c", "\u2003"]


def by_strptime(text: str, form: str) -> int:
    """The definition."""
    moment = datetime.strptime(text, form)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def read_by_format(texts: list[str], form: str) -> list[int | None]:
    """The times that the compiled loop reads; None where it leaves a text to ``strptime``."""
    steps = steps_of(form)
    if steps is None:
        return [None] * len(texts)
    micros, sure = formatted_times(pa.array(texts), steps)
    return [time if usual else None for time, usual in zip(micros.tolist(), sure.tolist(), strict=True)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_read_as_strptime_reads_it(form: str) -> None:
    draws = random.Random(form)
    texts = [odd_spelling(form, draws) for _ in range(3000)]
    times = read_by_format(texts, form)
    assert sum(time is not None for time in times) > 300
    for text, time in zip(texts, times, strict=True):
        assert time is None or time == by_strptime(text, form), text


@settings(max_examples=examples(1))
@given(formats(), st.integers(0, 2**32))
def test_any_format_is_read_as_strptime_reads_it(form: str, seed: int) -> None:
    draws = random.Random(seed)
    texts = [odd_spelling(form, draws) for _ in range(50)]
    for text, time in zip(texts, read_by_format(texts, form), strict=True):
        assert time is None or time == by_strptime(text, form), text


@pytest.mark.parametrize("form", FORMATS)
def test_a_time_as_strftime_writes_it_is_left_to_nobody(form: str) -> None:
    """That is the speed: every time is read by the compiled loop, but the last days of leap years by their number."""
    draws = random.Random(form)
    moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=draws.randrange(2**31)) for _ in range(1000)]
    texts = [moment.strftime(form) for moment in moments if not ("%j" in form and f"{moment:%j}" == "366")]
    assert read_by_format(texts, form) == [by_strptime(text, form) for text in texts]


def test_days_are_padded_with_spaces_as_c_writes_them() -> None:
    texts, form = ["Thu Mar  5 07:08:09 2026", "thu mar 15 07:08:09 2026"], "%a %b %d %H:%M:%S %Y"
    assert read_by_format(texts, form) == [by_strptime(text, form) for text in texts]


@pytest.mark.parametrize(
    "form",
    [
        "%H:%M", "%Y-%m-%d %Y", "%d.%m.%Y %%", "%Y-%m-%d %H %I", "%b %B %Y", "%Y %m %j", "%d %j %Y", "%Y %U %w",
        "%d.%m.%Y %Z", "%Y-%m-%d%", "%y %Y", "%Y-%m-%d ", " %Y", "% %Y",
    ],
)  # fmt: skip
def test_other_formats_are_left_to_strptime(form: str) -> None:
    assert steps_of(form) is None


def test_names_in_another_language_are_left_to_strptime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The locale of the program says which names ``strptime`` knows."""
    monkeypatch.setattr(times_in_columns, "NAMES", [*times_in_columns.NAMES[:-1], "sonntag"])
    assert steps_of("%d %b %Y") is None
    assert steps_of("%d.%m.%Y") is not None


@pytest.mark.parametrize("zone", ["", "Europe/Berlin"])
@pytest.mark.parametrize(
    "form",
    [
        "%m/%d/%Y %H:%M",
        "%Y-%m-%d %H:%M:%S.%f",
        "%d.%m.%y %H:%M%z",
        "%d/%b/%Y:%H:%M:%S %z",
        "%B %d, %y %I:%M%p ",
        "%Y%j %H%M",
    ],
)
def test_many_times_of_a_format_are_those_of_rows(form: str, zone: str) -> None:
    rows = []
    for n in range(2000):
        moment = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=37 * n, microseconds=n)
        text = moment.strftime(form)
        rows.append(f"acme,{text.replace('/0', '/') if n % 3 else text}\n")
    options: Any = {"subject": ":{a}", "predicate": ":p", "object": "1", "time": "{t}", "time_format": form}
    options |= {"time_zone": zone} if zone else {}

    def read(bulk: bool) -> tuple[object, ...]:
        data = "a,t\n" + "".join(rows)
        return outcome(lambda: read_stream(io.BytesIO(data.encode()), format="csv", mapping=options), bulk=bulk)

    assert read(bulk=True) == read(bulk=False)
