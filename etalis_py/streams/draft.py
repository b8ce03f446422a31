"""Drafts a mapping for a table: the column of the time, what a row is about, and a triple for every other column.

    time = "{at}"

    [[triple]]
    subject = ":{company}"
    predicate = ":price"
    object = "{price}"

A row is about its key, if it has one: a name that many rows share.  Otherwise each row is a node of its own,
``subject = "_:row"``.  It is a draft, to be read and changed: no program can know what a column means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from etalis_rules.messages import closest

from etalis_py.events.clock import is_number
from etalis_py.events.errors import StreamError
from etalis_py.streams.draft_times import FoundTime, find_interval, find_time, is_called_a_time, time_format, words_of
from etalis_py.streams.templates import HOLE

ROWS = 2000
"""The rows that are looked at."""
ROW = "_:row"
"""The subject that is a node of its own in each row."""

_THINGS = (
    "id", "key", "symbol", "ticker", "company", "sensor", "device", "station", "machine", "meter", "asset", "vehicle",
    "truck", "bus", "car", "host", "server", "card", "account", "user", "customer", "client", "patient", "member",
    "driver", "player", "team", "person", "employee", "phone", "session", "product", "item", "sku", "article",
    "order", "hostname", "username", "uuid", "ticket", "door", "gate", "pump", "valve", "robot", "parcel", "shipment",
    "flight", "train",
)  # fmt: skip
_PLACES = ("name", "store", "shop", "site", "location", "room", "city", "region", "country")
_HEADS = frozenset((*_THINGS, *_PLACES, "no", "nr", "number", "num", "code"))
_FALSE_NAMES = frozenset(("first", "last", "given", "family", "middle", "full", "file", "field"))
_IDENTIFIER = re.compile(r"(?=.*[A-Za-z])(?=.*[0-9])[A-Za-z0-9_.:/-]+")
_NO_PART = re.compile(
    "[^0-9A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u2c00-\u2fef\u3001-\ud7ff]+"
)
_WITH_EXPONENT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+[Ee][+-]?|[Ee][+-])[0-9]{1,3}")
"""A number as floats are spelled; ``1e5`` may be an identifier."""
_SHOWN = 3  # columns of the example query


@dataclass(frozen=True, slots=True)
class Samples:
    """Cells of each column, the columns that have a type of time, and the delimiter of CSV if it is unusual.

    ``decimal``: a comma, if numbers have one for the decimal point.  ``remarks``: what is odd about the rows, in
    sentences; ``refused``: what no mapping can read, in sentences as well, which the reader refuses.
    ``lists``: keys that are lists, of which no cell is made.
    """

    cells: Mapping[str, list[str]]
    moments: list[str] = field(default_factory=list)
    delimiter: str = ""
    decimal: str = ""
    remarks: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    def dialect(self) -> dict[str, str]:
        """What a mapping says about how the cells are written."""
        said = {"delimiter": self.delimiter, "decimal": self.decimal}
        return {key: value for key, value in said.items() if value}


def draft(
    samples: Mapping[str, Sequence[str]], moments: Sequence[str] = (), *, time: str = "", subject: str | None = ""
) -> dict[str, Any]:
    """A mapping for a table with these columns, given some of their cells, row by row ("" where one is empty).

    ``moments`` are the columns with a type of time.  ``time`` and ``subject`` are columns, if they are known; a subject
    of None, or ``_:row``, is a node of its own for each row.  A table without a time has none in its draft either: its
    rows get the time of their arrival.

    >>> draft({"at": ["31.01.2026 10:00"], "company": ["acme"], "price": ["10"]})["time_format"]
    '%d.%m.%Y %H:%M'
    """
    samples = _stripped(samples)
    cells = {name: [cell for cell in column if cell] for name, column in samples.items()}
    usable = _usable(cells)
    if time:
        found: FoundTime | None = _given_time(time, cells, moments)
    else:
        intervals = find_interval({name: samples[name] for name in usable})
        found = intervals or find_time({name: cells[name] for name in usable}, moments)
    used = frozenset[str]() if found is None else found.columns
    left = [name for name in usable if name not in used] or usable
    instants = None if found is None else _instants(found.mapping, samples)
    if subject == "":
        subject = _subject([name for name in left if cells[name]], samples, instants)
    elif subject is None or subject.startswith("_:"):
        subject = None
    else:
        _check_column("subject", subject, cells)
    return {**({} if found is None else found.mapping), "triple": triples(left, subject)}


def _usable(names: Iterable[str]) -> list[str]:
    """The columns that a mapping can name."""
    usable = [name for name in names if name.strip() and "{" not in name and "}" not in name]
    if not usable:
        raise StreamError("no column has a name without { and }", hint="name the columns in the first line")
    return usable


def draft_of_things(samples: Mapping[str, Sequence[str]], subject: str | None = "") -> dict[str, Any]:
    """A mapping for a table without times, whose rows describe a thing each; their key is a property as well.

    >>> [one["predicate"] for one in draft_of_things({"sku": ["p1", "p2"], "limit": ["5", "5"]})["triple"]]
    [':sku', ':limit']
    """
    samples = _stripped(samples)
    usable = _usable(samples)
    if subject == "":
        keys = [name for name in usable if _is_key(samples[name])]
        named = sorted((name for name in keys if _named(name, _THINGS)), key=_rank)
        subject = next(iter((*named, *(name for name in keys if _is_name(samples[name])))), None)
    elif subject is not None:
        _check_column("subject", subject, samples)
    made = triples(usable, None)
    return {"triple": [{**made[0], "subject": ROW if subject is None else f":{{{subject}}}"}, *made[1:]]}


def _stripped(samples: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Without the blanks that line columns up, and without exponents: `` 8.04`` and ``1.7672256E12`` are numbers."""
    return {name: [_plain(cell.strip()) for cell in column] for name, column in samples.items()}


