"""What the folder of a run holds, in lines for people."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etalis_rules.messages import how_many

from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.folder import Folder
from etalis_py.durable.identity import as_shown
from etalis_py.events.clock import render_datetime
from etalis_py.events.errors import without_password
from etalis_py.streams.draft import in_one_line
from etalis_py.streams.partitions import offsets_in


def is_of_a_run(path: Path) -> bool:
    """Whether a folder has checkpoints that a run without Spark wrote."""
    return bool(Folder(path).numbers())


def described(path: Path, now: float | None = None) -> list[str]:
    """How far the run is and what it was made by; the run may be at work."""
    folder = Folder(path)
    last = folder.newest()
    if last is None:
        raise CheckpointError(f"{path} has no checkpoint of a run")
    age = _duration(max(0.0, (time.time() if now is None else now) - last["at"]))
    at = render_datetime(int(last["at"] * 1_000_000))
    counts, driver, identity = last["counts"], last["driver"], last["identity"]
    ended = "; the run has come to its end" if last["ended"] else ""
    lines = [f"checkpoint {last['number']:,} of {at}, {age} ago, {folder.bytes():,} bytes{ended}"]
    lines += [f"by etalis-py {last['version']}, of {one['name']}" for one in identity["program"]]
    if counts:
        lines.append(
            f"{how_many(counts['events'], 'event')}, {how_many(counts['matches'], 'match', 'matches')}, "
            f"{counts['late']:,} late, {how_many(counts['goals'], 'goal')}"
        )
    if driver.get("newest") is not None:
        lines.append(f"newest event: {_time(last, driver['newest'])}")
    if driver.get("updates"):
        lines.append(f"updates of the background: {driver['updates']:,}")
    lines += [
        f"source {_source(as_shown(source))}: {_place(place, again=source['kind'] != 'passing')}"
        for source, place in zip(identity["sources"], last["places"], strict=False)
    ]
    lines += [f"{name}: a drafted mapping, {in_one_line(made)}" for _, name, made in identity.get("drafts", ())]
    lines.append(f"sink {without_password(identity['sink'])}{_token(last['token'])}")
    return lines


def _time(last: Mapping[str, Any], us: int) -> str:
    kinds = {place["clock"][0] for place in last["places"] if place.get("clock")}
    return f"{us / 1e6:.15g} s" if kinds == {"integer"} else render_datetime(us)


def _source(source: Mapping[str, str]) -> str:
    return source["name"] + (f" as {source['stream']}" if source.get("stream") else "")


def _place(place: Mapping[str, Any], *, again: bool) -> str:
    refused = f", {how_many(place['reports'], 'part')} refused" if place["reports"] else ""
    mark = "" if place["mark"] is None or not again else f", read again from {_mark(place['mark'][2])}"
    return f"{how_many(place['items'], 'event')}{refused}{mark}"


def _mark(mark: Any) -> str:
    if isinstance(mark, list) and len(mark) == 2:
        return f"byte {mark[0]:,}, line {mark[1]:,}"
    if (offsets := offsets_in(mark)) is not None:
        return ", ".join(f"offset {offset:,} of partition {number}" for number, offset in offsets)
    return "the beginning" if mark is None else str(mark)


def _token(token: Any) -> str:
    if isinstance(token, dict) and "offset" in token:
        return f": {token['offset'] + len(token['text']):,} bytes"
    if isinstance(token, dict) and "number" in token:
        return f": up to {token['number']:,}"
    return ""


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
