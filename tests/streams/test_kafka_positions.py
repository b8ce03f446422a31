"""Where reading a topic goes on when it has got more partitions meanwhile."""

from __future__ import annotations

from etalis_py.streams.partitions import BEGINNING, Partitions


def test_a_partition_that_was_added_while_nobody_read_is_read_from_its_beginning() -> None:
    """A run that begins with what comes from now on looks up ends; the new partition is all from then on."""
    before = Partitions({0: 7, 1: 9})
    before.begin(None)
    before.mark((0, 8, 0))
    before.confirm(1)
    after = Partitions({0: 20, 1: 9, 2: 4})
    after.begin(before.place())
    assert after.next == {0: (8, 0), 1: (9, 0), 2: (BEGINNING, 0)}
