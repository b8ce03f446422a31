"""The documentation as pages of the server: the Markdown files that come with the package become HTML."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/-/page.css">
</head>
<body>
<header><a href="/">The streams of this server</a> <a href="index.md">All pages</a></header>
<main class="manual">
{body}
</main>
</body>
</html>
"""
_KINDS = {"md": "text/html", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, Traversable]:
    """The pages and pictures by name: in the package, or of the checkout that it runs from."""
    package = resources.files("etalis_py")
    folder = next((one for one in (package / "docs", package / ".." / "docs") if one.is_dir()), None)
    found = [] if folder is None else folder.iterdir()
    return {one.name: one for one in found if one.name.rpartition(".")[2] in _KINDS}


@cache
def read(name: str) -> tuple[bytes, str]:
    """One of them, as it is sent, and its media type."""
    data, kind = files()[name].read_bytes(), _KINDS[name.rpartition(".")[2]]
    return (_page(data.decode()) if kind == "text/html" else data), kind


def _page(text: str) -> bytes:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title = "Documentation"
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = _text(tokens[i + 1])
            token.attrSet("id", anchor(heading))
            title = heading if token.tag == "h1" else title
        elif token.type in ("fence", "table_open"):
            token.attrSet("tabindex", "0")  # what is too wide scrolls, also by keyboard
    body = markdown.renderer.render(tokens, markdown.options, {})
    return _PAGE.format(title=escape(title), body=body).encode()


def _text(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def anchor(heading: str) -> str:
    """The id of a heading, as the links of the documentation spell it.

    >>> anchor("`EVENT`: what one event says")
    'event-what-one-event-says'
    """
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
