"""Where an upper bound of the duration goes in outer joins, and where it must not go."""

from __future__ import annotations

import random

import pytest
from etalis_compiler.knowledge import NO_KNOWLEDGE, KnowledgeSummary
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import POLICIES
from etalis_compiler.rewrites.push_windows import Surroundings, push_select_windows
from etalis_rules import algebra as alg

from etalis_py import Engine, Event, compile, event
from tests.draws import seeds
from tests.engine.judge import agree, in_rows_and_columns
from tests.oracle import Background
from tests.oracle.strategies import Case
from tests.oracle.traces import at, run

TWO_DAYS = '"P2D"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>'
EX = "http://example.org/"


def query(operator: str) -> str:
    return (
        f"SELECT * {{ {{ ?x :p ?a }} {operator} {{ {{ ?x :q ?b }} SEQ {{ ?x :r ?c }} }} "
        f"FILTER (getDURATION() <= {TWO_DAYS}) }}"
    )


def bounded(text: str, knowledge: KnowledgeSummary = NO_KNOWLEDGE, consuming: bool = False) -> set[str]:
    """The predicates of the triple patterns that have a bound; the first one of several that have one together."""
    select = compile(text).compilation.queries[0].algebra
    pushed = push_select_windows(select, Surroundings(knowledge, consuming))
    return {
        node.child.triples[0].predicate.term.rsplit("/", 1)[1][:-1]
        for node in _walk(pushed.pattern)
        if isinstance(node, alg.Within) and isinstance(node.child, alg.BGP)
    }


def _walk(pattern: object) -> list[object]:
    inner = [getattr(pattern, name, None) for name in ("child", "left", "absent", "right", "mandatory", "optional")]
    return [pattern, *(node for part in inner if part is not None for node in _walk(part))]


def test_both_sides_of_equalsoptional_are_bounded() -> None:
    assert bounded(query("EQUALSOPTIONAL")) == {"p", "q", "r"}


def test_only_the_mandatory_side_of_the_others_is_bounded() -> None:
    assert bounded(query("OPTIONAL")) == {"p"}
    assert bounded(query("OPTIONALSEQ")) == {"q", "r"}


@pytest.mark.parametrize("predicates", [None, frozenset({f"<{EX}p>"})], ids=["anything", "p"])
def test_the_optional_side_is_free_where_the_mandatory_one_may_be_timeless(predicates: frozenset[str] | None) -> None:
    assert not bounded(query("EQUALSOPTIONAL"), KnowledgeSummary(predicates=predicates)) & {"q", "r"}


def test_a_background_without_the_predicates_changes_nothing() -> None:
    elsewhere = KnowledgeSummary(predicates=frozenset({f"<{EX}sector>"}))
    assert bounded(query("EQUALSOPTIONAL"), elsewhere) == {"p", "q", "r"}


def test_a_consuming_policy_keeps_the_plan_as_it_is_defined() -> None:
    assert bounded(query("EQUALSOPTIONAL"), consuming=True) == {"p"}


UP_TO_2_DAYS = f"FILTER (getDURATION() <= {TWO_DAYS})"
JOINED = "{ { ?x :q ?b } SEQ { ?x :r ?c } }"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"{{ ?x :p ?a }} SEQ NOT {JOINED} SEQ {{ ?x :s ?d }} {UP_TO_2_DAYS}", {"p", "q", "r", "s"}),
        (f"{{ ?x :p ?a }} SEQ NOT {{ ?x :q ?b ; :r ?c }} SEQ {{ ?x :s ?d }} {UP_TO_2_DAYS}", {"p", "q", "s"}),
        (f"{{ ?x :p ?a }} SEQ NOT {{ ?x :q ?b }} SEQ {{ ?x :s ?d }} {UP_TO_2_DAYS}", {"p", "s"}),
        (f"{{ ?x :p ?a }} SEQ NOT {JOINED} WITHIN 2 DAYS", {"q", "r"}),
        (f"{{ ?x :p ?a {UP_TO_2_DAYS} }} NOT {JOINED}", {"p", "q", "r"}),
        (f"{{ ?x :p ?a }} SEQ OPTIONAL {JOINED} WITHIN 2 DAYS", {"q", "r"}),
        (f"{{ ?x :p ?a }} REPEAT 2 NOT {JOINED} {UP_TO_2_DAYS}", set()),
        (f"{{ ?x :p ?a }} NEXT {JOINED} {UP_TO_2_DAYS}", {"p"}),
    ],
)
def test_what_is_absent_lasts_no_longer_than_what_it_would_rule_out(where: str, expected: set[str]) -> None:
    assert bounded(f"SELECT * {{ {where} }}") == expected


