"""What comes out, as people want it: short names, floats, plain dicts, a table at the prompt, a call for each match."""

from __future__ import annotations

import itertools
import sys
import warnings
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from etalis_py import Engine, EngineInUse, event, run

AT = datetime(2026, 3, 2, 8, tzinfo=UTC)
ROWS = [
    {"at": AT, "card": "Ann Lee", "city": "Wien", "amount": Decimal("10.5"), "shop": "x"},
    {"at": AT.replace(second=1), "card": "Bob", "city": "Graz", "amount": Decimal("7"), "shop": "y"},
]
MAPPING = {
    "time": "{at}",
    "prefixes": {"s": "http://shop/"},
    "triple": [
        {"subject": ":{card}", "predicate": ":city", "object": "{city}"},
        {"predicate": ":amount", "object": "{amount}"},
        {"predicate": ":shop", "object": "s:{shop}"},
        {"predicate": ":at", "object": "<http://other/{city}>"},
    ],
}
QUERY = """PREFIX s: <http://shop/>
SELECT ?card ?amount ?shop ?at { EVENT { ?card :amount ?amount ; :shop ?shop ; :at ?at } }"""


def found() -> Any:
    return run(QUERY, ROWS, mapping=MAPPING)


@pytest.mark.parametrize("kept", [False, True])
def test_a_frame_has_short_names_if_these_are_wanted(kept: bool) -> None:
    """The names of the empty prefix stand alone, as in the table that came in; others have their prefix."""
    matches = found().collect() if kept else found()
    frame = matches.to_pandas(terms="short")
    assert list(frame["card"]) == ["Ann Lee", "Bob"]
    assert list(frame["shop"]) == ["s:x", "s:y"]
    assert list(frame["at"]) == ["http://other/Wien", "http://other/Graz"]
    assert list(found().to_pandas()["card"]) == ["http://example.org/Ann%20Lee", "http://example.org/Bob"]
    assert list(found().to_polars(terms="short")["card"]) == ["Ann Lee", "Bob"]


def test_decimals_are_exact_or_floats_and_times_are_timestamps() -> None:
    assert list(found().to_pandas()["amount"]) == [Decimal("10.5"), Decimal("7")]
    frame = found().to_pandas(decimals="float")
    assert frame["amount"].dtype == float
    assert list(frame["amount"]) == [10.5, 7.0]
    assert list(frame["end"]) == [pd.Timestamp(row["at"]) for row in ROWS]
    mean = "SELECT ?x (AVG(?n) AS ?mean) { ?x :n ?n } GROUP BY ?x"
    means = run(mean, [event(":a :n 1", 1), event(":a :n 2", 2)]).to_pandas(terms="short", decimals="float")
    assert means.drop(columns="id").values.tolist() == [["a", 1.0, 1, 1], ["a", 1.5, 1, 2]]


def test_several_queries_and_triples_have_short_names_as_well() -> None:
    two = ["REGISTER QUERY one AS SELECT ?x { ?x :p ?y }", "REGISTER QUERY two AS SELECT ?y { ?x :p ?y }"]
    frame = run(two, [event(":c :p :d", 1)]).to_pandas(terms="short")
    assert [frame["x"].dropna().tolist(), frame["y"].dropna().tolist()] == [["c"], ["d"]]
    built = run("CONSTRUCT { ?x :q 5 } WHERE { ?x :p ?y }", [event(":c :p :d", 1)]).to_pandas(terms="short")
    assert built[["s", "p", "o"]].values.tolist() == [["c", "q", "5"]]


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="terms= is 'full' or 'short', not 'brief'"):
        found().to_pandas(terms="brief")
    with pytest.raises(ValueError, match="decimals= is 'exact' or 'float', not 'double'"):
        found().collect().to_arrow(decimals="double")


def test_matches_are_dicts_of_python() -> None:
    rows = found().to_dicts()
    assert rows[0] == {
        "card": "http://example.org/Ann%20Lee",
        "amount": Decimal("10.5"),
        "shop": "http://shop/x",
        "at": "http://other/Wien",
        "start": AT,
        "end": AT,
    }
    assert [row["card"] for row in found().collect().to_dicts(terms="short")] == ["Ann Lee", "Bob"]
    assert found().to_dicts(terms="short", decimals="float")[0]["amount"] == 10.5
    optional = "SELECT ?x ?y { ?c :p ?x OPTIONAL { ?c :q ?y } }"
    assert run(optional, [event(":c :p 1", 3)]).to_dicts() == [{"x": 1, "y": None, "start": 3, "end": 3}]
    assert run("ASK { ?c :p ?x }", [event(":c :p 1", 3)]).to_dicts() == [{"boolean": True, "start": 3, "end": 3}]
    built = run("CONSTRUCT { ?x :q 5 } WHERE { ?x :p ?y }", [event(":c :p :d", 1)]).to_dicts(terms="short")
    assert built == [{"s": "c", "p": "q", "o": 5, "start": 1, "end": 1}]


# --- at the prompt ---

TABLE = """\
# q1
?card | ?amount | start | end
------+---------+-------+----
:c1   | 10      | 1     | 1
:c2   | 500     | 2     | 2"""
PAID = [{"at": 1, "card": "c1", "amount": 10}, {"at": 2, "card": "c2", "amount": 500}]


def paid(stream: Any = PAID) -> Any:
    return run("SELECT ?card ?amount { ?card :amount ?amount }", stream, time="at", subject="card")


