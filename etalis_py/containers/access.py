"""Who may do what: host names, the pages of other sites, and tokens with their rights.

A token has a list of containers that it may write (and read), and one of those that it may only read; a container
stands for everything in it.  Without a token everybody may write, or nobody if the server has tokens; everybody may
read unless the server asks for a token for that, too.
"""

from __future__ import annotations

import hmac
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from etalis_rules.messages import INTO_UTF8
from starlette.datastructures import Headers

from .graphs import Base
from .problems import Problem

SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?", re.ASCII)
_ALL = ("/",)


class AccessError(ValueError):
    """Tokens that cannot be used: what was found and what to do."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token: a hash of its secret, and the containers that it may write or read.

    ``name`` is for the audit; the limits of a client count for the token, or if it is ``shared``, for each address.
    """

    name: str
    hash: bytes
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    shared: bool = False

    def is_secret(self, secret: str) -> bool:
        return hmac.compare_digest(sha256(secret.encode()).digest(), self.hash)

    def may_write(self, path: str) -> bool:
        return path.startswith(self.write)

    def may_read(self, path: str) -> bool:
        return path.startswith(self.write + self.read)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: the address that it came from, and the token it had, if that is known here."""

    address: str
    token: Token | None = None

    @property
    def client(self) -> str:
        """The name under which the limits of a client count."""
        return self.address if self.token is None or self.token.shared else self.token.name


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server.  ``hosts``: the host names served (None: any); ``origins``: whose pages may use it.

    ``closed``: reading needs a token as well.
    """

    tokens: tuple[Token, ...] = ()
    closed: bool = False
    hosts: frozenset[str] | None = None
    base_url: str | None = None
    origins: tuple[str, ...] = ()

    def outer(self, host: str | None, scheme: str) -> str:
        """The base of this server's addresses as the client knows them."""
        named = _HOST.fullmatch(host or "")
        if named is None:
            raise Problem("bad-request", "the Host header is missing or cannot be read")
        if self.hosts is not None and named[1].lower() not in self.hosts:
            # A page of another site must not reach a loopback server through its own host name (DNS rebinding).
            raise Problem(
                "wrong-host",
                f"the host {named[1]!r} is not answered for; known: {', '.join(sorted(self.hosts))}",
            )
        return self.base_url or f"{scheme.replace('ws', 'http')}://{host}/"

    def caller(self, address: str, authorization: str | None) -> Caller:
        scheme, _, given = (authorization or "").partition(" ")
        secret = given.strip()
        if scheme.lower() != "bearer" or not secret:
            return Caller(address)
        return Caller(address, next((token for token in self.tokens if token.is_secret(secret)), None))

    # -- the pages of other sites ---------------------------------------------------------------------------------

    def check_origin(self, origin: str | None, base: Base, method: str) -> None:
        """Pages of other sites may not write (nor open sockets) unless their origin is allowed."""
        if method not in SAFE and origin is not None:
            self._check_allowed(origin, base)

    def check_question(self, headers: Headers, base: Base) -> None:
        """Pages of other sites may not ask questions: any page could make its visitors' browsers ask, by an image.

        A browser says which site a request comes from (Sec-Fetch-Site) if the server is on this machine or speaks TLS,
        and names the page's origin where a script may read the answer.  A browser that says neither must name the page
        (Referer); other programs than browsers need not.
        """
        site, origin, referer = (headers.get(name) for name in ("sec-fetch-site", "origin", "referer"))
        if site in ("same-origin", "none"):  # a page of this server, or an address that the user has typed
            return
        if origin is not None:
            self._check_allowed(origin, base)
        elif site is not None:
            raise Problem("forbidden", "a page of another site asks a question about a program")
        elif referer is not None:
            parts = urlsplit(referer)
            self._check_allowed(f"{parts.scheme}://{parts.netloc}", base)
        elif headers.get("user-agent", "").startswith("Mozilla/"):
            raise Problem("forbidden", "a browser asks a question about a program, but does not say for which page")

    def _check_allowed(self, origin: str, base: Base) -> None:
        if f"{origin}/" != base.outer and not {origin, "*"} & set(self.origins):
            raise Problem("forbidden", f"requests from pages of {origin} are not allowed")

    # -- rights ---------------------------------------------------------------------------------------------------

    def may_write(self, caller: Caller, path: str) -> bool:
        return not self.tokens or (caller.token is not None and caller.token.may_write(path))

    def may_read(self, caller: Caller, path: str) -> bool:
        return not self.closed or (caller.token is not None and caller.token.may_read(path))

    def check_write(self, caller: Caller, *paths: str) -> None:
        """All paths that a request changes are in containers that the caller may write."""
        for path in paths:
            if not self.may_write(caller, path):
                raise _refusal(caller, "takes changes only", f"change {path}")

    def check_read(self, caller: Caller, path: str) -> None:
        if not self.may_read(caller, path):
            raise _refusal(caller, "is read only", f"read {path}")


