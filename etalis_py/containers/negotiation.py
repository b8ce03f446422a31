"""The HTTP headers that LDP relies on: Accept, Prefer, Link and entity tags (RFC 9110, 7240, 8288)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import vocabulary as v
from .problems import Problem

_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[\w*!#$%&+.^`|~-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^",;\s]*))?)*)')
_PARAMETER = re.compile(r';\s*([\w*!#$%&+.^`|~-]+)\s*=?\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]*))')
_TAG = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')
_MOST = 8192


def accepted(header: str | None, offered: Iterable[str]) -> str:
    """The offered media type that an Accept header prefers (ties: the server's order); a ``Problem`` if none."""
    types = list(offered)
    if not header or not header.strip():
        return types[0]
    ranges = [_range(part) for part in header[:_MOST].split(",") if part.strip()]
    best, best_q = "", 0.0
    for media_type in types:
        fitting = [(precision, q) for name, q in ranges if (precision := _fit(name, media_type))]
        if fitting and max(fitting)[1] > best_q:
            best, best_q = media_type, max(fitting)[1]
    if not best:
        raise Problem("not-acceptable", f"none of {header[:200]!r} is offered here; offered: {', '.join(types)}")
    return best


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (p.strip().lower() for p in part.split(";"))
    q = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    return name, float(q) if re.fullmatch(r"[01](\.[0-9]{0,3})?", q, re.ASCII) else 0.0


def _fit(name: str, media_type: str) -> int:
    if name == media_type:
        return 3
    if name == media_type.split("/")[0] + "/*":
        return 2
    return 1 if name == "*/*" else 0


@dataclass(frozen=True, slots=True)
class Prefer:
    """What a client wants in the representation of a container (LDP 1.0 §7.2), and the size of a page."""

    containment: bool = True
    membership: bool = True
    page: int | None = None
    applied: str = ""


def prefer(header: str | None) -> Prefer:
    """Read a Prefer header; unknown preferences are ignored, as RFC 7240 requires."""
    if not header:
        return Prefer()
    text = header[:_MOST]
    given = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(";" + text.replace(",", ";"))}
    kind = given.get("return", "")
    include, omit = given.get("include", "").split(), given.get("omit", "").split()
    containment = v.PREFER_CONTAINMENT not in omit
    membership = v.PREFER_MEMBERSHIP not in omit
    if {v.PREFER_MINIMAL, v.PREFER_EMPTY} & set(include):
        containment = v.PREFER_CONTAINMENT in include
        membership = v.PREFER_MEMBERSHIP in include
    size = given.get("max-member-count") or given.get("max-triple-count") or ""
    page = int(size) if size.isascii() and size.isdigit() and 0 < len(size) < 10 and int(size) else None
    used = kind == "representation" and bool(include or omit or page)
    return Prefer(containment, membership, page, "return=representation" if used else "")


def links(headers: Iterable[str]) -> list[tuple[str, str]]:
    """The (relation, target) pairs of Link headers."""
    pairs = []
    for target, parameters in _LINK.findall(", ".join(headers)[:_MOST]):
        for name, quoted, plain in _PARAMETER.findall(parameters):
            if name.lower() == "rel":
                pairs += [(relation, target) for relation in (quoted or plain).split()]
    return pairs


def tags(header: str) -> list[tuple[bool, str]]:
    """The tags of If-Match or If-None-Match: (weak, the text between the quotes); ``*`` is ``[(False, "*")]``."""
    if header.strip() == "*":
        return [(False, "*")]
    every, position = [], 0
    while position < len(header):
        match = _TAG.match(header, position)
        if match is None:
            raise Problem(
                "bad-request", f'expected entity tags such as "m1.1" separated by commas, found {header[:100]!r}'
            )
        every.append((match[1] is not None, match[2]))
        position = match.end()
    return every


def condition(
    if_match: str | None, if_none_match: str | None, *, needed: bool, part: Callable[[str], str] = lambda tag: tag
) -> Callable[[str | None], None]:
    """The test that a change must pass, given the current state tag of the resource (None: there is none).

    A client's tag is the state tag with the representation it came with, such as ``m7.1-ttl``; any representation of
    the current state will do.  ``part`` cuts both tags down to what the change depends on.
    """
    wanted = None if if_match is None else tags(if_match)
    refused = None if if_none_match is None else tags(if_none_match)

    def holds(given: list[tuple[bool, str]], state: str | None, *, strong: bool) -> bool:
        if state is None:
            return False
        return any(t == "*" or (not (weak and strong) and part(t.split("-")[0]) == part(state)) for weak, t in given)

    def check(state: str | None) -> None:
        if wanted is not None and not holds(wanted, state, strong=True):
            raise Problem(
                "stale", f"If-Match is {if_match}; the resource {'is ' + state if state else 'does not exist'}"
            )
        if refused is not None and holds(refused, state, strong=False):
            raise Problem("stale", f"If-None-Match is {if_none_match}; the resource exists as {state}")
        if needed and state is not None and wanted is None:
            raise Problem(
                "need-match", "the resource exists; send its ETag in If-Match so that no other change is lost"
            )

    return check


def unchanged(if_none_match: str | None, tag: str) -> bool:
    """Whether the client has this representation already (weak comparison, RFC 9110 §13.1.2)."""
    return if_none_match is not None and any(t in ("*", tag) for _, t in tags(if_none_match))
