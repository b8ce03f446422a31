"""The pages for those who come from another system: every row of their tables is shown by an example.

An example is a query with a trace and its matches, a session of Python or commands, which ``test_docs.py`` runs.  Its
caption is the text between it and the table, heading or example before it.  Each code span in the first cell of a row
is quoted by a caption, and the keywords in the second cell stand in the examples below these captions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.test_docs import ROOT

PAGES = [*sorted((ROOT / "docs").glob("migrate-*.md")), ROOT / "docs" / "how-to-migrate.md"]
_SPAN = re.compile(r"`([^`]+)`")
_KEYWORD = re.compile(r"\b[A-Z]{2,}\b")
_SHOWS = {"matches", "pycon", "console"}
"""The kinds of blocks that end an example."""


@dataclass(frozen=True)
class Row:
    theirs: tuple[str, ...]
    ours: str


@dataclass(frozen=True)
class Example:
    caption: str
    code: str

    def is_of(self, span: str) -> bool:
        return f"`{span}`" in self.caption or any(span in text for text in self.caption.split("```")[1::2])


def parts(page: Path) -> Iterator[tuple[str, str]]:
    """The lines of a page and its blocks: their kind and their text."""
    kind, block = "", list[str]()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            if kind:
                yield kind, "\n".join(block)
            kind, block = "" if kind else line[3:].split(" ")[0], []
        elif kind:
            block.append(line)
        else:
            yield "line", line


def rows_and_examples(page: Path) -> tuple[list[Row], list[Example]]:
    rows, examples = list[Row](), list[Example]()
    caption, code = "", ""
    for kind, text in parts(page):
        if kind == "line" and text.startswith("|---"):
            rows.pop()  # the heads of the columns
        elif kind == "line" and text.startswith("|"):
            theirs, ours, _ = text.removeprefix("|").replace(r"\|", "\0").split("|")
            rows.append(Row(tuple(span.replace("\0", "|") for span in _SPAN.findall(theirs)), ours))
        if kind in _SHOWS:
            examples.append(Example(caption, code + text))
        if kind in _SHOWS or text.startswith(("|", "#")):
            caption, code = "", ""
        elif kind in ("line", "text"):
            caption += f"{text}\n" if kind == "line" else f"```{text}```\n"
        else:
            code += f"{text}\n"
    return rows, examples


def table_rows() -> Iterator[object]:
    for page in PAGES:
        system = "-".join(page.stem.split("-")[:2])
        examples = [e for each in PAGES if each.stem.startswith(system) for e in rows_and_examples(each)[1]]
        for row in rows_and_examples(page)[0]:
            yield pytest.param(row, examples, id=f"{page.stem}: {', '.join(row.theirs)}")


@pytest.mark.parametrize(("row", "examples"), list(table_rows()))
def test_a_row_is_shown(row: Row, examples: list[Example]) -> None:
    assert row.theirs, "nothing that a caption could quote"
    unshown = [span for span in row.theirs if not any(example.is_of(span) for example in examples)]
    assert not unshown, "no example has a caption that quotes this"
    below = "\n".join(example.code for example in examples if any(map(example.is_of, row.theirs)))
    keywords = {word for span in _SPAN.findall(row.ours) for word in _KEYWORD.findall(span)}
    assert {word for word in keywords if not re.search(rf"\b{word}\b", below)} == set()
