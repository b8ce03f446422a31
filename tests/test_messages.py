"""Words that no message uses, because a reader who sees them for the first time does not know what they ask for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("compiler/etalis_compiler", "rules/etalis_rules", "etalis_py")
PAGES = ("README.md", "docs/*.md")

UNCLEAR = (
    "cannot stand",
    "speaks of",
    "holds rather than happens",
    "to judge by",
    "take it apart",
    "taken apart",
    "cannot take apart",
    "you know better",
    "not ever more",
    "there has been",
    "no fault and no doubt",
    "the next one after the one before",
    "which is not a value",
    "is wanted",
    "gone on with",
    "mend the",
)


def messages(source: str) -> Iterator[str]:
    """The texts of a module that are not docstrings; those of an f-string with a mark for each value."""
    tree = ast.parse(source)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare | pieces:
            yield node.value


_ANY = re.compile(rf"\b(?:{'|'.join(map(re.escape, UNCLEAR))})\b")


def unclear(text: str) -> list[str]:
    plain = " ".join(text.lower().split())
    if not _ANY.search(plain):  # the usual case takes one search, not one for each of them
        return []
    return [words for words in UNCLEAR if re.search(rf"\b{re.escape(words)}\b", plain)]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_message_uses_unclear_words(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {words!r} in {text!r}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in messages(path.read_text())
        for words in unclear(text)
    ]
    assert not found, "\n".join(found)


def test_neither_does_the_page_of_the_server_nor_the_documentation() -> None:
    page = [path for path in (ROOT / "etalis_py/containers/page").rglob("*") if path.suffix in (".js", ".html")]
    pages = [path for pattern in PAGES for path in ROOT.glob(pattern)]
    assert page
    assert pages
    found = [f"{path.relative_to(ROOT)}: {words!r}" for path in (*page, *pages) for words in unclear(path.read_text())]
    assert not found, "\n".join(found)


def test_messages_are_read_in_plain_and_in_formatted_texts_but_not_in_docstrings() -> None:
    source = '"""It speaks of a run."""\nraise ValueError("it speaks of", f"{x} cannot "\n "stand here")\n'
    assert [words for text in messages(source) for words in unclear(text)] == ["speaks of", "cannot stand"]
