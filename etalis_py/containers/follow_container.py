"""A stream container as a live stream, for engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etalis_rules.terms import iri

from etalis_py.streams import Burst, Idle, Patience, Stream
from etalis_py.streams.sources import now

from .client import Follower
from .origin import token_for
from .withdrawals import Remembered


def container_stream(url: str, name: str = "", idle: float = 1.0, *, revise: bool = False) -> Stream:
    """A container's current members, then new ones, without end.

    ``name`` is the IRI of the stream (default: the address).  ``revise``: its graphs may withdraw others.
    """
    follower, remembered = Follower(url, token=token_for(url)), Remembered()
    patience = Patience(idle)

    def items() -> Iterator[Any]:
        opened = False
        for event in follower.items(patience):
            if patience.gathers and not opened:
                opened = True
                yield Burst(True)
            if event is None:
                yield Idle(now())
            else:
                for taken in remembered.take(event) if revise else (event,):
                    yield taken._replace(stream=name) if name else taken
            if opened and not follower.more:
                opened = False
                yield Burst(False)

    return Stream(items(), name=name or iri(url), source=url, contexts=[], close=follower.close, patience=(patience,))
