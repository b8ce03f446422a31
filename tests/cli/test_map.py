"""``etalis map``: what is drafted for small tables of shapes that people have, and that the draft runs as it stands."""

from __future__ import annotations

import bz2
import lzma
import shlex
import tomllib
from collections.abc import Callable
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import Folder

STOCKS = """\
symbol,date,price
ACME,Jan 1 2020,39.81
ACME,Feb 1 2020,36.35
BOLT,Jan 1 2020,7
BOLT,Feb 1 2020,8
"""
WEATHER = """\
date,precipitation,temp_max,weather
2012/01/01,0.0,12.8,drizzle
2012/01/02,10.9,10.6,rain
2012/01/03,0.8,11.7,rain
2012/01/04,0.0,12.2,sun
2012/01/05,1.3,8.9,drizzle
"""
REGISTER = """\
first_name,last_name,age,gender,death_date,type
Ann B.,Lee,18,Female,1992-04-30,accident
Bob,Ray,42,Male,1992-05-01,accident
Cid C.,Poe,,Male,1992-04-30,illness
Bob,Low,37,Male,1992-05-01,accident
"""
MONTHS = "month,private,farm\n2006-01-01,113603,1\n2006-02-01,113884,2\n2006-03-01,114156,3\n"
CITIES = "day,place,temp\n2026-01-01,Wien,1\n2026-01-01,Graz,2\n2026-01-02,Wien,3\n2026-01-02,Graz,4\n"
PLOTS = '[{"yield":27,"kind":"A","year":1931,"site":"North"},\n{"yield":48.8,"kind":"A","year":1931,"site":"South"},\n'
PLOTS += '{"yield":27.4,"kind":"B","year":1931,"site":"North"},{"yield":1,"kind":"B","year":1932,"site":"South"}]\n'
NESTED = '{"ts": 1769853600000, "sensor": {"id": "s1"}, "on": true}\n'
NESTED += NESTED.replace("00000,", "01000,").replace("true", "false")
PAYMENTS = "at,card,city,amount\n1,c1,Wien,10\n2,c1,Graz,500\n3,c2,Linz,7\n"

SUBJECTS = {
    "a symbol": ("stocks.csv", STOCKS, ":{symbol}"),
    "no key, but words that repeat": ("weather.csv", WEATHER, "_:row"),
    "people with first and last names": ("register.csv", REGISTER, "_:row"),
    "numbers only": ("months.csv", MONTHS, "_:row"),
    "a name that tells the rows of a day apart": ("cities.csv", CITIES, ":{place}"),
    "a site with several rows a year": ("plots.json", PLOTS, "_:row"),
    "a key inside an object": ("nested.jsonl", NESTED, ":{sensor.id}"),
    "a card": ("payments.csv", PAYMENTS, ":{card}"),
    "a door that each row names once": ("doors.csv", "at,door,badge\n1,d1,ann\n2,d2,bob\n", ":{door}"),
    "codes that repeat": ("codes.csv", "at,thing,x\n1,t-7,1\n2,t-9,2\n3,t-7,3\n", ":{thing}"),
    "a status is no thing": ("status.csv", "at,sensor_status,x\n1,ok,1\n2,ok,2\n3,bad,3\n", "_:row"),
    "a measured value is no thing": ("value.csv", "at,car,x\n1,2.5,1\n2,2.5,2\n", "_:row"),
    "a single row is no key": ("single.csv", "code,x\nA1,1\n", "_:row"),
    "measured values that blanks line up": ("blanks.csv", "Ix,   Iy\n10.0,   8.04\n 8.0,   6.95\n", "_:row"),
    "a length of time is no thing": ("ride.csv", "power,time\n68,0 days 00:00:00\n70,0 days 00:00:01\n", "_:row"),
    "numbers of things": ("number.csv", "at,sensor_id,x\n1,7,1\n2,8,2\n3,7,3\n", ":{sensor_id}"),
}


def draft(folder: Folder, name: str, text: str) -> tuple[dict[str, Any], str]:
    """The draft for a file, and the command under it."""
    folder.write(name, text)
    printed = folder.etalis("map", name).stdout
    folder.write("mapping.toml", printed)
    return tomllib.loads(printed), printed.splitlines()[-1].removeprefix("# etalis ")


