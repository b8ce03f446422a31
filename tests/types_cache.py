"""What mypy knows, kept for the checkouts of this machine: a fresh one need not begin with half a minute of work.

mypy compares what it knows of a file with the file's hash, so it does not matter which checkout it comes from.
Checkouts do not share a folder, because two runs at a time would write into each other's.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

from etalis_compiler.tables import cache_directory

ROOT = Path(__file__).parents[1]
OWN = ROOT / ".mypy_cache"
KEPT = cache_directory() / "mypy.tar"


def begin(own: Path = OWN, kept: Path = KEPT) -> bool:
    """Whether this checkout has had nothing of its own; it gets what is kept, if anything is."""
    if own.exists():
        return False
    if kept.exists():
        with TemporaryDirectory(dir=own.parent) as folder, tarfile.open(kept) as file:
            file.extractall(folder, filter="data")
            os.rename(Path(folder) / "cache", own)
    return True


def keep(own: Path = OWN, kept: Path = KEPT) -> None:
    """Keep what this checkout knows; whoever reads at the same time gets the old or the new file whole."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=kept.parent, delete=False) as part, tarfile.open(fileobj=part, mode="w") as file:
        file.add(own, "cache")
    os.replace(part.name, kept)
