"""Jars that tests need and that no package of Python brings: fetched by Maven into a cache, found there by the tests.

The cache is outside the repository: ``$ETALIS_CACHE``, else ``etalis`` in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


def cache() -> Path:
    given = os.environ.get("ETALIS_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "etalis"


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The jars of ``what``, in parts: each is what ``folder/part.xml`` names.  ``target`` of make fetches them.

    ``preferred``: properties of these files that are tried before the values which the files have.
    """

    what: str
    folder: Path
    parts: Sequence[str]
    target: str
    preferred: Sequence[str] = ()

    def jars(self, part: str) -> list[Path]:
        """The jars of a part; none where they were not fetched."""
        return sorted(self._place(part).glob("*.jar"))

    def missing(self) -> str:
        """Why the tests that need them cannot run; empty where they can."""
        if all(map(self.jars, self.parts)):
            return ""
        return f"the jars of {self.what} are not there: make {self.target} fetches them and runs these tests"

    def fetch(self) -> str:
        """Fetch what is not there; why that cannot be done, or nothing."""
        maven = shutil.which("mvn")
        if maven is None and self.missing():
            return f"Maven fetches the jars of {self.what}, and there is no mvn: install the package maven"
        for part in self.parts:
            if maven is not None and not self.jars(part):
                reason = self._copied(maven, part, self.preferred) and self._copied(maven, part, ())
                if reason:
                    return f"Maven could not fetch the {part}:\n{reason}"
            print(f"{part}: {len(self.jars(part))} jars in {self._place(part)}")
        return ""

    def _place(self, part: str) -> Path:
        """One for each state of the coordinates and each Spark."""
        pom = (self.folder / f"{part}.xml").read_bytes()
        state = hashlib.sha256(pom + version("pyspark").encode()).hexdigest()[:12]
        return cache() / self.folder.name / f"{part}-{state}"

    def _copied(self, maven: str, part: str, properties: Sequence[str]) -> str:
        """Fetch into a new folder, which gets its name when it is complete; what Maven said when it failed."""
        place = self._place(part)
        fresh = place.with_suffix(f".{os.getpid()}")
        arguments = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        command = [maven, "-B", "-q", "-f", str(self.folder / f"{part}.xml"), *arguments, *properties]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            return done.stdout + done.stderr or "no reason"
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
        return ""