@pytest.mark.parametrize(("name", "text", "subject"), SUBJECTS.values(), ids=SUBJECTS)
def test_a_row_is_about_its_key_if_it_has_one_and_else_a_node_of_its_own(
    folder: Folder, name: str, text: str, subject: str
) -> None:
    assert draft(folder, name, text)[0]["triple"][0]["subject"] == subject


@pytest.mark.parametrize(("name", "text"), [one[:2] for one in SUBJECTS.values()], ids=SUBJECTS)
def test_the_query_under_a_draft_finds_each_row_once(folder: Folder, name: str, text: str) -> None:
    """In these tables no key has two rows at one time, and some column has a value in every row."""
    _, command = draft(folder, name, text)
    rows = text.count("{") - text.count(": {") if name.startswith(("plots", "nested")) else text.count("\n") - 1
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == rows


def test_the_query_keeps_to_one_row_where_a_key_has_several_at_one_time(folder: Folder) -> None:
    _, command = draft(folder, "p.csv", "at,card,city,amount\n1,c1,Wien,10\n1,c1,Graz,500\n")
    query = shlex.split(command)[2]
    assert query == "SELECT ?card ?city ?amount { EVENT { ?card :city ?city ; :amount ?amount } }"
    rows = folder.etalis("run", "-q", query, "-s", "p.csv", "-m", "mapping.toml", "-f", "csv").stdout.splitlines()[1:]
    assert sorted(row.split(",")[1:3] for row in rows) == [["Graz", "500"], ["Wien", "10"]]


TIMES = {
    "iso": ("at", ["2026-03-02T08:00:00Z"], {}),
    "a space in it": ("at", ["2026-03-02 08:00:00"], {}),
    "a space, and a fraction if there is one": ("at", ["2026-03-02 08:00:00", "2026-03-02 08:00:00.25+00"], {}),
    "a comma, as logs have it": ("at", ["2026-03-02 08:00:00,125"], {}),
    "under a name that says nothing": ("x1", ["2026-03-02 08:00:00"], {}),
    "words": ("date", ["Jan 1 2000", "Feb 1 2000"], {"time_format": "%b %d %Y"}),
    "months": ("month", ["Jan 2000"], {"time_format": "%b %Y"}),
    "of a web server": ("x1", ["10/Oct/2000:13:55:36 -0700"], {"time_format": "%d/%b/%Y:%H:%M:%S %z"}),
    "years as floats": ("year", ["1950.0", "1951.0"], {"time_format": "%Y.0"}),
    "years that blanks line up": ("Year", [" 2012", " 2013"], {"time_format": "%Y"}),
    "epochs under a name that says nothing": ("x1", ["1769853600", "1769853605"], {}),
    "days first, by their order": ("day", ["01/02/2026", "02/02/2026", "01/03/2026"], {"time_format": "%d/%m/%Y"}),
    "months first, by their order": ("day", ["01/02/2026", "01/03/2026", "02/01/2026"], {"time_format": "%m/%d/%Y"}),
    "seconds": ("t", ["0", "5", "3"], {}),
    "epoch": ("epoch", ["1769853600"], {}),
    "a single time with a fraction": ("epoch", ["1769853600.25"], {}),
    "milliseconds": ("x1", ["1769853600000", "1769853601000"], {"time_unit": "ms"}),
    "milliseconds before 2001": ("ts", ["946684800000"], {"time_unit": "ms"}),
    "microseconds": ("ts", ["1769853600000000"], {"time_unit": "us"}),
    "nanoseconds": ("ts", ["1769853600000000000"], {"time_unit": "ns"}),
    "years": ("year", ["1565", "1570"], {"time_format": "%Y"}),
    "numbers of the calendar": ("date", ["20260131", "20260201"], {"time_format": "%Y%m%d"}),
    "a time of day": ("time", ["08:00", "09:30"], {"time_format": "%H:%M"}),
}


