"""``explain``: the plan, the rules, and what follows from them."""

from __future__ import annotations

import json
import re

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.explain import Explanation, explain
from etalis_compiler.knowledge import KnowledgeSummary
from etalis_compiler.pipeline import compile_sources, rules_of

from etalis_py import compile
from tests.compiler import golden

RISE = 'SELECT ?c WHERE {{ ?c :p ?x }} SEQ {{ {0} :p ?y }} FILTER (?y > ?x && getDURATION() < "P30D"^^xsd:duration)'


def explained(text: str, policy: str = "unrestricted", knowledge: KnowledgeSummary | None = None) -> Explanation:
    return explain(rules_of(compile_sources([Source(text)]), knowledge or KnowledgeSummary(), policy))


def section(text: str, title: str) -> list[str]:
    """The lines of a section of the text."""
    lines = text.split("\n")
    start = lines.index(title) + 1
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    return [line.strip() for line in lines[start:end]]


def tree(text: str) -> list[str]:
    return text.split("\n\n")[0].split("\n")


def test_a_rise_is_two_goals_with_the_window_pushed_and_a_shard_key() -> None:
    text = str(explained(RISE.format("?c")))
    assert tree(text) == [
        "query q1(?c): select",
        "└─ g1 SEQ, on ?c, T4 − T1 < P30D, ?y > ?x",
        "   ├─ e1 triple(?c, :p, ?x)",
        "   └─ e1 triple(?c, :p, ?y)",
    ]
    assert section(text, "windows") == ["g1 joins what lasts < P30D, and drops the goals that are older"]
    assert section(text, "shards")[0] == "q1: by ?c"
    assert "kept for ever" not in text


def test_without_a_common_variable_it_says_why_it_cannot_be_sharded() -> None:
    text = str(explained(RISE.format("?d")))
    assert section(text, "shards") == [
        "q1: one shard, because in e1 SEQ e2 no variable is shared, so any two solutions may belong together (g1)",
        "stage 1: one shard; reports q1",
    ]
    assert "g1 SEQ, on nothing: a cross product" in text


def test_a_consuming_policy_shows_the_left_deep_plan_with_each_conjunct_at_its_node() -> None:
    rules = golden.rules_for("ep/1.rq", "recent")
    assert [re.sub(r"\b[eg]\d+ ", "", line) for line in tree(str(explain(rules)))] == [
        "query ep-1(?company): select, policy recent",
        "└─ SEQ, on ?company, T4 − T1 < P30D, ?price3 > (?price1 * 1.05), recent",
        "   ├─ SEQ, on ?company, T4 − T1 < P30D, ?price2 < (?price1 * 0.7), recent",
        "   │  ├─ triple(?company, :hasStockPrice, ?price1)",
        "   │  └─ triple(?company, :hasStockPrice, ?price2)",
        "   └─ triple(?company, :hasStockPrice, ?price3)",
    ]


def test_equals_binds_tighter_than_seq() -> None:
    """[REQ]'s query: (A EQUALS B) SEQ (C EQUALS D)."""
    lines = tree(str(explain(golden.rules_for("req/equals.ep-sparql.rq", "recent"))))
    operators = [line.replace("│", " ") for line in lines if " SEQ" in line or " EQUALS" in line]
    assert [line.strip("├└─ ").split()[1].strip(",") for line in operators] == ["SEQ", "EQUALS", "EQUALS"]
    depths = [len(line) - len(line.lstrip("├└─ ")) for line in operators]
    assert depths[0] < depths[1] == depths[2]


def test_shared_goals_name_the_queries() -> None:
    same = "SELECT * { { ?a :p ?x } SEQ { ?a :q ?y } } "
    text = str(explained(same + "SELECT * { { ?c :p ?v } SEQ { ?c :q ?w } SEQ { ?c :r ?u } }"))
    assert section(text, "shared goals") == ["g1 is part of q1, q2"]


def test_unbounded_state_and_absence_in_all_the_past() -> None:
    text = str(explained("SELECT * { ?c :p ?x OPTIONAL { ?c :q ?y } }"))
    (line,) = section(text, "kept for ever")
    assert line.startswith("g1 keeps every solution of e2: absence is absence in all the past")


