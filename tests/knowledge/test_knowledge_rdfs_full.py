"""``rdfs-full``: all rules of RDFS for the background, against the rules applied literally (RDF 1.1 Semantics §9)."""

from __future__ import annotations

from pathlib import Path

from etalis_rules.terms import RDF, RDF_TYPE, RDFS

from etalis_py import Engine, event
from etalis_py.knowledge import load
from etalis_py.knowledge.full_rdfs import axioms
from tests.knowledge.rdfs_by_definition import CLASS, PROPERTY, RESOURCE, SUB_CLASS, SUB_PROPERTY, full_closure

FACTS = {
    ("<urn:Gull>", SUB_CLASS, "<urn:Bird>"),
    ("<urn:eats>", f"<{RDFS}domain>", "<urn:Animal>"),
    ("<urn:eats>", SUB_PROPERTY, "<urn:needs>"),
    ("<urn:jonathan>", RDF_TYPE, "<urn:Gull>"),
    ("<urn:jonathan>", "<urn:eats>", "_:fish"),
    ("<urn:list>", f"<{RDF}_3>", '"three"'),
}


def small_axioms(facts: set) -> set:
    """Those about the datatypes say the same of each: three are enough to compare with, and quicker."""
    terms = {term for triple in facts for term in triple}
    return {t for t in axioms(terms) if "XMLSchema" not in t[0]}


def test_the_closure_is_the_least_fixpoint() -> None:
    closed = set(load(sorted(FACTS), entailment="rdfs-full", cache=False).default.match(None, None, None))
    compared = {t for t in closed if not any("XMLSchema" in term for term in t)}
    assert compared == full_closure(FACTS, small_axioms(FACTS))


def test_what_rdfs_leaves_out() -> None:
    full = load(sorted(FACTS), entailment="rdfs-full", cache=False).default
    plain = load(sorted(FACTS), cache=False).default
    left_out = [
        ("<urn:eats>", RDF_TYPE, PROPERTY),  # rdfD2
        ("<urn:jonathan>", RDF_TYPE, RESOURCE),  # rdfs4a
        ("<urn:eats>", SUB_PROPERTY, "<urn:eats>"),  # rdfs6
        ("<urn:Gull>", SUB_CLASS, RESOURCE),  # rdfs8
        ("<urn:Bird>", SUB_CLASS, "<urn:Bird>"),  # rdfs10
        (RESOURCE, RDF_TYPE, CLASS),
    ]
    for triple in left_out:
        assert full.contains(*triple), triple
        assert not plain.contains(*triple), triple


def test_updates_equal_a_rebuild() -> None:
    facts = sorted(FACTS)
    changed = load(facts[:3], entailment="rdfs-full", cache=False)
    changed.update("", facts[3:], facts[:1])
    rebuilt = load(facts[1:], entailment="rdfs-full", cache=False)
    assert set(changed.default.match(None, None, None)) == set(rebuilt.default.match(None, None, None))


def test_streamed_triples_are_entailed_by_the_schema(tmp_path: Path) -> None:
    """As under rdfs; that a streamed term is a resource is said of the background alone."""
    query = "SELECT ?c { ?x a ?c }"
    engine = Engine(query, background=sorted(FACTS), entailment="rdfs-full")
    streamed = event("<urn:x> a <urn:Gull>", 1)
    found = [m.bindings["c"] for m in [*engine.push(streamed), *engine.close()] if m.start == 1]
    assert {"<urn:Gull>", "<urn:Bird>"} <= set(found)


def test_a_cached_closure_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_text("".join(f"{' '.join(triple)} .\n" for triple in sorted(FACTS)))
    sizes = {len(load([path], entailment="rdfs-full", cache=tmp_path / "cache").default) for _ in range(2)}
    assert len(sizes) == 1
