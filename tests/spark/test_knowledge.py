"""Background knowledge on Spark: OWL rules over streamed triples, and the graphs that FROM chooses."""

from __future__ import annotations

from pathlib import Path

import pytest
from etalis_rules.terms import RDF_TYPE
from pyspark.sql import SparkSession

from etalis_py import event
from etalis_py.knowledge import load
from etalis_py.spark import events_from_events, matches
from tests.spark.programs import embedded, ids_by_program, stream, write_batches
from tests.spark.test_streaming import THE_END, run

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
OWL = "http://www.w3.org/2002/07/owl#"


def test_owl_rules_join_streamed_triples_in_shards(spark: SparkSession) -> None:
    programs = {
        "inverse": "SELECT * { ?x <urn:has> ?y } SEQ { ?x <urn:q> ?z }",
        "transitive": "SELECT * { ?x <urn:r> ?y }",
    }
    schema = [[("<urn:has>", f"<{OWL}inverseOf>", "<urn:p>"), ("<urn:r>", RDF_TYPE, f"<{OWL}TransitiveProperty>")]]
    events = stream(8)
    wanted = {name: embedded(text, events, background=schema, entailment="owlrl") for name, text in programs.items()}
    assert all(wanted.values())
    assert all(wanted[name] != embedded(text, events) for name, text in programs.items())
    found = matches(programs, events_from_events(spark, events), shards=3, background=schema, entailment="owlrl")
    assert ids_by_program(found.collect()) == wanted


def test_from_chooses_the_graphs_that_the_shards_see(spark: SparkSession) -> None:
    body = "{ ?x <urn:p> ?y . ?x <urn:near> ?w } SEQ { ?x <urn:q> ?z }"
    programs = {
        "all": f"SELECT * {{ {body} }}",
        "one": f"SELECT * FROM <urn:g1> {{ {body} }}",
        "two": f"SELECT * FROM <urn:g1> FROM <urn:g2> {{ {body} }}",
        "named": "SELECT * FROM <urn:g1> FROM NAMED <urn:g2> { { ?x <urn:p> ?y . GRAPH ?g { ?x <urn:near> ?w } } "
        "SEQ { ?x <urn:q> ?z } }",
        "derived": "CONSTRUCT { ?w <urn:close> ?x } FROM <urn:g1> { ?x <urn:near> ?w } "
        "SELECT * FROM <urn:g1> { { ?x <urn:p> ?y . ?w <urn:close> ?x } SEQ { ?x <urn:q> ?z } }",
    }
    graphs = {
        "<urn:g1>": [("<urn:x1>", "<urn:near>", "<urn:a>")],
        "<urn:g2>": [("<urn:x1>", "<urn:near>", "<urn:b>"), ("<urn:x2>", "<urn:near>", "<urn:c>")],
    }
    default = [("<urn:x3>", "<urn:near>", "<urn:d>")]
    events = stream(9)
    wanted = {name: embedded(text, events, background=load([default], named=graphs)) for name, text in programs.items()}
    assert len({tuple(ids) for ids in wanted.values()}) == len(programs)
    assert all(wanted.values())
    found = matches(programs, events_from_events(spark, events), shards=2, background=load([default], named=graphs))
    assert ids_by_program(found.collect()) == wanted


def test_schema_and_background_entail_what_shards_join(spark: SparkSession) -> None:
    """A type that a domain gives to a streamed subject joins one that the background states."""
    schema = load(
        [
            [
                ("<urn:p>", "<http://www.w3.org/2000/01/rdf-schema#domain>", "<urn:Made>"),
                ("<urn:x1>", RDF_TYPE, "<urn:Known>"),
            ]
        ]
    )
    text = f"SELECT ?x {{ ?x {RDF_TYPE} <urn:Made> . ?x {RDF_TYPE} <urn:Known> }}"
    events = [event("<urn:x1> <urn:p> 1", 1), event("<urn:x2> <urn:p> 1", 2)]
    wanted = embedded(text, events, background=schema)
    assert len(wanted) == 1
    found = matches(text, events_from_events(spark, events), shards=2, background=schema)
    assert ids_by_program(found.collect()) == {"": wanted}


def test_a_large_background_reaches_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """More than a megabyte of it, which Spark would not take with the operator; broadcast once, for both programs."""
    known = load([[(f"<urn:thing:{n:030}>", "<urn:in>", f"<urn:place:{n % 7:030}>") for n in range(12_000)]])
    text = "SELECT ?x {{ {{ ?x <urn:in> <urn:place:{:030}> . ?x <urn:p> ?y }} SEQ {{ ?x <urn:q> ?z }} }}"
    programs = {"1": text.format(1), "2": text.format(2)}
    events = [
        event(f"<urn:thing:{n % 20:030}> <urn:{predicate}> {n}", 2 * n + later)
        for n in range(20)
        for later, predicate in enumerate("pq")
    ]
    wanted = {name: embedded(one, events, background=known) for name, one in programs.items()}
    assert [len(ids) for ids in wanted.values()] == [3, 3]
    write_batches(tmp_path / "in", [events, THE_END])
    assert ids_by_program(run(spark, tmp_path, programs, background=known)) == wanted