def _refusal(caller: Caller, what: str, act: str) -> Problem:
    if caller.token is None:
        headers = {"WWW-Authenticate": "Bearer"}
        return Problem("unauthorized", f"this server {what} with its token", headers=headers)
    return Problem("no-right", f"this token may not {act}")


def token_for_all(name: str, secret: str, *, write: bool) -> Token:
    """A token for everything, which many may share."""
    if not secret.strip() or not secret.isascii():
        raise AccessError("the token is empty or not ASCII; give one such as the output of 'openssl rand -hex 16'")
    hashed = sha256(secret.encode()).digest()
    return Token(name, hashed, write=_ALL if write else (), read=() if write else _ALL, shared=True)


def read_tokens(file: Path) -> tuple[Token, ...]:
    """The tokens of a TOML file: tables ``[[token]]`` with ``name``, ``secret`` or ``sha256``, ``write`` and ``read``.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tokens.toml"
    >>> _ = file.write_text('[[token]]\\nname = "s7"\\nsecret = "abc"\\nwrite = ["/s7/"]\\nread = ["/all/"]')
    >>> [(token.name, token.write, token.read) for token in read_tokens(file)]
    [('s7', ('/s7/',), ('/all/',))]
    """
    try:
        tables = tomllib.loads(file.read_text())
    except OSError as error:
        raise AccessError(f"{file}: the tokens cannot be read: {error.strerror}; name a file of them") from None
    except UnicodeDecodeError:
        raise AccessError(f"{file}: the tokens are no text in UTF-8: {INTO_UTF8}") from None
    except tomllib.TOMLDecodeError as error:
        raise AccessError(f"{file}: the tokens cannot be read: this is not TOML: {error}") from None
    rows = tables.get("token")
    if tables.keys() != {"token"} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AccessError(f"{file}: expected one table [[token]] for each token and nothing else")
    tokens = tuple(_token(file, number, row) for number, row in enumerate(rows, 1))
    if len({token.name for token in tokens}) < len(tokens):
        raise AccessError(f"{file}: two tokens have the same name; each needs one of its own")
    return tokens


def _token(file: Path, number: int, row: dict[str, Any]) -> Token:
    where = f"{file}: token {number}"
    if unknown := sorted(row.keys() - {"name", "secret", "sha256", "write", "read"}):
        raise AccessError(f"{where}: unknown key {unknown[0]!r}; there are name, secret, sha256, write and read")
    name, secret, digest = (row.get(key, "") for key in ("name", "secret", "sha256"))
    if not isinstance(name, str) or not name.strip():
        raise AccessError(f'{where}: it needs a name, such as name = "station-7"')
    if not isinstance(secret, str) or not isinstance(digest, str) or bool(secret) == bool(digest):
        raise AccessError(f"{where}: give either its secret, or the SHA-256 hash of it in hexadecimal (sha256)")
    if digest and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise AccessError(f"{where}: sha256 is 64 hexadecimal digits, as 'printf %s SECRET | sha256sum' prints them")
    hashed = bytes.fromhex(digest) if digest else sha256(secret.encode()).digest()
    write, read = (_paths(where, key, row.get(key, [])) for key in ("write", "read"))
    if not write and not read:
        raise AccessError(f'{where}: it has no rights; give it some, such as write = ["/sensors/"]')
    return Token(name, hashed, write, read)


def _paths(where: str, key: str, given: Any) -> tuple[str, ...]:
    paths: Sequence[Any] = given if isinstance(given, list) else [given]
    for path in paths:
        if not (isinstance(path, str) and path.startswith("/") and path.endswith("/")):
            raise AccessError(f"{where}: {key} has the paths of containers, such as /sensors/, found {path!r}")
    return tuple(paths)
