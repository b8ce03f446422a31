"""The target of a request as a path, however the client spells it (RFC 9112 §3.2).

A client that takes the server for a proxy names the whole address, which every server must understand; ``OPTIONS *``
asks about the server as a whole, so about its root.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

_ADDRESS = re.compile(r"(?i:https?)://([^/?#]*)(.*)", re.DOTALL)


def as_path(scope: dict[str, Any]) -> dict[str, Any]:
    """The scope of a request whose target is not a path, as if it were one.

    The host of an address counts, whatever the header Host says (§3.2.2).

    >>> scope = {"raw_path": b"http://e.org/a%20b/", "path": "http://e.org/a b/", "headers": [(b"host", b"x")]}
    >>> as_path(scope) == {"raw_path": b"/a%20b/", "path": "/a b/", "headers": [(b"host", b"e.org")]}
    True
    """
    target = scope["raw_path"].decode("latin-1")
    named = _ADDRESS.fullmatch(target)
    if named is None:
        path = "/" if target == "*" and scope["method"] == "OPTIONS" else f"/{target}"
        return scope | {"path": unquote(path), "raw_path": path.encode("latin-1")}
    host, path = named[1], named[2] or "/"
    others = [(name, value) for name, value in scope["headers"] if name != b"host"]
    headers = [(b"host", host.encode("latin-1")), *others]
    return scope | {"path": unquote(path), "raw_path": path.encode("latin-1"), "headers": headers}


class PathTargets:
    """An application that is given every target as a path."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan" and not scope["path"].startswith("/"):
            scope = as_path(scope)
        await self._app(scope, receive, send)
