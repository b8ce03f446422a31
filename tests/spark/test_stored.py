"""A shard's state: what the store holds, and when a live engine may be used (without Spark)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from etalis_py import Event
from etalis_py.kernel.stored import JOURNAL, written
from etalis_py.spark.errors import SparkError
from etalis_py.spark.output.answers import single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.checkpoint_match import JobIdentity, decoded, differences, identity_of, other_reading
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.state import live_shards, shard_in_store
from etalis_py.spark.state.live_shards import LiveShards
from etalis_py.spark.state.shard_in_store import StoredShard
from etalis_py.spark.state.store_layout import declared
from tests.spark.programs import SECOND, SHARDED, embedded, stream


class Value:
    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class List:
    def __init__(self) -> None:
        self.values: list[Any] = []

    def get(self) -> Iterator[Any]:
        return iter(list(self.values))

    def put(self, values: Sequence[Any]) -> None:
        assert values, "Spark refuses an empty list"
        self.values = list(values)

    def appendValue(self, value: Any) -> None:
        self.values.append(value)

    def clear(self) -> None:
        self.values = []


class Store:
    """Spark's side: the states of one group.  ``copied`` is what a failed attempt goes back to."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def getValueState(self, name: str, schema: str) -> Any:
        return self.states.setdefault(name, Value())

    def getListState(self, name: str, schema: str) -> Any:
        return self.states.setdefault(name, List())

    def copied(self) -> Store:
        other = Store()
        for name, state in self.states.items():
            twin = other.states[name] = type(state)()
            if isinstance(state, Value):
                twin.value = state.value
            else:
                twin.values = list(state.values)
        return other


KEY = ("run", 0)


class Job:
    """A program with one shard, as a run has it."""

    def __init__(self, text: Any = SHARDED["seq"], **options: Any) -> None:
        given = {"shards": 1, "background": None, "entailment": "rdfs", "policy": None} | options
        self.specs, parts = plan(text, **given)
        self.routed: RoutedPart = parts[0]
        self.identity: JobIdentity = identity_of(self.specs, parts, given["shards"], 2, {})

    def fresh(self) -> Shard:
        return Shard(self.specs[0], self.routed.part, 0, journal=True)

    def begin(self) -> Store:
        store = Store()
        StoredShard(declared(store), self.identity).begin()
        return store

    def load(self, store: Store) -> tuple[StoredShard, Shard]:
        state = StoredShard(declared(store), self.identity)
        return state, state.load(KEY, self.fresh)

    def batch(self, store: Store, events: Sequence[Event], over: int) -> list[str]:
        """One batch in a worker process: the ids of the matches."""
        state, shard = self.load(store)
        rows = single([*shard.wait(events), *shard.close_before(over)])
        state.save(KEY, shard)
        return [row[3] for row in rows if row[0] == "match"]


JOB = Job()


def batch(store: Store, events: Sequence[Event], over: int) -> list[str]:
    return JOB.batch(store, events, over)


@pytest.fixture(autouse=True)
def no_live_shards() -> Iterator[None]:
    shard_in_store._LIVE.clear()
    yield
    shard_in_store._LIVE.clear()


def another_worker() -> dict[Any, Any]:
    """What this worker keeps goes; returned, so that the test can come back to it."""
    kept = dict(shard_in_store._LIVE)
    shard_in_store._LIVE.clear()
    return kept


EVENTS = stream(71)
CUTS = [(EVENTS[:20], EVENTS[20].end), (EVENTS[20:40], EVENTS[40].end), (EVENTS[40:], 100 * SECOND)]
WANTED = embedded(SHARDED["seq"], EVENTS)


def test_a_live_shard_goes_on() -> None:
    store = JOB.begin()
    assert sorted(i for events, over in CUTS for i in batch(store, events, over)) == WANTED


