"""Reading NDBC's files of DART stations: ``#YY MM DD hh mm ss T HEIGHT``, newest row first, one station a file.

T tells the kind of reading (1: one in 15 minutes, 2: one a minute, 3: one in 15 seconds), HEIGHT is in metres of water,
9999 is missing.  Nothing in a file is fatal: what cannot be used is counted and told in a ``FileReport``.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from glob import glob, has_magic
from itertools import pairwise
from pathlib import Path
from statistics import median

from etalis_rules.calendar import SECOND
from etalis_rules.messages import how_many

from etalis_py.events.errors import StreamError

IMPLAUSIBLE_METRES = 5
"""A level farther than this from the file's median is no sea level: tides and tsunamis are smaller over deep water."""
GAP_SECONDS = 900
SHOWN = 3

_ROW = re.compile(r"(\d{4})\s+(\d\d?)\s+(\d\d?)\s+(\d\d?)\s+(\d\d?)\s+(\d\d?)\s+([123])\s+(\d+(?:\.\d+)?)")
_STATION_FILE = re.compile(r"(\d{5})[^/]*\.txt(?:\.gz)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TideReading:
    """One level: when (microseconds), how high (metres, as the file spells it), and the file's T."""

    time: int
    level: str
    kind: int


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a file held.  ``refused`` gives the first few rows that are no readings, as ``line N: reason``."""

    station: str
    source: str
    readings: int
    missing: int = 0
    bad: int = 0
    twice: int = 0
    gaps: int = 0
    implausible: int = 0
    refused: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """One line for each oddity."""
        texts = []
        if self.missing:
            texts.append(f"{how_many(self.missing, 'reading')} missing")
        if self.bad:
            more = ", …" if self.bad > len(self.refused) else ""
            texts.append(
                f"{how_many(self.bad, 'row is no reading', 'rows are no readings')} ({'; '.join(self.refused)}{more})"
            )
        if self.twice:
            texts.append(f"{how_many(self.twice, 'time')} given twice: the finer sampled reading was taken")
        if self.gaps:
            texts.append(f"gaps of more than {GAP_SECONDS // 60} minutes: {self.gaps}")
        if self.implausible:
            readings = how_many(self.implausible, "reading")
            texts.append(f"{readings} more than {IMPLAUSIBLE_METRES} m from the median: the gauge is broken")
        return [f"station {self.station} ({self.source}): {one}" for one in texts]


@dataclass(frozen=True, slots=True)
class StationRecord:
    """The readings of one station in order of time."""

    station: str
    readings: tuple[TideReading, ...]
    report: FileReport


def station_files(sources: Iterable[str | Path]) -> tuple[list[Path], list[str]]:
    """The station files that files, folders and globs name, and notes on what a folder holds besides."""
    files: list[Path] = []
    notes: list[str] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file())
            chosen = [p for p in inside if _STATION_FILE.fullmatch(p.name)]
            if not chosen:
                raise StreamError(
                    "no file of a station is in this folder", source=str(path), hint="expected names like 21418….txt.gz"
                )
            others = [p.name for p in inside if p not in chosen]
            if others:
                notes.append(f"{path}: not read, because the name is not that of a station: {', '.join(others)}")
            files += chosen
        elif has_magic(str(source)) and not path.exists():
            files_here = sorted(map(Path, glob(str(source))))
            if not files_here:
                raise StreamError("no file fits this pattern", source=str(source), hint="check the path")
            files += files_here
        else:
            files.append(path)
    return list(dict.fromkeys(files)), notes


def read_station(path: Path) -> StationRecord:
    """The record of one file."""
    named = re.match(r"[A-Za-z0-9]+", path.name)
    if named is None:
        raise StreamError("the file name does not begin with a station", source=str(path), hint="such as 21418_raw.txt")
    levels: dict[int, TideReading] = {}
    missing = bad = twice = 0
    refused: list[str] = []
    for number, line in _lines(path):
        row = None if number < 0 else _ROW.fullmatch(line)
        time = None if row is None else _time(*map(int, row.groups()[:6]))
        if row is None or time is None:
            bad += 1
            if len(refused) < SHOWN:
                refused.append(line if number < 0 else f"line {number}: {line[:60]!r}")
            continue
        if Decimal(row[8]) >= 9999:
            missing += 1
            continue
        reading = TideReading(time, row[8], int(row[7]))
        before = levels.get(time)
        twice += before is not None
        if before is None or before.kind < reading.kind:
            levels[time] = reading
    readings = tuple(levels[time] for time in sorted(levels))
    if not readings:
        raise StreamError(
            "no reading is in this file", source=str(path), hint="expected rows like: 2011 03 11 05 49 00 2 5662.463"
        )
    middle = median(Decimal(r.level) for r in readings)
    report = FileReport(
        station=named[0],
        source=path.name,
        readings=len(readings),
        missing=missing,
        bad=bad,
        twice=twice,
        gaps=sum(b.time - a.time > GAP_SECONDS * SECOND for a, b in pairwise(readings)),
        implausible=sum(abs(Decimal(r.level) - middle) > IMPLAUSIBLE_METRES for r in readings),
        refused=tuple(refused),
    )
    return StationRecord(named[0], readings, report)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The rows with their line numbers, without comments; damage to the file itself comes as number -1."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.decode("ascii", "replace").strip()
                if text and not text.startswith("#"):
                    yield number, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield -1, f"the compressed file is damaged: {error}"
    except OSError as error:
        raise StreamError(f"the file cannot be read: {error.strerror}", source=str(path)) from None


def _time(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return (moment - _EPOCH).days * 86_400 * SECOND + (moment - _EPOCH).seconds * SECOND
