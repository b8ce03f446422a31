"""Sides of a join that are compared by ``=``: the answers are those of all pairs, and few pairs are looked at."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Literal

import numpy as np
import pytest
from etalis_rules import algebra as alg

from etalis_py import Engine, Event, Match, compile
from etalis_py.executors.columns import joins
from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate import inserting
from etalis_py.executors.rows.generate.written_plans import first_plan
from etalis_py.executors.rows.run import executor as row_executor
from etalis_py.values import SparqlError, decode
from etalis_py.values.equality_keys import NO_KEY, equality_key, key_number
from etalis_py.values.many import each_key
from etalis_py.values.operators import eq
from tests.draws import length, seeds
from tests.engine.judge import agree
from tests.executors.columns.judge import same_reports
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

SECOND = 1_000_000
Executor = Literal["rows", "columns"]
EXECUTORS: tuple[Executor, ...] = ("rows", "columns")
XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(kind: str, *lexical: str) -> list[str]:
    return [f'"{text}"^^<{XSD}{kind}>' for text in lexical]


TERMS = [
    *typed("integer", "0", "1", "01", "-1", "2", "3", "16777217", "9007199254740993", "9" * 30, "1" + "0" * 400),
    *typed("decimal", "0.1", "-0.0", "1.0", "1.50", "2.0", "0.1000000000000000055", "123456789012345.678901234567"),
    *typed("double", "0.1", "-0.0", "1.0E0", "1.5", "2", "NaN", "INF", "-INF", "9007199254740992", "1E400", "x"),
    *typed("float", "0.1", "0", "1", "1.5", "16777216", "NaN", "INF", "3.5E38", "0.2"),
    *typed("boolean", "true", "1", "false"),
    *typed(
        "dateTime", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00", "20260-01-01T00:00:00Z"
    ),
    *typed("date", "2026-01-01", "2026-01-01Z", "2026-01-01+02:00"),
    *typed("time", "01:00:00", "01:00:00Z", "02:00:00+01:00"),
    *typed("duration", "P0M", "PT0S", "P1M", "P30D", "P1Y"),
    *typed("yearMonthDuration", "P12M", "P0M"),
    *('"a"', '"1"', '"a"@en', '"a"@EN', '"a"@de', '"true"', '"Duration"', "<urn:a>", "_:a"),
    *(f'"{text}"^^<urn:unit>' for text in ("1", "a")),
    *(
        f"<<( <urn:a> <urn:b> {term} )>>"
        for term in ('"1"^^<' + XSD + "integer>", '"1.0"^^<' + XSD + "decimal>", "<urn:c>")
    ),
]


def equal(one: str, other: str) -> bool:
    try:
        return eq(decode(one), decode(other))
    except SparqlError:
        return False


def test_what_is_equal_has_the_same_key() -> None:
    found = 0
    for one, other in product(TERMS, TERMS):
        if one == other or equal(one, other):
            found += one != other
            assert {equality_key(decode(one))} == {equality_key(decode(other))}, (one, other)  # NaN as in a table
            assert key_number(decode(one)) == key_number(decode(other)), (one, other)
    assert found > 60


def test_keys_tell_numbers_and_texts_apart() -> None:
    assert len({equality_key(n) for n in range(1000)} | {equality_key(f"{n}") for n in range(1000)}) == 2000


X = alg.Var("x")
EXPRESSIONS: dict[str, alg.Expr] = {
    "?x": X,
    "?x + 1": alg.Apply("+", (X, alg.Const(TERMS[1]))),
    "?x * 1.5": alg.Apply("*", (X, alg.Const(f'"1.5"^^<{XSD}decimal>'))),
    "STR(?x)": alg.Apply("STR", (X,)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_numbers_of_keys_in_columns_are_those_of_values(name: str) -> None:
    """Kernels compute most of them; asked for a value by itself, ``values`` gives the same number."""
    e, terms, times = EXPRESSIONS[name], Terms(), np.arange(len(TERMS), dtype=np.int64)
    table, keys = SolutionTable(times, times, times, (terms.intern(TERMS),)), Keys(1, others=1)
    numbers = KeyOfSide(("x",), [], [e]).numbers(keys, table, terms, create=True)
    each = np.array(each_key(e)(times.tolist(), times.tolist(), times.tolist(), TERMS))
    failed = each == NO_KEY
    assert (numbers[failed] == -1).all()
    assert keys.rows()[numbers[~failed], 0].tolist() == each[~failed].tolist()
    assert len(set(each[~failed])) > 10


JOINS = {
    "a sum": "{ ?s :p ?x } SEQ { ?t :q ?y } FILTER (?y = ?x + 1)",
    "the same value": "{ ?s :p ?x } SEQ { ?t :q ?y } FILTER (?x = ?y)",
    "besides a key": "{ ?s :p ?x } SEQ { ?s :q ?y } FILTER (?x + 1 = ?y * 2 && ?x != 0)",
    "a list of one": "{ ?s :p ?x } SEQ { ?t :q ?y } FILTER (?y IN (?x))",
    "two": "{ ?s :p ?x } AND { ?t :q ?y } FILTER (?x = ?y) FILTER (STR(?s) = STR(?t))",
    "the same term": "{ ?s :p ?x } SEQ { ?t :q ?y } FILTER (sameTerm(?x, ?y))",
    "the same computed term": "{ ?s :p ?x } AND { ?t :q ?y } FILTER (sameTerm(?x + ?x, ?y * 2))",
    "texts": "{ ?s :p ?x } SEQ { ?t :q ?y } FILTER (STR(?x) = STR(?y))",
    "in any order": "{ ?s :p ?x } AND { ?t :q ?y } FILTER (?y - 1 = ?x)",
    "while it lasts": "{ ?s :p ?x } PAR { ?t :q ?y } FILTER (?y = ?x)",
    "of what may be unbound": "{ ?s :p ?x OPTIONAL { ?s :r ?z } } SEQ { ?t :q ?y } FILTER (?z = ?y)",
    "an optional side": "{ ?s :p ?x } OPTIONAL { ?t :q ?y FILTER (?y = ?x + 1) }",
    "an optional side by texts": "{ ?s :p ?x } OPTIONAL { ?s :q ?y FILTER (STR(?x) = STR(?y) && ?x != 1) }",
    "an optional side before": "{ ?s :p ?x FILTER (?x = ?y) } OPTIONALSEQ { ?t :q ?y }",
    "an optional side at the same time": "{ ?s :p ?x } EQUALSOPTIONAL { ?t :q ?y FILTER (?x = ?y) }",
    "an optional side of what may lack": "{ ?s :p ?x OPTIONAL { ?s :r ?z } } OPTIONAL { ?t :q ?y FILTER (?z = ?y) }",
    "what exists": "?s :p ?x FILTER EXISTS { ?t :q ?y FILTER (sameTerm(?x, ?y)) }",
    "what does not exist": "?s :p ?x FILTER NOT EXISTS { ?t :q ?y FILTER (?y - 1 = ?x) }",
    "the next one": "{ ?s :p ?x } NEXT { ?t :q ?y } FILTER (?x = ?y)",
    "at the same time": "{ ?s :p ?x } EQUALS { ?t :q ?y } FILTER (?x = ?y)",
    "nothing between": "{ ?s :p ?x } SEQ NOT { ?s :r ?z } SEQ { ?t :q ?y } FILTER (?x = ?y)",
    "with a BIND": "{ ?s :p ?x BIND (?x + 1 AS ?w) } SEQ { ?t :q ?y } FILTER (?w = ?y)",
    "three parts": "{ ?s :p ?x } SEQ { ?t :q ?y } SEQ { ?u :r ?z } FILTER (?z = ?x + ?y)",
}
FEW = ('"1"', *typed("integer", "0", "1", "2"), *typed("double", "1", "NaN", "2.5"), *typed("decimal", "1.0", "2.5"))


def drawn(seed: int, size: int, values: tuple[str, ...] = FEW) -> Iterator[Event]:
    """Events a second or two apart, some at the same time, half of which began before."""
    draw, t = random.Random(seed), 10
    for _ in range(size):
        t += draw.choice((0, 1, 1, 2))
        triple = (f"<urn:x:s{draw.randrange(3)}>", f"<urn:x:{draw.choice('pqr')}>", draw.choice(values))
        yield Event((t - draw.choice((0, 0, 1, 3))) * SECOND, t * SECOND, (triple,), "", "")


def query(pattern: str) -> str:
    return f"PREFIX : <urn:x:> SELECT * WHERE {{ {{ {pattern} }} WITHIN 9 s }}"


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("pattern", JOINS)
def test_answers_are_those_of_the_definition(pattern: str, policy: str) -> None:
    for executed in EXECUTORS:
        for seed in seeds(3):
            agree(Case(queries(query(JOINS[pattern])), tuple(drawn(seed, 16)), policy=policy), executor=executed)


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("pattern", JOINS)
def test_ids_and_order_are_those_without_keys(pattern: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in columns, and where snapshots go from rows to columns and back."""
    program = compile(query(JOINS[pattern]), policy=policy)
    events = list(drawn(7, length(260), tuple(TERMS) + FEW * 30))
    with monkeypatch.context() as patch:
        patch.setattr(inserting, "equal_sides", lambda node: ())
        patch.setattr(joins, "equal_sides", lambda node: ())
        patch.setattr(row_executor, "first_plan", first_plan.__wrapped__)  # engines with keys share no plan with it
        plain = Engine(program, policy=policy, executor="rows")
        first = [m.to_dict() for m in plain.push_all(events[:70])]
        stored = plain.snapshot()
        rest = [m.to_dict() for m in [*plain.push_all(events[70:]), *plain.close()]]
    assert [*first, *rest]
    keyed = Engine(program, policy=policy, executor="rows")
    assert [m.to_dict() for m in [*keyed.push_all(events), *keyed.close()]] == first + rest
    same_reports(lambda name: Engine(program, policy=policy, executor=name), events)
    for executor in EXECUTORS:
        after = Engine(program, policy=policy, executor=executor)
        after.restore(stored)
        assert [m.to_dict() for m in [*after.push_all(events[70:]), *after.close()]] == rest


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
@pytest.mark.parametrize("pattern", JOINS)
def test_explanations_are_those_without_keys(pattern: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is computed once for a goal, and where snapshots go from one to the other."""
    program = compile(query(JOINS[pattern]), policy=policy)
    events = list(drawn(7, length(130), tuple(TERMS) + FEW * 30))

    def engine() -> Engine:
        return Engine(program, policy=policy, explain=True)

    def explained(matches: Iterable[Match]) -> list[tuple[str, str]]:
        return [(match.id, str(match.why())) for match in matches]

    with monkeypatch.context() as patch:
        patch.setattr(inserting, "equal_sides", lambda node: ())
        patch.setattr(inserting, "stored_expressions", lambda *_: ())
        patch.setattr(row_executor, "first_plan", first_plan.__wrapped__)
        plain = engine()
        first = explained(plain.push_all(events[:70]))
        stored = plain.snapshot()
        rest = explained([*plain.push_all(events[70:]), *plain.close()])
    keyed = engine()
    assert explained([*keyed.push_all(events), *keyed.close()]) == first + rest
    after = engine()
    after.restore(stored)
    assert explained([*after.push_all(events[70:]), *after.close()]) == rest


@pytest.mark.parametrize(("executor", "explain"), [("rows", False), ("columns", False), ("rows", True)])
@pytest.mark.parametrize("pattern", ["a sum", "in any order", "an optional side", "what exists"])
def test_a_journal_goes_on(executor: Executor, explain: bool, pattern: str) -> None:
    program, events = compile(query(JOINS[pattern])), list(drawn(2, 90))
    whole = Engine(program)
    expected = [m.id for m in [*whole.push_all(events), *whole.close()]]
    before = Engine(program, executor=executor, journal=True, explain=explain)
    stored = before.snapshot()
    ids = [m.id for m in before.push_all(events[:45])]
    after = Engine(program, executor=executor, journal=True, explain=explain)
    after.restore(stored)
    after.apply_journal(before.take_journal())
    assert ids + [m.id for m in [*after.push_all(events[45:]), *after.close()]] == expected


NUMBERS = typed("integer", *map(str, range(3_000)))
ACROSS = "PREFIX : <urn:x:> SELECT * { { ?s :p ?x } SEQ { ?t :q ?y } FILTER (?y = ?x + 998) }"


def numbered(t: int, predicate: str, number: int) -> Event:
    return Event(t * SECOND, t * SECOND, ((f"<urn:x:s{t}>", f"<urn:x:{predicate}>", NUMBERS[number]),), "", "")


@pytest.mark.parametrize("explain", [False, True])
def test_goals_are_looked_up_by_what_is_compared(explain: bool) -> None:
    """A thousand goals under a thousand keys."""
    engine = Engine(ACROSS, executor="rows", explain=explain)
    engine.push_all([numbered(t, "p", t) for t in range(1_000)])
    matches = engine.push_all([numbered(1_001, "q", 5), numbered(1_002, "q", 1_000), numbered(1_003, "q", 2_999)])
    ((_, executor),) = engine._rule_stages
    (store,) = executor.state.stores.values()  # type: ignore[attr-defined]
    assert [len(bucket) for bucket in store.buckets.values()] == [1] * 1_000
    assert [match["x"] for match in matches] == [2]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("sides", ["OPTIONAL { # }", "FILTER EXISTS { # }", "FILTER NOT EXISTS { # }"])
def test_optional_sides_are_looked_up_by_what_is_compared(sides: str, executor: Executor) -> None:
    optional = sides.replace("#", "?t :q ?y FILTER (STR(?y) = STR(?x))")
    engine = Engine(f"PREFIX : <urn:x:> SELECT * {{ ?s :p ?x {optional} }}", executor=executor)
    engine.push_all([numbered(t, "q", t) for t in range(1_001)])
    ((_, running),) = engine._rule_stages
    if executor == "rows":
        (store,) = running.state.stores.values()  # type: ignore[attr-defined]
        assert [len(bucket) for bucket in store.buckets.values()] == [1] * 1_000
    else:
        ((_, _, waiting),) = running._columns.stores()  # type: ignore[attr-defined]
        assert waiting.keys.count == waiting.store.live() == 1_000
    matches = [*engine.push_all([numbered(1_002, "p", 7)]), *engine.close()]
    assert [match["x"] for match in matches] == [7] * ("NOT" not in sides)


def test_columns_look_goals_up_by_what_is_compared() -> None:
    engine = Engine(ACROSS, executor="columns")
    assert not engine.push_all([numbered(t, "p", t) for t in range(1_001)])  # the last instant is still open
    ((_, executor),) = engine._rule_stages
    ((_, _, waiting),) = executor._columns.stores()  # type: ignore[attr-defined]
    assert waiting.keys.count == waiting.store.live() == 1_000


def test_explain_names_the_computed_key() -> None:
    where = "{ { ?c :p ?x } SEQ { ?d :p ?y } FILTER (?y = ?x + 998 && ?x < ?y * 2) } WITHIN 10 s"
    text = str(compile(f"PREFIX : <urn:x:> SELECT ?x {{ {where} }}").explain())
    assert "SEQ, on ?x + 998 = ?y, T4 − T1 ≤ PT10S, ?x < (?y * 2)" in text
    assert "cross product" not in text


def test_what_is_next_has_no_computed_key() -> None:
    text = str(compile("SELECT ?x { { ?c <urn:p> ?x } NEXT { ?d <urn:p> ?y } FILTER (?y = ?x + 998) }").explain())
    assert "NEXT, on nothing: a cross product, ?y = (?x + 998)" in text
