"""Aggregates over a SEQ of three parts or more: the rows are those of all matches, none of which is made."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, Limits, compile
from etalis_py.executors.columns import chain_sums
from etalis_py.executors.columns.chain_sums import ChainSums
from etalis_py.executors.columns.chains import ChainOperator
from etalis_py.executors.rows.run import match_sums
from etalis_py.executors.rows.run.match_sums import MatchSums
from etalis_py.kernel.batch import Batch
from tests.draws import seeds
from tests.engine import judge
from tests.executors.columns.judge import rule_executors, same_reports
from tests.executors.columns.test_vectors import NASTY
from tests.oracle.strategies import Case

SECOND = 1_000_000
INTEGERS = [f'"{n}"^^<{XSD}integer>' for n in ("0", "1", "01", "7", "-3", "7", "900")]
LARGE = [f'"{n}"^^<{XSD}integer>' for n in ("1", "-1", "4000000000000000000", "-2305843009213693952")]
TIES = ['"a"', '"b"', *(f'"0.1"^^<{XSD}{kind}>' for kind in ("decimal", "double", "float"))]
OTHERS = ['"a"', "<urn:a>", f'"0.5"^^<{XSD}decimal>', f'"2.5e0"^^<{XSD}double>', *INTEGERS]
SUMS = ["COUNT(*)", "COUNT(?x{0})", "SUM(?x{0})", "AVG(?x{0})", "SUM(?x{1})", "COUNT(?y{1})"]
EXTREMES = ["MIN(?x{0})", "MAX(?x{0})", "SAMPLE(?x{0})", "MIN(?x{1})", "MAX(?y{1})", "MAX(?x{1})"]
ARRANGED = ["", " HAVING (COUNT(*) > 3)", " ORDER BY ?a0", " ORDER BY DESC(?a0) LIMIT 1"]
LISTED = ["COUNT(DISTINCT ?x{0})", "SUM(?x{0} * 2)", "GROUP_CONCAT(?x{0})"]


@pytest.fixture(autouse=True)
def _eager(forgetful: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few matches are not listed either."""
    monkeypatch.setattr(chain_sums, "FEW", -1)
    monkeypatch.setattr(match_sums, "FEW", 0)


def events(drawn: random.Random, terms: list[str], number: int, lasting: bool = True) -> list[Event]:
    """Several in some instants, some of which began earlier."""
    times = sorted(drawn.randrange(number) for _ in range(number))
    return list(
        dict.fromkeys(
            Event(
                (t - (drawn.choice((0, 0, 1, 4)) if lasting else 0)) * SECOND,
                t * SECOND,
                ((f"<urn:k{drawn.randrange(2)}>", f"<urn:{drawn.choice('pqr')}>", drawn.choice(terms)),),
            )
            for t in times
        )
    )


def query(drawn: random.Random, calls: list[str]) -> tuple[str, str]:
    """A query without window, and the keys of its groups."""
    parts, keyed = drawn.randrange(3, 6), drawn.random() < 0.7
    steps = []
    for i in range(parts):
        key = "?k" if keyed else f"?k{i}"
        one, other = drawn.sample("pqr", 2)
        either = f" UNION {{ {key} <urn:{other}> ?y{i} }}" if drawn.random() < 0.4 else ""
        steps.append(f"{{ {{ {key} <urn:{one}> ?x{i} }}{either} }}" if either else f"{{ {key} <urn:{one}> ?x{i} }}")
    shown = " ".join(
        f"({call.format(drawn.randrange(parts), parts - 1)} AS ?a{n})"
        for n, call in enumerate(drawn.sample(calls, drawn.randrange(1, 4)))
    )
    last = "?k" if keyed else f"?k{parts - 1}"
    key = drawn.choice([last, last, f"{last} ?x{parts - 1}", "", "?nowhere"])
    bound = drawn.choice(["", " WITHIN 6 s", " WITHIN 15 s"])
    return f"SELECT {key} {shown} WHERE {{ {{ {{ {' SEQ '.join(steps)} }}{bound} }} }}", key


def program_of(drawn: random.Random, calls: list[str], windows: list[str]) -> str:
    text, key = query(drawn, calls)
    having = drawn.choice(["", "", " HAVING (COUNT(*) > 2)" if calls is not EXTREMES else ""])
    return text + drawn.choice(windows) + (f" GROUP BY {key}" if key else "") + having