def _plain(cell: str) -> str:
    return format(Decimal(cell), "f") if _WITH_EXPONENT.fullmatch(cell) else cell


def _is_key(column: Sequence[str]) -> bool:
    return bool(column) and all(cell.strip() for cell in column) and len(set(column)) == len(column)


def _given_time(name: str, cells: Mapping[str, Sequence[str]], moments: Sequence[str]) -> FoundTime:
    """The time in a column that was named: how it is spelled is still to be found out."""
    _check_column("time", name, cells)
    form = {} if name in moments else time_format(cells[name], name) or {}
    return FoundTime({"time": f"{{{name}}}", **form}, frozenset((name,)))


def _check_column(key: str, name: str, columns: Iterable[str]) -> None:
    known = [*columns]
    if name not in known:
        near = closest(name, known)
        raise StreamError(
            f"there is no column {name!r} for the {key}",
            hint=f"did you mean {near!r}?" if near else f"the columns are {', '.join(known)}",
        )


def triples(columns: Sequence[str], subject: str | None) -> list[dict[str, str]]:
    """A triple for each column but that of the subject; without one, each row is a node of its own."""
    predicates = local_names(columns)
    values = [name for name in columns if name != subject] or list(columns)
    made = [{"predicate": f":{predicates[name]}", "object": f"{{{name}}}"} for name in values]
    made[:1] = [{"subject": ROW if subject is None else f":{{{subject}}}", **first} for first in made[:1]]
    return made


# --- what a row is about ---


def _subject(
    names: Sequence[str], samples: Mapping[str, Sequence[str]], instants: Sequence[tuple[str, ...]] | None
) -> str | None:
    """The column that says what a row is about; None if each row is a thing of its own.

    In order: a column whose name says that it names things, a column that tells the rows of one time apart (each city
    has one row a day), a name or place that has one row at a time, and a column of identifiers that repeat.
    """
    if instants is None:  # nothing happens to the things of such a table: each row describes one
        unique = (name for name in names if _is_name(samples[name]) and _is_unique(samples[name]))
        return next((name for name in unique if not is_called_a_time(name)), None)
    if any("[]" in name for name in names):
        return None  # the elements of a list share the keys around it
    things = sorted((n for n in names if _named(n, _THINGS) and not _is_measured(samples[n])), key=_rank)
    repeated = [name for name in things if _repeats(samples[name])]
    if repeated:
        return repeated[0]
    for name in names:
        if _is_name(samples[name]) and _tells_apart(samples[name], instants):
            return name
    if things:
        return things[0]
    places = [n for n in names if _named(n, _PLACES) and _is_name(samples[n]) and _is_once(samples[n], instants)]
    codes = [name for name in names if _repeats(samples[name]) and all(map(_IDENTIFIER.fullmatch, samples[name]))]
    return next(iter((*places, *codes)), None)


def _named(name: str, things: Sequence[str]) -> bool:
    """Whether a name names such things: ``sensor``, ``sensor_id``, not ``sensor_type``, and not ``first_name``."""
    words = words_of(name)
    if not words or words[-1] not in _HEADS or (words[-1] == "name" and _FALSE_NAMES & set(words)):
        return False
    return any(word in things for word in words)


def _rank(name: str) -> int:
    return min(_THINGS.index(word) for word in words_of(name) if word in _THINGS)


