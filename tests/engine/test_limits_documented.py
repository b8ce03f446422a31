"""The table of limits in docs/resources.md says what the code does."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from etalis_compiler.parser import MAX_DEPTH, MAX_SIZE
from etalis_compiler.translate import MAX_PARTS
from etalis_compiler.triple_blocks import MAX_ALTERNATIVES

from etalis_py import Limits
from etalis_py.values.bounds import BOUNDS
from etalis_py.values.memory import default_bytes

TEXT = (Path(__file__).parents[2] / "docs" / "resources.md").read_text(encoding="utf-8")


def test_the_table_of_an_engine_lists_every_limit_with_its_default() -> None:
    table = TEXT.partition("| limit of an engine | default |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([0-9,]+) \|", table, re.M)
    documented = {name: int(value.replace(",", "")) for name, value in rows}
    assert "| `bytes` | half of the memory |" in table
    assert documented | {"bytes": default_bytes()} == asdict(Limits())


def test_the_table_lists_every_limit_with_its_value() -> None:
    table = TEXT.partition("| limit | value | beyond it |")[2].partition("\n\n")[0]
    values = [int(value.replace(",", "")) for value in re.findall(r"^\| [^|]+ \| ([0-9,]+) \|", table, re.M)]
    queries = [MAX_SIZE, MAX_DEPTH, MAX_PARTS, MAX_ALTERNATIVES]
    assert values == [*queries, BOUNDS.digits, BOUNDS.spans, BOUNDS.characters]
