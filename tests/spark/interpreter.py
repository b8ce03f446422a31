"""The interpreter of Spark's Python workers.

Spark has them import pyspark from an archive, so each of them compiles all of it anew: a second of work, some hundred
times in the suite.  Without that path they import the same pyspark from where it is installed, compiled once.
"""

from __future__ import annotations

import sys
from pathlib import Path


def interpreter(folder: Path) -> str:
    """A command for PYSPARK_PYTHON."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)