@pytest.mark.parametrize("least", [0, 1 << 20])
def test_a_worker_that_knows_nothing_rebuilds(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From journals alone, and from snapshots with journals."""
    monkeypatch.setattr(shard_in_store, "LEAST", least)
    store, found = JOB.begin(), []
    for events, over in CUTS:
        found += batch(store, events, over)
        another_worker()
    assert sorted(found) == WANTED
    assert bool(store.states["snapshot"].values) == (least == 0)


def test_what_is_large_is_put_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshot and waiting events: what is put at once is one message, for which Spark's JVM may have no room."""
    monkeypatch.setattr(shard_in_store, "LEAST", 0)
    monkeypatch.setattr(shard_in_store, "PIECE", 100)
    put, at_once = List.put, []

    def counted(self: List, values: Sequence[Any]) -> None:
        at_once.append(len(values))
        put(self, values)

    monkeypatch.setattr(List, "put", counted)
    store = JOB.begin()
    many = [event for _ in range(400) for event in EVENTS]
    batch(store, many, EVENTS[20].end)
    assert all(len(store.states[name].values) > 1 for name in ("snapshot", "waiting"))
    assert set(at_once) == {1}
    another_worker()
    assert batch(store, [], 100 * SECOND)


def test_a_large_batch_keeps_no_journal_and_small_ones_after_it_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_in_store, "LEAST", 10 * shard_in_store.ENTRY)
    store, found, sizes = JOB.begin(), [], []
    # The first batch is large; the others, of one or two events each, have room for their journals.
    cuts = [0, 30, *range(32, len(EVENTS), 2), len(EVENTS)]
    for first, last in itertools.pairwise(cuts):
        over = EVENTS[last].end if last < len(EVENTS) else 100 * SECOND
        state, shard = JOB.load(store)
        rows = [*shard.wait(EVENTS[first:last]), *shard.close_before(over)]
        sizes.append((shard.unjournaled, shard.engine.journal_entries))
        state.save(KEY, shard)
        assert not shard.unjournaled
        found += [row[3] for row in single(rows) if row[0] == "match"]
        if last % 3 == 0:
            another_worker()
    assert sorted(found) == WANTED
    assert sizes[0] == (True, 0)
    assert any(entries and not unjournaled for unjournaled, entries in sizes[1:])
    assert store.states["journal"].values


def test_an_older_shard_catches_up_by_the_journal() -> None:
    store = JOB.begin()
    found = batch(store, *CUTS[0])
    first = another_worker()
    found += batch(store, *CUTS[1])
    shard_in_store._LIVE.clear()
    shard_in_store._LIVE.update(first)
    old = first[KEY][2]
    found += batch(store, *CUTS[2])
    assert shard_in_store._LIVE[KEY][2] is old
    assert sorted(found) == WANTED


def test_a_shard_of_a_failed_attempt_is_not_used() -> None:
    store = JOB.begin()
    found = batch(store, *CUTS[0])
    before = store.copied()
    batch(store, *CUTS[1])  # the attempt fails after this: Spark goes back to what was stored before
    ahead = shard_in_store._LIVE[KEY][2]
    found += batch(before, *CUTS[1])
    assert shard_in_store._LIVE[KEY][2] is not ahead
    found += batch(before, *CUTS[2])
    assert sorted(found) == WANTED


def test_a_version_of_the_same_number_but_another_attempt_is_not_used() -> None:
    store = JOB.begin()
    found = batch(store, *CUTS[0])
    lost = store.copied()
    batch(lost, CUTS[1][0][:5], CUTS[1][1])  # this worker's attempt, never committed
    wrong = another_worker()
    found += batch(store, *CUTS[1])  # committed by another worker
    shard_in_store._LIVE.clear()
    shard_in_store._LIVE.update(wrong)
    found += batch(store, *CUTS[2])
    assert shard_in_store._LIVE[KEY][2] is not wrong[KEY][2]
    assert sorted(found) == WANTED


# --- damage ------------------------------------------------------------------------------------------------------


def test_a_shard_without_state_is_refused() -> None:
    with pytest.raises(SparkError, match=r"has no state for shard 0 of q1: .* or its state is lost"):
        batch(Store(), *CUTS[0])


@pytest.mark.parametrize(
    ("what", "least", "says"),
    [
        ("journal", 1 << 20, "journal of batch 1 has another checksum"),
        ("snapshot", 0, "snapshot has another checksum"),
        ("waiting", 1 << 20, "the events that wait in it are not those"),
    ],
)
def test_one_wrong_bit_is_refused(what: str, least: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_in_store, "LEAST", least)
    store = JOB.begin()
    batch(store, *CUTS[0])
    another_worker()
    row = store.states[what].values[-1]
    store.states[what].values[-1] = (*row[:-1], bytes([*row[-1][:-1], row[-1][-1] ^ 1]))
    with pytest.raises(SparkError, match=f"state of shard 0 of q1 is damaged: .*{says}.*; restore the checkpoint"):
        batch(store, *CUTS[1])


def test_a_wrong_bit_is_refused_in_catching_up_as_well() -> None:
    store = JOB.begin()
    batch(store, *CUTS[0])
    first = another_worker()
    batch(store, *CUTS[1])
    shard_in_store._LIVE.clear()
    shard_in_store._LIVE.update(first)
    *rest, data = store.states["journal"].values[1]
    store.states["journal"].values[1] = (*rest, data[:-1] + b"?")
    with pytest.raises(SparkError, match="its journal of batch 2 has another checksum"):
        batch(store, *CUTS[2])


