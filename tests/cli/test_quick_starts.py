"""The quick starts of other systems: done in no more lines than there, and with the results of a plain computation."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli import in_process
from tests.test_docs import ROOT, Block, blocks

PAGE = ROOT / "docs" / "quick-starts.md"
BLOCKS = blocks(PAGE)
LINES = {
    name: (int(there), int(here))
    for name, there, here in re.findall(r"^\| \[(\w+).*\| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
}
PLACES = {"bytewax": "visits.rq", "Pathway": "sum.rq", "Flink": "departments.rq", "RisingWave": "cards.rq"}


def block(name: str) -> Block:
    return next(one for one in BLOCKS if one.argument == name)


def command(query: str) -> str:
    """The first command after a query."""
    console = next(one for one in BLOCKS if one.language == "console" and one.line > block(query).line)
    return console.text.splitlines()[0].removeprefix("$ ")


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(block(name).text)))


def printed(query: str, folder: Path) -> list[dict[str, str]]:
    """The rows that the command of a query prints."""
    for one in BLOCKS:
        if one.argument:
            (folder / one.argument).write_text(one.text)
    done = in_process.run(shlex.split(command(query))[1:], folder)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def tumbled(name: str, time: str, key: str, length: timedelta) -> dict[Any, list[dict[str, str]]]:
    """Rows by window and key; a window holds its beginning and not its end."""
    windows = defaultdict(list)
    for row in table(name):
        at = datetime.fromisoformat(row[time]).replace(tzinfo=None)
        windows[(at - datetime.min) // length, row[key]].append(row)
    return windows


@pytest.mark.parametrize("name", PLACES)
def test_it_takes_no_more_lines_than_there(name: str) -> None:
    there, here = LINES[name]
    query = block(PLACES[name]).text.splitlines()
    assert len([line for line in query if line.strip() and not line.startswith("#")]) + 1 == here
    assert here <= there


def test_a_tumbling_window_of_bytewax(tmp_path: Path) -> None:
    windows = tumbled("visits.csv", "time", "user", timedelta(seconds=10))
    expected = Counter((user, " ".join(row["val"] for row in rows)) for (_, user), rows in windows.items())
    assert Counter((row["user"], row["values"]) for row in printed("visits.rq", tmp_path)) == expected


def test_the_sum_of_pathway(tmp_path: Path) -> None:
    printed("sum.rq", tmp_path)
    values = [int(row["value"]) for name in ("numbers-1.csv", "numbers-2.csv") for row in table(name)]
    sums = re.findall(r'"value":"(\d+)"', (tmp_path / "sums.jsonl").read_text())
    assert [int(one) for one in sums][-1] == sum(value for value in values if value >= 0)


def test_the_counts_of_flink(tmp_path: Path) -> None:
    last = {row["dept_id"]: int(row["emp_count"]) for row in printed("departments.rq", tmp_path)}
    assert last == Counter(row["dept_id"] for row in table("employees.csv"))


def test_the_alert_of_risingwave(tmp_path: Path) -> None:
    windows = tumbled("transactions.csv", "ts", "card_id", timedelta(minutes=1))
    sums = {card: sum(Decimal(row["amount"]) for row in rows) for (_, card), rows in windows.items()}
    expected = [(card, total) for card, total in sums.items() if total > 5000]
    found = [(row["card_id"], Decimal(row["total_amount"])) for row in printed("cards.rq", tmp_path)]
    assert found == expected == [("card_123", 5500)]
