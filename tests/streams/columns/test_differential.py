"""Columns and rows judge every input alike: drawn inputs, mostly usual, with what is odd in each format."""

from __future__ import annotations

from random import randrange

import pytest

from .differential import FORMATS, differ

SHARES = {"csv": 0.4, "json": 0.5, "triples": 0.6, "quads": 0.3, "frame": 0.5}
"""The least share of the events that must come in columns: inputs that never get there would show nothing."""


def check(form: str, first: int, count: int) -> float:
    """The share of the events of these inputs that came in columns; the first difference is an error."""
    columns = events = 0
    for seed in range(first, first + count):
        difference, columnar, all_events = differ(form, seed)
        assert not difference, difference
        columns, events = columns + columnar, events + all_events
    print(f"{form}: {columns / events:.0%} of {events} events in columns")
    return columns / events


@pytest.mark.parametrize("form", FORMATS)
def test_small_inputs_are_judged_alike(form: str) -> None:
    assert check(form, 0, 200) > SHARES[form]


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_a_million_inputs_are_judged_alike(form: str) -> None:
    assert check(form, randrange(10**9), 200_000) > SHARES[form]
