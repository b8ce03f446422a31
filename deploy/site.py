"""For ``make docs``: the name of a file behind the language of a block becomes the title of that block."""

from __future__ import annotations

import re
from typing import Any

_NAMED = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _NAMED.sub(r'```\1 title="\2"', markdown)
