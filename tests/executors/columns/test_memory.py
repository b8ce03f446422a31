"""Arrays that grow."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from etalis_py.executors.columns import growable_array
from etalis_py.executors.columns.growable_array import GrowableArray, free_slots

LONG = 1 << 19  # of int64: pages of their own


@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("length", [4, LONG])
def test_what_is_there_stays_and_the_rest_is_zero(length: int, width: int | None) -> None:
    growing = GrowableArray(length, np.int64, width)
    growing.array[:] = 7
    growing.grow(3 * length)
    assert len(growing.array) == 3 * length
    assert (growing.array[:length] == 7).all()
    assert not growing.array[length:].any()


def test_an_array_that_somebody_holds_on_to_stays_as_it_is() -> None:
    growing = GrowableArray(LONG, np.int64)
    held = growing.array
    growing.grow(2 * LONG)
    growing.array[0] = 1
    assert held[0] == 0
    assert len(held) == LONG


def test_where_the_system_cannot_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(mmap.mmap):
        def resize(self, newsize: int) -> None:
            raise SystemError("mmap: resizing not available")

    monkeypatch.setattr(growable_array.mmap, "mmap", Fixed)
    growing = GrowableArray(LONG, np.int64)
    growing.array[-1] = 5
    growing.grow(2 * LONG)
    assert growing.array[LONG - 1] == 5
    assert len(growing.array) == 2 * LONG


@pytest.mark.parametrize("count", [64, LONG])
def test_all_slots_are_free(count: int) -> None:
    slots = free_slots(count, np.int32)
    assert len(slots) == count
    assert (slots == -1).all()
