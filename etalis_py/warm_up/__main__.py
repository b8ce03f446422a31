"""Compiles all kernels and keeps them: ``python -m etalis_py.warm_up``.

Two processes share the work (``programs``).  The second is started before anything large is imported.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Sequence

from etalis_py.numba_cache import finished

OTHERS = "others"


def main(arguments: Sequence[str]) -> None:
    is_other = list(arguments) == [OTHERS]
    done = finished()
    process = None if is_other else subprocess.Popen([sys.executable, "-m", "etalis_py.warm_up", OTHERS])
    from etalis_py.warm_up.programs import others, rules

    gc.freeze()
    gc.set_threshold(100_000)  # a compiler keeps most of what it creates, so frequent collections would be slow
    if process is None:
        others()
        return
    rules()
    if process.wait():
        others()  # fails here as it did there
    done.parent.mkdir(parents=True, exist_ok=True)
    done.touch()
    done.with_suffix(".begun").unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
