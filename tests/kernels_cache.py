"""Compiled loops, kept for the checkouts of this machine: ``python -m tests.kernels_cache`` takes or compiles them.

Numba keeps machine code beside the source, and knows it by what stands in that source.  Here it goes by what stands in
all of them, because a loop may have loops of other files inside.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from platform import machine, node
from tempfile import NamedTemporaryFile

from etalis_compiler.tables import cache_directory

from etalis_py import numba_cache
from etalis_py.warm_up.__main__ import main as compile_all

ROOT = Path(numba_cache.__file__).parent


def main() -> None:
    done, sources = numba_cache.finished(), numba_cache.sources()
    kept = cache_directory() / f"kernels-{key(sources)}.tar"
    if done.exists():
        return
    if "NUMBA_CACHE_DIR" in os.environ or not begin(ROOT, kept):
        compile_all([])
        keep(ROOT, sources, kept)
    done.touch()


def key(sources: Iterable[Path]) -> str:
    """What machine code depends on."""
    versions = [version("numba"), version("numpy"), sys.version, machine(), node()]
    texts = [source.read_bytes() for source in sources]
    return hashlib.blake2b(b"\0".join([*map(str.encode, versions), *texts]), digest_size=12).hexdigest()


def begin(root: Path, kept: Path) -> bool:
    """Whether machine code is kept; the checkout has it now."""
    if not kept.exists():
        return False
    with tarfile.open(kept) as file:
        file.extractall(root, filter="data")
    return True


def keep(root: Path, sources: Iterable[Path], kept: Path) -> None:
    """Keep the machine code of a checkout, if there is any; whoever reads at the same time finds nothing or all."""
    files = list(compiled(sources))
    if not files:
        return
    with NamedTemporaryFile(dir=kept.parent, delete=False) as part, tarfile.open(fileobj=part, mode="w") as file:
        for path in files:
            file.add(path, str(path.relative_to(root)))
    os.replace(part.name, kept)


def compiled(sources: Iterable[Path]) -> Iterator[Path]:
    """The files that Numba has written for these sources."""
    for source in sources:
        yield from sorted((source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ci]"))


if __name__ == "__main__":
    main()
