"""The interpreter of Spark's Python workers.

Spark has them import pyspark from an archive, so each of them compiles all of it anew: a second of work, some hundred
times in the suite.  Without that path they import the same pyspark from where it is installed, compiled once; and the
engine from this repository, also where another one is installed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = os.pathsep.join(map(str, (ROOT, ROOT / "compiler", ROOT / "rules")))


def interpreter(folder: Path) -> str:
    """A command for PYSPARK_PYTHON."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexport PYTHONPATH="{OWN}"\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)