def _is_measured(column: Sequence[str]) -> bool:
    """Whether a column has numbers that no thing is called by."""
    return any(is_number(cell) and not cell.strip().isdigit() for cell in column)


def _is_name(column: Sequence[str]) -> bool:
    """Whether all cells of a column are there, and none is a number or a truth value."""
    return not any(not cell.strip() or is_number(cell) or cell.lower() in ("true", "false") for cell in column)


def _is_unique(column: Sequence[str]) -> bool:
    return 1 < len(column) == len(set(column))


def _repeats(column: Sequence[str]) -> bool:
    there = [cell for cell in column if cell.strip()]
    return len(set(there)) < len(there)


def _tells_apart(column: Sequence[str], instants: Sequence[tuple[str, ...]]) -> bool:
    """Whether several rows share most times, and each of them then has another of a few names."""
    rows = len(column)
    few = 1 < len(set(column)) <= rows / 2
    return few and len(set(instants)) <= rows * 2 / 3 and _is_once(column, instants)


def _is_once(column: Sequence[str], instants: Sequence[tuple[str, ...]]) -> bool:
    """Whether each name has one row at a time."""
    return len(set(zip(column, instants, strict=False))) == len(column)


# --- how it is written ---


def local_names(columns: Sequence[str]) -> dict[str, str]:
    """The names of columns as ends of IRIs and names of variables, each a different one."""
    names: dict[str, str] = {}
    for column in columns:
        name = whole = _NO_PART.sub("_", column.strip()).strip("_") or "value"
        number = 1
        while name in names.values():
            number += 1
            name = f"{whole}_{number}"
        names[column] = name
    return names


def toml(mapping: Mapping[str, Any]) -> str:
    """A mapping as the text of its file."""
    lines = [f"{key} = {_quoted(value)}" for key, value in mapping.items() if key != "triple"]
    for triple in mapping.get("triple", ()):
        lines += ["", "[[triple]]", *[f"{key} = {_quoted(value)}" for key, value in triple.items()]]
    return "\n".join(lines).lstrip("\n") + "\n"


def _quoted(text: str | bool | list[str]) -> str:
    if isinstance(text, bool):
        return "true" if text else "false"
    if isinstance(text, list):
        return f"[{', '.join(map(_quoted, text))}]"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


def in_one_line(mapping: Mapping[str, Any]) -> str:
    """What a draft takes for the time and for the subject."""
    times = _times(mapping)
    time = f"time {' to '.join(times)}" if times else "no column has a time, so rows have that of their arrival"
    form = next((f" ({key} {mapping[key]})" for key in ("time_format", "time_unit") if key in mapping), "")
    return f"{time}{form}, {subject_in_words(mapping)}"


def _times(mapping: Mapping[str, Any]) -> list[str]:
    """The templates of the time: none, one, or those of a start and an end."""
    time = mapping.get("time", [])
    return [time] if isinstance(time, str) else list(time)


def subject_in_words(mapping: Mapping[str, Any]) -> str:
    """What a draft takes for the subject."""
    subject = mapping["triple"][0]["subject"]
    return f"subject {'a node of its own for each row' if subject == ROW else subject}"


def _instants(mapping: Mapping[str, Any], samples: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """The cells of the time in each row; without a time, no two are alike."""
    columns = [samples[name] for name in HOLE.findall(" ".join(_times(mapping)))]
    rows = len(next(iter(samples.values()), ()))
    return list(zip(*columns, strict=False)) if columns else [(str(row),) for row in range(rows)]


def example_query(mapping: Mapping[str, Any], samples: Mapping[str, Sequence[str]]) -> str:
    """A query over columns of a draft that finds something: those that have a value in most rows."""
    made = mapping["triple"]
    columns = {one["object"][1:-1]: one["predicate"] for one in made}
    fullest = max(sum(bool(cell.strip()) for cell in samples[name]) for name in columns)
    some = [n for n in columns if sum(bool(c.strip()) for c in samples[n]) == fullest][:_SHOWN]
    subject = made[0]["subject"]
    key = subject[2:].strip("{}")
    names = local_names([f"{key} of row" if key in some else key, *some])
    about, *values = names.values()
    pattern = f"?{about} " + " ; ".join(f"{columns[name]} ?{names[name]}" for name in some)
    shown = " ".join(f"?{name}" for name in (values if subject == ROW else [about, *values]))
    if subject == ROW or len(some) == 1:
        return f"SELECT {shown} {{ {pattern} }}"
    return f"SELECT {shown} {{ EVENT {{ {pattern} }} }}"  # of one row