@pytest.mark.parametrize(
    "absent", [JOINED, "{ ?x :q ?b ; :r ?c }", "{ { ?x :q ?b } NOT { ?x :r ?c } }", "{ ?x :q ?b }"]
)
@pytest.mark.parametrize(
    ("where", "policies"),
    [
        ("{ { ?x :p ?a } SEQ NOT # SEQ { ?x :s ?d } } WITHIN 3 s", POLICIES),
        ("{ ?x :p ?a } SEQ NOT # WITHIN 3 s", POLICIES),
        ("{ { ?x :p ?a } SEQ { ?x :s ?d } } NOT #", POLICIES),
        ("{ { { ?x :p ?a } SEQ { ?x :s ?d } } WITHIN 3 s } NOT #", POLICIES),
        ("{ { ?x :p ?a } SEQ OPTIONAL # SEQ { ?x :s ?d } } WITHIN 3 s", POLICIES),
        ("{ ?x :p ?a } SEQ OPTIONAL # WITHIN 3 s", ("unrestricted",)),
        ("{ ?x :p ?a } REPEAT 2 OR MORE NOT # WITHIN 3 s", POLICIES),
    ],
)
def test_what_is_absent_and_just_long_enough_counts(where: str, policies: tuple[str, ...], absent: str) -> None:
    text = f"PREFIX : <{EX}> SELECT * {{ {where.replace('#', absent)} }}"
    draw = random.Random(f"{where}{absent}")
    for _ in seeds(6):
        events = []
        for t in range(4, 20):  # mostly in the order in which something is ruled out
            name, predicate = draw.choice("aaab"), "pqrs"[t % 4] if draw.random() < 0.8 else draw.choice("pqrs")
            events.append(event(f":{name} :{predicate} {t}", (t - draw.choice((0, 0, 0, 1, 3)), t)))
        for policy in policies:
            agree(Case(parse(text), tuple(events), policy=policy))


DAY = 86_400
LONG = [event(":s :q 1", 0), event(":s :p 1", (0, 3 * DAY)), event(":s :r 1", 3 * DAY)]
SHORT = [event(":s :q 1", 0), event(":s :p 1", (0, DAY)), event(":s :r 1", DAY)]
OLD = [event(":s :q 1", 0), event(":s :r 1", DAY), event(":s :p 1", 4 * DAY)]


@pytest.mark.parametrize("operator", ["EQUALSOPTIONAL", "OPTIONAL", "OPTIONALSEQ"])
@pytest.mark.parametrize("kind", ["unrestricted", "recent", "timeless"])
@pytest.mark.parametrize("events", [LONG, SHORT, OLD], ids=["long", "short", "old"])
def test_no_answer_changes(operator: str, kind: str, events: list[Event]) -> None:
    """A partner that is too old, or too long for a timeless solution, is still a partner."""
    program = parse(f"PREFIX : <{EX}> " + query(operator))
    background = Background(default=frozenset({(f"<{EX}s>", f"<{EX}p>", '"7"')} if kind == "timeless" else ()))
    agree(Case(program, tuple(events), background, "recent" if kind == "recent" else "unrestricted"))


@pytest.mark.parametrize(
    "group",
    [
        "{ { ?x :p ?a } SEQ { ?x :r ?c } } WITHIN 5 s",
        "{ { { ?x :p ?a } SEQ { ?x :r ?c } } WITHIN 5 s FILTER (?c > 0) BIND (1 AS ?one) }",
        "{ { { ?x :p ?a } SEQ { ?x :r ?c } } WITHIN 5 s } NOT { ?x :s ?d }",
        "{ { { ?x :p ?a } SEQ { ?x :r ?c } } WITHIN 5 s } DISJOINT BY ?x",
        '{ { ?x :p ?a } SEQ { ?x :r ?c } FILTER (getDURATION() <= "PT5S"^^xsd:dayTimeDuration) }',
    ],
)
def test_what_must_not_lie_inside_a_bounded_group_is_forgotten_after_the_bound(group: str) -> None:
    text = f"SELECT ?x {{ {{ {group} }} NOT {{ ?x :q ?b }} }}"
    events = [at(1, "a p 1"), at(2, "a q 1"), at(3, "a r 1"), *(at(t, f"k{t} q 1") for t in range(4, 60))]
    events += [at(60, "a p 1"), at(62, "a r 1")]
    assert [run(text, *events)] * 2 == in_rows_and_columns(text, *events)
    engine = Engine(f"PREFIX : <urn:> {text}", sweep_every=1)
    engine.push_all(events)
    assert engine.counters.goals < 15
    assert all("every solution of the NOT" not in str(warning) for warning in compile(text).check())


AVERAGE = "{ SELECT ?x (COUNT(*) AS ?n) { ?x :p ?a } WITHIN 10 s GROUP BY ?x }"
UP_TO_2 = 'FILTER (getDURATION() <= "PT2S"^^xsd:dayTimeDuration)'


@pytest.mark.parametrize(
    "where",
    [
        f"{{ {{ {{ ?x :q ?b }} SEQ {AVERAGE} }} WITHIN 2 s }}",
        f"{{ {{ {{ ?x :q ?b }} {AVERAGE} }} WITHIN 2 s }}",
        f"{{ {{ {{ ?x :q ?b }} SEQ {{ ?x :s ?d }} SEQ {AVERAGE} }} WITHIN 2 s }}",
        f"{{ ?x :q ?b {UP_TO_2} }} OPTIONALSEQ {AVERAGE}",
        f"{AVERAGE} OPTIONAL {{ ?x :q ?b {UP_TO_2} }}",
    ],
)
def test_what_a_row_known_late_is_joined_with_is_kept_as_long(where: str) -> None:
    """The count of a changes to 1 at 14, when the p of 1 has left the window: a row of [5, 5]."""
    events = [at(1, "a p 1"), at(3, "a q 7"), at(4, "a s 8"), at(5, "a p 2")]
    events += [*(at(t, f"b r {t}") for t in range(6, 14)), at(14, "b p 3")]
    text = f"SELECT ?x ?n ?b {{ {where} }}"
    expected = run(text, *events)
    assert [row for row, *times in expected if "b=7" in row.split() and times == [3.0, 5.0]]
    assert in_rows_and_columns(text, *events) == [expected] * 2
