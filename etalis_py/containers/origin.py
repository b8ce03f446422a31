"""Requests to a container of somebody else: they stay with the server that the user has named, and so does its token.

What a server answers decides where a client goes next: redirects, the link to a feed, the members of a container.  Any
server could so make the client ask hosts that only the client can reach, and give it their answers as a stream.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from etalis_py.events.errors import PASSWORD, place_of_password, without_password, without_tokens
from etalis_py.streams.answer_encoding import unasked_encoding

TOKEN, TOKEN_FILE = "ETALIS_TOKEN", "ETALIS_TOKEN_FILE"
_PORTS = {"http": 80, "https": 443}


class ContainerError(OSError):
    """A container that cannot be read or written: which, what it answered, what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(without_tokens(text))


def checked_address(url: str) -> str:
    if place := place_of_password(url):
        raise ContainerError(f"{without_password(url)}: {PASSWORD}\n  {place}")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ContainerError(
            f"{url!r} is not the address of a container; expected something like http://127.0.0.1:8080/stream/"
        )
    return url


def origin_of(url: str) -> str:
    """The scheme, the host and the port of an address, spelled in one way.

    >>> origin_of("HTTPS://Streams.example.org:443/sensors/")
    'https://streams.example.org'
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ContainerError(f"{url!r} is not an address: the port is a number") from None
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, _PORTS.get(parts.scheme)) else f":{port}")


def bound_client(url: str, token: str | None, timeout: httpx.Timeout | float, *, redirected: bool) -> httpx.Client:
    """A client for the server of one container; it sends the token there, and goes nowhere else.

    What it reads comes in an encoding that it asked for: the bytes of another would be taken for text.

    ``redirected``: it goes where that server redirects it, within the same origin.
    """
    origin = origin_of(checked_address(url))

    def stay(request: httpx.Request) -> None:
        if origin_of(str(request.url)) != origin:
            raise ContainerError(
                f"{url} leads to {request.url} on another server, which is not followed; name that address if you "
                "trust it"
            )

    def check_encoding(response: httpx.Response) -> None:
        given, asked = response.headers.get("content-encoding", ""), response.request.headers["accept-encoding"]
        wrong = unasked_encoding(given, asked)
        if wrong and response.is_success and response.request.method == "GET":
            raise ContainerError(
                f"{url}: {wrong}; a proxy in front of the server may do that: let it send text as it is"
            )

    return httpx.Client(
        timeout=timeout,
        follow_redirects=redirected,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        event_hooks={"request": [stay], "response": [check_encoding]},
    )


def token_for(url: str) -> str | None:
    """The token for a server: from the table of origins in the file that ``ETALIS_TOKEN_FILE`` names.

    ``ETALIS_TOKEN`` does not say which server it is for, so it is only sent to servers on this machine.
    """
    origin, file = origin_of(checked_address(url)), os.environ.get(TOKEN_FILE)
    if file and (token := _table(Path(file)).get(origin)) is not None:
        return token
    return os.environ.get(TOKEN) if _is_here(urlsplit(url).hostname or "") else None


def _table(file: Path) -> dict[str, str]:
    example = 'a line such as "https://streams.example.org" = "TOKEN" for each server'
    try:
        table = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContainerError(f"{file} ({TOKEN_FILE}) cannot be read: {error}; expected {example}") from None
    for origin, token in table.items():
        parts = urlsplit(origin)
        if parts.scheme not in _PORTS or not parts.netloc or parts.path not in ("", "/") or not isinstance(token, str):
            raise ContainerError(f"{file} ({TOKEN_FILE}): {origin!r} is no origin with a token; expected {example}")
    return {origin_of(origin): token for origin, token in table.items()}


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def no_token(url: str) -> str:
    """What to do about a server that asks for a token, or for another one."""
    return (
        f'etalis sends the token that the file {TOKEN_FILE} has for it, in a line "{origin_of(url)}" = "TOKEN"; '
        f"{TOKEN} is for servers on this machine"
    )
