"""Which programs may go on with the state of which others, and what they then find (without Spark)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.spark import SparkError
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.checkpoint_match import differences
from etalis_py.spark.state import shard_in_store
from tests.spark.programs import SECOND, SHARDED, embedded, stream
from tests.spark.test_stored import Job, Store

NEAR = "SELECT ?x ?w { ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ { ?x <urn:q> ?z }"
ONE = "REGISTER QUERY one AS SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }"
TWO = "REGISTER QUERY two AS SELECT ?x ?w { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } SEQ { ?x <urn:r> ?w }"
GROUPED = "REGISTER QUERY grouped AS SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x"
ABSENT = "REGISTER QUERY absent AS SELECT * { ?x <urn:p> ?y FILTER NOT EXISTS { ?x <urn:q> ?z } }"
ASKED = "REGISTER QUERY asked AS ASK { ?x <urn:p> ?y }"


@pytest.fixture(autouse=True)
def no_live_shards() -> Iterator[None]:
    shard_in_store._LIVE.clear()
    yield
    shard_in_store._LIVE.clear()


def said(before: Job, now: Job) -> str:
    return "; ".join(differences(before.identity, now.identity))


def texts(*queries: str) -> str:
    return "\n".join(queries)


# --- what may go on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (SHARDED["seq"], "# the same\nSELECT * WHERE { ?x  <urn:p> ?y } SEQ { ?x <urn:q> ?z }"),
        (texts(ONE), texts(ONE, TWO)),
        (texts(ONE, TWO), texts(TWO)),
        (texts(ONE, GROUPED), texts(GROUPED, ABSENT)),
        (SHARDED["rules"], SHARDED["rules"]),
    ],
)
@pytest.mark.parametrize("shards", [1, 4])
def test_queries_may_come_and_go_within_a_stage(before: str, now: str, shards: int) -> None:
    assert said(Job(before, shards=shards), Job(now, shards=shards)) == ""


def test_a_description_reads_back() -> None:
    from etalis_py.spark.plan.checkpoint_match import decoded

    for text in SHARDED.values():
        identity = Job(text, shards=3).identity
        assert decoded(identity.encoded()) == identity


# --- what may not ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (SHARDED["seq"], SHARDED["optional"], "q1 has become another query: give it another name"),
        (SHARDED["seq"], SHARDED["seq"].replace("urn:q", "urn:other"), "q1 has become another query"),
        (texts(ONE), texts(ONE, ASKED), "asked would need a stage of its own, and the checkpoint has none"),
        (texts(ONE, ASKED), texts(ONE), "asked had a stage of its own, which is gone"),
        (texts(ONE), texts(TWO), "two would run in the stage of one"),
        (
            texts(ONE, "REGISTER QUERY b AS SELECT * { ?x <urn:r> ?y } SEQ { ?z <urn:r> ?y }"),
            texts(ONE, "REGISTER QUERY b AS SELECT * { ?x <urn:r> ?y } SEQ { ?x <urn:r> ?z }"),
            "b has become another query",
        ),
    ],
)
def test_other_changes_are_refused_with_what_differs(before: str, now: str, why: str) -> None:
    assert why in said(Job(before, shards=4), Job(now, shards=4))


def test_another_number_of_shards_or_partitions_is_refused_with_advice() -> None:
    assert said(Job(shards=4), Job(shards=8)) == (
        "it was made with 4 shards, now there are 8: give shards=4 (and set spark.sql.shuffle.partitions to 2)"
    )
    assert "made with 1 shards, now there are 4" in said(Job(shards=1), Job(shards=4))
    before = Job(shards=4).identity
    from msgspec.structs import replace

    assert differences(before, replace(before, partitions=3)) == [
        "it was made with 2 partitions, now there are 3: set spark.sql.shuffle.partitions to 2"
    ]


def test_another_policy_is_refused() -> None:
    assert said(Job(policy="recent"), Job(policy="chronological")) == (
        "q1 was run with the policy recent, now with chronological, which consumes other goals"
    )


def test_a_policy_that_nothing_uses_may_change() -> None:
    assert said(Job(SHARDED["recent"], policy="recent"), Job(SHARDED["recent"])) == ""


def test_a_background_with_other_rules_is_refused() -> None:
    sub = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
    schema = [[("<urn:narrow>", sub, "<urn:p>")]]
    assert "because the background has another vocabulary or schema" in said(Job(), Job(background=schema))


def test_another_version_of_the_package_is_named() -> None:
    from msgspec.structs import replace

    before, now = Job().identity, Job(SHARDED["optional"]).identity
    assert "it was made by etalis-py 0.0.1, this is" in differences(replace(before, package="0.0.1"), now)[-1]
    assert differences(replace(before, package="0.0.1"), before) == []


def test_names_of_programs_are_said() -> None:
    before, now = Job({"a": ONE, "b": TWO}), Job({"a": ONE, "b": TWO.replace("urn:r", "urn:s")})
    assert said(before, now).startswith("two of program b has become another query")
    assert said(before, Job({"b": TWO, "a": ONE}))


# --- what is found afterwards ------------------------------------------------------------------------------------


EVENTS = stream(101, 80)
FIRST, SECOND_HALF = EVENTS[:40], [e for e in EVENTS[40:] if e.end > EVENTS[39].end]
OVER = EVENTS[39].end + 1
END = 100 * SECOND


def in_two_runs(
    before: Job, now: Job, first: Sequence[Event] = FIRST, rest: Sequence[Event] = SECOND_HALF
) -> list[str]:
    store: Store = before.begin()
    found = before.batch(store, first, OVER)
    shard_in_store._LIVE.clear()
    return found + now.batch(store, rest, END)


def by_engine(before: str, now: str, **options: Any) -> list[str]:
    """What an embedded engine finds to which programs are added, and from which they are removed, in between."""
    engine = Engine(**options)
    names = {engine.add(compile(text), name=text): text for text in before.splitlines()}
    found = [m.id for m in (*engine.push_all(FIRST), *engine.advance(OVER - 1))]
    for text in now.splitlines():
        if text not in names:
            engine.add(compile(text), name=text)
    for text in names:
        if text not in now.splitlines():
            engine.remove(text)
    return sorted([*found, *(m.id for m in (*engine.push_all(SECOND_HALF), *engine.advance(END)))])


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["snapshots", "journals"])
@pytest.mark.parametrize(
    ("before", "now"),
    [
        (texts(ONE), texts(ONE, TWO)),
        (texts(ONE, TWO), texts(TWO)),
        (texts(ONE, TWO, GROUPED), texts(GROUPED, ABSENT)),
        (texts(GROUPED, ABSENT), texts(ABSENT, ONE)),
    ],
)
def test_queries_that_come_and_go_are_those_of_a_running_engine(
    before: str, now: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared goals stay, those of removed queries go, new queries begin with what happens from now on."""
    monkeypatch.setattr(shard_in_store, "LEAST", least)
    assert sorted(in_two_runs(Job(before), Job(now))) == by_engine(before, now)


