"""References to IRIs (RFC 3986 §5.2), for relative ones given to the IRI function."""

from __future__ import annotations

import re

from etalis_py.values.errors import SparqlError

_SPLIT = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def _without_dots(path: str) -> str:
    """The path without "." and ".." segments (§5.2.4)."""
    done: list[str] = []
    segments = path.split("/")
    for segment in segments[:-1] if segments[-1] in (".", "..") else segments:
        if segment == "..":
            if len(done) > 1 or (done and done[0]):
                done.pop()
        elif segment != ".":
            done.append(segment)
    if segments[-1] == ".." and (len(done) > 1 or (done and done[0])):
        done.pop()
    if segments[-1] in (".", ".."):
        done.append("")
    return "/".join(done) if path[:1] != "/" or done[:1] == [""] else "/" + "/".join(done)


def resolve(reference: str, base: str) -> str:
    """The IRI that a reference stands for under a base.

    >>> resolve("../g?x", "http://a/b/c/d;p?q"), resolve("urn:x", "")
    ('http://a/b/g?x', 'urn:x')
    """
    unfit = _FORBIDDEN.search(reference)
    if unfit is not None:
        raise SparqlError(f"{reference!r} is not an IRI: it holds {unfit[0]!r}; encode it with ENCODE_FOR_URI")
    scheme, authority, path, query, fragment = _SPLIT.fullmatch(reference).groups()  # type: ignore[union-attr]
    if scheme is not None:
        return reference
    if not base:
        raise SparqlError(f"the relative IRI {reference!r} has no base; begin the query with BASE <…>")
    scheme, base_authority, base_path, base_query, _ = _SPLIT.fullmatch(base).groups()  # type: ignore[union-attr]
    if authority is not None:
        path = _without_dots(path)
    else:
        authority = base_authority
        if not path:
            path, query = base_path, base_query if query is None else query
        elif path.startswith("/"):
            path = _without_dots(path)
        elif base_authority is not None and not base_path:
            path = _without_dots("/" + path)
        else:
            path = _without_dots(base_path[: base_path.rfind("/") + 1] + path)
    return "".join(
        (
            f"{scheme}:" if scheme is not None else "",
            f"//{authority}" if authority is not None else "",
            path,
            f"?{query}" if query is not None else "",
            f"#{fragment}" if fragment is not None else "",
        )
    )
