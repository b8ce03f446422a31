"""The jars of the broker and of Spark's connector; ``python -m tests.kafka.artifacts`` fetches them."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from tests.artifacts import Artifacts

# The connector of this very Spark where it can be had, else the one that is known to work with it.
_SAME = (f"-Dconnector={version('pyspark')}", f"-Dtokens={version('pyspark')}")
KAFKA = Artifacts("Kafka", Path(__file__).parent, ("broker", "connector"), "test-kafka", _SAME)

if __name__ == "__main__":
    # Without them the tests are skipped, which says so.
    if reason := KAFKA.fetch():
        print(reason, file=sys.stderr)
