"""Compiling generated text, such that a traceback through it shows its lines.

Python looks for the lines of a traceback in ``linecache``.  A text is there under a name of its own for as long as
something that was defined by it exists.
"""

from __future__ import annotations

import linecache
import weakref
from itertools import count
from typing import Any

_numbers = count(1)
_KEPT = "__generated__"
"""The name that keeps a text with the functions it defines: they refer to their globals, and these to it."""


class CompiledText:
    """A compiled text; ``kind`` says in its name what was generated."""

    __slots__ = ("__weakref__", "code")

    def __init__(self, text: str, kind: str) -> None:
        name = f"<{kind} {next(_numbers)}>"
        self.code = compile(text, name, "exec")
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        weakref.finalize(self, linecache.cache.pop, name, None).atexit = False

    def run(self, scope: dict[str, Any]) -> None:
        """Define in ``scope`` what the text defines."""
        exec(self.code, scope)
        scope[_KEPT] = self
