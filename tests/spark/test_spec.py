"""What travels to the executors is the whole program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import Compilation, CompiledQuery
from etalis_compiler.rewrites.reorder import AS_WRITTEN

from etalis_py import Program, compile
from etalis_py.knowledge import Knowledge, load
from etalis_py.spark import SparkError
from etalis_py.spark.plan.spec import ProgramSpec, engine_of, meaning, spec_of, unpack

SEQ = "SELECT * { ?x <a> ?y } SEQ { ?x :q ?z } SEQ { ?x :r ?w }"
OTHER = "PREFIX : <urn:other/> SELECT * { ?x <a> ?y } SEQ { ?x :q ?z }"

UNUSUAL = compile(
    [SEQ, OTHER, "CONSTRUCT { ?x :d _:b } { ?x :q ?y }"],
    policy="recent",
    base="urn:base/",
    prefixes={"": "urn:empty/"},
    rates={"urn:empty/r": 5.0},
)
"""A program in which nothing that can be set is as it is by default."""

WINDOWED = compile(
    [
        "CONSTRUCT FACT Stay { ?x :in ?r } (UNION (SINCE ?x :enter ?r) (TILL ?x :leave ?r))",
        "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5 SLIDE 1] { WINDOW :w { ?x :p ?y } }",
        "REGISTER QUERY all AS SELECT ?x FROM NAMED WINDOW :w ON :s [IDENTITY] { WINDOW :w { ?x :p ?y } }",
        "SELECT * { ?x :q ?y }",
    ],
    policy="recent",
    preset="c-sparql",
)
"""The same for the fields that only programs with windows have."""

CARRIED: dict[type, dict[str, Callable[[object], bool]]] = {
    Program: {
        "compilation": lambda p: bool(p.compilation.queries),  # type: ignore[attr-defined]
        "policy": lambda p: p.policy == "recent",  # type: ignore[attr-defined]
        "plans": lambda p: p is UNUSUAL or len(p.plans) == 2,  # type: ignore[attr-defined]
        "facts": lambda p: p is UNUSUAL or len(p.facts) == 1,  # type: ignore[attr-defined]
        "documents": lambda p: len(p.documents) > 2,  # type: ignore[attr-defined]
        "preset": lambda p: p is UNUSUAL or p.preset == "c-sparql",  # type: ignore[attr-defined]
        "doubts": lambda p: p is UNUSUAL or bool(p.doubts),  # type: ignore[attr-defined]
        "_rules": lambda p: True,  # made again where they are wanted
    },
    Compilation: {
        "queries": lambda c: len(c.queries) == 3,  # type: ignore[attr-defined]
        "warnings": lambda c: True,  # said to the user before anything is sent
    },
    CompiledQuery: {
        "name": lambda q: bool(q.name),  # type: ignore[attr-defined]
        "syntax": lambda q: q.syntax is not None,  # type: ignore[attr-defined]
        "algebra": lambda q: q.algebra is not None,  # type: ignore[attr-defined]
        "source": lambda q: bool(q.source.text),  # type: ignore[attr-defined]
        "template": lambda q: q.name != "q3" or bool(q.template),  # type: ignore[attr-defined]
        "prefixes": lambda q: ("", "urn:other/" if q.name == "q2" else "urn:empty/") in q.prefixes,  # type: ignore[attr-defined]
        "coupling": lambda q: q.coupling != AS_WRITTEN,  # type: ignore[attr-defined]
        "base": lambda q: q.base == "urn:base/",  # type: ignore[attr-defined]
        "identity": lambda q: q.identity not in ("", q.name),  # type: ignore[attr-defined]
    },
}
"""Each field of a program with what makes it an unusual one in the sample above."""


@pytest.mark.parametrize("kind", CARRIED)
def test_no_field_of_a_program_is_forgotten(kind: type) -> None:
    """A new field has to be carried by ``spec``, given an unusual value in the sample, and entered above."""
    assert {f.name for f in fields(kind)} == set(CARRIED[kind])
    samples: dict[type, list[object]] = {
        Program: [UNUSUAL, WINDOWED],
        Compilation: [UNUSUAL.compilation],
        CompiledQuery: list(UNUSUAL.compilation.queries),
    }
    for sample in samples[kind]:
        for name, is_unusual in CARRIED[kind].items():
            assert is_unusual(sample), name


def arrived(spec: ProgramSpec) -> tuple[CompiledQuery, ...]:
    """The queries as a worker has them."""
    [program] = engine_of(spec, UNUSUAL.queries).programs.values()
    return program.compilation.queries


def test_every_field_arrives() -> None:
    assert arrived(spec_of(UNUSUAL, "", None)) == UNUSUAL.compilation.queries


def test_a_program_with_windows_arrives() -> None:
    spec = spec_of(WINDOWED, "", None)
    [program] = engine_of(spec, WINDOWED.queries).programs.values()
    assert meaning(program) == meaning(WINDOWED)
    assert program.policy == "recent"


def test_the_policy_arrives() -> None:
    [program] = engine_of(spec_of(UNUSUAL, "", None), ["q1"]).programs.values()
    assert program.policy == "recent"


def test_the_plan_that_was_chosen_by_rates_arrives() -> None:
    text = "SELECT * { ?x <urn:a> ?y } SEQ { ?x <urn:b> ?z } SEQ { ?x <urn:c> ?w }"
    chosen = compile(text, rates={"urn:a": 1000.0, "urn:b": 1.0, "urn:c": 1.0})
    assert chosen.rules().outputs != compile(text).rules().outputs
    assert engine_of(spec_of(chosen, "", None), chosen.queries).rules.outputs == chosen.rules().outputs


def test_a_name_from_outside_counts_in_the_ids_of_workers_too() -> None:
    program = compile(Source("ASK { ?x <urn:p> ?y }", "any.rq", named=True))
    [output] = engine_of(spec_of(program, "", None), program.queries).rules.outputs
    assert (output.query, output.identity) == ("any", "any")


def test_equal_texts_are_two() -> None:
    program = compile(["ASK { ?x <urn:p> ?y }", "ASK { ?x <urn:p> ?y }"])
    assert program.queries == ("q1", "q2")
    assert {o.query for o in engine_of(spec_of(program, "", None), program.queries).outputs} == {"q1", "q2"}


def test_what_cannot_be_carried_is_refused() -> None:
    [query] = compile("SELECT * { ?x <urn:p> ?y }").compilation.queries
    other = replace(query, template=UNUSUAL.compilation.queries[2].template)
    with pytest.raises(SparkError, match="the template of query q1"):
        spec_of(Program(Compilation((other,))), "", None)
    with pytest.raises(SparkError, match="its queries are q3, and would be q1"):
        spec_of(Program(Compilation(UNUSUAL.compilation.queries[2:], ())), "", None)


def test_every_graph_of_the_background_arrives() -> None:
    triple = ("<urn:a>", "<urn:p>", "<urn:b>")
    knowledge = load([[triple]], named={"<urn:g>": [[triple]]}, entailment="rdf")
    spec = spec_of(UNUSUAL, "", knowledge)
    back = unpack(spec.background)
    assert isinstance(back, Knowledge)
    assert (back.entailment, list(back.names())) == ("rdf", ["<urn:g>"])
    assert [set(back.stated(name)) for name in ("", "<urn:g>")] == [{triple}, {triple}]
