"""Drafts a mapping for a table: the column of the time, that of the subject, and a triple for every other column.

    subject = ":{company}"
    time = "{at}"

    [[triple]]
    predicate = ":price"
    object = "{price}"

It is a draft, to be read and changed: no program can know what a column means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from etalis_py.streams.clock import TimeError, is_number, parse_datetime

_TIMES = ("time", "timestamp", "datetime", "date_time", "date", "at", "when", "ts", "created", "created_at", "end")
_SUBJECTS = (
    "id",
    "key",
    "name",
    "symbol",
    "ticker",
    "company",
    "sensor",
    "device",
    "station",
    "user",
    "customer",
    "car",
)
_FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y",
    "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y", "%Y%m%d%H%M%S", "%Y%m%d", "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%z", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y",
)  # fmt: skip
# The unit of a count since the epoch, by its number of digits: years 2001 to 2286.
_EPOCHS = ((9, "s"), (12, "ms"), (15, "us"), (18, "ns"))


def draft(samples: Mapping[str, Sequence[str]], moments: Sequence[str] = ()) -> dict[str, Any]:
    """A mapping for a table with these columns, given some of their cells.

    ``moments`` are the columns with a type of time.

    >>> draft({"at": ["31.01.2026 10:00"], "company": ["acme"], "price": ["10"]})["time_format"]
    '%d.%m.%Y %H:%M'
    """
    cells = {name: [cell for cell in column if cell.strip()] for name, column in samples.items()}
    mapping: dict[str, Any] = {}
    used = _time(cells, moments, mapping)
    left = [name for name in cells if name not in used and "{" not in name and "}" not in name]
    subject = _subject(left, cells)
    if subject is None:
        mapping["subject"] = ":it"
    else:
        mapping["subject"] = f":{{{subject}}}"
    values = [name for name in left if name != subject] or left
    mapping["triple"] = [{"predicate": f":{_local(name)}", "object": f"{{{name}}}"} for name in values]
    mapping["triple"][:1] = [{"subject": mapping.pop("subject"), **mapping["triple"][0]}] if mapping["triple"] else []
    return mapping


def _time(cells: Mapping[str, Sequence[str]], moments: Sequence[str], mapping: dict[str, Any]) -> set[str]:
    """Put the time into the mapping; returns the columns that it uses."""
    names = [*moments, *sorted(cells, key=lambda name: (_rank(name, _TIMES), list(cells).index(name)))]
    for name in names:
        if name in moments:
            mapping["time"] = f"{{{name}}}"
            return {name}
        column = cells[name]
        if not column or (all(map(is_number, column)) and _rank(name, _TIMES) == len(_TIMES)):
            continue
        clock = _partner(name, cells)
        texts = column if clock is None else [f"{day} {hour}" for day, hour in zip(column, cells[clock], strict=False)]
        form = time_format(texts)
        if form is None:
            continue
        mapping["time"] = f"{{{name}}}" if clock is None else f"{{{name}}} {{{clock}}}"
        mapping |= form
        return {name} if clock is None else {name, clock}
    mapping["time"] = "{time}"  # no column has the time: the error message will say so
    return set()


def _partner(name: str, cells: Mapping[str, Sequence[str]]) -> str | None:
    """The column with the time of day that belongs to a column of days."""
    if "date" not in name.lower() and "day" not in name.lower():
        return None
    others = (other for other in cells if other != name and "time" in other.lower() and cells[other])
    return next((other for other in others if all(re.fullmatch(r"\d{1,2}:\d{2}.*", c) for c in cells[other])), None)


def time_format(texts: Sequence[str]) -> dict[str, str] | None:
    """What a mapping must say about times spelled like these; None if they are not times.

    >>> time_format(["2026-01-31T10:00:00Z"]), time_format(["1769853600000"]), time_format(["soon"])
    ({}, {'time_unit': 'ms'}, None)
    """
    if all(map(is_number, texts)):
        digits = {len(text.partition(".")[0].lstrip("+-")) for text in texts}
        unit = next((unit for least, unit in _EPOCHS if digits and digits <= {least + 1, least + 2, least + 3}), "s")
        return {} if unit == "s" else {"time_unit": unit}
    try:
        for text in texts:
            parse_datetime(text.strip())
        return {}
    except TimeError:
        pass
    for form in _FORMATS:
        try:
            for text in texts:
                datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        return {"time_format": form}
    return None


def _rank(name: str, known: Sequence[str]) -> int:
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return min((place for place, word in enumerate(known) if word in words or word == name.lower()), default=len(known))


def _subject(names: Sequence[str], cells: Mapping[str, Sequence[str]]) -> str | None:
    """The column that says what a row is about: by its name, otherwise the first column of words."""
    named = sorted(names, key=lambda name: _rank(name, _SUBJECTS))
    if named and _rank(named[0], _SUBJECTS) < len(_SUBJECTS):
        return named[0]
    return next((name for name in names if cells[name] and not any(map(is_number, cells[name]))), None)


def _local(name: str) -> str:
    """A column's name as the end of an IRI."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name.strip()).strip("_") or "value"


def toml(mapping: Mapping[str, Any]) -> str:
    """A mapping as the text of its file."""
    lines = [f"{key} = {_quoted(value)}" for key, value in mapping.items() if key != "triple"]
    for triple in mapping.get("triple", ()):
        lines += ["", "[[triple]]", *[f"{key} = {_quoted(value)}" for key, value in triple.items()]]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