def test_the_history_that_having_looks_back_at_is_kept_for_ever() -> None:
    query = "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } WITHIN PT1H GROUP BY ?c HAVING (EXISTS { ?c :q ?y })"
    (line,) = section(str(explained(query)), "kept for ever")
    assert "keeps every occurrence of" in line


def test_what_is_asked_of_the_background() -> None:
    known = KnowledgeSummary(predicates=frozenset({"<http://example.org/q>"}))
    text = str(explained("SELECT * { ?c :p ?x . ?c :q ?y }", knowledge=known))
    assert "asks {X0 :q X2}" in "\n".join(section(text, "asked of the background"))


def test_recursion_is_named() -> None:
    text = str(explained("CONSTRUCT { ?x :r ?z } { ?x :r ?y . ?y :r ?z }"))
    assert "query q1" in section(text, "recursion within an instant")[0]
    assert "q1: one shard, because the join on X1 needs" in section(text, "shards")[0]


@pytest.mark.parametrize("case", golden.CASES)
def test_the_papers_queries_as_text_data_and_graph(case: str) -> None:
    x = explain(golden.rules_for(*golden.CASES[case]))
    data = json.loads(json.dumps(x.to_dict()))
    names = {node["name"] for node in data["nodes"]}
    assert all(set(node["from"]) <= names for node in data["nodes"])
    assert {q["query"] for q in data["queries"]} == {o.query for o in x.rules.outputs}
    assert [s["number"] for s in data["stages"]] == [*range(1, len(data["stages"]) + 1)]
    assert all(rule in str(x) for node in data["nodes"] for rule in node["rules"])
    dot = x.to_dot()
    assert dot.count("{") == dot.count("}")
    assert all(f"  {name} [" in dot for name in names)


def test_a_derived_triple_is_a_dashed_arrow() -> None:
    dot = explained("CONSTRUCT { ?c :d ?x } { ?c :p ?x } SELECT ?c { ?c :d ?z }").to_dot()
    assert "  q1 -> e2 [style=dashed];" in dot


def test_repr_of_a_program_is_its_explanation() -> None:
    program = compile("SELECT ?c { ?c stock:p ?x } SEQ { ?c stock:q ?y }", prefixes={"stock": "http://ex.org/s#"})
    assert repr(program) == str(program.explain())
    assert "triple(?c, stock:p, _)" in repr(program)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?c { ?c :p ?x } SEQ { ?c :q ?y }", "run in columns"),
        ("CONSTRUCT { ?x :d ?z } { ?x :d ?y . ?y :p ?z } SELECT ?x { ?x :d ?y }", "run in columns"),
        (
            "CONSTRUCT { ?x :d ?z } { ?x :d ?y . ?y :p ?z FILTER (?z > ?y) } SELECT ?x { ?x :d ?y }",
            "q2 runs in columns\nq1 runs in rows, because the rules q1 are recursive",
        ),
        (
            "CONSTRUCT { ?x :d ?z } { ?x :d ?y . ?y :p ?z FILTER (?z > ?y) }",
            "run in rows, because the rules q1 are recursive",
        ),
    ],
)
def test_it_says_how_large_batches_run(query: str, expected: str) -> None:
    explanation = compile(query).explain()
    assert str(explanation).endswith("\n\nlarge batches\n  " + expected.replace("\n", "\n  "))
    assert explanation.to_dict()["large_batches"] == expected


@pytest.mark.parametrize(
    "where",
    [
        "{ START } SEQ NOT { ?m :p ?x } WITHIN 4 s",
        "{ START } SEQ OPTIONAL { ?m :p ?x } WITHIN 4 s",
        "{ { START } NEXT { ?m :p ?x } } WITHIN 4 s",
        "{ { START } SEQ NOT { ?m :p ?x } SEQ { ?m :q ?x } } WITHIN 4 s",
    ],
)
def test_lengths_after_start_are_told_as_they_are_written(where: str) -> None:
    """START ends a microsecond before the time that it names, which the rules show and the plan does not."""
    text = str(explained(f"SELECT * {{ {where} }}"))
    plan, rest = text.split("\nrules\n")
    assert "PT4S" in plan
    assert "PT4.000001S" in rest
    assert "PT4.000001S" not in plan + rest.split("\nwindows\n")[1]
