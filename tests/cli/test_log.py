"""``--log json`` of a server: how records of ``logging`` become messages."""

from __future__ import annotations

import io
import json
import logging

from etalis_py.cli.log import JsonLog
from etalis_py.cli.server_log import JsonHandler


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
    assert said[2]["level"] == "error"
    assert said[2]["message"].startswith("GET / failed\nTraceback")
    assert said[2]["message"].endswith("ValueError: broken")