@pytest.mark.parametrize(("column", "times", "form"), TIMES.values(), ids=TIMES)
def test_times_are_known_by_their_values_as_well_as_by_their_names(
    folder: Folder, column: str, times: list[str], form: dict[str, str]
) -> None:
    text = f"response_time,{column},sensor\n" + "".join(f"{n}.5,{time},s{n}\n" for n, time in enumerate(times))
    mapping, command = draft(folder, "t.csv", text)
    assert {key: mapping[key] for key in mapping if key != "triple"} == {"time": f"{{{column}}}", **form}
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == len(times)


INTERVALS = {
    "dates": ("from,to", ["2026-03-02 09:00,2026-03-02 10:00"], {}),
    "iso": ("started_at,ended_at", ["2026-03-02T09:00:00Z,2026-03-02T09:00:00Z"], {}),
    "the end first": ("end,start", ["9,1", "7,7"], {}),
    "epochs": ("valid_from,valid_to", ["1769853600000,1769853601000"], {"time_unit": "ms"}),
}
NO_INTERVALS = {
    "payments between accounts": ("at,from,to", ["1,17,18", "2,4,9"], "{at}"),
    "accounts without a time": ("from,to", ["17,18", "4,9"], ""),
    "places": ("day,from,to", ["2026-03-02,Wien,Graz"], "{day}"),
    "an end before its start": ("start,end", ["2026-03-02,2026-03-01"], "{end}"),
    "one that has not ended": ("start,end", ["2026-03-02,", "2026-03-02,2026-03-03"], "{end}"),
    "a time beside them": ("timestamp,start,end", ["2026-03-02,1,2"], "{timestamp}"),
}


def rows_of(columns: str, rows: list[str]) -> str:
    return f"{columns},room\n" + "".join(f"{row},r{n}\n" for n, row in enumerate(rows))


@pytest.mark.parametrize(("columns", "rows", "form"), INTERVALS.values(), ids=INTERVALS)
def test_a_start_and_an_end_are_an_interval(
    folder: Folder, columns: str, rows: list[str], form: dict[str, str]
) -> None:
    mapping, command = draft(folder, "t.csv", rows_of(columns, rows))
    start, end = sorted(columns.split(","), key=lambda name: name.split("_")[-1] in ("to", "end") or "ended" in name)
    assert {key: mapping[key] for key in mapping if key != "triple"} == {"time": [f"{{{start}}}", f"{{{end}}}"], **form}
    assert [one["object"] for one in mapping["triple"]] == ["{room}"]
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == len(rows)


@pytest.mark.parametrize(("columns", "rows", "time"), NO_INTERVALS.values(), ids=NO_INTERVALS)
def test_other_columns_from_and_to_are_none(folder: Folder, columns: str, rows: list[str], time: str) -> None:
    assert draft(folder, "t.csv", rows_of(columns, rows))[0].get("time", "") == time


def test_a_decimal_comma_is_read_as_a_number(folder: Folder) -> None:
    text = "Datum;Kunde;Betrag;Stück\n02.03.2026 09:00;Ann;1.210,50;2\n02.03.2026 12:00;Ann;20,00;\n"
    mapping, _ = draft(folder, "sales.csv", text)
    assert (mapping["delimiter"], mapping["decimal"]) == (";", ",")
    query = "SELECT ?k (SUM(?b) AS ?sum) { EVENT { ?r :Kunde ?k ; :Betrag ?b } } GROUP BY ?k"
    for options in (["-m", "mapping.toml"], []):
        for executor in ("rows", "columns"):
            told = ["run", "-q", query, "-s", "sales.csv", "-f", "csv", "--executor", executor, *options]
            assert [row.split(",")[1] for row in folder.etalis(*told).stdout.splitlines()] == [
                "sum",
                "1210.5",
                "1230.5",
            ]


@pytest.mark.parametrize(
    "text",
    ["at;kind;tags\n1;a;1,2\n2;b;x\n", 'at,kind,pair\n1,a,"1,2"\n2,b,"3,4"\n', "at;kind;n\n1;a;1.5\n2;b;2\n"],
    ids=["words among them", "a comma as the delimiter", "points"],
)
def test_other_commas_are_no_decimal_commas(folder: Folder, text: str) -> None:
    assert "decimal" not in draft(folder, "t.csv", text)[0]


