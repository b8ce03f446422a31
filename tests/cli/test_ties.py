"""``etalis run --ties source``: events of one time have the order of the source."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Folder, tick
from tests.engine.test_ties_by_column import NEXT as ORDERED
from tests.engine.test_ties_by_column import TABLE
from tests.engine.test_ties_of_mappings import CSV, TOML

NEXT = "SELECT ?x ?y { { ?c :price ?x } NEXT { ?c :price ?y } }"
RUN = ("run", "-q", NEXT, "-s", "t.jsonl", "-f", "csv")


@pytest.fixture
def ticks(folder: Folder) -> Folder:
    folder.write("t.jsonl", "".join(tick(n // 2, n) for n in range(4)))
    return folder


def test_what_comes_later_in_the_file_is_later(ticks: Folder) -> None:
    assert ticks.etalis(*RUN).stdout.splitlines()[1:] == ["0,2,0,1", "0,3,0,1", "1,2,0,1", "1,3,0,1"]
    assert ticks.etalis(*RUN, "--ties", "source").stdout.splitlines()[1:] == ["0,1,0,0", "1,2,0,1", "2,3,1,1"]


@pytest.mark.parametrize(
    "option", ["--explain-matches", "--timeline t.svg", "--trace q1", "--executor columns", "--executor both"]
)
def test_options_that_have_no_place_beside_it(ticks: Folder, option: str) -> None:
    done = ticks.etalis(*RUN, "--ties", "source", *option.split(), code=2)
    assert option.split()[0] in done.stderr
    assert "has no place beside --ties" in done.stderr


def test_windows_and_spark_are_refused(ticks: Folder) -> None:
    window = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }"
    windowed = ticks.etalis("run", "-q", window, "-s", "t.jsonl", "--ties", "source", code=2)
    assert "run the windowed queries as a program of their own" in windowed.stderr
    spark = ticks.etalis(*RUN, "--ties", "source", "--engine", "spark", code=2)
    assert "--ties puts the events of a time in one order" in spark.stderr


def test_several_cores_match_on_one(ticks: Folder) -> None:
    done = ticks.etalis(*RUN, "--ties", "source", "--cores", "2")
    assert done.stdout.splitlines()[1:] == ["0,1,0,0", "1,2,0,1", "2,3,1,1"]
    assert "matches on one core (events of one time have an order)" in done.stderr


def test_a_run_that_lasts_keeps_its_order(ticks: Folder) -> None:
    lasting = (*RUN[:-2], "--sink", "m.jsonl", "--checkpoint", "kept")
    ticks.etalis(*lasting, "--ties", "source")
    other = ticks.etalis(*lasting, code=1)
    assert "--ties" in other.stderr


def test_a_column_puts_rows_of_one_time_in_order(folder: Folder) -> None:
    folder.write("t.csv", "at,user,act,seq\n1,ann,out,10\n1,ann,in,9\n")
    query = "SELECT ?x ?y { { ?u :act ?x } NEXT { ?u :act ?y } }"
    rows = ("-s", "t.csv", "--time", "at", "--subject", "user", "-f", "csv")
    assert folder.etalis("run", "-q", query, *rows, "--ties", "seq").stdout.splitlines()[1:] == ["in,out,1,1"]
    refused = folder.etalis("run", "-q", query, *rows, "--ties", "seqq", code=2).stderr
    assert "--ties='seqq': no row has a property of this name" in refused
    assert "the columns that have one are act, seq; did you mean seq?" in refused


def test_a_predicate_that_never_occurs_is_told(ticks: Folder) -> None:
    done = ticks.etalis(*RUN, "--ties", "seq")
    assert len(done.stdout.splitlines()) == 5
    assert "the predicate :seq never occurred" in done.stderr


BY_MAPPING = ("run", "-q", ORDERED, "-s", "t.csv", "-m", "m.toml", "-f", "csv")


@pytest.fixture
def mapped(folder: Folder) -> Folder:
    folder.write("t.csv", CSV)
    folder.write("m.toml", TOML)
    return folder


def test_a_mapping_says_the_order(mapped: Folder) -> None:
    assert mapped.etalis(*BY_MAPPING).stdout.splitlines()[1:] == ["10,20,1,1", "20,30,1,2", "30,40,2,2"]
    by_source = mapped.etalis(*BY_MAPPING, "--ties", "source")
    assert by_source.stdout.splitlines()[1:] == ["20,10,1,1", "10,40,1,2", "40,30,2,2"]


def test_a_mapping_says_the_order_of_a_pipe(mapped: Folder) -> None:
    lines = "".join(f"{json.dumps(row)}\n" for row in TABLE.to_pylist())
    piped = mapped.etalis(*BY_MAPPING[:4], "-", *BY_MAPPING[5:], "--idle", "100ms", input=lines)
    assert piped.stdout.splitlines()[1:] == ["10,20,1,1", "20,30,1,2", "30,40,2,2"]


def test_the_order_of_a_mapping_is_refused_where_it_has_no_place(mapped: Folder) -> None:
    drawn = mapped.etalis(*BY_MAPPING, "--timeline", "t.svg", code=2)
    assert "--timeline has no place beside the ties of the mapping" in drawn.stderr
    on_spark = mapped.etalis(*BY_MAPPING, "--engine", "spark", code=2)
    assert "Spark has the events of a time in many engines: leave it out of the mapping" in on_spark.stderr
    mapped.write("m.toml", TOML.replace('ties = "no"', 'ties = "noo"'))
    wrong = mapped.etalis(*BY_MAPPING, code=1)
    assert "no triple has the column 'noo' for its object" in wrong.stderr
    assert "did you mean 'no'?" in wrong.stderr