@pytest.mark.parametrize("lasting", [False, True], ids=["points", "intervals"])
@pytest.mark.parametrize("terms", [INTEGERS, LARGE, OTHERS, [t for t in NASTY if t]])
@pytest.mark.parametrize("seed", seeds(6))
def test_drawn_sums(seed: int, terms: list[str], lasting: bool) -> None:
    drawn = random.Random(f"{seed} {len(terms)} {lasting}")
    windows = ["", " WITHIN PT4S", " WITHIN PT9S"]
    program, items = compile(program_of(drawn, [*SUMS, *EXTREMES[:3]], windows)), events(drawn, terms, 40, lasting)
    same_reports(lambda name: Engine(program, executor=name), items, (1, 7, 10**9))  # type: ignore[arg-type]


@pytest.mark.parametrize("lasting", [False, True], ids=["points", "intervals"])
@pytest.mark.parametrize("terms", [INTEGERS, OTHERS, TIES, [t for t in NASTY if t]])
@pytest.mark.parametrize("seed", seeds(6))
def test_drawn_extremes(seed: int, terms: list[str], lasting: bool) -> None:
    drawn = random.Random(f"{seed} {len(terms)} {lasting}")
    windows = ["", " WITHIN PT4S", " WITHIN PT9S", " WITHIN 5 EVENTS"]
    program, items = compile(program_of(drawn, EXTREMES, windows)), events(drawn, terms, 40, lasting)
    same_reports(lambda name: Engine(program, executor=name), items, (1, 7, 10**9))  # type: ignore[arg-type]


@pytest.mark.parametrize("terms", [INTEGERS, OTHERS])
@pytest.mark.parametrize("seed", seeds(10))
def test_drawn_aggregates_that_are_arranged(seed: int, terms: list[str]) -> None:
    drawn = random.Random(f"{seed} {len(terms)}")
    calls = SUMS[:2] + EXTREMES if terms is OTHERS else SUMS + EXTREMES
    text, key = query(drawn, calls)
    text += drawn.choice(["", " WITHIN PT6S"]) + (f" GROUP BY {key}" if key else "") + drawn.choice(ARRANGED)
    items = events(drawn, terms, 40)
    same_reports(lambda name: Engine(compile(text), executor=name), items, (1, 7, 10**9))  # type: ignore[arg-type]
    judge.agree(Case(parse(text), tuple(items[:24])), executor="columns")


