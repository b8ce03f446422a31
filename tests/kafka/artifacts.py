"""The jars of the broker and of Spark's connector: fetched by Maven into a cache, found there by the tests.

``python -m tests.kafka.artifacts`` fetches them (``make test-kafka`` does so).  The cache is outside the repository:
``$ETALIS_CACHE``, else ``etalis`` in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("broker", "connector")


def cache() -> Path:
    given = os.environ.get("ETALIS_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "etalis"


def _folder(part: str) -> Path:
    """One for each state of the coordinates and each Spark."""
    pom = (HERE / f"{part}.xml").read_bytes()
    return cache() / "kafka" / f"{part}-{hashlib.sha256(pom + version('pyspark').encode()).hexdigest()[:12]}"


def jars(part: str) -> list[Path]:
    """The jars of a part; none where they were not fetched."""
    return sorted(_folder(part).glob("*.jar"))


def missing() -> str:
    """Why the tests with Kafka cannot run; empty where they can."""
    if all(map(jars, PARTS)):
        return ""
    return "the jars of Kafka are not there: make test-kafka fetches them and runs these tests"


def fetch() -> str:
    """Fetch what is not there; why that cannot be done, or nothing."""
    maven = shutil.which("mvn")
    if maven is None and missing():
        return "Maven fetches the jars of Kafka, and there is no mvn: install the package maven"
    for part in PARTS:
        if maven is not None and not jars(part):
            same = [f"-Dconnector={version('pyspark')}", f"-Dtokens={version('pyspark')}"]
            # The connector of this very Spark where it can be had, else the one that is known to work with it.
            said = _copied(maven, part, same) and _copied(maven, part, [])
            if said:
                return f"Maven could not fetch the {part}:\n{said}"
        print(f"{part}: {len(jars(part))} jars in {_folder(part)}")
    return ""


def _copied(maven: str, part: str, more: list[str]) -> str:
    """Fetch into a new folder, which gets its name when it is complete; what Maven said when it failed."""
    folder = _folder(part)
    fresh = folder.with_suffix(f".{os.getpid()}")
    arguments = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}", *more]
    done = subprocess.run(
        [maven, "-B", "-q", "-f", str(HERE / f"{part}.xml"), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        return done.stdout + done.stderr or "no reason"
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return ""


if __name__ == "__main__":
    # Without them the tests are skipped, which says so.
    if reason := fetch():
        print(reason, file=sys.stderr)
