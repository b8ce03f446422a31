"""The jars of Delta and Iceberg; ``python -m tests.lakes.artifacts`` fetches them."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.artifacts import Artifacts

LAKES = Artifacts("Delta and Iceberg", Path(__file__).parent, ("lakes",), "test-lakes")

if __name__ == "__main__":
    # Without them the tests are skipped, which says so.
    if reason := LAKES.fetch():
        print(reason, file=sys.stderr)
