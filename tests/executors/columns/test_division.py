"""Programs of which one part runs in columns and another in rows: who takes whom along, and that nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.parser import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, Program, compile
from etalis_py.executors.columns import executor as executor_of_columns
from etalis_py.executors.columns import rows_or_columns
from etalis_py.executors.columns.network import Network
from etalis_py.kernel.batch import Batch
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.executors.columns.judge import agree, batches, rule_executors
from tests.oracle import strategies
from tests.oracle.strategies import Case

pytestmark = pytest.mark.usefixtures("forgetful")

SECOND = 1_000_000
MORE = parse(
    """REGISTER QUERY more AS SELECT ?s ?o WHERE { ?s <urn:d> ?o }
    REGISTER QUERY again AS SELECT ?s ?o WHERE { { ?s <urn:p> ?o } SEQ { ?s ?p ?u } }"""
)
FAST = "SELECT ?x ?y WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y } }"
OF_R = "SELECT ?x WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:r> ?y } }"
SAME_GOALS = "SELECT DISTINCT ?x ?y WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y } }"
FIRST = "CONSTRUCT { ?c <urn:d1> ?x } WHERE { ?c <urn:p> ?x }"
SECOND_RULE = "CONSTRUCT { ?c <urn:d2> ?y } WHERE { { ?c <urn:d1> ?x } SEQ { ?c <urn:q> ?y } }"
THIRD = "CONSTRUCT { ?c <urn:d3> ?r } WHERE { { ?c <urn:d2> ?r } SEQ { ?c <urn:p> ?y } }"
FOURTH = "SELECT ?r ?y WHERE { { ?c <urn:d3> ?r } AND { ?c <urn:d1> ?y } }"
LATE = "CONSTRUCT { ?c <urn:d1> ?x } WHERE { { ?c <urn:p> ?x } SEQ NOT { ?c <urn:q> ?y } WITHIN 2 SECONDS }"
LATER = "CONSTRUCT { ?c <urn:d2> ?x } WHERE { { ?c <urn:d1> ?x } SEQ NOT { ?c <urn:r> ?y } WITHIN 3 SECONDS }"
DESCRIBED = "DESCRIBE ?c WHERE { ?c <urn:d1> ?x }"
MADE = "CONSTRUCT { ?c <urn:d2> [ <urn:of> ?x ; <urn:by> ?c ] } WHERE { ?c <urn:d1> ?x }"
OF_NODES = "SELECT ?n ?x WHERE { ?c <urn:d2> ?n . ?n <urn:of> ?x }"
IN_STREAM = "REGISTER STREAM <urn:out> AS CONSTRUCT { ?c <urn:d2> ?x } WHERE { ?c <urn:d1> ?x }"
OF_STREAM = "SELECT ?c ?r WHERE { STREAM <urn:out> { ?c <urn:d2> ?r } }"
FEW = "SELECT ?c (COUNT(*) AS ?n) WHERE { ?c <urn:d2> ?r } GROUP BY ?c"
CHAIN = "CONSTRUCT { ?x <urn:d> ?z } WHERE { ?x <urn:d> ?y . ?y <urn:p> ?z FILTER (?x != ?z) }"
COUNTED = "SELECT (COUNT(?x) AS ?n) WHERE { ?c <urn:r> ?x } WITHIN 3 SECONDS"

PROGRAMS: dict[str, tuple[list[str], str, str]] = {
    # queries, those that are to run in rows (r), and those that do
    "apart": ([FAST, OF_R], " r", "CR"),
    "the same goals": ([FAST, SAME_GOALS, "SELECT ?x { ?c <urn:p> ?x }"], " r ", "RRC"),
    "one after the other": ([FIRST, SECOND_RULE, THIRD, FOURTH, FAST], " r r ", "CRCRC"),
    "the last first": ([FOURTH, THIRD, FAST, SECOND_RULE, FIRST], "r  r ", "RCCRC"),
    "the first": ([FIRST, SECOND_RULE, THIRD, FOURTH, FAST], "r    ", "RCCCC"),
    "in a circle": ([SECOND_RULE, THIRD.replace("d3", "d1"), FAST], "r  ", "RRC"),
    "what is recursive": ([CHAIN, "SELECT ?x { ?x <urn:d> ?z }", FAST], "   ", "RCC"),
    "deadlines": ([LATE, LATER, "SELECT ?r { { ?c <urn:d2> ?r } SEQ { ?c <urn:p> ?x } }"], " r ", "CRC"),
    "deadlines first": ([LATE, LATER, "SELECT ?r { { ?c <urn:d2> ?r } SEQ { ?c <urn:p> ?x } }"], "r  ", "RCC"),
    "what is described": ([FIRST, DESCRIBED, FAST], " r ", "CRC"),
    "all that is derived": ([FIRST, DESCRIBED, FEW, SECOND_RULE], " r r", "CRCR"),
    "made nodes": ([FIRST, MADE, OF_NODES], " r ", "CRC"),
    "a stream of its own": ([FIRST, IN_STREAM, OF_STREAM, FEW], " r  ", "CRCC"),
    "counted": ([COUNTED, FAST, OF_R.replace("SELECT ?x", "SELECT DISTINCT ?x")], "r r", "RCR"),
    "asked": (["ASK { ?c <urn:p> ?x }", FAST, "ASK { ?c <urn:q> ?x }"], "  r", "CCR"),
    "asked and ordered": ([FAST + " ORDER BY ?y LIMIT 5", OF_R + " ORDER BY ?x LIMIT 3"], " r", "CR"),
}


def in_rows(monkeypatch: pytest.MonkeyPatch, queries: Container[str]) -> None:
    """These queries have no columnar form."""
    without = rows_or_columns._own_reasons

    def reasons(net: Network) -> dict[str, str | None]:
        return {q: "it is to run in rows" if q in queries else reason for q, reason in without(net).items()}

    monkeypatch.setattr(rows_or_columns, "_own_reasons", reasons)


def prepared(monkeypatch: pytest.MonkeyPatch, name: str) -> Program:
    """A program whose queries are divided."""
    program = compile(PROGRAMS[name][0])
    slow = {query for query, how in zip(program.queries, PROGRAMS[name][1], strict=True) if how == "r"}
    in_rows(monkeypatch, slow)
    return program


def events(count: int) -> list[Event]:
    """Some in one instant, some that last, some of two triples, some in a stream."""
    random = Random(7)
    stream = []
    for n in range(count):
        end = n // 2 * SECOND
        triples = tuple(
            (f"<urn:c{random.randrange(3)}>", f"<urn:{random.choice('pqrs')}>", f'"{random.randrange(5)}"')
            for _ in range(random.choice((1, 1, 2)))
        )
        stream.append(Event(end - random.randrange(2) * SECOND, end, triples, random.choice(("", "", "<urn:s>"))))
    return stream


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_parts_report_what_rows_report(monkeypatch: pytest.MonkeyPatch, name: str, policy: str) -> None:
    program = prepared(monkeypatch, name)

    def making(executor: Any) -> Engine:
        return Engine(program, policy=policy, executor=executor)

    (executor,) = rule_executors(making("columns"))
    forms = "".join("C" if reason is None else "R" for reason in executor.division.reasons.values())
    assert policy != "unrestricted" or forms == PROGRAMS[name][2]
    assert agree(making, events(60), (1, 7, 1000)) is None


@pytest.mark.parametrize("group", ["recursion", "stratified", "timed_rules", "timed_stratified", "background"])
def test_drawn_programs_however_they_are_divided(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    slow: set[str] = set()
    in_rows(monkeypatch, slow)

    @settings(max_examples=examples(2 / 15))
    @given(strategies.ALL[group](), st.sets(st.integers(0, 3)))
    def test(case: Case, numbers: set[int]) -> None:
        program = replace(case.program, queries=(*case.program.queries, *MORE.queries))
        several = replace(case, program=program)
        try:
            names = engine_for(several).programs["program1"].queries
        except QueryError:
            return
        slow.clear()
        slow.update(names[n] for n in numbers if n < len(names))
        agree(lambda executor: engine_for(several, executor=executor), case.events)

    test()


def test_queries_of_families_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [FAST.replace("?c", f"<urn:c{k % 4}>") for k in range(20)]
    texts += [OF_R.replace("?c", f"<urn:c{k % 4}>") for k in range(20)]
    program = compile([*texts, FIRST, THIRD.replace("d2", "d1")])
    in_rows(monkeypatch, {f"{program.kinds[-1]} unrestricted", "q42"})
    (executor,) = rule_executors(Engine(program, executor="columns"))
    assert executor.families is not None
    assert sorted(map(bool, executor.division.reasons.values())) == [False, False, True, True]
    assert agree(lambda executor: Engine(program, executor=executor), events(60), (1, 7, 1000)) is None  # type: ignore[arg-type]


def test_the_counters_are_those_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    program = prepared(monkeypatch, "one after the other")
    stream = events(200)
    counted = []
    for executor in ("rows", "columns"):
        engine = Engine(program, executor=executor)  # type: ignore[arg-type]
        for some in batches(stream, 17):
            engine.push_all(Batch(some, some[-1].end).columns)
        engine.close()
        counted.append((engine.counters, engine.counters.kept().goals))
    assert counted[0] == counted[1]
    assert counted[0][0].events == len(stream)


def test_a_program_is_corrected_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a horizon the engine goes back to a snapshot; the late event counts as if it had come in time."""
    program = prepared(monkeypatch, "one after the other")
    stream = events(80)
    late, rest = stream[30], [*stream[:30], *stream[31:]]
    expected = sorted(m.id for m in _all(Engine(program, executor="rows"), stream))
    engine = Engine(program, executor="columns", revise=1000 * SECOND)
    net: dict[str, int] = {}
    for m in [*engine.push_all(rest), *engine.push_all([late]), *engine.close()]:
        net[m.id] = net.get(m.id, 0) + (-1 if m.retracted else 1)
    assert sorted(name for name, count in net.items() if count) == expected


