"""Where a topic has got to: an offset for each partition, whatever the order in which they were merged."""

from __future__ import annotations

from etalis_py.streams.partitions import BEGINNING, Partitions
from etalis_py.testing.connectors import stored


def begun(place: object = None, **given: object) -> Partitions:
    tracker = Partitions({0: 0, 1: 0}, **given)  # type: ignore[arg-type]
    tracker.begin(place)  # type: ignore[arg-type]
    return tracker


def test_what_was_given_and_is_not_used_comes_again() -> None:
    tracker = begun()
    for behind in ((0, 1, 0), (1, 1, 0), (0, 2, 0)):
        tracker.mark(behind)
    tracker.confirm(2)
    assert begun(stored(tracker.place())).next == {0: (1, 0), 1: (1, 0)}


def test_a_message_is_left_in_its_middle() -> None:
    tracker = begun()
    for behind in ((0, 0, 1), (0, 0, 2), (0, 1, 0)):
        tracker.mark(behind)
    tracker.confirm(2)
    assert begun(stored(tracker.place())).next == {0: (0, 2), 1: (0, 0)}


def test_a_refused_message_is_known_by_its_offset_in_whatever_order_the_partitions_come() -> None:
    tracker = begun()
    for tracker.at in ((0, 3), (1, 7)):
        assert not tracker.is_repeated()
    again = begun(stored(tracker.place()))
    told = []
    for again.at in ((1, 7), (1, 8), (0, 3), (0, 4)):
        told.append(again.is_repeated())
    assert told == [True, False, True, False]


def test_the_end_of_a_run_stays_where_it_was() -> None:
    place = stored(begun(ends={0: 5, 1: 2}).place())
    assert begun(place, ends={0: 9, 1: 9}).ends == {0: 5, 1: 2}
    assert begun(place).ends == {}


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    tracker = Partitions({0: 0})
    tracker.begin(None)
    tracker.mark((0, 4, 0))
    tracker.confirm(1)
    assert begun(stored(tracker.place())).next == {0: (4, 0), 1: (BEGINNING, 0)}


def test_so_is_one_that_comes_during_a_run() -> None:
    tracker = begun()
    tracker.add([2])
    assert tracker.next == {0: (0, 0), 1: (0, 0), 2: (BEGINNING, 0)}
