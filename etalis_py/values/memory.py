"""How much memory the machine has for this process, and the share of it that goals may take by default."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

UNKNOWN = 16 << 30
"""What is assumed where the system does not say how much memory there is."""


@cache
def default_bytes() -> int:
    """Half of the memory of the machine or of its container; the rest is for input, answers and other programs."""
    return memory() // 2


def memory(root: Path = Path("/")) -> int:
    """The bytes of memory of the machine, or those of the control group of this process if these are fewer.

    ``root``: where the files of the system are.
    """
    return min((*_machine(), *_control_groups(root)), default=UNKNOWN)


def _machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return


def _control_groups(root: Path) -> Iterator[int]:
    """The limits of the control groups that this process is in, from its own up to the outermost."""
    groups = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, kinds, name = line.split(":", 2)
        if kinds == "":
            yield from _limits(groups, name, "memory.max")
        elif "memory" in kinds.split(","):
            yield from _limits(groups / "memory", name, "memory.limit_in_bytes")


def _limits(folder: Path, name: str, file: str) -> Iterator[int]:
    inside = Path(name.strip("/"))
    for group in (inside, *inside.parents):
        for text in _lines(folder / group / file):
            if text.isdecimal():  # "max" is no limit
                yield int(text)


def _lines(file: Path) -> Iterable[str]:
    try:
        return file.read_text().splitlines()
    except OSError:  # not there, or not for everybody to read
        return ()