def _all(engine: Engine, stream: list[Event]) -> list[Any]:
    return [*engine.push_all(stream), *engine.close()]


def test_a_program_changes_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that runs in rows comes and goes; the goals of the others stay."""
    in_rows(monkeypatch, {"slow"})
    stream = events(90)

    def run(executor: Any) -> list[str]:
        engine = Engine(FAST, executor=executor)
        matches = [*engine.push_all(Batch(stream[:30], stream[29].end).columns)]
        name = engine.add("REGISTER QUERY slow AS " + OF_R)
        matches += engine.push_all(Batch(stream[30:60], stream[59].end).columns)
        engine.remove(name)
        matches += engine.push_all(Batch(stream[60:], stream[-1].end).columns)
        return [m.id for m in [*matches, *engine.close()]]

    assert run("columns") == run("rows")


@pytest.mark.parametrize("name", ["one after the other", "deadlines"])
def test_a_run_changes_over_when_it_has_shown_to_be_large(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(executor_of_columns, "ENOUGH", 40)
    monkeypatch.setattr(executor_of_columns, "ready", lambda: True)
    program, stream = prepared(monkeypatch, name), events(120)
    expected = [m.id for m in _all(Engine(program, executor="rows"), stream)]
    engine = Engine(program)
    matches: list[Any] = []
    parts: list[Callable[[], Any]] = [
        lambda: engine.push_all(Batch(stream[:30], stream[29].end).columns),
        lambda: engine.push_all(Batch(stream[30:70], stream[69].end).columns),
        lambda: engine.push_all(stream[70:90]),
        lambda: engine.push_all(Batch(stream[90:], stream[-1].end).columns),
        engine.close,
    ]
    for part in parts:
        matches += part()
    assert [m.id for m in matches] == expected


def test_explain_says_for_each_query_where_it_runs_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    in_rows(monkeypatch, {"q2", "q3"})
    explained = compile([FAST, OF_R, SAME_GOALS, "SELECT ?x { ?c <urn:p> ?x }"]).explain()
    assert explained.executor.splitlines() == [
        "q4 runs in columns",
        "q1 runs in rows, because it shares goals with q3, or both feed each other",
        "q2 runs in rows, because it is to run in rows",
        "q3 runs in rows, because it is to run in rows",
    ]
    assert compile(FAST).explain().executor == "run in columns"
    assert compile(CHAIN).explain().executor == "run in rows, because the rules q1 are recursive"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{ ?c <urn:p> ?x FILTER (?x < 5 && ?x != 2.5) }", "run in columns"),
        ("{ ?c <urn:p> ?x FILTER (?x < 5 && ?x != <urn:a>) }", "q1 runs in columns, once per distinct value in !="),
        (
            '{ ?c <urn:p> ?x FILTER (CONTAINS(?x, "a")) BIND (STRLEN(?x) AS ?y) }',
            "q1 runs in columns, once per distinct value in STRLEN, CONTAINS",
        ),
        ("{ ?c <urn:p> ?x BIND (NOW() AS ?y) }", "q1 runs in columns, but row by row in an expression over times"),
        ("{ ?c <urn:p> ?x } ORDER BY ?x LIMIT 3", "run in columns"),
    ],
)
def test_explain_says_what_is_done_per_value_and_what_row_by_row(pattern: str, expected: str) -> None:
    assert compile(f"SELECT ?x {pattern}").explain().executor == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT (COUNT(*) AS ?n) { ?c <urn:p> ?x } WITHIN PT3S GROUP BY ?c", "run in columns"),
        (
            "SELECT (SUM(?x) AS ?n) { ?c <urn:p> ?x } WITHIN PT3S",
            "q1 runs in columns, as long as the values of SUM are all integers, and their totals fit",
        ),
        (
            "SELECT (SUM(?x) AS ?n) (AVG(?x) AS ?m) { ?c <urn:p> ?x } GROUP BY ?c",
            "q1 runs in columns, as long as the values of SUM, AVG are all integers or all decimals or all doubles, "
            "and their totals fit",
        ),
        (
            "SELECT (SUM(?x + 1) AS ?n) { ?c <urn:p> ?x } WITHIN 3 EVENTS GROUP BY ?c",
            "q1 runs in columns, once per distinct value in +, "
            "as long as the values of SUM are all integers or all decimals or all doubles, and their totals fit",
        ),
        (
            "SELECT (MAX(STRLEN(?x)) AS ?n) { ?c <urn:p> ?x } WITHIN PT3S GROUP BY ?c HAVING (COUNT(*) > 2)",
            "q1 runs in columns, once per distinct value in STRLEN, as long as the values of MAX are all strings or "
            "all IRIs or nearly all numbers or times",
        ),
        ("SELECT (COUNT(DISTINCT ?x) AS ?n) { ?c <urn:p> ?x } GROUP BY ?c HAVING (COUNT(*) > 2)", "run in columns"),
        (
            "SELECT (SUM(?x) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT3S STEP PT1S] "
            "{ WINDOW <urn:w> { ?c <urn:p> ?x } }",
            "run in columns, as long as the values of SUM are all integers or all decimals or all doubles, and their "
            "totals fit",
        ),
    ],
)
def test_explain_says_on_which_condition_aggregates_run_in_columns(query: str, expected: str) -> None:
    assert compile(query).explain().executor == expected


def test_explain_says_what_goes_from_instant_to_instant() -> None:
    program = "SELECT ?x ?y { { ?c <urn:p> ?x } PAR { ?c <urn:q> ?y } } USING POLICY recent"
    assert compile(program).explain().executor == "q1 runs in columns, but row by row in a PAR that consumes"


BY_INSTANT = {
    "a PAR that consumes": "SELECT ?x ?y { { ?c <urn:p> ?x } PAR { ?c <urn:q> ?y } FILTER (?x <= ?y) }",
    "a PAR over others": "SELECT ?x ?y { { { ?c <urn:p> ?x } SEQ { ?c <urn:r> ?z } } PAR { ?c <urn:q> ?y } }",
    "a NEXT that consumes": "SELECT ?x ?y { { ?c <urn:p> ?x } NEXT { ?c <urn:q> ?y } }",
    "the same twice": "SELECT ?x ?y { { ?c <urn:p> ?x } NEXT { ?c <urn:p> ?y } FILTER (?x < ?y) }",
    "a NEXT of what may be unbound": """SELECT ?x ?y {
        { ?c <urn:p> ?x OPTIONAL { ?c <urn:r> ?z } } NEXT { ?c <urn:q> ?y OPTIONAL { ?c <urn:r> ?z } } }""",
    "what an aggregate reports": """SELECT ?c ?n ?y {
        { SELECT ?c (COUNT(?x) AS ?n) { ?c <urn:p> ?x } WITHIN 3 SECONDS GROUP BY ?c } SEQ { ?c <urn:q> ?y } }""",
    "an optional aggregate": """SELECT ?c ?n ?y {
        { ?c <urn:q> ?y } OPTIONAL { SELECT ?c (COUNT(?x) AS ?n) { ?c <urn:p> ?x } WITHIN 3 SECONDS GROUP BY ?c } }""",
}


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("name", BY_INSTANT)
def test_what_goes_from_instant_to_instant_reports_what_rows_report(name: str, policy: str) -> None:
    program = compile([BY_INSTANT[name], FAST])

    def making(executor: Any) -> Engine:
        return Engine(program, policy=policy, executor=executor)

    (executor,) = rule_executors(making("columns"))
    assert policy != "recent" or set(executor.division.by_row) == {"q1"}
    assert agree(making, events(60), (1, 7, 1000)) is None


@pytest.mark.parametrize("name", [*BY_INSTANT, "in parts"])
def test_journals_tell_of_what_goes_from_instant_to_instant_and_of_parts(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    texts = [BY_INSTANT[name], FAST] if name in BY_INSTANT else PROGRAMS["one after the other"][0]
    if name not in BY_INSTANT:
        in_rows(monkeypatch, {"q2", "q4"})
    program, stream = compile(texts), events(80)
    expected = [m.id for m in _all(Engine(program, policy="recent", executor="rows"), stream)]
    engine, matches = Engine(program, policy="recent", executor="columns", journal=True), []
    snapshot, journals = engine.snapshot(), []
    for some in batches(stream, 7):
        matches += engine.push_all(Batch(some, some[-1].end).columns)
        journals.append(engine.take_journal())
    follower = Engine(program, policy="recent", executor="columns", journal=True)
    follower.restore(snapshot)
    for journal in journals:
        follower.apply_journal(journal)
    assert [m.id for m in [*matches, *follower.close()]] == expected


LOOKING_BACK = [
    "SELECT ?x ?y { ?c <urn:p> ?x OPTIONAL { ?c <urn:q> ?y FILTER EXISTS { ?c <urn:r> ?x } } }",
    "SELECT ?x ?y { ?c <urn:p> ?x OPTIONAL { ?c <urn:q> ?y FILTER (EXISTS { ?c <urn:d1> ?z } || ?y > 2) } }",
    "SELECT ?x ?y { ?c <urn:p> ?x OPTIONAL { ?c <urn:q> ?y FILTER NOT EXISTS { ?d <urn:p> ?y . ?d ?e ?f } } }",
    "SELECT ?x ?y { ?c <urn:p> ?x OPTIONAL { ?c <urn:q> ?y FILTER EXISTS { STREAM <urn:s> { ?c <urn:r> ?x } } } }",
    "CONSTRUCT { ?c <urn:d3> ?y } { ?c <urn:p> ?x OPTIONAL { ?c <urn:q> ?y FILTER EXISTS { ?c <urn:d2> ?z } } }",
]


@pytest.mark.parametrize("policy", ["unrestricted", "recent"])
@pytest.mark.parametrize("query", LOOKING_BACK)
def test_what_looks_back_reports_what_rows_report(query: str, policy: str) -> None:
    program = compile([query, FIRST, SECOND_RULE, DESCRIBED, "SELECT ?r { ?c <urn:d3> ?r }"])

    def making(executor: Any) -> Engine:
        return Engine(program, policy=policy, executor=executor)

    (executor,) = rule_executors(making("columns"))
    assert executor.division.is_whole
    assert "q1" in executor.division.by_row
    assert agree(making, events(60), (1, 7, 1000)) is None


def test_explain_says_of_each_node_how_it_takes_large_batches() -> None:
    text = str(
        compile(
            """PREFIX : <urn:x:>
            CONSTRUCT { ?c :big ?z } { ?c :p ?x FILTER (?x > 1) BIND (CONCAT(?x, "a") AS ?z) }
            SELECT ?c (GROUP_CONCAT(DISTINCT ?x) AS ?n) { ?c :big ?x } GROUP BY ?c
            SELECT * { { ?c :p ?x } REPEAT 2 TO 3 BY ?c MAXIMAL }"""
        ).explain()
    )
    assert text.partition("nodes in large batches\n")[2].splitlines() == [
        "  by kernels: e1, g1, e2",
        "  once per distinct value: g2 (CONCAT)",
        "  row by row: g3 (an aggregate)",
        "  in rows: e3, g4 (a REPEAT … MAXIMAL of at most so many elements, or of bounded length)",
    ]


def test_nodes_are_not_listed_where_all_are_alike() -> None:
    explained = compile("SELECT ?x { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } }").explain()
    assert explained.forms == {}
    assert "nodes in large batches" not in str(explained)
    assert "nodes_in_large_batches" not in explained.to_dict()