@pytest.mark.parametrize("few", [1, 6])
@pytest.mark.parametrize("seed", seeds(8))
def test_drawn_aggregates_of_few_matches(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches whose matches are listed, and others whose matches are summed up."""
    monkeypatch.setattr(chain_sums, "FEW", few)
    monkeypatch.setattr(match_sums, "FEW", few)
    drawn = random.Random(f"{seed} {few}")
    program = compile(program_of(drawn, [*SUMS, *EXTREMES[:3]], ["", " WITHIN PT6S"]))
    items = events(drawn, INTEGERS, 60)
    same_reports(lambda name: Engine(program, executor=name), items, (3, 9, 20, 10**9))  # type: ignore[arg-type]


def test_few_matches_are_listed_and_many_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One match at 3, then one at 4, then 2 × 40 at 50, which are more than are worth listing, then one again."""
    monkeypatch.setattr(chain_sums, "FEW", 1)
    summed: list[bool] = []
    table = ChainSums.table

    def noted(*arguments: Any) -> Any:
        given = table(*arguments)
        summed.append(given is not None)
        return given

    monkeypatch.setattr(ChainSums, "table", noted)
    engine = Engine(f"SELECT (COUNT(*) AS ?n) {sequence(3, ' WITHIN 60 s')} WITHIN PT1S", executor="columns")
    batches = [
        told((1, "0", 1), (2, "1", 1), (3, "2", 1)),
        told((4, "2", 1)),
        told((5, "0", 1), *((t, "1", t) for t in range(10, 50)), (50, "2", 1)),
        told((51, "2", 1)),
        told((200, "0", 1), (201, "1", 1), (202, "2", 1)),
        told((203, "2", 1)),
    ]
    counts = [dict(m)["n"] for batch in batches for m in engine.push_all(Batch(batch, batch[-1].end).columns)]
    counts += [dict(m)["n"] for m in engine.close()]
    assert counts == [1, 1, 81, 81, 1, 1]
    assert summed == [False, False, True, True, True, False]


@pytest.mark.parametrize("seed", seeds(12))
def test_drawn_aggregates_of_every_kind(seed: int) -> None:
    drawn = random.Random(seed)
    text = program_of(drawn, [*SUMS, *EXTREMES, *LISTED], ["", " WITHIN PT6S", " WITHIN 3 EVENTS"])
    program, items = compile(text), events(drawn, INTEGERS, 40)
    same_reports(lambda name: Engine(program, executor=name), items, (1, 7, 10**9))  # type: ignore[arg-type]


@pytest.mark.parametrize("calls", [SUMS, EXTREMES], ids=["sums", "extremes"])
@pytest.mark.parametrize("seed", seeds(8))
def test_drawn_aggregates_by_the_definition(seed: int, calls: list[str]) -> None:
    drawn = random.Random(seed)
    text = program_of(drawn, calls, ["", " WITHIN PT6S", " WITHIN PT3S"])
    judge.agree(Case(parse(text), tuple(events(drawn, [*INTEGERS, '"a"'], 24))), executor="columns")


# --- without matches ---


def sequence(parts: int, bound: str = "") -> str:
    steps = " SEQ ".join(f"{{ ?k <urn:{i}> ?x{i} }}" for i in range(parts))
    return f"{{ {{ {{ {steps} }}{bound} }} }}"


def told(*items: tuple[int, str, int]) -> list[Event]:
    """Events by their times in seconds, the number of their part, and a number."""
    return [Event(t * SECOND, t * SECOND, (("<urn:k>", f"<urn:{i}>", f'"{x}"^^<{XSD}integer>'),)) for t, i, x in items]


def answered(text: str, items: list[Event], **more: Any) -> list[tuple[int, int, dict[str, object]]]:
    engine = Engine(text, executor="columns", **more)
    found = [*engine.push_all(Batch(items, items[-1].end).columns), *engine.close()]
    return [(m.start_us // SECOND, m.end_us // SECOND, dict(m)) for m in found]


@pytest.fixture
def nothing_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("matches are listed")

    monkeypatch.setattr(ChainOperator, "_complete", refuse)


STORY = told(
    (1, "0", 3),
    (2, "0", 5),
    (3, "1", 10),
    (4, "1", 20),
    (5, "2", 1),
    (9, "1", 40),
    (10, "1", 30),
    (11, "1", 0),
    (11, "1", 5),
    (12, "2", 2),
)


@pytest.mark.usefixtures("nothing_listed")
def test_matches_are_counted_and_summed_up() -> None:
    """At 5 each of two firsts goes with each of two seconds; at 12 the first at 1 is too old for six seconds."""
    text = f"SELECT (COUNT(*) AS ?n) (SUM(?x0) AS ?a) (SUM(?x1) AS ?b) (AVG(?x2) AS ?c) {sequence(3, ' WITHIN 10 s')}"
    first = {"n": 4, "a": 16, "b": 60, "c": 1}
    assert answered(text, STORY) == [(1, 5, first), (1, 12, {"n": 10, "a": 46, "b": 165, "c": Decimal("1.6")})]


@pytest.mark.usefixtures("nothing_listed")
def test_a_part_that_ends_first_may_start_first() -> None:
    """The seconds [2, 6] and [5, 7]: the first at 3 goes with the latter only."""
    items = told((1, "0", 1), (3, "0", 1), (6, "1", 1), (7, "1", 1), (8, "2", 1))
    items[2:4] = [items[2]._replace(start=2 * SECOND), items[3]._replace(start=5 * SECOND)]
    text = f"SELECT (COUNT(*) AS ?n) {sequence(3, ' WITHIN 10 s')}"
    assert answered(text, items) == [(1, 8, {"n": 3})]


@pytest.mark.usefixtures("nothing_listed")
def test_extremes_are_those_of_matches_in_the_windows() -> None:
    text = f"SELECT (MIN(?x0) AS ?a) (MAX(?x1) AS ?b) {sequence(3, ' WITHIN 10 s')} WITHIN PT5S"
    assert answered(text, STORY) == [(1, 5, {"a": 3, "b": 20}), (2, 12, {"a": 5, "b": 40})]


@pytest.mark.usefixtures("nothing_listed")
def test_matches_leave_the_window_by_their_end() -> None:
    """At 14 those that ended at 5 have left, whenever they began, and those of 12 are still there."""
    items = [*STORY, *told((14, "2", 4))]
    text = f"SELECT (COUNT(*) AS ?n) (SUM(?x2) AS ?s) (MIN(?x0) AS ?m) {sequence(3, ' WITHIN 12 s')} WITHIN PT7S"
    assert answered(text, items) == [
        (1, 5, {"n": 4, "s": 4, "m": 3}),
        (1, 12, {"n": 12, "s": 24, "m": 3}),
        (1, 14, {"n": 18, "s": 48, "m": 3}),
    ]


@pytest.mark.usefixtures("nothing_listed")
def test_extremes_of_texts_are_those_of_the_alphabet() -> None:
    items = [Event(t * SECOND, t * SECOND, (("<urn:k>", "<urn:0>", f'"{x}"'),)) for t, x in enumerate("cab", 1)]
    text = f"SELECT (MIN(?x0) AS ?a) (MAX(?x0) AS ?b) {sequence(3)} WITHIN PT5S"
    assert answered(text, [*items, *told((5, "1", 0), (6, "2", 0))]) == [(1, 6, {"a": "a", "b": "c"})]


@pytest.mark.usefixtures("nothing_listed")
def test_there_may_be_more_matches_than_could_be_listed() -> None:
    """Forty of each of eight parts: 40⁸ matches, which is more than any limit allows."""
    parts = 8
    items = told(*((1 + part * 40 + n, str(part), n) for part in range(parts) for n in range(40)))
    text = f"SELECT (COUNT(*) AS ?n) (SUM(?x3) AS ?s) {sequence(parts)}"
    *_, (_, _, last) = answered(text, items, limits=Limits(derivations=1000))
    assert last == {"n": 40**8, "s": 40**7 * sum(range(40))}


def test_sums_in_a_window_stay_exact_when_other_numbers_come() -> None:
    """The matches at 5 were counted as one row; those at 7 and 8 are listed, as 0.5 is no integer."""
    items = told((1, "0", 3), (2, "0", 5), (3, "1", 10), (5, "2", 1), (6, "0", 0), (7, "2", 2), (8, "2", 2))
    items[4] = items[4]._replace(triples=(("<urn:k>", "<urn:0>", f'"0.5"^^<{XSD}decimal>'),))
    items = [*items, *told((9, "1", 1), (10, "2", 1), (16, "2", 1))]
    text = f"SELECT (SUM(?x0) AS ?s) (COUNT(*) AS ?n) {sequence(3)} WITHIN PT5S"
    program = compile(text)
    same_reports(lambda name: Engine(program, executor=name), items, (1, 2, 5, 10**9))  # type: ignore[arg-type]
    judge.agree(Case(parse(text), tuple(items)), executor="columns")
    sums = [(row["s"], row["n"]) for _, _, row in answered(text, items)]
    assert sums[:2] == [(8, 2), (16, 4)]


def test_a_sum_that_may_not_fit_is_made_of_listed_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    table = ChainSums.table

    def noted(*arguments: Any) -> Any:
        given.append(table(*arguments))
        return given[-1]

    monkeypatch.setattr(ChainSums, "table", noted)
    text = f"SELECT (SUM(?x0) AS ?s) {sequence(3)}"
    items = told((1, "0", 2**61), (2, "0", 2**61), (3, "1", 0), (4, "2", 0), (5, "1", 0), (6, "2", 0))
    assert [row["s"] for _, _, row in answered(text, items)] == [2**62, 3 * 2**62]
    assert given
    assert all(table is None for table in given)


@pytest.mark.parametrize("shown", ["(COUNT(?x1) AS ?n) (SUM(?x0) AS ?s)", "(AVG(?x0) AS ?n) (MAX(?x1) AS ?s)"])
@pytest.mark.parametrize("window", ["", " WITHIN PT9S"])
def test_an_aggregate_goes_on_from_a_snapshot_of_listed_matches(
    window: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other way round."""
    text = f"SELECT ?k {shown} {sequence(3, ' WITHIN 30 s')}{window} GROUP BY ?k"
    drawn = random.Random(3)
    items = told(*((t, str(drawn.randrange(3)), t % 7) for t in range(1, 80)))
    halves = [Batch(part, part[-1].end).columns for part in (items[:40], items[40:])]
    whole = Engine(text, executor="columns")
    expected = [[m.to_dict() for m in whole.push_all(half)] for half in halves]
    for listed in (0, 1):
        stored = None
        for number, half in enumerate(halves):
            with monkeypatch.context() as patch:
                if number == listed:
                    patch.setattr(ChainSums, "table", lambda *_: None)
                engine = Engine(text, executor="columns")
                if stored is not None:
                    engine.restore(stored)
                assert [m.to_dict() for m in engine.push_all(half)] == expected[number]
                stored = engine.snapshot()


@pytest.mark.parametrize(
    ("text", "summed"),
    [
        (f"SELECT ?k (COUNT(*) AS ?n) {sequence(3)} GROUP BY ?k", True),
        (f"SELECT ?x2 (COUNT(*) AS ?n) {sequence(3)} GROUP BY ?x2", True),
        (f"SELECT ?x0 (COUNT(*) AS ?n) {sequence(3)} GROUP BY ?x0", False),
        (f"SELECT (COUNT(DISTINCT ?x0) AS ?n) {sequence(3)}", False),
        (f"SELECT (SUM(?x0 + 1) AS ?n) {sequence(3)}", False),
        (f"SELECT (COUNT(*) AS ?n) {sequence(3)} WITHIN PT5S", True),
        (f"SELECT (COUNT(*) AS ?n) {sequence(3)} WITHIN P1M", False),
        (f"SELECT (COUNT(*) AS ?n) {sequence(3)} WITHIN 5 EVENTS", False),
        (f"SELECT ?k (COUNT(*) AS ?n) {sequence(3)} WITHIN PT5S GROUP BY ?k ORDER BY DESC(?n) LIMIT 1", True),
        (f"SELECT (MAX(?x0) AS ?n) {sequence(3)} WITHIN PT5S", True),
        (f"SELECT (MAX(?x0) AS ?n) {sequence(3)} WITHIN 5 EVENTS", False),
        (f"SELECT (MAX(?x0) AS ?n) (COUNT(*) AS ?m) {sequence(3)}", True),
        (f"SELECT ?k {sequence(3)} GROUP BY ?k HAVING (SUM(?x1) > 3) ORDER BY ?k", True),
        (f"SELECT (MAX(?x0) AS ?n) (COUNT(*) AS ?m) {sequence(3)} WITHIN PT5S", True),
    ],
)
def test_explain_says_which_matches_are_listed(text: str, summed: bool) -> None:
    operators = rule_executors(engine := Engine(text, executor="columns"))
    engine.push_all(Batch(STORY, STORY[-1].end).columns)
    columns = operators[0]._columns
    assert columns is not None
    chains = [o for o in columns._operators.values() if isinstance(o, ChainOperator)]
    assert [chain.sums is not None for chain in chains] == [summed]
    explained = str(compile(text).explain())
    assert ("without listing the matches of its SEQ" in explained) == summed
    assert ("lists the matches of its SEQ" in explained) == (not summed)


# --- rows ---


def in_rows(text: str, items: list[Event], **more: Any) -> list[tuple[int, int, dict[str, object]]]:
    engine = Engine(text, executor="rows", **more)
    return [(m.start_us // SECOND, m.end_us // SECOND, dict(m)) for m in (*engine.push_all(items), *engine.close())]


@pytest.mark.parametrize("window", ["", " WITHIN PT20S"])
def test_rows_sum_up_more_matches_than_could_be_listed(window: str) -> None:
    """Thirty of each of thirty parts: numbers beyond 64 bits, in snapshots too."""
    parts = 30
    items = told(*((1 + part * 30 + n, str(part), n) for part in range(parts) for n in range(30)))
    text = f"SELECT (COUNT(*) AS ?n) (SUM(?x3) AS ?s) (MAX(?x4) AS ?m) {sequence(parts)}{window}"
    *_, (_, _, last) = found = in_rows(text, items, limits=Limits(derivations=1000))
    number = 30 ** (parts - 1) * (20 if window else 30)
    assert last == {"n": number, "s": number // 30 * sum(range(30)), "m": 29}
    engine = Engine(text, executor="rows")
    engine.push_all(items[:-5])
    other = Engine(text, executor="rows")
    other.restore(engine.snapshot())
    more = [dict(m) for m in (*other.push_all(items[-5:]), *other.close())]
    assert more[-5:] == [row for _, _, row in found[-5:]]


def test_rows_list_the_matches_that_are_no_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bool] = []
    call = MatchSums.__call__

    def noted(*arguments: Any) -> Any:
        summed = call(*arguments)
        given.append(summed is None)
        return summed

    monkeypatch.setattr(MatchSums, "__call__", noted)
    items = told((1, "0", 3), (2, "0", 5), (3, "1", 10), (4, "2", 1), (5, "0", 0), (6, "1", 1), (7, "2", 1))
    items[4] = items[4]._replace(triples=(("<urn:k>", "<urn:0>", f'"0.5"^^<{XSD}decimal>'),))
    text = f"SELECT (SUM(?x0) AS ?s) (COUNT(*) AS ?n) {sequence(3)}"
    expected = [{"s": 8, "n": 2}, {"s": Decimal("24.5"), "n": 7}]
    assert [row for _, _, row in in_rows(text, items)] == expected
    assert given == [False, True]
