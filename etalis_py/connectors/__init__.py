"""What a run can be connected to: sources that know their position, sinks that take part in a checkpoint.

``contracts`` has the two contracts; every other file is one connector, except ``registry``, which finds them by the
address (``kafka://…``), also those of other packages.  This package may know events and streams.
"""

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from etalis_py.connectors.contracts import Message, Position, Sink, Source
    from etalis_py.connectors.reading import connect
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "etalis_py.connectors.contracts": ("Message", "Position", "Sink", "Source"),
            "etalis_py.connectors.reading": ("connect",),
        },
    )

__all__ = ["Message", "Position", "Sink", "Source", "connect"]
