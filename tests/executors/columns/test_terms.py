"""The dictionary of terms: numbers for spellings, and the values behind them."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from etalis_rules.terms import XSD

from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER, OTHER, TIME
from etalis_py.executors.columns.occurrences import pieces
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Columns
from etalis_py.values import DateTime, XsdFloat, decode

SPELLINGS = ["<urn:a>", '"1"', "", "_:b", '"chat"@fr', "<urn:a>", '"ä\\n"', "<urn:ab>"]

LEXICAL = [
    *(
        "01",
        "1.50",
        "-0",
        "+7",
        "9007199254740993",
        "1" + "0" * 30,
        "",
        "-",
        ".",
        "1.",
        ".5",
        "1e5",
        "1E+400",
        "-1e-400",
    ),
    *(
        "NaN",
        "INF",
        "-INF",
        "inf",
        "1_0",
        " 1",
        "1 ",
        "0x1",
        "1e",
        "0.1",
        "123.45678901234567",
        "4.9e-324",
        "999999999",
    ),
    *(
        "99999999999999999999.5",
        "0." + "0" * 30 + "1",
        "100000000000000000",
        "99999999999999999",
        "0.30000000000000004",
    ),
    *("2026-01-01T00:00:00Z", "12026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01", "true", "1e22", "1e23"),
]
TYPES = ["integer", "decimal", "double", "float", "dateTime", "date", "boolean", "int", "string", "noType"]
LITERALS = [f'"{text}"^^<{XSD}{name}>' for text in LEXICAL for name in TYPES]


@pytest.mark.parametrize(
    "column",
    [
        SPELLINGS,
        pa.array(SPELLINGS),
        pa.array(["cut off", *SPELLINGS], pa.large_string())[1:],
        pa.array(SPELLINGS).dictionary_encode(),
        pa.chunked_array([pa.array(SPELLINGS[:3]), pa.array(SPELLINGS[3:])]),
        pa.array([s or None for s in SPELLINGS]),
        pa.array([s or None for s in SPELLINGS]).dictionary_encode(),
    ],
)
def test_equal_spellings_have_one_number_however_they_come(column: object) -> None:
    terms = Terms()
    ids = terms.intern(column)
    assert ids.dtype == np.int32
    assert terms.spellings(ids) == SPELLINGS
    assert ids[0] == ids[5]
    assert ids[2] == 0
    assert terms.intern(column).tolist() == ids.tolist()
    assert terms.dictionary(ids).to_pylist() == [s or None for s in SPELLINGS]
    assert terms.column(ids).to_pylist() == SPELLINGS


@pytest.mark.parametrize("encoded", [False, True])
def test_terms_that_are_not_looked_up_have_numbers_of_their_own(encoded: bool) -> None:
    terms = Terms()
    known = terms.intern(SPELLINGS)
    column = pa.array(SPELLINGS, pa.large_string())
    ids = terms.append(column.dictionary_encode() if encoded else column)
    assert terms.spellings(ids) == SPELLINGS
    assert set(ids.tolist()).isdisjoint(known.tolist())
    assert terms.distinguished(ids).tolist() == known.tolist()
    assert terms.ranks(ids).tolist() == terms.ranks(known).tolist()
    terms.intern([f"<urn:{n}>" for n in range(5000)])  # the table grows
    assert terms.intern(SPELLINGS).tolist() == known.tolist()


def test_many_terms_grow_the_dictionary() -> None:
    terms = Terms()
    spellings = [f"<urn:x:{n % 70_000}>" for n in range(100_000)]
    first = terms.intern(spellings[:50])
    ids = terms.intern(spellings)
    assert ids[:50].tolist() == first.tolist()
    assert terms.count == 70_001
    assert terms.spellings(ids) == spellings


def test_ranks_are_the_order_of_the_spellings() -> None:
    terms = Terms()
    draw = random.Random(1)
    spellings = ["".join(draw.choices("aäz<\U0001f600\ud7ff", k=3)) for _ in range(200)]
    ranks = terms.ranks(terms.intern(spellings)).tolist()
    order = {text: i for i, text in enumerate(sorted(set(spellings)))}
    assert ranks == [order[text] + 1 for text in spellings]


def test_what_is_not_kept_is_forgotten() -> None:
    terms = Terms()
    ids = terms.intern([f"<urn:{n}>" for n in range(1000)])
    terms.values(ids)
    kept = ids[::10]
    marked = terms.unmarked()
    marked[kept] = True
    own = terms.append(pa.array(["<urn:own>", "<urn:5>"], pa.large_string()))
    renumbered = terms.retain(np.append(marked, [True, False]))
    assert terms.spellings(renumbered[own]) == ["<urn:own>", ""]
    assert terms.count == 102
    assert terms.intern(["<urn:10>", "<urn:5>"]).tolist() == [renumbered[ids[10]], 102]
    assert terms.spellings(renumbered[kept]) == [f"<urn:{n}>" for n in range(0, 1000, 10)]
    assert terms.spelling(0) == ""


def test_values_are_those_of_the_value_space() -> None:
    terms = Terms()
    ids = terms.intern(LITERALS)
    for term, kind, double, mantissa, scale in zip(LITERALS, *(v.tolist() for v in terms.values(ids)), strict=True):
        value = decode(term)
        match kind:
            case _ if kind == INTEGER:
                assert value.__class__ is int
                assert value == mantissa
            case _ if kind == DECIMAL:
                assert value.__class__ is Decimal
                assert value == Decimal(mantissa).scaleb(-scale)
            case _ if kind == DOUBLE:
                assert value.__class__ is float
                assert repr(value) == repr(double)
            case _ if kind == TIME:
                assert value.__class__ is DateTime
                assert value.us == mantissa
            case _:
                assert kind == OTHER
                assert value.__class__ not in (float, XsdFloat) or value.__class__ is XsdFloat
                if value.__class__ is int:
                    assert abs(value) >= 2**63


def test_doubles_are_rounded_as_python_rounds() -> None:
    draw = random.Random(2)
    numbers = [draw.uniform(-1e3, 1e3) * 10.0 ** draw.randint(-300, 300) for _ in range(3000)]
    numbers += [round(draw.uniform(0, 1000), draw.randint(0, 8)) for _ in range(3000)]
    terms = Terms()
    _, doubles, _, _ = terms.values(terms.intern([f'"{n!r}"^^<{XSD}double>' for n in numbers]))
    assert doubles.tolist() == numbers


def test_a_batch_is_cut_between_instants() -> None:
    end = np.array([1, 2, 2, 2, 3, 4])
    columns = Columns(end, end, *[pa.array(["<t>"] * 6)] * 3)
    assert [(some.end.tolist(), t) for some, t in pieces(columns, lambda: 2, 9)] == [([1, 2, 2, 2], 2), ([3, 4], 9)]
    assert [(some.end.tolist(), t) for some, t in pieces(columns, lambda: 1, 4)] == [
        ([1], 1),
        ([2, 2, 2], 2),
        ([3], 3),
        ([4], 4),
    ]
    assert [len(some) for some, _ in pieces(columns.rows(0, 0), lambda: 2, 9)] == [0]
