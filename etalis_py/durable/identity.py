"""Whether a program, its sources and its sink are those that a checkpoint was made with."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from etalis_rules.messages import in_characters

from etalis_py.durable.errors import CheckpointError
from etalis_py.events.errors import without_password

Identity = Mapping[str, Any]
_AROUND = 20  # characters that are shown before a difference; twice as many after it
_ANEW = "give the same, or begin anew with an empty folder"


def digest(text: str | bytes) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, digest_size=16).hexdigest()


def file_digest(path: str | Path) -> str:
    """Of the content of a file, or of the name of something else."""
    file = Path(path)
    return digest(file.read_bytes() if file.is_file() else str(path))


def in_storage(identity: Any) -> Any:
    """The identity with names that are not Unicode, as those of files may be, in the spelling that messages have."""
    match identity:
        case str():
            return in_characters(identity)
        case Mapping():
            return {in_storage(name): in_storage(value) for name, value in identity.items()}
        case list() | tuple():
            return [in_storage(value) for value in identity]
        case _:
            return identity


def check(folder: Path, here: Identity, there: Identity) -> None:
    """Refuse to go on if something differs, and say what."""
    _check_program(folder, here["program"], there["program"])
    _check_options(folder, here["options"], there["options"])
    if "reading" in there:  # older checkpoints of ``run`` do not say how rows were read
        _check_options(folder, here.get("reading", {}), there["reading"])
    _check_sources(folder, here["sources"], [as_shown(one) for one in there["sources"]])
    sink = without_password(there["sink"])
    if here["sink"] != sink:
        raise CheckpointError(f"{folder}: matches went to {sink}, and would go to {here['sink']} now: {_ANEW}")


def as_shown(source: Mapping[str, str]) -> dict[str, str]:
    """A source of a checkpoint; older ones have tokens of addresses in them."""
    return {name: without_password(value) for name, value in source.items()}


def _check_options(folder: Path, here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    for name, value in here.items():
        before = there.get(name)
        if before != value:
            digests = name.startswith("the content of") and before and value
            what = "has changed" if digests else f"was {_shown(before)} and is {_shown(value)} now"
            raise CheckpointError(f"{folder}: {name} {what}: {_ANEW}")


def _check_program(folder: Path, here: list[Mapping[str, str]], there: list[Mapping[str, str]]) -> None:
    now, before = [one["digest"] for one in here], [one["digest"] for one in there]
    if now == before:
        return
    changed = [(old, one) for old, one in zip(there, here, strict=False) if one["digest"] != old["digest"]]
    if not changed:
        what = f"there were {len(before)} texts, now there are {len(now)}"
    else:
        old, one = changed[0]
        renamed = f"it was {old['name']}, and is {one['name']} now"
        what = f"{old['name']} has changed" if old["name"] == one["name"] else renamed
        if "text" in old and "text" in one:
            what += _difference(old["text"], one["text"])
    raise CheckpointError(f"{folder} belongs to other queries: {what}; {_ANEW}")


def _difference(before: str, now: str) -> str:
    """Where two texts begin to differ: one that means the same in other words is another text, too."""
    for number, (old, new) in enumerate(zip_longest(before.splitlines(), now.splitlines()), 1):
        if old != new:
            same = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(old or "", new or "", strict=False)))
            return f" in line {number}, from {_part(old, same)} to {_part(new, same)}"
    return " in how its lines end"


def _part(line: str | None, place: int) -> str:
    """A part of a line, around the place that matters."""
    if line is None:
        return "no line"
    start, end = max(0, place - _AROUND), place + 2 * _AROUND
    return repr(("…" if start else "") + line[start:end] + ("…" if len(line) > end else ""))


def _check_sources(folder: Path, here: list[Mapping[str, str]], there: list[Mapping[str, str]]) -> None:
    if len(here) != len(there):
        raise CheckpointError(f"{folder}: the run read {len(there)} sources, now there are {len(here)}: {_ANEW}")
    for now, before in zip(here, there, strict=True):
        if now != before:
            raise CheckpointError(f"{folder}: the run read {_source(before)}, not {_source(now)}: {_ANEW}")


def _source(one: Mapping[str, str]) -> str:
    kinds = {"followed": "and followed", "passing": "as it comes"}
    stream = f" as {one['stream']}" if one.get("stream") else ""
    return f"{one['name']}{stream}" + (f" ({kinds[one['kind']]})" if one["kind"] in kinds else "")


def _shown(value: object) -> str:
    """A value as people write it; numbers are lengths of time in microseconds."""
    if isinstance(value, int) and value > 1:
        return f"{value} µs" if value % 1_000_000 else f"{value // 1_000_000} s"
    return "not given" if value in (None, "", [], 0, False) else str(value)
