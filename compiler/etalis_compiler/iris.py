"""Relative IRI references against a base, by RFC 3986 §5.2 (``urllib`` treats unknown schemes differently).

>>> resolve("../g?y#s", "http://a/b/c/d;p?q")
'http://a/b/g?y#s'
"""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?s)(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?")


def split(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment; None where one is absent."""
    parts = _PARTS.fullmatch(reference)
    if parts is None:  # the expression matches every string
        raise AssertionError(reference)
    scheme, authority, path, query, fragment = parts.groups()
    return scheme, authority, path or "", query, fragment


def resolve(reference: str, base: str) -> str:
    """The IRI that ``reference`` stands for when ``base`` is the base IRI."""
    scheme, authority, path, query, fragment = split(reference)
    if scheme is not None:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = split(base)
    if authority is not None:
        path = _remove_dots(path)
    else:
        authority = base_authority
        if path == "":
            path = base_path
            query = base_query if query is None else query
        elif path.startswith("/"):
            path = _remove_dots(path)
        else:
            if base_authority is not None and base_path == "":
                path = "/" + path
            else:
                path = base_path[: base_path.rfind("/") + 1] + path
            path = _remove_dots(path)
    resolved = "" if base_scheme is None else base_scheme + ":"
    if authority is not None:
        resolved += "//" + authority
    resolved += path
    if query is not None:
        resolved += "?" + query
    if fragment is not None:
        resolved += "#" + fragment
    return resolved


def _remove_dots(path: str) -> str:
    """RFC 3986 §5.2.4: remove ``.`` and ``..`` segments."""
    kept: list[str] = []
    segments = path.split("/")
    absolute = path.startswith("/")
    last = len(segments) - 1
    for number, segment in enumerate(segments):
        if segment == ".":
            if number == last:
                kept.append("")
        elif segment == "..":
            if len(kept) > (1 if absolute else 0):
                kept.pop()
            if number == last:
                kept.append("")
        else:
            kept.append(segment)
    plain = "/".join(kept)
    return plain if not absolute or plain.startswith("/") else "/" + plain
