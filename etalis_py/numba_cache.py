"""Loops over numbers and bytes, compiled by Numba once per machine and then kept.

All of them together take about twenty seconds to compile.  Nobody has to wait for that unless they ask for columns: a
separate process compiles them (``etalis_py.warm_up``), and until it is done everything runs in rows.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from platform import machine, node
from typing import Any, TypeVar, cast

from etalis_compiler.tables import cache_directory

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_ABANDONED = 600  # seconds after which a compiling process is taken for dead


def kernel(function: Kernel) -> Kernel:
    """The function, compiled on first use; the machine code is kept beside the source or in the user's cache.

    It is given all arrays that it needs, and can neither create nor return one.  So Numba need not count references to
    them; it would do so at every call of another kernel, which takes longer than most of these loops.
    """
    return _compiled(function, {})


def section(function: Kernel) -> Kernel:
    """A stretch of one kernel, called in one place: it is inlined into that kernel and never compiled on its own."""
    return _compiled(function, {"inline": "always"})


def part(function: Kernel) -> Kernel:
    """A small function that is compiled into each kernel that calls it: a call would pass all fields of all arrays."""
    return _compiled(function, {"forceinline": True, "no_cpython_wrapper": True})


def _compiled(function: Kernel, more: dict[str, Any]) -> Kernel:
    import numba  # takes a while to import

    # C calls none of these, and Python calls no ``part``: the wrappers for such calls take a while to compile too
    options = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, **more}
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder is writable
        return cast(Kernel, numba.njit(**options)(function))


@cache
def can_compile() -> bool:
    """Whether Numba is installed; to look it up takes as long as to read a small file."""
    return find_spec("numba") is not None


def ready() -> bool:
    """Whether the kernels are compiled on this machine.  If not, this starts compiling them, once, without waiting."""
    if compiled():
        return True
    _compile_beside(finished())
    return False


def compiled() -> bool:
    """Whether they are, without starting anything."""
    return finished().exists()


@cache
def finished() -> Path:
    """The file that marks all kernels of this version as compiled on this machine."""
    from importlib.metadata import version  # takes a while to import

    here = Path(__file__).parent
    parts = [version("numba"), version("numpy"), sys.version, machine(), node(), str(here)]
    parts += [f"{file.name} {file.stat().st_mtime_ns}" for file in sources()]
    parts.append(os.environ.get("NUMBA_CACHE_DIR", ""))
    name = hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
    return cache_directory() / f"kernels-{name}.compiled"


def sources() -> list[Path]:
    """The files with loops, and this one."""
    here = Path(__file__).parent
    kernels = list(here.glob("executors/columns/kernels/*.py"))
    kernels += [here / f"kernel/{name}.py" for name in ("byte_words", "hashing", "match_id_text")]
    kernels += [
        here / f"streams/columns/{name}.py"
        for name in ("csv_cells", "gather_terms", "grouping", "scanning", "time_kernels", "turtle")
    ]
    return sorted([here / "numba_cache.py", *kernels])


@cache
def _compile_beside(done: Path) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles all kernels, unless one is running."""
    begun = done.with_suffix(".begun")
    try:
        done.parent.mkdir(parents=True, exist_ok=True)
        if begun.exists() and time.time() - begun.stat().st_mtime > _ABANDONED:
            begun.unlink(missing_ok=True)
        with begun.open("x"):
            pass
    except FileExistsError:
        return None
    except OSError:  # nothing can be kept here, so compiling ahead is no use
        return None
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-m", "etalis_py.warm_up"], stdin=nothing, stdout=nothing, stderr=nothing
    )
    if sys.stderr.isatty():
        print(
            "etalis: the loops for large inputs are compiled now, once on this machine (about 20 s); until then this "
            "runs in rows",
            file=sys.stderr,
        )
    return process