def test_a_run_prints_as_a_table_and_keeps_its_matches() -> None:
    matches = paid()
    assert str(matches) == str(matches) == TABLE
    assert [m["amount"] for m in matches] == [10, 500]
    kept = paid()
    assert str(kept) == TABLE
    assert list(kept.to_pandas()["amount"]) == [10, 500]
    collected = paid().collect()
    assert str(paid()) == TABLE
    assert len(collected) == 2


def test_at_the_prompt_a_run_shows_itself_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(paid()).startswith("<Run of q1 over the records: 0 events")
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert repr(paid()) == TABLE


def test_a_long_table_says_how_to_see_the_rest() -> None:
    matches = run("SELECT ?x { ?c :p ?x }", [event(f":c :p {n}", n) for n in range(5000)])
    lines = str(matches).splitlines()
    assert len(lines) == 3 + 20 + 1
    assert lines[-1] == "… and more: iterate over it, or take all with .collect() or .to_pandas()"
    assert len(matches.collect()) == 5000


def test_a_table_without_matches_says_why() -> None:
    told = str(run("SELECT ?x { ?c :pirce ?x }", [event(":acme :price 3", 1)]))
    assert told == (
        "no matches: 1 event\nthe predicate :pirce never occurred; did you mean :price? (spelt a little differently)"
    )


SLIP = ("SELECT ?x { ?c :pirce ?x }", [event(":acme :price 3", 1)])
OUT_OF_SCOPE = "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y FILTER (?y > ?x) } }"


@pytest.mark.parametrize("taken", [list, lambda found: found.collect(), lambda found: found.to_pandas()])
def test_whoever_only_waits_for_matches_is_told_why_there_are_none(taken: Any) -> None:
    with pytest.warns(UserWarning, match="no matches: 1 event\nthe predicate :pirce never occurred") as told:
        taken(run(*SLIP))
    assert len(told) == 1


def test_a_filter_that_lets_nothing_through_is_told_before_the_first_event() -> None:
    with pytest.warns(UserWarning, match=r"\?x is not in scope here") as told:
        found = run(OUT_OF_SCOPE, [event(f":c :p {n}", n) for n in (1, 2)])
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(found) == []  # it is told once


def test_what_takes_longer_to_find_in_the_text_is_told_where_nothing_matched() -> None:
    with pytest.warns(UserWarning, match=r"(?s)no matches: 1 event.*a literal is the subject of no triple"):
        assert list(run("SELECT ?x { 3 :price ?x }", SLIP[1])) == []


@pytest.mark.parametrize("given", [SLIP, ("SELECT ?x { ?c :price ?x }", []), ("ASK { ?c :pirce ?x }", SLIP[1])])
def test_what_shows_itself_or_finds_something_or_sees_nothing_is_not_told_twice(given: tuple[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(*given)
        if given is SLIP:
            assert "the predicate :pirce never occurred" in str(found)
        assert all(match.query == "q1" for match in found)


def test_what_need_not_end_is_not_run_to_be_shown() -> None:
    endless = ({"at": n, "card": "c", "amount": n} for n in itertools.count())
    assert str(paid(endless)).startswith("<Run of q1 over")


# --- a call for each match ---


def test_a_function_is_called_with_each_match_of_whatever_call() -> None:
    seen: list[int] = []
    engine = Engine("SELECT ?x { ?c :p ?x }")
    engine.on_match(lambda match: seen.append(match["x"]))
    engine.push(event(":c :p 1", 1))
    assert seen == []
    assert [m["x"] for m in engine.push(event(":c :p 2", 2))] == seen == [1]
    engine.advance(2_000_000)
    assert seen == [1, 2]
    engine.push_all([event(":c :p 3", 3), event(":c :p 4", 4)])
    engine.push({"at": 5, "p": 5}, time="at", subject=None)
    assert seen == [1, 2, 3, 4]
    engine.close()
    assert seen == [1, 2, 3, 4, 5]


def test_a_correction_calls_with_what_is_taken_back() -> None:
    seen = []
    engine = Engine("SELECT ?x { ?c :p ?x }", revise=60_000_000)
    engine.on_match(lambda match: seen.append((match["x"], match.retracted)))
    engine.push_all([event(":c :p 1", 1), event(":c :p 2", 2)])
    engine.push(event(":c :p 1", 1, retract=True))
    assert seen == [(1, False), (1, True)]


def test_the_function_may_use_the_engine() -> None:
    """It is called after the step, so what it pushes is one more step."""
    engine = Engine("SELECT ?x { ?c :p ?x } ")

    @engine.on_match
    def again(match: Any) -> None:
        if match["x"] < 2:
            engine.push(event(f":c :p {match['x'] + 1}", match["x"] + 1))

    engine.push(event(":c :p 1", 1))
    engine.advance(1_000_000)
    assert [m["x"] for m in engine.close()] == [2]


def test_an_error_of_the_function_is_raised_and_the_engine_goes_on() -> None:
    engine = Engine("SELECT ?x { ?c :p ?x }")

    @engine.on_match
    def fails(match: Any) -> None:
        raise EngineInUse("stop here")

    engine.push(event(":c :p 1", 1))
    with pytest.raises(EngineInUse, match="stop here"):
        engine.push(event(":c :p 2", 2))
    assert engine.broken is None


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="on_match takes a function of a match, not 5"):
        Engine("SELECT ?x { ?c :p ?x }").on_match(5)  # type: ignore[arg-type]
