"""Answer-set programs that read events, on Spark: solved in a shard, with the ids of the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from etalis_py import Engine, compile, event
from etalis_py.knowledge import Knowledge, load
from etalis_py.spark import SparkError, events_from_events, matches
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.checkpoint_match import differences, identity_of
from etalis_py.spark.plan.spec import engine_of, pack, unpack
from tests.spark.programs import ids_by_program, write_batches
from tests.spark.test_streaming import THE_END, run

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

ALARMS = """\
%! reads next(R, S) from R <urn:nextTo> S
%! event alarm(A, R) from A <urn:alarmIn> R within PT10S over slot(A), room(R)
%! event closed(R) from R <urn:is> <urn:closed> until R <urn:is> <urn:open> over room(R)
%! slots 4
%! offers risk(R) as R <urn:at> <urn:risk>
room(R) :- next(R,_).
double(R) :- alarm(A,R), alarm(B,R), A < B.
risk(S) :- double(R), next(R,S), not closed(S).
:- closed(R), alarm(_,R).
"""
ROOMS = [(f"<urn:r{n}>", "<urn:nextTo>", f"<urn:r{n % 3 + 1}>") for n in (1, 2, 3)]
QUERIES = """
REGISTER QUERY told AS SELECT ?w ?r { ?w <urn:watches> ?r } SEQ { ?r <urn:at> <urn:risk> }
REGISTER QUERY stuck AS SELECT ?x { ?x a <urn:etalis:Inconsistent> }
CONSTRUCT { ?r <urn:left> ?w } { ?r <urn:at> <urn:risk> } SEQ { ?w <urn:leaves> ?r }
REGISTER QUERY away AS SELECT ?r ?w ?when { ?r <urn:left> ?w } SEQ { ?r <urn:noted> ?when }
REGISTER QUERY moved AS SELECT ?p ?a ?b { ?p <urn:in> ?a } SEQ { ?p <urn:out> ?b }
"""
EVENTS = [
    event(text, second)
    for second, text in [
        (1, "<urn:ann> <urn:watches> <urn:r2> . <urn:ann> <urn:in> <urn:r1>"),
        (2, "<urn:s1> <urn:alarmIn> <urn:r1>"),
        (5, "<urn:s2> <urn:alarmIn> <urn:r1>"),
        (6, "<urn:ann> <urn:leaves> <urn:r2>"),
        (7, "<urn:r2> <urn:noted> 7"),
        (8, "<urn:r2> <urn:is> <urn:closed>"),
        (9, "<urn:s3> <urn:alarmIn> <urn:r3>"),
        (10, "<urn:r2> <urn:is> <urn:open>"),
        (11, "<urn:s4> <urn:alarmIn> <urn:r3>"),
        (12, "<urn:r3> <urn:is> <urn:closed>"),
        (13, "<urn:ann> <urn:out> <urn:r1>"),
        (20, "<urn:s5> <urn:alarmIn> <urn:r1>"),
        (21, "<urn:r3> <urn:is> <urn:open>"),
        (22, "<urn:s6> <urn:alarmIn> <urn:r1>"),
    ]
]


def knowledge(folder: Path, program: str = ALARMS) -> Knowledge:
    (folder / "alarms.lp").write_text(program)
    return load([ROOMS, folder / "alarms.lp"])


def test_what_may_see_an_offer_runs_in_one_shard_with_what_the_program_reads(tmp_path: Path) -> None:
    known = knowledge(tmp_path)
    [spec], parts = plan(QUERIES, 4, known, "rdf", None)
    by_query = {query: routed for routed in parts for query in routed.part.reports}
    assert {query for query, routed in by_query.items() if routed.part.live} == {"told", "stuck", "q3", "away"}
    assert {query: by_query[query].part.shards for query in ("told", "stuck", "q3", "moved")} == {
        "told": 1,
        "stuck": 1,
        "q3": 1,
        "moved": 4,
    }
    assert "the answer-set program alarms.lp sees all events together" in by_query["told"].part.reason
    assert by_query["moved"].part.reason == "sharded by ?p"
    read = {leaf.predicate.term for leaf, _ in by_query["told"].routes}
    assert {"<urn:alarmIn>", "<urn:is>", "<urn:watches>"} <= read
    assert engine_of(spec, ["told"], live=True).knowledge.programs == known.programs
    assert engine_of(spec, ["moved"]).knowledge.programs == ()


def test_programs_travel_as_they_are(tmp_path: Path) -> None:
    known = knowledge(tmp_path)
    [spec], _ = plan(QUERIES, 2, known, "rdf", None)
    there = unpack(pack(known), spec.live)
    assert there is not None
    assert (there.programs, set(there.default)) == (known.programs, set(known.default))


def test_another_program_is_no_reason_to_go_on(tmp_path: Path) -> None:
    jobs = []
    for program in (ALARMS, ALARMS.replace("PT10S", "PT20S")):
        specs, parts = plan(QUERIES, 2, knowledge(tmp_path, program), "rdf", None)
        jobs.append(identity_of(specs, parts, 2, 2, {}))
    assert differences(jobs[0], jobs[0]) == []
    assert differences(*jobs) == [
        "the answer-set programs that the job solves are no longer those that the checkpoint was made with"
    ]


def test_windows_and_a_program_that_reads_events_are_refused(tmp_path: Path) -> None:
    text = "SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S] { WINDOW <urn:w> { ?x <urn:p> ?y } }"
    with pytest.raises(SparkError, match=r"holds an answer-set program that reads events.*windows.*local engine"):
        plan(compile(text), 2, knowledge(tmp_path), "rdf", None)


def test_shards_solve_in_batch_and_in_a_stream_that_is_interrupted(spark: SparkSession, tmp_path: Path) -> None:
    known = knowledge(tmp_path)
    engine = Engine(compile(QUERIES), background=known)
    local = [*engine.push_all(EVENTS), *engine.close()]
    assert {m.query for m in local} == {"told", "stuck", "q3", "away", "moved"}
    wanted = sorted(m.id for m in local)
    found = matches(QUERIES, events_from_events(spark, EVENTS), shards=2, background=known)
    assert ids_by_program(found.collect()) == {"": wanted}
    # The atoms that are true, with their ends, are in the checkpoint: alarms of before count after it.
    write_batches(tmp_path / "in", [EVENTS[:6]])
    run(spark, tmp_path, {"": QUERIES}, background=known)
    write_batches(tmp_path / "in", [EVENTS[6:] + THE_END], first=1)
    assert ids_by_program(run(spark, tmp_path, {"": QUERIES}, background=known)) == {"": wanted}
