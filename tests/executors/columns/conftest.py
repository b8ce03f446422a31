"""What several tests of the executor in columns ask for."""

from __future__ import annotations

import pytest

from etalis_py.executors.columns import rules


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dictionary forgets what it can after each batch."""
    monkeypatch.setattr(rules, "MOST_TERMS", 1)