@pytest.mark.parametrize(("what", "least"), [("journal", 1 << 20), ("snapshot", 0), ("waiting", 1 << 20)])
def test_a_list_that_is_gone_is_refused(what: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_in_store, "LEAST", least)
    store = JOB.begin()
    batch(store, *CUTS[0])
    another_worker()
    assert store.states[what].values
    store.states[what].clear()
    with pytest.raises(SparkError, match=r"state of shard 0 of q1 is (incomplete|damaged): .*restore the checkpoint"):
        batch(store, *CUTS[1])


def test_state_of_another_form_is_refused() -> None:
    """As another version of the package may have written it."""
    store = JOB.begin()
    batch(store, *CUTS[0])
    another_worker()
    version, mark, base, _, _ = store.states["journal"].values[0]
    for other in (written(JOURNAL, {"updates": [], "stages": []}), b"something else"):
        store.states["journal"].values[0] = (version, mark, base, crc32(other), other)
        head = store.states["head"].value
        store.states["head"].value = (*head[:5], len(other), head[6])
        with pytest.raises(SparkError, match=r"does not belong to this program \(shard 0 of q1\): .*; go on with"):
            batch(store, *CUTS[1])


def test_state_that_does_not_say_what_made_it_is_refused() -> None:
    for lost in (None, (b"no identity",)):
        store = JOB.begin()
        batch(store, *CUTS[0])
        another_worker()
        store.states["job"].value = lost
        with pytest.raises(SparkError, match="does not say which program it was made by; restore"):
            Job(SHARDED["within"]).load(store)


@pytest.mark.filterwarnings("ignore:the live shards of this process")
def test_the_memory_of_a_worker_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_shards, "MOST_SHARDS", 2)
    for slot in range(5):
        state = StoredShard(declared(JOB.begin()), JOB.identity)
        shard = state.load(("run", slot), JOB.fresh)
        state.save(("run", slot), shard)
    assert [slot for _, slot in shard_in_store._LIVE] == [3, 4]


def test_the_bytes_of_shards_that_a_worker_keeps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stays, however large it is."""
    monkeypatch.setattr(shard_in_store, "LEAST", 0)
    monkeypatch.setattr(live_shards, "MOST_BYTES", 1)
    for slot in range(3):
        state = StoredShard(declared(JOB.begin()), JOB.identity)
        shard = state.load(("run", slot), JOB.fresh)
        shard.wait(EVENTS[:20])
        shard.close_before(EVENTS[20].end)
        told = pytest.warns(RuntimeWarning, match=rf"slot {slot - 1} is dropped.*spark\.etalis\.engines")
        with told if slot else nullcontext():
            state.save(("run", slot), shard)
        assert sum(state.sizes) > 1
    assert [slot for _, slot in shard_in_store._LIVE] == [2]


def test_a_copy_from_before_the_last_snapshot_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another worker wrote the snapshot; this one is told when it next keeps a shard."""
    monkeypatch.setattr(live_shards, "executor_folder", lambda: tmp_path)
    store = JOB.begin()
    batch(store, *CUTS[0])
    first = another_worker()
    batch(store, *CUTS[1])
    assert not store.states["snapshot"].values
    second = another_worker()
    for kept, copies in ((first, 2), (second, 1)):
        shard_in_store._LIVE.clear()
        shard_in_store._LIVE.update(kept)
        other = StoredShard(declared(JOB.begin()), JOB.identity)
        other.save(("run", 1), other.load(("run", 1), JOB.fresh))
        assert len(shard_in_store._LIVE) == copies
        another_worker()
        monkeypatch.setattr(shard_in_store, "LEAST", 0)
        batch(store, *CUTS[2])
        assert store.states["snapshot"].values


def test_the_copy_of_an_earlier_run_goes() -> None:
    store = JOB.begin()
    batch(store, *CUTS[0])
    assert list(shard_in_store._LIVE) == [KEY]
    state = StoredShard(declared(store), JOB.identity)
    state.save(("run again", 0), state.load(("run again", 0), JOB.fresh))
    assert list(shard_in_store._LIVE) == [("run again", 0)]
    assert state.loaded == "restored"


