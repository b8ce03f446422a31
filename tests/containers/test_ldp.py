"""LDP 1.0: every MUST and SHOULD for servers with basic containers, checked over HTTP; the table in docs/ is made here.

The checks are in ``ldp_resources`` and ``ldp_containers``.

The requirements are paraphrased; the numbers are those of the recommendation.  To write the table anew after a change:
``UPDATE_DOCS=1 python -m pytest tests/containers/test_ldp.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

import tests.containers.ldp_containers
import tests.containers.ldp_resources  # noqa: F401 - importing both lists their clauses
from tests.containers import ldp_clauses
from tests.containers.ldp_clauses import Clause

TABLE = Path(__file__).parents[2] / "docs" / "ldp-conformance.md"
CLAUSES = sorted(ldp_clauses.CLAUSES, key=lambda c: [int(n) for n in c.number.split(".")])
IDS = [f"{c.number}-{c.level.lower().replace(' ', '-')}" for c in CLAUSES if c.check]


@pytest.mark.parametrize("given", [c for c in CLAUSES if c.check], ids=IDS)
def test_clause(given: Clause, http: httpx.Client) -> None:
    assert given.check is not None
    given.check(http)


def _verdict(given: Clause, client: httpx.Client) -> str:
    if given.check is None:
        return f"does not apply: {given.why_not}"
    try:
        given.check(client)
    except (AssertionError, KeyError, ValueError) as error:
        return f"**not kept**: {type(error).__name__}"
    return "kept"


def test_the_table_is_current(http: httpx.Client) -> None:
    lines = [
        "# Linked Data Platform 1.0: what the server keeps",
        "",
        "Every MUST and SHOULD that LDP 1.0 has for servers with basic containers, each checked over HTTP by",
        "`tests/containers/test_ldp.py`, which also writes this table. What is required of clients is left out.",
        "",
        "| clause | level | requirement | verdict |",
        "|---|---|---|---|",
    ]
    lines += [f"| {c.number} | {c.level} | {c.text} | {_verdict(c, http)} |" for c in CLAUSES]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        TABLE.write_text(text)
    assert TABLE.exists(), "write the table with UPDATE_DOCS=1"
    assert TABLE.read_text() == text, "the table is out of date: run this with UPDATE_DOCS=1 and commit it"
    assert "not kept" not in text
