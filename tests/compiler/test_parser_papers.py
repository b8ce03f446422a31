"""Every query printed in the papers: as printed, or with its misprints repaired in a copy beside the original."""

from __future__ import annotations

from pathlib import Path

import pytest
from etalis_compiler.ast import Aggregate, Binary, Combined, Filter, Group, Operator, Query, TripleTime, Var, walk
from etalis_compiler.parser import QueryError, parse
from etalis_compiler.printer import to_text

PAPERS = Path(__file__).parent / "papers"
# prefixes that the papers use without declaring them
PREFIXES = {
    "ex": "http://example.org/streams/",
    "ssn": "http://purl.oclc.org/NET/ssnx/ssn#",
    "lv": "http://deri.org/floorplan/vocabulary#",
    "uc": "http://example.org/counts#",
}
# what is wrong with those that cannot be read as printed
REFUSED = {
    "ep/5.rq": r"unexpected '\?sum'",
    "ep/6.rq": "the text ends here",
    "req/where-is-axel.rsp-ql.rq": "a comment begins with '#'",
    "req/last-observations.rsp-ql.rq": "the prefix 'due:' is not declared",
    "req/predicate-window.c-sparql.rq": r"write \[RANGE TRIPLES 3\]",
    "req/minus.c-sparql.rq": "line 4, column 7 is not closed",
    "req/minus.cqels.rq": "line 2, column 7 is not closed",
    "req/sequence.cqels.rq": "line 2, column 7 is not closed",
    # other languages: the error says what to write instead
    "req/last-prices.cql.rq": "this is CQL; here the last five triples of a stream are SELECT",
    "req/rescan.sneeql.rq": "this is SNEEql; here a stored graph is read again with FROM",
    "req/repetition.esper.rq": "this is Esper's language",
    "req/facts.esper.rq": "this is Esper's language",
    "req/enter-left-counts.esper.rq": "this is Esper's language",
    "req/count-facts.tef-sparql.rq": "a comment begins with '#'",
}
FILES = sorted(p.relative_to(PAPERS).as_posix() for p in PAPERS.rglob("*.rq"))
DIALECTS = {"c-sparql", "cqels", "sparqlstream", "rsp-ql"}


def read(name: str) -> tuple[Query, ...]:
    return parse((PAPERS / name).read_text(encoding="utf-8"), source=name, prefixes=PREFIXES).queries


def test_the_files_are_there() -> None:
    assert len([f for f in FILES if f.startswith("ep/") and "repaired" not in f]) == 6
    assert len([f for f in FILES if f.startswith("req/") and "repaired" not in f]) == 37


@pytest.mark.parametrize("name", [f for f in FILES if f not in REFUSED])
def test_accepted(name: str) -> None:
    queries = read(name)
    document = parse("\n".join(to_text(query) for query in queries))
    assert document.queries == queries
    spelled = name.split(".")[1]
    if spelled in DIALECTS:
        assert {q.dialect for q in queries} == {spelled}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_printed(name: str) -> None:
    with pytest.raises(QueryError, match=REFUSED[name]) as caught:
        read(name)
    assert caught.value.diagnostics[0].source == name


@pytest.mark.parametrize("name", [f for f in FILES if "repaired" in f])
def test_a_repaired_copy_says_what_was_repaired(name: str) -> None:
    assert "epaired" in (PAPERS / name).read_text(encoding="utf-8").splitlines()[0]
    assert name.replace(".repaired", "") in FILES


def test_ep_1_is_two_steps_of_seq_and_a_filter() -> None:
    (query,) = read("ep/1.rq")
    pattern, condition = query.where.elements
    assert isinstance(pattern, Combined)
    assert isinstance(pattern.left, Combined)
    assert (pattern.operator, pattern.left.operator) == (Operator.SEQ, Operator.SEQ)
    assert isinstance(condition, Filter)


def test_ep_2_keeps_the_optional_part_on_the_left() -> None:
    (query,) = read("ep/2.rq")
    pattern = query.where.elements[0]
    assert (pattern.operator, pattern.left.operator) == (Operator.SEQ, Operator.OPTIONALSEQ)


def test_ep_3_differs_from_its_repair_in_the_comparison() -> None:
    (printed,), (repaired,) = read("ep/3.rq"), read("ep/3.repaired.rq")
    signs = [
        n.operator for q in (printed, repaired) for n in walk(q) if isinstance(n, Binary) and n.left == Var("price2")
    ]
    assert signs == ["<", ">"]


def test_ep_4_is_a_rule_of_one_triple() -> None:
    (query,) = read("ep/4.rq")
    (triple,) = query.form.template
    assert (triple.subject, triple.predicate.spelling, triple.object) == (
        Var("company"),
        "<http://example.org/downratedby>",
        Var("ratingagency"),
    )


def test_ep_5_has_the_filter_in_the_outer_where() -> None:
    _, query = read("ep/5.repaired.rq")
    (inner,) = query.where.elements
    assert [p.variable.name for p in inner.form.projections] == ["count", "sum"]
    pattern, condition = inner.where.elements
    assert pattern.operator is Operator.EQUALSOPTIONAL
    assert isinstance(condition, Filter)


def test_req_equals_and_seq_group_as_intended() -> None:
    (query,) = read("req/equals.ep-sparql.rq")
    inner, _ = query.where.elements
    assert isinstance(inner, Group)
    (pattern,) = inner.elements
    assert (pattern.operator, pattern.left.operator, pattern.right.operator) == (
        Operator.SEQ,
        Operator.EQUALS,
        Operator.EQUALS,
    )


def test_req_repetition_counts_and_compares_times() -> None:
    (query,) = read("req/repetition.c-sparql.rq")
    assert query.form.projections[0].expression == Aggregate("COUNT", None, True)
    assert sum(isinstance(n, TripleTime) for n in walk(query)) == 6


def test_the_counterexample_of_ep_7_is_no_query() -> None:
    """[EP] (7) shows why an operator with the right side optional and later cannot be had."""
    with pytest.raises(QueryError):
        parse("SELECT ?x ?y WHERE ?x ?x ?x . SEQOPTIONAL ?y ?y ?y .")
    with pytest.raises(QueryError, match="there are OPTIONALSEQ"):
        parse("SELECT ?x ?y WHERE { ?x ?x ?x } SEQOPTIONAL { ?y ?y ?y }")
