"""Finite streams that are merged in columns: the items are those of ``merging.in_turn``, in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from etalis_py import Engine, compile, run
from etalis_py.events import Event, Retraction
from etalis_py.events.errors import StreamError
from etalis_py.streams import Punctuation, merge
from etalis_py.streams.columns.flat_form import batch_of, events_of
from etalis_py.streams.columns.merge_streams import merge_streams
from etalis_py.streams.merging import in_turn
from etalis_py.streams.positions import Order
from etalis_py.streams.stream import LARGE, Stream
from tests.draws import seeds

S = 1_000_000


def drawn_events(draw: Random, name: str, size: int) -> list[Event]:
    """Events of one stream, some at the same time, some earlier than the one before, some of several triples."""
    t, events = draw.randrange(5), []
    for n in range(size):
        t += draw.choice((0, 0, 1, 1, 2, 7))
        end = max(0, t - draw.choice((0,) * 8 + (1, 3)))
        triples = tuple((f"<urn:{name}{n}>", "<urn:p>", f'"{k}"') for k in range(draw.choice((1, 1, 1, 2, 3))))
        stream, graph = draw.choice((f"<urn:{name}>", "")), draw.choice(("", "", f"<urn:g{n}>"))
        events.append(Event(max(0, end - draw.choice((0, 0, 2))) * S, end * S, triples, stream, graph))
    return events


def drawn_chunks(draw: Random, items: Sequence[Any]) -> Iterator[Any]:
    """The items in lists and in batches of all sizes."""
    items = list(items)
    while items:
        size = draw.choice((1, 2, 3, 10, 40))
        part, items = items[:size], items[size:]
        as_batch = all(type(item) is Event and item.triples for item in part) and draw.random() < 0.7
        yield batch_of(part) if as_batch else part
        if draw.random() < 0.1:
            yield draw.choice(([], batch_of([])))


def flat(chunks: Iterable[Any]) -> list[Any]:
    return [item for chunk in chunks for item in (chunk if isinstance(chunk, list) else events_of(chunk))]


def parts_given(order: Order, count: int) -> list[int]:
    return list(order.confirm(count))


@pytest.mark.parametrize("seed", seeds(60))
def test_items_and_their_order_are_those_in_rows(seed: int) -> None:
    draw = Random(seed)
    streams = [drawn_events(draw, "abcd"[k], draw.choice((0, 1, 30, 120))) for k in range(draw.choice((1, 2, 3, 4)))]
    expected_order, order = Order(), Order()
    expected_order.active = order.active = True
    expected = list(in_turn(map(iter, streams), expected_order))
    chunks = list(merge_streams((drawn_chunks(draw, one) for one in streams), order))
    assert flat(chunks) == expected
    assert not any(isinstance(chunk, list) for chunk in chunks)
    assert parts_given(order, len(expected)) == parts_given(expected_order, len(expected))


@pytest.mark.parametrize("seed", seeds(40))
def test_signals_keep_their_places(seed: int) -> None:
    """Punctuations, withdrawals and events without a triple, which have no form in columns."""
    draw = Random(seed)
    streams: list[list[Any]] = []
    for name in "abc":
        items: list[Any] = list(drawn_events(draw, name, 40))
        for at in sorted(draw.sample(range(5, 40), draw.choice((0, 1, 2))), reverse=True):
            if draw.random() < 0.2:
                items[at] = items[at]._replace(triples=())
            elif draw.random() < 0.5:
                items.insert(at, Punctuation(max(one.end for one in items[:at])))
            else:
                items[at] = Retraction(*items[at - 1])
        streams.append(items)
    assert flat(merge_streams((drawn_chunks(draw, one) for one in streams), Order())) == list(
        in_turn(map(iter, streams), Order())
    )


def until_error(chunks: Iterable[Any]) -> Iterator[Any]:
    """What is given before the error."""
    with pytest.raises(StreamError, match="it is broken"):
        yield from chunks


def test_what_comes_before_an_error_is_given() -> None:
    draw = Random(3)
    one, other = drawn_events(draw, "a", 20), drawn_events(draw, "b", 90)

    def broken(given: Iterable[Any]) -> Iterator[Any]:
        yield from given
        raise StreamError("it is broken")

    found = flat(until_error(merge_streams([broken([batch_of(one)]), drawn_chunks(draw, other)], Order())))
    assert found == list(until_error(in_turn([broken(one), iter(other)], Order())))
    assert len(one) < len(found) < len(one) + len(other)


def test_a_long_piece_beside_many_short_ones_brings_only_its_own_terms() -> None:
    """Else a dictionary of all terms would be looked through for each of the short ones."""
    long = [Event(t * S, t * S, ((f"<urn:a{t}>", "<urn:p>", f'"{t}"'),), "", "") for t in range(0, 800, 4)]
    short = [[Event(t * S, t * S, (("<urn:b>", "<urn:p>", '"1"'),), "", "")] for t in range(1, 800, 4)]
    given = merge_streams([iter([batch_of(long)]), map(batch_of, short)], Order())
    terms = [len(batch.column("s").dictionary) for batch in given if not isinstance(batch, list)]
    assert len(terms) > 100
    assert sum(terms) < 2_000, "not 200 in each"


def opened(events: Sequence[Event], name: str) -> Stream:
    """A stream as of a large file."""
    return Stream(
        iter(events), name=name, source=name, contexts=[], close=lambda: None, bulk=lambda: iter([batch_of(events)]),
        size=LARGE,
    )  # fmt: skip


QUERIES = {
    "rules": "SELECT * { { STREAM <urn:a> { ?s <urn:p> ?x } } SEQ { STREAM <urn:b> { ?t <urn:p> ?x } } } WITHIN 9 s",
    "windows": "SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:v> ON <urn:a> [RANGE PT9S STEP PT2S] "
    "FROM NAMED WINDOW <urn:w> ON <urn:b> [RANGE PT5S STEP PT3S] "
    "{ WINDOW <urn:v> { ?s <urn:p> ?x } WINDOW <urn:w> { ?t <urn:p> ?x } } GROUP BY ?x",
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_matches_are_those_of_merged_events(name: str) -> None:
    draw = Random(8)
    streams = {
        one: [
            event._replace(stream=f"<urn:{one}>")
            for event in sorted(drawn_events(draw, one, 300), key=lambda event: event.end)
        ]
        for one in "ab"
    }
    program = compile(QUERIES[name])
    engine = Engine(program, executor="rows")
    merged = list(in_turn(map(iter, streams.values()), Order()))
    expected = [m.id for m in [*engine.push_all(merged), *engine.close()]]
    assert len(expected) > 50
    for executor in ("rows", "columns", "auto"):
        stream = merge([opened(events, f"<urn:{one}>") for one, events in streams.items()])
        assert stream.in_bulk
        assert [m.id for m in run(program, stream, executor=executor)] == expected