@pytest.mark.parametrize("came", [None, 0, 1, 2])
def test_what_waits_and_what_is_withdrawn_are_told_apart_whatever_their_numbers(
    came: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = (SECOND, SECOND, (("<urn:x>", "<urn:p>", "<urn:y>"),), "", "", came)
    job, store = Job(), JOB.begin()
    state, shard = job.load(store)
    shard.waiting, shard.withdrawals = [event], [event]
    state.save(KEY, shard)
    monkeypatch.setattr(shard_in_store, "_LIVE", LiveShards())  # another worker goes on
    _, again = job.load(store)
    assert (again.waiting, again.withdrawals) == ([event], [event])


def test_rows_that_are_read_in_another_way_are_refused() -> None:
    """Where it is known how both are read: a checkpoint of before, or events of one's own, do not say it."""
    store, read = Store(), {"time": "at", "subject": "machine"}

    def load(reading: dict[str, str]) -> None:
        shard_in_store._LIVE.clear()
        job = msgspec.structs.replace(JOB.identity, reading=reading)
        assert decoded(job.encoded()) == job
        StoredShard(declared(store), job).load(KEY, JOB.fresh)

    StoredShard(declared(store), JOB.identity).begin()
    load(read)
    made = msgspec.structs.replace(JOB.identity, reading=read)
    store = Store()
    StoredShard(declared(store), made).begin()
    for same in ({}, read):
        load(same)
    start = "the checkpoint does not belong to this program: its rows were read "
    for other, reason in (
        (read | {"subject": "site"}, "with subject='machine', and are read with subject='site' now; go on with what"),
        (read | {"time_unit": "ms"}, "without time_unit, and are read with time_unit='ms' now"),
        (read | {"mapping": "0a"}, "without a mapping, and are read with a mapping now"),
    ):
        with pytest.raises(SparkError, match=re.escape(start + reason)):
            load(other)
    assert [*other_reading({"mapping": "0a"}, {"mapping": "0b"})] == [
        "its rows were read with a mapping, and are read with another one now"
    ]


def test_an_identity_without_a_reading_is_written_as_before() -> None:
    """So that a checkpoint of before is compared no more often than it was."""
    assert b"reading" not in JOB.identity.encoded()
    assert b"revise" not in JOB.identity.encoded()


_TWO = "REGISTER QUERY up AS SELECT ?x {{ ?x <urn:p> 1 }} SEQ {{ ?x <urn:q> 1 }} {}"
_DOWN = "REGISTER QUERY down AS SELECT ?x { ?x <urn:q> 1 } SEQ { ?x <urn:p> 1 }"


@pytest.mark.parametrize(
    ("before", "now", "kind", "told"),
    [
        ("", _DOWN, "<urn:b>", "down is new"),
        (_DOWN, "", "<urn:b>", "down is gone"),
        ("", "", "<urn:c>", "the background is another one"),
    ],
)
def test_input_that_is_taken_in_again_has_the_queries_of_before(before: str, now: str, kind: str, told: str) -> None:
    """Its journal is the input: a new query would see it, and a snapshot has the state of the old ones."""
    made = Job(_TWO.format(before), background=(("<urn:a>", "<urn:kind>", "<urn:b>"),))
    other = Job(_TWO.format(now), background=(("<urn:a>", "<urn:kind>", kind),))
    assert differences(made.identity, other.identity) == []
    corrected = [msgspec.structs.replace(job.identity, revise=20 * SECOND) for job in (made, other)]
    [reason] = differences(*corrected)
    assert reason.startswith(f"{told}, and with revise=20 s the input within the horizon is taken in again")
    assert differences(corrected[0], corrected[0]) == []


def test_a_correction_is_not_forgotten_by_a_shorter_horizon() -> None:
    """The journal has the input, and a shorter horizon would refuse what the longer one has taken."""
    store, job = Store(), Job()

    def batch(horizon: int, over: int, *seconds_and_predicates: tuple[int, str]) -> list[str]:
        shard_in_store._LIVE.clear()
        revise = horizon * SECOND
        identity = msgspec.structs.replace(job.identity, revise=revise)
        fresh = lambda: Shard(job.specs[0], job.routed.part, 0, journal=True, revise=revise)  # noqa: E731
        state = StoredShard(declared(store), identity)
        shard = state.load(KEY, fresh)
        events = [Event(t * SECOND, t * SECOND, (("<urn:a>", f"<urn:{p}>", '"1"'),)) for t, p in seconds_and_predicates]
        rows = single([*shard.wait(events, (over - 1) * SECOND), *shard.close_before(over * SECOND)])
        state.save(KEY, shard)
        return [row[0] for row in rows]

    StoredShard(declared(store), job.identity).begin()
    assert batch(20, 41, (21, "p"), (40, "r")) == []
    assert batch(20, 42, (26, "p")) == []
    for other, now in ((5, "with revise=5 s"), (60, "with revise=60 s"), (0, "without revise")):
        told = (
            f"the checkpoint does not belong to this program: it was made with revise=20 s, and is run {now} now; go on"
        )
        with pytest.raises(SparkError, match=re.escape(told)):
            batch(other, 53, (50, "q"))
    assert batch(20, 53, (50, "q")) == ["match", "match"]
