"""Loops over numbers and bytes, compiled by Numba: compiled once on a machine, then kept.

All of them together take some twenty seconds to compile.  So nobody waits for them who did not ask for columns: a
process of its own compiles them (``etalis_py.warming``), and until it is done everything runs in rows.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from platform import machine, node
from typing import Any, TypeVar, cast

from etalis_compiler.tables import cache_directory

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_ABANDONED = 600  # seconds after which a process that compiles must be gone


def kernel(function: Kernel) -> Kernel:
    """The function, compiled on first use; the machine code is kept beside the source or in the user's cache.

    It is given all arrays that it needs, and can neither make nor return one.  So Numba need not count references to
    them, which it does at every call of another kernel and which takes longer than most of these loops.
    """
    return _compiled(function, {})


def section(function: Kernel) -> Kernel:
    """A stretch of one kernel, called in one place: it is compiled as lines of that kernel and never for itself."""
    return _compiled(function, {"inline": "always"})


def part(function: Kernel) -> Kernel:
    """A small function that is compiled into each kernel that calls it: a call would pass all fields of all arrays."""
    return _compiled(function, {"forceinline": True, "no_cpython_wrapper": True})


def _compiled(function: Kernel, more: dict[str, Any]) -> Kernel:
    import numba  # takes a while to import

    # C calls none of this, and Python no part: what would pass their arguments on takes a while to compile too
    options = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, **more}
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # there is no folder that can be written
        return cast(Kernel, numba.njit(**options)(function))


def can_compile() -> bool:
    """Is there a Numba?"""
    return find_spec("numba") is not None


def ready() -> bool:
    """Are the kernels compiled on this machine?  Where they are not, this starts it, once, and does not wait for it."""
    done = finished()
    if done.exists():
        return True
    _compile_beside(done)
    return False


@cache
def finished() -> Path:
    """The file that says that all kernels of this version are compiled on this machine."""
    here = Path(__file__).parent
    kernels = list(here.glob("executors/columns/kernels/*.py"))
    kernels += [here / f"kernel/{name}.py" for name in ("composing", "hashing", "words")]
    sources = [here / "compiled.py", *kernels, here / "streams/columns/scanning.py"]
    parts = [version("numba"), version("numpy"), sys.version, machine(), node(), str(here)]
    parts += [f"{file.name} {file.stat().st_mtime_ns}" for file in sorted(sources)]
    parts.append(os.environ.get("NUMBA_CACHE_DIR", ""))
    name = hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
    return cache_directory() / f"kernels-{name}.compiled"


@cache
def _compile_beside(done: Path) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles all kernels, unless one is at it."""
    begun = done.with_suffix(".begun")
    try:
        done.parent.mkdir(parents=True, exist_ok=True)
        if begun.exists() and time.time() - begun.stat().st_mtime > _ABANDONED:
            begun.unlink(missing_ok=True)
        with begun.open("x"):
            pass
    except FileExistsError:
        return None
    except OSError:  # nothing can be kept here, so there is nothing to compile ahead
        return None
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-m", "etalis_py.warming"], stdin=nothing, stdout=nothing, stderr=nothing
    )
    if sys.stderr.isatty():
        print(
            "etalis: the loops for large inputs are compiled now, once on this machine (about 20 s); until then this "
            "runs in rows",
            file=sys.stderr,
        )
    return process
