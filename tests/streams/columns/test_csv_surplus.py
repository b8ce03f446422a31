"""A row of CSV may have more cells than the header, which are left out; that is told, however the file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from etalis_py import run
from etalis_py.streams import read_stream
from etalis_py.streams.columns import delimited

from .reading import outcome

PRICES = {"time": "{at}", "subject": ":{shop}", "predicate": ":price", "object": "{price}"}
TOLD = (
    "prices.csv: rows have more cells than the header, as in line {}, and the last are left out; put a cell that has a "
    "delimiter in it, such as 10,50, in quotes, and give every column a name"
)
READ = {
    "rows": {"compiled": True, "executor": "rows"},
    "columns": {"compiled": True, "executor": "columns"},
    "columns before loops are compiled": {"compiled": False, "executor": "columns"},
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1,a,11\n2,a,10,50\n3,a,12\n4,a,9,9\n", 3),
        ('1,a,"1\n1",x\n2,a,"10,50"\n', 3),
        ("1,a,11,\n2,a,10,,\n", 0),
        ("1,a,11\n\n2,b,7,,5\n", 4),
        ("1,a,\u00e9,7\n", 2),
    ],
)
@pytest.mark.parametrize("how", READ)
def test_cells_beyond_the_header_are_told(
    text: str, line: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "ready", lambda: READ[how]["compiled"])
    monkeypatch.chdir(tmp_path)
    Path("prices.csv").write_text("at,shop,price\n" + text)
    matches = run("SELECT ?x { ?s :price ?x }", "prices.csv", mapping=PRICES, executor=str(READ[how]["executor"]))
    list(matches)
    assert matches.warnings == ((TOLD.format(line),) if line else ())


@pytest.mark.parametrize("bulk", [True, False])
def test_cells_beyond_the_header_are_told_of_a_file_in_several_blocks(bulk: bool, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("at,shop,price\n" + "".join(f"{n},a,{n}{',50' * (n == 900)}\n" for n in range(1000)))
    streams: list[Any] = []

    def opened() -> Any:
        streams.append(read_stream(file, mapping=PRICES))
        return streams[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", 500)
        outcome(opened, bulk=bulk)
    assert ["as in line 902" in text for text in streams[-1].warnings] == [True]
