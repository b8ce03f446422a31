"""With a lateness, events in columns are taken as if they came one by one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.engine.inputs import columns_of
from etalis_py.kernel import late_columns
from etalis_py.kernel.batch import Batch, Records, taken
from etalis_py.streams.columns.flat_form import batch_of
from tests.draws import seeds

S = 1_000_000
POSITION = ("now", "closed", "newest", "arrivals", "buffer")
QUERIES = {
    "a sequence": "SELECT ?x ?y { { { ?s <urn:p> ?x } SEQ { ?s <urn:q> ?y } } WITHIN 9 s }",
    "values of an event": "SELECT ?s ?x ?y { EVENT { ?s <urn:p> ?x ; <urn:q> ?y } }",
    "an average": "SELECT ?s (AVG(?x) AS ?m) { ?s <urn:p> ?x } WITHIN 5 s GROUP BY ?s",
    "windows": "SELECT ?s (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:a> [RANGE PT7S STEP PT2S] "
    "{ WINDOW <urn:w> { ?s <urn:p> ?x } } GROUP BY ?s",
}  # fmt: skip


def drawn(draw: Random, size: int) -> Iterator[Event]:
    """Events of which some come a little too early or too late, and some twice."""
    t, event = 20, None
    for _ in range(size):
        t += draw.choice((0, 0, 1, 1, 2))
        if event is None or draw.random() < 0.95:
            end = t - draw.choice((0,) * 6 + (1, 2, 3, 5, 9))
            subject = f"<urn:{draw.choice('xyz')}>"
            integer = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            triples = tuple(
                (subject, f"<urn:{p}>", integer.format(draw.randrange(4)))
                for p in draw.choice(("p", "q", "p", "q", "pq"))
            )
            event = Event((end - draw.choice((0, 0, 1))) * S, end * S, triples, "<urn:a>", "")
        yield event


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("lateness", [1, 3, 6])
@pytest.mark.parametrize("seed", seeds(4))
def test_matches_late_events_and_snapshots_are_those_of_events_one_by_one(name: str, lateness: int, seed: int) -> None:
    draw = Random(seed)
    events = list(drawn(draw, 300))
    program = compile(QUERIES[name])
    one, many = (Engine(program, lateness=lateness * S, executor=executor) for executor in ("rows", "columns"))
    while events:
        size = draw.choice((1, 7, 40, 90))
        given, events = events[:size], events[size:]
        assert [m.id for m in many.push_all(columns_of(batch_of(given)))] == [m.id for m in one.push_all(given)]
        assert many.dead_letters == one.dead_letters
        assert (many.counters.events, many.counters.late) == (one.counters.events, one.counters.late)
        positions = (engine._at.plain() for engine in (one, many))
        expected, found = ({name: plain[name] for name in POSITION} for plain in positions)
        assert found == expected
    assert one.dead_letters
    assert [m.id for m in many.close()] == [m.id for m in one.close()]


def test_few_events_become_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that still wait at the end of a batch."""
    made = []

    class Counted(Batch):
        @property
        def rows(self):
            found = super().rows
            made.append(len(found))
            return found

    monkeypatch.setattr(late_columns, "Batch", Counted)
    events = [Event(t * S, t * S, ((f"<urn:s{t}>", "<urn:p>", '"1"'),), "", "") for t in range(1_000)]
    engine = Engine(QUERIES["a sequence"], lateness=10 * S, executor="columns")
    engine.push_all(columns_of(batch_of(events)))
    assert 10 <= sum(made) <= 12
    assert len(engine._at.buffer) == 11


def test_records_stay_records() -> None:
    """A row of a table is an event."""
    columns = columns_of(batch_of([Event(t, t, (("<urn:s>", "<urn:p>", '"1"'),), "", "") for t in (3, 1, 2)]))
    records = Records(columns.end, columns.start, columns.s, {"<urn:p>": columns.o})
    in_order = taken(records, [1, 2, 0])
    assert isinstance(in_order, Records)
    assert in_order.end.tolist() == [1, 2, 3]
