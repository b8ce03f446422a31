"""Aggregates that slide: after any additions and removals the answer is that of what is left."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from etalis_rules.terms import XSD, parts
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import event, run
from etalis_py.values import SparqlError, XsdFloat, decode, encode, order_key
from etalis_py.values.functions import (
    AGGREGATES,
    Accumulator,
    UnknownFunction,
    accumulator,
    add_all,
    remove_all,
    restore_accumulator,
)

ERROR = "error"


def term(cell: str) -> str:
    if cell[0] in '"<_':
        return cell
    lexical, _, name = cell.partition("^^")
    return f'"{lexical}"^^<{XSD}{name or "integer"}>'


def answer(running: Accumulator) -> str:
    try:
        return running.result()
    except SparqlError:
        return ERROR


def feed(running: Accumulator, *cells: str) -> Accumulator:
    for cell in cells:
        running.add(decode(term(cell)), term(cell))
    return running


@pytest.mark.parametrize(
    ("name", "cells", "result"),
    [
        ("COUNT", [], "0"),
        ("COUNT", ["1", '"a"', "1"], "3"),
        ("SUM", [], "0"),
        ("SUM", ["1", "2", "3"], "6"),
        ("SUM", ["1", "2.2^^decimal"], "3.2^^decimal"),
        ("SUM", ["1.5^^float", "1"], "2.5E0^^float"),
        ("SUM", ["0.2^^double", "0.2^^decimal"], "4.0E-1^^double"),
        ("SUM", ["1^^float", "1^^double"], "2.0E0^^double"),
        ("SUM", ["0.1^^double"] * 10, "1.0E0^^double"),
        ("SUM", ["1e308^^double", "1e308^^double"], "INF^^double"),
        ("SUM", ["INF^^double", "1"], "INF^^double"),
        ("SUM", ["INF^^double", "-INF^^double"], "NaN^^double"),
        ("SUM", ["1", '"a"'], ERROR),
        ("SUM", ["1", "<urn:a>"], ERROR),
        ("AVG", [], "0"),
        ("AVG", ["1", "2", "3", "4"], "2.5^^decimal"),
        ("AVG", ["1.0^^decimal", "2.2^^decimal", "3.5^^decimal", "2.2^^decimal", "2.2^^decimal"], "2.22^^decimal"),
        ("AVG", ["100^^double", "2000^^double"], "1.05E3^^double"),
        ("AVG", ["0.1^^float", "0.3^^float"], "2.0E-1^^float"),
        ("AVG", ["1", "_:b"], ERROR),
        ("MIN", [], ERROR),
        ("MIN", ["2", "1.0^^decimal", "01"], "01"),
        ("MIN", ["2", '"a"', "<urn:a>"], "<urn:a>"),
        ("MAX", [], ERROR),
        ("MAX", ["2", "1e1^^double", "10", "-3"], "10"),
        ("MAX", ['"a"', '"b"', "10"], '"b"'),
        ("MAX", ["<urn:a>", "<urn:b>", "_:z"], "<urn:b>"),
        ("MAX", ["2001-01-01^^date", "2001-01-02^^date"], "2001-01-02^^date"),
        ("SAMPLE", [], ERROR),
        ("SAMPLE", ["2", "1", "3"], "1"),
        ("GROUP_CONCAT", [], '""'),
        ("GROUP_CONCAT", ["1", '"a"@en', "<urn:a>"], '"1 a urn:a"'),
        ("GROUP_CONCAT", ["1", "_:b"], ERROR),
    ],
)
def test_an_aggregate(name: str, cells: list[str], result: str) -> None:
    assert answer(feed(accumulator(name), *cells)) == (result if result == ERROR else term(result))


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("COUNT", term("2")),
        ("SUM", ERROR),
        ("AVG", ERROR),
        ("MIN", ERROR),
        ("MAX", ERROR),
        ("GROUP_CONCAT", ERROR),
        ("SAMPLE", term("1")),
    ],
)
def test_an_error_among_the_arguments(name: str, result: str) -> None:
    """COUNT and SAMPLE pass over it; it spoils the others until it leaves the window."""
    running = feed(accumulator(name), "1", "2")
    before = answer(running)
    running.fail()
    assert answer(running) == result
    running.unfail()
    assert answer(running) == before


def test_distinct_counts_a_term_once_while_it_is_there() -> None:
    total = feed(accumulator("SUM", distinct=True), "1", "2", "2", "2.0^^decimal")
    assert total.result() == term("5^^decimal")
    total.remove(2, term("2"))
    assert total.result() == term("5^^decimal")
    total.remove(2, term("2"))
    assert total.result() == term("3^^decimal")


def test_count_distinct_of_whole_solutions() -> None:
    rows = accumulator("COUNT", distinct=True)
    for row in (("<urn:a>", ""), ("<urn:a>", ""), ("<urn:a>", "<urn:b>")):
        rows.add(None, row)
    assert rows.result() == term("2")
    rows.remove(None, ("<urn:a>", ""))
    assert rows.result() == term("2")
    rows.remove(None, ("<urn:a>", ""))
    assert rows.result() == term("1")
    assert restore_accumulator(rows.state()).state() == rows.state()


def test_group_concat_keeps_the_order_and_its_separator() -> None:
    running = feed(accumulator("group_concat", separator=", "), '"a"', '"b"', '"a"')
    assert running.result() == '"a, b, a"'
    running.remove("a", '"a"')
    assert running.result() == '"b, a"'
    distinct = feed(accumulator("GROUP_CONCAT", distinct=True), '"a"', '"b"', '"a"')
    assert distinct.result() == '"a b"'
    distinct.remove("a", '"a"')
    assert distinct.result() == '"b a"'


def test_removing_what_was_never_added_is_a_defect() -> None:
    for name in sorted(AGGREGATES):
        with pytest.raises(ValueError, match="does not hold"):
            accumulator(name).remove(1, term("1"))


def test_an_unknown_aggregate_says_what_is_near() -> None:
    with pytest.raises(UnknownFunction, match="did you mean COUNT"):
        accumulator("COUNTS")


CELLS = st.one_of(
    st.integers(-(10**25), 10**25),
    st.decimals(-(10**9), 10**9, allow_nan=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, width=32).map(XsdFloat),
    st.sampled_from([float("inf"), float("-inf"), float("nan"), "a", "b", True]),
).map(encode)


def expected(terms: list[str], divisor: int) -> str | Fraction:
    """The sum ÷ divisor by definition: a term, or a rational number for a decimal."""
    values: list[Any] = [decode(term) for term in terms]
    kinds = {value.__class__ for value in values}
    if not kinds <= {int, Decimal, float, XsdFloat}:
        return ERROR
    if kinds <= {int, Decimal}:
        total = sum(map(Fraction, values), Fraction()) / divisor
        return total if Decimal in kinds or divisor > 1 else encode(int(total))
    make = float if float in kinds else XsdFloat
    infinities = {value for value in values if value in (float("inf"), float("-inf"))}
    if any(value != value for value in values) or len(infinities) == 2:
        return encode(make(float("nan")))
    if infinities:
        return encode(make(infinities.pop()))
    exact = sum(map(Fraction, values), Fraction())
    try:
        total = make(exact.numerator / exact.denominator)
    except OverflowError:
        total = make(float("inf") if exact > 0 else float("-inf"))
    return encode(make(total / divisor))  # Avg(M) = Sum(M) ÷ Count(M): SPARQL 1.1 §18.5.1.4


def agrees(result: str, wanted: str | Fraction) -> bool:
    """The same term, or the decimal nearest to the number in the digits that a quotient has."""
    if isinstance(wanted, str):
        return result == wanted
    lexical, datatype, _ = parts(result)
    return datatype == f"{XSD}decimal" and abs(Fraction(lexical) - wanted) <= abs(wanted) / Fraction(10) ** 33


@given(st.lists(CELLS, max_size=12), st.data())
def test_sums_slide_without_drift(terms: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(terms))
    gone, left = order[: len(order) // 2], order[len(order) // 2 :]
    total, average = feed(accumulator("SUM"), *terms), feed(accumulator("AVG"), *terms)
    for term in gone:
        total.remove(decode(term), term)
        average.remove(decode(term), term)
    assert agrees(answer(total), expected(left, 1))
    if len(left) > 1:
        assert agrees(answer(average), expected(left, len(left)))


WHOLE = st.integers(-(10**25), 10**25).map(encode)
FRACTIONS = st.decimals(-(10**9), 10**9, allow_nan=False).map(encode)
ALIKE = st.sampled_from([WHOLE, FRACTIONS, CELLS]).flatmap(lambda cells: st.lists(cells, max_size=6))


@given(st.sampled_from(sorted(AGGREGATES)), st.booleans(), st.lists(ALIKE, max_size=4), st.data())
def test_many_at_once_are_one_after_the_other(
    name: str, distinct: bool, groups: list[list[str]], data: st.DataObject
) -> None:
    one, many = accumulator(name, distinct=distinct), accumulator(name, distinct=distinct)
    for group in groups:
        for cell in group:
            one.add(decode(cell), cell)
        add_all(many, list(map(decode, group)), group)
        assert many.state() == one.state()
    for group in data.draw(st.permutations(groups)):
        for cell in group:
            one.remove(decode(cell), cell)
        remove_all(many, list(map(decode, group)), group)
        assert many.state() == one.state()


def test_removing_many_that_were_never_added_is_a_defect() -> None:
    total = feed(accumulator("SUM"), "1")
    with pytest.raises(ValueError, match="does not hold"):
        remove_all(total, [1, 2], [term("1"), term("2")])


@given(st.lists(CELLS, min_size=1, max_size=12), st.data())
def test_extremes_are_those_of_what_is_left(terms: list[str], data: st.DataObject) -> None:
    low, high, sample = (feed(accumulator(name), *terms) for name in ("MIN", "MAX", "SAMPLE"))
    left = list(terms)
    for gone in data.draw(st.lists(st.sampled_from(terms), unique=True)):
        left.remove(gone)
        for running in (low, high, sample):
            running.remove(decode(gone), gone)
        back = data.draw(st.sampled_from(terms))
        left.append(back)
        for running in (low, high, sample):
            feed(running, back)
        ordered = sorted(left, key=order_key)
        assert low.result() == sample.result() == ordered[0]
        assert order_key(high.result())[:3] == order_key(ordered[-1])[:3]


def test_an_extreme_keeps_no_more_than_twice_what_is_left() -> None:
    running = accumulator("MAX")
    for number in range(10_000):
        running.add(number, term(str(number)))
        if number >= 10:
            running.remove(number - 10, term(str(number - 10)))
    assert running.result() == term("9999")
    assert len(running._heap) <= 2 * 10 + 65  # type: ignore[attr-defined]


@given(st.sampled_from(sorted(AGGREGATES)), st.booleans(), st.lists(CELLS, max_size=8), st.integers(0, 2))
def test_a_snapshot_goes_on_as_the_original(name: str, distinct: bool, terms: list[str], failures: int) -> None:
    original = feed(accumulator(name, distinct=distinct, separator="|"), *terms)
    for _ in range(failures):
        original.fail()
    packed = msgspec.msgpack.encode(original.state())
    restored = restore_accumulator(msgspec.msgpack.decode(packed))
    assert restored.state() == original.state()
    for running in (original, restored):
        for _ in range(failures):
            running.unfail()
        for gone in terms[:2]:
            running.remove(decode(gone), gone)
        feed(running, "7", '"z"')
    assert answer(restored) == answer(original)


def test_an_average_of_doubles_is_their_sum_divided_with_having_and_without() -> None:
    events = [event(f":a :p {value}", n) for n, value in enumerate(("0.0E0", "8710.0E0", "1.2695468388255904E0"))]
    query = "SELECT (AVG(?x) AS ?m) { ?s :p ?x } WITHIN 3 EVENTS"
    last = [list(run(text, events))[-1]["m"] for text in (query, f"{query} HAVING (AVG(?x) < 10000)")]
    assert last == [8711.269546838826 / 3] * 2


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("window", ["WITHIN 3 s", "WITHIN 3 s GROUP BY ?s", "WITHIN 3 EVENTS"])
@pytest.mark.parametrize(
    ("operand", "amounts"),
    [
        ("SECONDS(NOW())", range(1, 7)),  # events arrive at their time
        ("IF(EXISTS { ?s :q ?y }, 1, 0)", [0, 0, 0, 1, 1, 1]),  # EXISTS looks back from the end of the solution
    ],
)
def test_what_leaves_a_sum_is_what_entered_it(executor: Any, window: str, operand: str, amounts: Sequence[int]) -> None:
    events = [event(f":a :p {n}", n) for n in range(1, 7)]
    events.insert(3, event(":a :q 0", 4))
    query = f"SELECT (SUM({operand}) AS ?sum) WHERE {{ ?s :p ?x }} {window}"
    sums = [row["sum"] for row in run(query, events, executor=executor)]
    assert sums == [sum(amounts[max(0, n - 3) : n]) for n in range(1, 7)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_an_aggregate_over_nothing_looks_back_from_the_end_of_the_stream(executor: Any) -> None:
    query = (
        "SELECT (COUNT(?x) AS ?n) (EXISTS { ?s :p ?y } AS ?any) (SECONDS(NOW()) AS ?at) WHERE { ?s :q ?x }"
        " HAVING (EXISTS { ?s :p 1 })"
    )
    rows = [
        (row["n"], row["any"], row["at"])
        for row in run(query, [event(":a :p 1", 1), event(":a :p 2", 7)], executor=executor)
    ]
    assert rows == [(0, True, 7)]


NONE = "{ SELECT (COUNT(*) AS ?n) { ?x :q ?y } }"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT ?n {{ {NONE} FILTER (?n < 5) }}",
        f"SELECT (?n + 1 - ?one AS ?m) {{ {NONE} BIND (1 AS ?one) }}",
        f"SELECT ?n {{ {{ {NONE} }} UNION {{ ?x :r ?n }} }}",
        f"SELECT DISTINCT ?n {{ {{ SELECT ?n {{ {NONE} VALUES ?z {{ 1 2 }} }} }} }}",
        f"SELECT (COUNT(*) - 1 AS ?m) {{ {NONE} }}",
        f"SELECT (MIN(?n) AS ?m) {{ {NONE} FILTER (?n < 5) }} GROUP BY ?n",
        "CONSTRUCT { :a :count ?n } AT END { SELECT (COUNT(*) AS ?n) { ?x :q ?y } }",
        f"CONSTRUCT {{ :a :count ?n }} {{ {NONE} FILTER (?n < 5) }}",
    ],
)
def test_what_stands_above_an_aggregate_over_nothing_takes_its_row(query: str, explain: bool, executor: Any) -> None:
    rows = run(query, [event(":a :p 1", 1)], executor=executor, explain=explain)
    assert [(*row.values(), row.start, row.end) for row in rows] == [(0, None, None)]