def test_the_time_of_an_element_of_a_list_is_found_by_its_name(folder: Folder) -> None:
    mapping, command = draft(folder, "t.json", '{"events": [{"at": 1, "card": "c1"}, {"at": 2, "card": "c2"}]}')
    assert mapping["time"] == "{events[].at}"
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == 2


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


def lz4(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "lz4", asbytes=True)
    return packed


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"at": 1, "price": 10}\n', "this is JSON, and not CSV\n  give the file an ending that tells: .jsonl"),
        ("sep=;\nat;price\n1;10\n", "the first line, sep=;, tells Excel the delimiter: it names no columns\n  remove"),
    ],
)
def test_a_first_line_that_names_no_columns_is_refused(folder: Folder, text: str, refusal: str) -> None:
    folder.write("t.csv", text)
    assert f"etalis: t.csv: {refusal}" in folder.etalis("map", "t.csv", code=1).stderr
    for named in ([], ["--time", "at", "--subject", "_:row"]):
        done = folder.etalis("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "t.csv", *named, code=1)
        assert f"etalis: t.csv: {refusal}" in done.stderr


REMARKS = {
    "no line of names": ("1,c1,10\n2,c2,20\n", "the first line, 1, c1, 10, is taken for the names of the columns"),
    "decimal commas": ("at;card;x\n1;c1;10,5\n2;c2;7\n", "x has decimal commas, as in 10,5: they are read as numbers"),
    "decimal commas in quotes": ('at,card,x\n1,c1,"10,5"\n', "x has decimal commas, as in 10,5: its values are texts"),
    "thousands": (
        'at,card,x\n1,c1,"1,090"\n2,c2,7\n',
        "x has commas in its numbers, as in 1,090: such values are texts",
    ),
    "between tabs": ("at\tcard\tx\n1\tc1\t1.210,5\n", "x has decimal commas, as in 1.210,5: they are read as numbers"),
    "dollars": (
        "at,card,x\n1,c1,$9\n2,c2,$12.50\n",
        "x has a sign beside its numbers, as in $9: such values are texts",
    ),
    "amounts with decimal commas": (
        'at,card,x\n1,c1,"9,50 €"\n2,c2,12 €\n',
        "x has a sign beside its numbers, as in 9,50 €: such values are texts; leave the sign out, or take the number "
        'in the query: xsd:decimal(REPLACE(REPLACE(?x, "[^0-9,-]", ""), ",", "."))',
    ),
    "percentages": ("at,card,x\n1,c1,\n2,c2,12 %\n", "x has a sign beside its numbers, as in 12 %: such values are"),
    "a time that is none": (
        "at,card,x\n2026-01-01,c1,1\n2026-01-02,c1,2\nunknown,c1,1\n2026-01-03,c1,5\n",
        "the cells of at are times, but 'unknown' is none: correct it, and at is the time",
    ),
    "a time that is none, of few rows": (
        "at,card,x\n2026-01-01,c1,1\nsoon,c1,2\n2026-01-03,c1,5\n",
        "the cells of at are times, but 'soon' is none: correct it, and at is the time",
    ),
    "a line of names among the rows": (
        "at,card,x\n1,c1,1\nat,card,x\n3,c1,5\n",
        "the cells of at are times, but 'at' is none: correct it, and at is the time",
    ),
    "times with and without seconds": (
        "when,card,x\n31.12.2025 10:00,c1,1\n31.12.2025 10:00:05,c1,2\n",
        "the times of when are spelled in different ways, as '31.12.2025 10:00' and '31.12.2025 10:00:05': spell them",
    ),
    "a column without a name": ("at,card,,x\n1,c1,7,10\n", "column 3 has no name and is left out: give it one in the"),
}


@pytest.mark.parametrize(("text", "remark"), REMARKS.values(), ids=REMARKS)
def test_what_is_odd_about_rows_is_told_with_the_draft(folder: Folder, text: str, remark: str) -> None:
    folder.write("t.csv", text)
    assert f"# Note: {remark}" in folder.etalis("map", "t.csv").stdout
    assert f"etalis: t.csv: {remark}" in folder.etalis("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "t.csv").stderr


@pytest.mark.parametrize(
    "text",
    [
        "at,card,x\n1,c1,10\n",
        "at,card,x,\n1,c1,10,\n",
        'at,card,x\n1,c1,"10,5 kg"\n',
        'at,x\n1,"1,5"\n2,"a"\n',
        "x,note\n1,soon\n2,later\n",
        "at,card,x\n1,c1,$9\n2,c2,n/a\n",
    ],
)
def test_usual_rows_are_left_without_a_remark(folder: Folder, text: str) -> None:
    folder.write("t.csv", text)
    assert "# Note" not in folder.etalis("map", "t.csv").stdout


def test_a_name_of_two_columns_is_refused_where_it_is_used(folder: Folder) -> None:
    folder.write("t.csv", "at,x,x,c\n1,2,3,a\n")
    assert "# Note: two columns are called x: rename one of them" in folder.etalis("map", "t.csv").stdout
    asked = ("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "t.csv")
    told = folder.etalis(*asked, code=1).stderr
    assert "t.csv:1: two columns are called 'x'\n  rename one of them" in told
    assert told.count("two columns") == 1
    folder.write("m.toml", 'time = "{at}"\nsubject = ":s"\npredicate = ":p"\nobject = "{c}"\n')
    assert len(folder.etalis(*asked, "-m", "m.toml").stdout.splitlines()) == 1


def test_rows_without_a_telling_name_are_known_by_their_shape(folder: Folder) -> None:
    folder.write("payments", PAYMENTS)
    found = folder.etalis("run", "-q", "SELECT ?card { ?card :amount 500 }", "-s", "payments")
    assert (len(found.stdout.splitlines()), "time {at}, subject :{card}" in found.stderr) == (1, True)
    folder.write("letter", "Dear all, as promised\nthis is no table\n")
    refused = folder.etalis("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "letter", code=1).stderr
    assert "cannot tell the format" in refused
    assert ".csv" in refused


def test_a_workbook_is_refused_with_what_to_do(folder: Folder) -> None:
    with ZipFile(folder.path / "t.xlsx", "w") as workbook:
        workbook.writestr("sheet1.xml", "<sheet/>")
    for command in (("map", "t.xlsx"), ("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "t.xlsx")):
        assert "save its sheet as CSV" in folder.etalis(*command, code=1).stderr


@pytest.mark.parametrize("name", ["t.nq", "t.csv"])
@pytest.mark.parametrize(
    ("tool", "pack"), [("bzip2", bz2.compress), ("xz", lzma.compress), ("zstd", zstd), ("lz4", lz4)]
)
def test_what_is_packed_otherwise_than_with_gzip_is_told_so(
    folder: Folder, name: str, tool: str, pack: Callable[[bytes], bytes]
) -> None:
    (folder.path / f"{name}.packed").write_bytes(pack(b"<urn:a> <urn:p> <urn:b> .\n" * 1000))
    for command in (("map",), ("run", "-q", "SELECT * { ?s ?p ?o }", "-s")):
        told = folder.etalis(*command, f"{name}.packed", code=1).stderr
        assert f"this is packed with {tool}, and only gzip is unpacked here\n  unpack it first: {tool} -d FILE" in told


def test_the_column_of_the_subject_is_no_predicate_and_that_is_told(folder: Folder) -> None:
    folder.write("p.csv", PAYMENTS)
    found = folder.etalis("run", "-q", "SELECT * { EVENT { ?x :card ?card ; :city ?city } }", "-s", "p.csv")
    told = (
        "the predicate :card never occurred: the column card is the subject of its rows, as in { ?card :amount ?value }"
    )
    assert (found.stdout, told in found.stderr) == ("", True)


def test_the_column_of_the_time_is_no_predicate_and_that_is_told(folder: Folder) -> None:
    folder.write("p.csv", PAYMENTS)
    time = PAYMENTS.partition(",")[0]
    query = f"SELECT ?x {{ ?x :{time} ?t }}"
    told = (
        f":{time} never occurred: the column {time} is the time of its rows, which BIND (getENDTIME() AS ?time) gives"
    )
    assert told in folder.etalis("run", "-q", query, "-s", "p.csv").stderr


def test_a_temperature_named_t_is_no_time(folder: Folder) -> None:
    mapping, _ = draft(folder, "t.csv", "t,logged\n21.5,2026-01-01T00:00:00Z\n20.9,2026-01-01T00:01:00Z\n")
    assert mapping["time"] == "{logged}"


def test_large_numbers_that_go_up_and_down_are_no_times(folder: Folder) -> None:
    mapping, _ = draft(folder, "ride.csv", "position_long,power\n1992059008,68\n1992060000,70\n1992059500,71\n")
    assert "time" not in mapping


def test_an_object_that_is_no_row_is_told_what_a_table_is(folder: Folder) -> None:
    folder.write("t.json", '{"lat": [1, 2], "lng": [3, 4]}')
    assert (
        "write one JSON object per line, or one array of objects, each with a value"
        in folder.etalis("map", "t.json", code=1).stderr
    )


def test_a_table_without_a_time_has_the_time_of_arrival_and_the_draft_says_so(folder: Folder) -> None:
    mapping, command = draft(folder, "t.csv", "code,name\nA1,Airport\nB2,Bridge\n")
    assert "time" not in mapping
    assert "# No column has a time, so a row has that of its arrival.\n" in folder.read("mapping.toml")
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == 2


def test_columns_without_letters_and_names_in_other_alphabets_stay_apart(folder: Folder) -> None:
    mapping, command = draft(folder, "t.csv", ",at,größe,温度,%,a b,a_b\n0,1,1,2,3,4,5\n")
    predicates = [one["predicate"] for one in mapping["triple"]]
    assert predicates == [":größe", ":温度", ":value", ":a_b", ":a_b_2"]
    assert len(folder.etalis(*shlex.split(command)).stdout.splitlines()) == 1


def test_a_draft_notes_what_it_leaves_out_and_what_it_takes_for_granted(folder: Folder) -> None:
    folder.write("t.jsonl", '{"at": "01/02/2026", "u": "a", "tags": ["x"], "more": [{"n": 1}]}\n')
    notes = [line for line in folder.etalis("map", "t.jsonl").stdout.splitlines() if line.startswith("# Note")]
    assert notes == [
        "# Note: 01/02/2026 is read with the month before the day; if that is wrong, give a mapping with time_format = "
        '"%d/%m/%Y".',
        "# Note: each element of more makes a row, which repeats the keys around the list.",
        "# Note: tags is a list and left out: name an element, as {tags[]}.",
    ]


def test_typed_tables_are_drafted_by_their_types(folder: Folder) -> None:
    table = pa.table({"w": pa.array([0, 10**6], pa.timestamp("us")), "card": ["a", "a"], "x": [1, 2]})
    parquet.write_table(table, folder.path / "t.parquet")
    mapping = tomllib.loads(folder.etalis("map", "t.parquet").stdout)
    assert (mapping["time"], mapping["triple"]) == (
        "{w}",
        [{"subject": ":{card}", "predicate": ":x", "object": "{x}"}],
    )


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (["01/02/2026", "01/03/2026"], "month before the day; if that is wrong, give a mapping"),
        (["03/02/2026 08:00", "04/02/2026 08:00"], 'with time_format = "%d/%m/%Y %H:%M"'),
        (["01/13/2026"], ""),
        (["30/01/2026", "01/02/2026"], ""),
        (["01/02/2026", "02/01/2026", "03/01/2026"], ""),
        (["2026-01-02"], ""),
    ],
)
def test_it_is_told_if_a_day_might_be_a_month(folder: Folder, times: list[str], told: str) -> None:
    folder.write("t.csv", "at,x\n" + "".join(f"{time},{n}\n" for n, time in enumerate(times)))
    done = folder.etalis(
        "run", "-q", "SELECT ?x { ?r :x ?x }", "-s", "t.csv", "--time", "at", "--subject", "_:row", "-f", "csv"
    )
    assert told in done.stderr
    assert ("is read with" in done.stderr) == bool(told)


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ("2026/03/02 08:00:00", 'in the mapping write time_format = "%Y/%m/%d %H:%M:%S"'),
        ("Jan 1 2000", 'in the mapping write time_format = "%b %d %Y"'),
        ("soon", 'say how it is spelled, as a format of strptime: time_format = "%d.%m.%Y %H:%M"'),
    ],
)
def test_a_time_that_cannot_be_read_is_told_its_time_format(folder: Folder, time: str, told: str) -> None:
    folder.write("t.csv", f"at,x\n{time},1\n")
    for form in ("", 'time_format = "%d|%m"\n'):
        folder.write("m.toml", f'subject = "_:row"\npredicate = ":x"\nobject = "{{x}}"\ntime = "{{at}}"\n{form}')
        done = folder.etalis("run", "-q", "SELECT ?x { ?r :x ?x }", "-s", "t.csv", "-m", "m.toml", code=1)
        assert done.stderr.endswith(f"\n  {told}\n")


# --- rows without a mapping ---------------------------------------------------------

RECORD = "SELECT ?city ?amount { ?row :city ?city ; :amount ?amount }"


def test_columns_are_named_in_place_of_a_mapping(folder: Folder) -> None:
    folder.write("p.csv", PAYMENTS)
    done = folder.etalis("run", "-q", RECORD, "-s", "p.csv", "--time", "at", "--subject", "_:row", "-f", "csv")
    assert done.stdout.splitlines()[1:] == ["Wien,10,1,1", "Graz,500,2,2", "Linz,7,3,3"]
    assert done.stderr == ""
    by_card = "SELECT ?x { :c1 :amount ?x }"
    done = folder.etalis("run", "-q", by_card, "-s", "p.csv", "--time", "at", "--subject", "card", "-f", "csv")
    assert done.stdout.splitlines()[1:] == ["10,1,1", "500,2,2"]


def test_without_either_the_draft_is_taken_and_told_in_one_line(folder: Folder) -> None:
    folder.write("p.csv", PAYMENTS)
    done = folder.etalis("run", "-q", "SELECT ?x { :c1 :amount ?x }", "-s", "p.csv", "-f", "csv")
    assert done.stdout.splitlines()[1:] == ["10,1,1", "500,2,2"]
    assert done.stderr == "etalis: p.csv: there is no mapping, so one is drafted: time {at}, subject :{card}\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--time", "att", "--subject", "card"), "there is no column 'att' for the time\n  did you mean 'at'?"),
        (("--time", "at", "--subject", "who"), "there is no column 'who' for the subject\n  the columns are at, card,"),
        (("--time", "at", "-m", "m.toml"), "--time and --subject are for rows, without --mapping"),
    ],
)
def test_a_column_that_is_not_there_is_told(folder: Folder, options: tuple[str, ...], told: str) -> None:
    folder.write("p.csv", PAYMENTS)
    folder.write("m.toml", folder.etalis("map", "p.csv").stdout)
    done = folder.etalis("run", "-q", RECORD, "-s", "p.csv", *options, code=2 if "-m" in options else 1)
    assert told in done.stderr


def test_the_files_of_a_pattern_are_drafted_by_the_first(folder: Folder) -> None:
    folder.write("a-1.csv", "at,sensor,value\n1,s1,20\n")
    folder.write("a-2.csv", "at,sensor,value\n2,s1,21\n")
    done = folder.etalis("run", "-q", "SELECT ?x { ?s :value ?x }", "-s", "a-*.csv", "-f", "csv")
    assert done.stdout.splitlines()[1:] == ["20,1,1", "21,2,2"]
    assert done.stderr == "etalis: a-*.csv: there is no mapping, so one is drafted: time {at}, subject :{sensor}\n"
    done = folder.etalis("run", "-q", "SELECT ?x { ?s :value ?x }", "-s", "b-*.csv", code=1)
    assert "b-*.csv: no file matches this pattern" in done.stderr


def test_columns_whose_names_alone_fill_the_sample(folder: Folder) -> None:
    names = [f"{'n' * 100}{number}" for number in range(3_000)]
    text = "\n".join(
        ",".join(cells) for cells in (["at", "id", *names], *([str(n), "a", *["v" * 90] * 3_000] for n in (1, 2)))
    )
    folder.write("wide.csv", text)
    done = folder.etalis("map", "wide.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[[triple]]") == 3_000
