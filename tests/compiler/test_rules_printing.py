"""Rules as text: in the notation of [EP] §5, complete, and read back to what they were."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.knowledge import KnowledgeSummary
from etalis_compiler.pipeline import compile_documents, compile_sources, rules_of
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.printing import print_rules
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.compiler import golden
from tests.compiler.reading import RulesError, read_rules
from tests.draws import examples
from tests.oracle import strategies
from tests.oracle.strategies import Case

SEQ = "SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y } FILTER (?y > ?x)"


def rules(text: str, policy: str = "unrestricted", knowledge: KnowledgeSummary | None = None) -> ir.Rules:
    return rules_of(compile_sources([Source(text)]), knowledge or KnowledgeSummary(), policy)


def derived(text: str, policy: str = "unrestricted") -> list[str]:
    """The event-driven rules alone."""
    return [line.strip() for line in print_rules(rules(text, policy)).splitlines() if line.startswith(" ")]


# --- the notation of [EP] §5 -----------------------------------------------------------------------------------


def test_a_sequence_is_a_goal_insertion_rule_and_a_checking_rule() -> None:
    """[EP] (11) and (12), with the filter of (13) in the checking rule."""
    assert derived(SEQ)[:2] == [
        "triple(X0, :p, X1)[T1,T2] ← assert(goal(triple(X0, :p, X2), triple(X0, :p, X1)[T1,T2], g1(X0, X1, X2))).",
        "triple(X0, :p, X2)[T3,T4] ← goal(triple(X0, :p, X2), triple(X0, :p, X1)[T1,T2], g1(X0, X1, X2)), "
        "T2 < T3, X2 > X1, g1(X0, X1, X2)[T1,T4].",
    ]


def test_a_consuming_policy_retracts_the_goal() -> None:
    goal = "goal(triple(?c, :p, ?y), triple(?c, :p, ?x)[T1,T2], g1(?c, ?x, ?y))"
    assert derived(SEQ, "recent")[1] == (
        f"triple(?c, :p, ?y)[T3,T4] ← {goal}, T2 < T3, ?y > ?x, latest(T1,T2), retract({goal}), g1(?c, ?x, ?y)[T1,T4]."
    )
    assert "earliest(T1,T2), retract(" in derived(SEQ, "chronological")[1]


def test_symmetrical_joins_have_both_rules_on_both_sides() -> None:
    equals = derived("SELECT * WHERE { ?c :p ?x } EQUALS { ?c :q ?y }")
    assert [line.split(" ← ")[0] for line in equals[:4]] == [
        "triple(X0, :p, X1)[T1,T2]",
        "triple(X0, :q, X2)[T3,T4]",
        "triple(X0, :q, X2)[T3,T4]",
        "triple(X0, :p, X1)[T1,T2]",
    ]
    assert "T1 = T3, T2 = T4" in equals[1]
    assert "g1(X0, X1, X2)[min(T1,T3),max(T2,T4)]" in derived("SELECT * WHERE { ?c :p ?x ; :q ?y }")[1]


def test_an_outer_operator_has_a_rule_for_each_half() -> None:
    lines = derived("SELECT * WHERE { ?c :p ?x } OPTIONALSEQ { ?c :q ?y }")
    goal = "goal(triple(X0, :q, X1), triple(X0, :p, X2)[T3,T4], g1(X0, X1, X2))"
    assert lines[:3] == [
        f"triple(X0, :p, X2)[T3,T4] ← assert({goal}).",
        f"triple(X0, :q, X1)[T1,T2] ← {goal}, T4 < T1, g1(X0, X1, X2)[T3,T2].",
        f"triple(X0, :q, X1)[T1,T2] ← not({goal}, T4 < T1), g1(X0, X1, X2)[T1,T2].",
    ]


def test_windows_background_and_templates() -> None:
    text = "CONSTRUCT { ?c :late _:n } WHERE { ?c :p ?x . ?c a :Ship }"
    known = KnowledgeSummary(predicates=frozenset({"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"}))
    printed = print_rules(rules(text, knowledge=known))
    assert "background({X0 rdf:type :Ship})" in printed
    assert "triple(?c, :late, _:n(?c, ?x))[T1,T2] ← " in printed
    assert "T2 − T1 ≤ PT5M" in derived("SELECT * WHERE { { ?c :p ?x . ?c :q ?y } WITHIN PT5M }")[0]


def test_aggregates() -> None:
    lines = derived("SELECT ?c (AVG(?x) AS ?a) WHERE { ?c :p ?x } WITHIN PT1H GROUP BY ?c HAVING (COUNT(*) > 2)")
    assert lines[0] == (
        "g1(X0, X4)[T5,T6] ← group([X0], triple(X0, :p, X1)[T1,T2] with T − T2 ≤ PT1H, hull [T5,T6]), "
        "X2 is AVG(X1), X3 is COUNT(*), X3 > 2, X4 is X2, changed."
    )


# --- the papers' queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden.CASES)
def test_golden(case: str) -> None:
    path, policy = golden.CASES[case]
    rules = golden.rules_for(path, policy)
    written = golden.file(case).read_text(encoding="utf-8")
    assert golden.header(path) + print_rules(rules, ids=False) == written, "python -m tests.compiler.golden"
    assert read_rules(written) == without_identities(rules)


def without_identities(made: ir.Rules) -> ir.Rules:
    """The queries of rules that are read count by their names if no identity is written."""
    return replace(made, outputs=tuple(replace(output, identity="") for output in made.outputs))


# --- reading ---------------------------------------------------------------------------------------------------

EVERYTHING = [
    SEQ,
    "SELECT ?x WHERE { ?x :p/:q* ?y . ?y !(:r|^:s) 'it\\'s, \"so\"'@en }",
    "SELECT ?x (GROUP_CONCAT(DISTINCT ?y; SEPARATOR=', ') AS ?l) WHERE { ?x :p ?y } WITHIN 3 EVENTS GROUP BY ?x",
    "SELECT DISTINCT ?x WHERE { ?x :p ?y FILTER (EXISTS { ?x :q ?z FILTER (?z > ?y) }) } ORDER BY DESC(?y) LIMIT 3",
    "ASK { ?x :p -5, 007, 1.50, 1e3, true, 'a\\tb\\u2028c', '2020-01-01'^^<http://www.w3.org/2001/XMLSchema#date> }",
    "CONSTRUCT { ?x <urn:odd> [] } WHERE { STREAM <urn:s> { ?x ?p ?y } MINUS { ?x :q ?z } }",
    "REGISTER STREAM <urn:out> AS CONSTRUCT { ?x :q ?y } WHERE { ?x :p ?y } OPTIONALSEQ { ?x :r ?z }",
    "DESCRIBE ?x WHERE { { ?x :p ?y ; :q ?z } WITHIN P1M }",
    "SELECT * WHERE { VALUES (?x ?y) { (UNDEF 1) ('' <urn:a>) } ?x :p ?y BIND (-?y + 1 AS ?z) GRAPH ?g { ?z :q ?w } }",
]


@pytest.mark.parametrize("text", EVERYTHING)
@pytest.mark.parametrize("policy", ["unrestricted", "recent"])
@pytest.mark.parametrize("predicates", [frozenset(), frozenset({"<http://example.org/q>"})])
def test_reading_is_the_inverse_of_printing(text: str, policy: str, predicates: frozenset[str]) -> None:
    made = rules(text, policy, KnowledgeSummary(predicates=predicates))
    assert read_rules(print_rules(made)) == made
    assert read_rules(print_rules(made, {})) == made


@settings(max_examples=examples(2 / 5))
@given(st.one_of(*(make() for make in strategies.ALL.values())))
def test_reading_is_the_inverse_of_printing_for_any_program(case: Case) -> None:
    known = {t[1] for t in case.background.default}
    try:
        compiled = compile_documents([(case.program, Source("", "<case>"))])
        made = rules_of(compiled, KnowledgeSummary(predicates=frozenset(known)), case.policy)
    except QueryError:
        return
    assert read_rules(print_rules(made)) == made


TERMS = st.one_of(
    st.text(max_size=6).map(lambda s: ir.OneOf((s,))),
    st.sampled_from(["q 1", "X0", "none", "true", "?x", "'", "%", "12", "P1D", "_", "e1", '"', "<", "_:b", ""]).map(
        lambda s: ir.OneOf((s,))
    ),
)


@given(TERMS)
@example(ir.OneOf(("_:",)))
def test_any_text_can_stand_in_a_definition(position: ir.OneOf) -> None:
    leaf = ir.Leaf(("~0",), alg.Var("~0"), position, ir.Any(), stream=position.terms[0])
    name = ir.identify(leaf)
    made = ir.Rules(((name, leaf),), (), ((name,),))
    assert read_rules(print_rules(made)) == made


def edited(change: str, into: str) -> str:
    text = print_rules(rules(SEQ))
    assert change in text
    return text.replace(change, into)


def test_ids_and_event_driven_rules_may_be_left_out() -> None:
    made = rules(SEQ)
    bare = [line for line in print_rules(made, ids=False).splitlines() if not line.startswith(" ")]
    assert read_rules("\n".join(bare)) == without_identities(made)


@pytest.mark.parametrize(
    ("change", "into", "message"),
    [
        ("T2 < T3", "T2 > T3", "does not follow from the definition"),
        ("(X2 > X1)", "(X2 < X1)", "does not fit the definition, whose id is j"),
        ("join(seq", "joint(seq", "joint is no kind of node.*did you mean join"),
        ("strata", "% strata", "the text ends without the line 'strata"),
        ("[[e1]", "[[e7]", "the strata and the nodes do not fit"),
        (":= leaf(X0, :p, X1)", ":= leaf(X0, :p)", r"line 4, column \d+: found \), expected ,"),
        ("leaf(X0, :p, X1)", "leaf(X0, dc:p, X1)", "found dc:p, expected"),
        ("[X0], steps", "[X0], step", "step is no further part of join; did you mean steps"),
        ("e1(X0, X2), [X0]", "e1(X0), [X0]", "e1 has 2 columns, 1 are given"),
        (":= leaf(X0, :p, X1)", ":= leaf(X0, '\\x', X1)", "found .*, expected one of"),
        ("[[e1]", "[[e1], " + "[" * 3, "found .*, expected"),
        ("(X2 > X1)", "(" * 20_000, "found the end of the line|nested too deep"),
        ("prefix :", "prefix", "expected a prefix with its colon"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(change: str, into: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        read_rules(edited(change, into))


PIECES = sorted(
    {*print_rules(rules(EVERYTHING[3])).split(), "(", ")", "[", "]", ",", "'", '"', "<", "X9", "%", "g9(X0)"}
)


@given(st.data())
def test_no_mangled_text_raises_anything_else(data: st.DataObject) -> None:
    words = print_rules(rules(EVERYTHING[data.draw(st.sampled_from((0, 3, 5)))])).split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(PIECES), max_size=2))
    with suppress(RulesError):
        read_rules(" ".join(words))
