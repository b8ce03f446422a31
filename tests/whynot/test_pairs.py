"""Two conditions can be taken away together, also where they stand at one node."""

from __future__ import annotations

from itertools import combinations

import pytest
from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.traversal import walk

from etalis_py import compile, event
from etalis_py.whynot.conditions import conditions, without_conditions
from etalis_py.whynot.titles import Titles

OPTIONAL = "{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER (?z > 3 && ?y != ?z && ?y < 9) } }"


def test_an_optional_part_and_its_filters() -> None:
    plan = compile(f"SELECT * {OPTIONAL}").compilation.queries[0].algebra.pattern
    every = conditions(plan, Titles(Spelling()))
    filters = [condition for condition in every if condition.kind == "filter"]
    assert len(filters) == 3
    for pair in combinations(every, 2):
        relaxed = without_conditions(plan, pair)
        marks = {part.variable for part in walk(relaxed) if isinstance(part, alg.Extend)}
        assert marks >= {c.mark + m for c in pair if c.kind == "filter" for m in c.marks}
        tests = [p.conditions for p in walk(relaxed) if isinstance(p, alg.Filter)]
        tests += [p.condition for p in walk(relaxed) if isinstance(p, alg.Outer)]
        assert [len(each) for each in tests] == [3 - sum(condition in filters for condition in pair)]


def test_what_refuses_all_is_named() -> None:
    program = compile(f"SELECT * {{ {OPTIONAL} FILTER (?y > 100) }}")
    report = program.why_not([event(":a :p 4", 1), event(":a :q 5", 2)])
    assert report.blames[0].kinds == ("filter",)


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("{ ?u :p ?x } SEQ OPTIONAL { ?u :q ?y } SEQ { ?u :r ?z }", "absence"),
        ("{ ?u :p ?x } SEQ OPTIONAL { ?u :q ?y } WITHIN 2 s", "absence"),
        ("{ { ?u :p ?x } SEQ NOT { ?u :q ?y } SEQ { ?u :r ?z } } UNION { ?u :r ?z }", "absence"),
        ("{ { ?u :p ?x } SEQ { ?u :r ?z } NOT { ?u :q ?y } } UNION { ?u :r ?z }", "absence"),
        ("{ { ?u :p ?x } REPEAT 2 BY ?u } UNION { ?u :r ?x }", "repeat"),
    ],
)
def test_a_solution_of_another_branch_is_not_what_a_condition_refuses(where: str, kind: str) -> None:
    program = compile(f"SELECT * {{ {where} }}")
    report = program.why_not([event(":a :p 1", 1), event(":a :q 2", 2), event(":a :r 3", 3)])
    [blame] = [blame for blame in report.blames if blame.kinds == (kind,)]
    assert blame.refused == 1


def test_the_points_that_maximal_takes_are_not_shown_as_a_within_of_the_text() -> None:
    """Of a run that a clock or a NOT may end, the elements are points; nobody has written WITHIN 0 s."""
    run = "{ ?u :p ?x } REPEAT 2 OR MORE BY ?u GAP 3 s MAXIMAL AS (COUNT(*) AS ?n)"
    program = compile(f"SELECT * {{ {{ {run} }} SEQ {{ ?u :r ?z }} }}")
    report = program.why_not([event(":a :p 1", 1), event(":a :p 2", 2), event(":a :r 3", 3)])
    assert report.blames[0].conditions == ("{ { ?u :p ?x } REPEAT 2 OR MORE BY ?u } SEQ { ?u :r ?z }",)
