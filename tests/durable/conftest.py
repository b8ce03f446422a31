"""Servers that several files of this folder talk to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.durable.peers import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
