"""The options of ``serve``: one frozen value, and the same names as keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from .limits import Limits


class ServerOptions(TypedDict, total=False):
    """The keywords of ``serve``; see ``Options``."""

    host: str
    port: int
    store: Path | str | None
    token: str | None
    tokens: Path | str | None
    read_token: str | None
    reading_needs_token: bool
    tls_cert: Path | str | None
    tls_key: Path | str | None
    audit: Path | str | None
    base_url: str | None
    allow_origins: Sequence[str]
    limits: Limits | None
    runner_factory: str | None
    runner_options: Mapping[str, object]
    idle: float
    ready: Callable[[str], None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a server.

    ``store`` is a file, or None for memory only.  ``port`` 0 takes any free one; ``ready`` is called with the address.
    ``token`` allows every change; ``tokens`` is a file of tokens with rights for some containers (see
    ``access.read_tokens``).  One of the two must be given if ``host`` is not loopback, and every change then needs a
    token.  With ``reading_needs_token`` reading does, too; ``read_token`` allows it everywhere.  ``tls_cert`` and
    ``tls_key`` are PEM files.  ``audit`` is the file that gets a line for each change.  ``base_url`` is the public
    address behind a proxy, ``allow_origins`` are the web sites whose pages may use the server.

    ``runner_factory`` makes programs runnable: ``module:function``, which is called with ``runner_options`` (plain
    data) in a separate process and returns a ``RunnerFactory``.  ``idle`` is the number of seconds without an event
    after which a program's open instant is closed.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    store: Path | str | None = "streams.db"
    token: str | None = None
    tokens: Path | str | None = None
    read_token: str | None = None
    reading_needs_token: bool = False
    tls_cert: Path | str | None = None
    tls_key: Path | str | None = None
    audit: Path | str | None = None
    base_url: str | None = None
    allow_origins: Sequence[str] = ()
    limits: Limits | None = None
    runner_factory: str | None = None
    runner_options: Mapping[str, object] = field(default_factory=dict)
    idle: float = 1.0
    ready: Callable[[str], None] | None = None
