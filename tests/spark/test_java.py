"""The Java with an archive, which the suite starts Spark with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.spark import java


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that prints its arguments."""
    found = tmp_path / "installed" / "bin" / "java"
    found.parent.mkdir(parents=True)
    found.write_text('#!/bin/sh\necho "$@"\n')
    found.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "installed"))
    return found


@pytest.fixture
def home(tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is made for it, by runs that write no archive."""
    before = os.environ["JAVA_HOME"]
    ran = []
    monkeypatch.setattr(java, "_run_a_batch_and_a_stream", lambda: ran.append(_printed(tmp_path / "made")))
    java.make(tmp_path / "made")
    assert "-XX:ArchiveClassesAtExit=" in ran[0]
    monkeypatch.setenv("JAVA_HOME", before)
    return tmp_path / "made"


def test_it_starts_the_java_that_is_installed_with_the_archive(home: Path) -> None:
    java.use(home)
    assert os.environ["JAVA_HOME"] == str(home)
    assert _printed(home).startswith(f"-XX:SharedArchiveFile={home}/classes.jsa ")
    assert _printed(home).endswith("-cp jars Main\n")


def test_it_is_not_used_when_another_java_has_been_installed(home: Path, installed: Path) -> None:
    os.utime(installed, ns=(1, 1))
    java.use(home)
    assert os.environ["JAVA_HOME"] == str(installed.parents[1])


def _printed(home: Path) -> str:
    asked = [str(home / "bin" / "java"), "-cp", "jars", "Main"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
