"""RDF streams as web resources: Stream Containers ([SC]) on the Linked Data Platform, and a page to watch them.

This package knows HTTP, SQLite and RDF syntaxes, and of the rest only events and the spelling of times.  It does not
know the engine: programs run through the small protocol of ``runners.ProgramRunner``, each in a process of its own
(``programs``, ``query_program`` and ``processes`` here, ``nursery`` and ``worker`` there); questions about it are
answered by copies of that process (``question_limits``).

The path of a request: ``strict_http`` and ``connections`` → ``app`` (the guard, with ``access``) → the handlers
of containers, members and standing queries → ``store`` with ``changes`` for writing, ``spans`` and ``rendering`` for
reading; ``push`` and ``programs`` follow the store's commits.  ``client`` is the client side, and ``origin`` keeps it
with one server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from .client import ContainerSink, Follower, follow
    from .limits import Limits
    from .origin import ContainerError, token_for
    from .run_server import ServeError, serve
    from .runners import MatchLike, ProgramRunner, QueriesRunner, RunnerFactory
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".client": ("ContainerSink", "Follower", "follow"),
            ".limits": ("Limits",),
            ".origin": ("ContainerError", "token_for"),
            ".runners": ("MatchLike", "ProgramRunner", "QueriesRunner", "RunnerFactory"),
            ".run_server": ("ServeError", "serve"),
        },
        extra="server",
    )

__all__ = [
    "ContainerError",
    "ContainerSink",
    "Follower",
    "Limits",
    "MatchLike",
    "ProgramRunner",
    "QueriesRunner",
    "RunnerFactory",
    "ServeError",
    "follow",
    "serve",
    "token_for",
]
