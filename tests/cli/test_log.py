"""``--log json``: how records of ``logging``, and errors that nobody catches, become messages."""

from __future__ import annotations

import gc
import io
import json
import logging
import sys
import threading
from contextlib import redirect_stderr
from typing import NoReturn

import pytest

from etalis_py.cli.log import JsonLog, LogKind, log_as
from etalis_py.cli.server_log import JsonHandler
from tests.cli.conftest import Folder


def test_a_record_is_one_object_whatever_it_holds() -> None:
    """Also one with a traceback: collectors of logs read line by line."""
    written = io.StringIO()
    logger = logging.Logger("a server")
    logger.addHandler(JsonHandler(JsonLog(written, now=lambda: 1.5)))
    logger.info("serving %s", "http://h/")
    logger.warning('two\nlines, "quoted"')
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("GET / failed")
    said = [json.loads(line) for line in written.getvalue().splitlines()]
    assert said[:2] == [
        {"time": "1970-01-01T00:00:01.5Z", "level": "info", "message": "serving http://h/"},
        {"time": "1970-01-01T00:00:01.5Z", "level": "warning", "message": 'two\nlines, "quoted"'},
    ]
    assert (said[2]["level"], said[2]["message"]) == ("error", "GET / failed")
    assert said[2]["traceback"].startswith("Traceback (most recent call last):\n")
    assert said[2]["traceback"].endswith("\nValueError: broken")


def failing(*_: object) -> NoReturn:
    raise KeyError("a defect")


def test_a_defect_of_the_command_is_one_object(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etalis_py.cli.run.run_once", failing)
    run = folder.etalis("run", "-q", "SELECT ?x { ?s :p ?x }", "-s", "-", "--log", "json", code=1, defect=True)
    said = json.loads(run.stderr)
    assert (said["level"], said["message"]) == ("error", "KeyError: 'a defect'")
    assert said["traceback"].startswith("Traceback (most recent call last):\n")
    assert "in failing" in said["traceback"]


def test_so_is_one_of_a_thread_and_one_that_cannot_be_raised() -> None:
    class Failing:
        __del__ = failing

    written = io.StringIO()
    with redirect_stderr(written), log_as("json"):
        thread = threading.Thread(target=failing)
        thread.start()
        thread.join()
        Failing()
        gc.collect()
    said = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [one["message"].partition(": ")[2] for one in said] == 2 * ["KeyError: 'a defect'"]
    assert all("in failing" in one["traceback"] for one in said)


@pytest.mark.parametrize("kind", ["text", "json"])
def test_what_python_does_with_errors_is_as_before_afterwards(kind: LogKind) -> None:
    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    with log_as(kind):
        assert (sys.excepthook is before[0]) == (kind == "text")
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before