def test_the_goals_of_a_removed_query_go() -> None:
    before, now = Job(texts(ONE, GROUPED, TWO)), Job(texts(GROUPED))
    in_two_runs(before, now)
    [(_, _, shard, _)] = shard_in_store._LIVE.values()
    alone = Engine(compile(GROUPED))
    alone.push_all([*FIRST, *SECOND_HALF])
    assert shard.engine.count().goals == alone.count().goals


def test_what_goes_on_is_stored_as_its_own() -> None:
    """The second run writes a snapshot of its own, so a third one goes on from there without any fitting."""
    store = (before := Job(texts(ONE, TWO))).begin()
    before.batch(store, FIRST, OVER)
    for _ in range(2):
        shard_in_store._LIVE.clear()
        now = Job(texts(ONE))
        _, shard = now.load(store)
        assert shard.waiting == []
        now.batch(store, [], OVER)
        assert store.states["head"].value[2] == now.identity.digest


def test_a_new_background_holds_from_the_next_instant_on() -> None:
    """As with ``Engine.update``: the BGP uses the version at the end of its solution."""
    old, new = [[("<urn:x1>", "<urn:near>", "<urn:w>")]], [[("<urn:x1>", "<urn:near>", "<urn:v>")]]
    before, now = (Job(NEAR, background=b, entailment="rdf") for b in (old, new))
    engine = Engine(compile(NEAR), background=old, entailment="rdf")
    wanted = [m.id for m in (*engine.push_all(FIRST), *engine.advance(OVER - 1))]
    engine.update(add=new[0], remove=old[0])
    wanted += [m.id for m in (*engine.push_all(SECOND_HALF), *engine.advance(END))]
    assert sorted(in_two_runs(before, now)) == sorted(wanted)
    assert sorted(wanted) not in ([], embedded(NEAR, EVENTS, background=old, entailment="rdf"))


def test_another_program_is_refused_when_its_state_is_read() -> None:
    store = (before := Job()).begin()
    before.batch(store, FIRST, OVER)
    shard_in_store._LIVE.clear()
    with pytest.raises(SparkError, match=r"does not belong to this program: q1 has become .* go on with what"):
        Job(SHARDED["optional"]).load(store)


def test_every_stage_of_the_fixed_programs_has_a_meaning() -> None:
    for text in SHARDED.values():
        for routed in plan(text, 3, None, "rdfs", None)[1]:
            assert {q for q, _ in routed.meanings} == set(routed.part.queries)
