"""A match is a mapping: its bound variables, with their Python values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pandas as pd
import pytest

from etalis_py import Match, event, run

QUERY = "SELECT ?c ?x ?w WHERE { ?c :price ?x OPTIONAL { ?c :weight ?w } }"
EVENTS = [event(":acme :price 1.5", 1), event(":acme :price 2 ; :weight 7", 2)]
ACME = "http://example.org/acme"


def matches() -> list[Match]:
    return list(run(QUERY, EVENTS))


def test_a_match_is_a_mapping_over_its_bound_variables() -> None:
    light, heavy = matches()
    assert isinstance(light, Mapping)
    assert dict(light) == {"c": ACME, "x": Decimal("1.5")}
    assert {**heavy} == {"c": ACME, "x": 2, "w": 7}
    assert (list(light), len(light), len(heavy)) == (["c", "x"], 2, 3)
    assert list(heavy.items()) == [("c", ACME), ("w", 7), ("x", 2)]
    assert list(heavy.values()) == [ACME, 7, 2]
    assert set(light.keys()) == {"c", "x"}


def test_a_variable_may_be_asked_for_with_its_question_mark() -> None:
    light, _ = matches()
    assert light["?x"] == light["x"] == Decimal("1.5")
    assert "?x" in light
    assert "x" in light


def test_what_is_unbound_or_no_variable_is_not_in_the_match() -> None:
    light, _ = matches()
    for absent in ("w", "?w", "y", "", 0, None, ("x",)):
        assert absent not in light
        assert light.get(absent, "none") == "none"  # type: ignore[call-overload]
    with pytest.raises(KeyError, match="w is not bound in this match of q1; it has c, w, x"):
        light["w"]
    with pytest.raises(KeyError, match="0 is not bound"):
        light[0]  # type: ignore[index]


def test_a_match_can_be_taken_apart_by_pattern() -> None:
    _, heavy = matches()
    match heavy:
        case {"x": price, "w": weight}:
            assert (price, weight) == (2, 7)
        case _:
            raise AssertionError


def test_a_match_without_variables_is_true() -> None:
    (yes,) = run("ASK { ?c :weight ?w }", EVENTS)
    assert (len(yes), dict(yes)) == (0, {})
    assert yes


def test_equality_is_that_of_ids_not_of_bindings() -> None:
    first, again = (list(run("SELECT ?c { ?c :price ?x }", EVENTS)) for _ in range(2))
    assert first == again
    assert len({*first, *again}) == 2
    assert dict(first[0]) == dict(first[1])
    assert first[0] != first[1]
    assert first[0] != dict(first[0])


def test_a_frame_of_matches_has_a_column_for_each_variable() -> None:
    frame = pd.DataFrame(matches())
    assert sorted(frame) == ["c", "w", "x"]
    assert frame["x"].tolist() == [Decimal("1.5"), 2]
