"""Programs, matches and reasons as notebooks show them."""

from __future__ import annotations

import ast
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from etalis_py import Engine, compile, event, run
from etalis_py.events.clock import render_datetime
from etalis_py.notebook import rule_graph, timeline_of
from tests.notebooks import EXAMPLES, executed, read

ROOT = Path(__file__).parents[1]
QUERY = "SELECT ?c ?y WHERE { ?c :p ?x } SEQ { ?c :q ?y } FILTER (?x < ?y)"
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    """What is written in the pictures of some HTML."""
    found = re.search(r"<svg.*</svg>", picture, re.DOTALL)
    assert found
    return ["".join(text.itertext()) for text in ElementTree.fromstring(found[0]).iter(f"{SVG}text")]


def cells(html: str) -> list[list[str]]:
    """The rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


# --- programs --------------------------------------------------------------------


def test_a_program_is_its_text_and_a_picture_of_its_plan() -> None:
    html = compile(QUERY)._repr_html_()
    assert "SEQ { ?c :q ?y } FILTER (?x &lt; ?y)" in html
    written = " ".join(texts(html))
    assert "triple(?c, :p, ?x)" in written
    assert "g1 := SEQ, on ?c, ?x < ?y" in written
    assert "query q1" in written
    assert html.count("<path") == len(rule_graph(compile(QUERY).rules())["edges"]) == 3


def test_a_program_shows_what_is_doubtful_in_it() -> None:
    html = compile("SELECT ?x ?y WHERE { ?a :p ?x } SEQ { ?b :q ?y }")._repr_html_()
    assert "warning" in html


def test_goals_that_two_queries_name_differently_are_drawn_for_both() -> None:
    program = compile(["SELECT ?c { {?c :p ?x} SEQ {?c :q ?y} }", "SELECT ?d { {?d :p ?x} SEQ {?d :q ?y} }"])
    labels = [node["label"] for node in rule_graph(program.rules())["nodes"]]
    assert "triple(?c, :p, _)" in labels
    assert "triple(?d, :p, _)" in labels
    assert len(labels) == len(set(labels)) == 8


def test_windows_are_drawn_with_their_streams() -> None:
    asked = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 10 STEP 5] { WINDOW :w { ?x :in ?r } }"
    written = " ".join(texts(compile(asked)._repr_html_()))
    assert "window :w on :s: PT10S long, sliding" in written
    assert "query q1" in written


def test_a_recursive_program_is_drawn_too() -> None:
    rules = "CONSTRUCT { ?x :r ?z } WHERE { { ?x :r ?y } SEQ { ?y :r ?z } }"
    assert "query q1" in texts(compile(rules)._repr_html_())


# --- tables ----------------------------------------------------------------------


def test_matches_are_a_table_of_plain_values() -> None:
    engine = Engine("PREFIX ex: <http://ex/> SELECT ?c ?y ?x WHERE { ?c ex:p ?x } SEQ { ?c :q ?y }")
    engine.push_all([event("<http://ex/a> <http://ex/p> 1.5", 1), event('<http://ex/a> :q "<&>"@en', 2)])
    html = engine.close()._repr_html_()
    assert cells(html) == [["?c", "?y", "?x", "start", "end"], ["ex:a", "&lt;&amp;&gt;@en", "1.5", "1", "2"]]
    assert "overflow-x:auto" in html


def test_dates_constructed_triples_and_answers_are_plain_too() -> None:
    rules = ["CONSTRUCT { ?c :seen ?x } WHERE { ?c :p ?x }", "ASK { ?c :p 12 }"]
    engine = Engine(rules, render=lambda us: f"2026-01-01T00:00:{us // 1_000_000:02d}Z")
    engine.push(event(":a :p 12", 3))
    time = "2026-01-01T00:00:03Z"
    assert cells(engine.close()._repr_html_()) == [
        ["triples", "start", "end"],
        [":a :seen 12", time, time],
        ["answer", "start", "end"],
        ["yes", time, time],
    ]


def test_long_results_show_the_first_and_say_how_many_there_are() -> None:
    engine = Engine(compile("CONSTRUCT { ?c :seen ?x } WHERE { ?c :p ?x }"))
    engine.push_all([event(" . ".join(f':a :p "<{i}>"' for i in range(150)), 1)])
    html = engine.close()._repr_html_()
    assert "the first 100 of 150 matches" in html
    assert html.count("<tr>") == 101
    assert "&lt;0&gt;" in html


def test_no_matches_say_so() -> None:
    assert "no matches" in Engine(QUERY).close()._repr_html_()


def test_a_run_is_a_table_and_a_picture() -> None:
    answered = run("SELECT ?x { ?c :p ?x }", [event(":a :p 7", 1), event(":a :p 8", 2)])
    html = answered._repr_html_()
    assert cells(html) == [["?x", "start", "end"], ["7", "1", "1"], ["8", "2", "2"]]
    assert "2 matches" in texts(html)
    assert "<summary>over time</summary>" in html
    assert [match["x"] for match in answered] == [7, 8]  # showing them does not use them up
    assert "matches of this run" not in answered._repr_html_()


def test_a_long_run_shows_the_first_and_says_how_to_take_all() -> None:
    html = run("SELECT ?x { ?c :p ?x }", [event(f":a :p {i}", i) for i in range(30)])._repr_html_()
    assert "the first 20 matches: iterate over it, or take all with .collect() or .to_pandas()" in html
    assert len(cells(html)) == 21


def test_a_run_that_finds_nothing_or_has_no_end_is_one_line() -> None:
    nothing = run("SELECT ?x { ?c :pirce ?x }", [event(":a :price 7", 1)])._repr_html_()
    assert nothing.startswith("<pre>no matches: 1 event\nthe predicate :pirce never occurred")
    endless = run("SELECT ?x { ?c :p ?x }", (event(":a :p 7", i) for i in range(3)))
    assert endless._repr_html_().startswith("<pre>&lt;Run of q1 over an iterator: 0 events")


def test_timeless_matches_have_no_picture() -> None:
    html = Engine("SELECT ?c { ?c a :Firm }", background=":acme a :Firm .").close()._repr_html_()
    assert cells(html) == [["?c"], [":acme"]]
    assert "<svg" not in html


# --- engines ---------------------------------------------------------------------


def test_an_engine_says_what_it_runs_and_where_it_stands() -> None:
    engine = Engine(QUERY)
    assert repr(engine) == "<Engine: q1; 0 events, 0 matches, 0 goals>"
    engine.push_all([event(":a :p 1", 1), event(":a :p 2", 4)])
    assert repr(engine) == "<Engine at 4: q1; 2 events, 0 matches, 1 goal>"
    engine.close()
    assert repr(engine).startswith("<Engine, ended: q1; 2 events")
    assert repr(Engine()) == "<Engine: no queries; 0 events, 0 matches, 0 goals>"


def test_an_engine_shows_where_it_stands_and_its_programs() -> None:
    engine = Engine(QUERY)
    engine.push(event(":a :p 1", 4))
    html = engine._repr_html_()
    assert html.startswith("<pre>&lt;Engine at 4: q1; 1 event, 0 matches, 0 goals&gt;</pre>")
    assert "query q1" in texts(html)
    assert Engine()._repr_html_() == "<pre>&lt;Engine: no queries; 0 events, 0 matches, 0 goals&gt;</pre>"


def test_an_engine_of_many_programs_shows_three() -> None:
    engine = Engine()
    for word in "pqrst":
        engine.add(f"REGISTER QUERY {word} AS SELECT ?x {{ ?c :{word} ?x }}")
    html = engine._repr_html_()
    assert html.count("<svg") == 3
    assert html.endswith("<pre>and 2 more programs</pre>")


# --- over time -------------------------------------------------------------------

DATED = [event(f":acme :p {i}", f"2026-01-31T10:0{i}:00Z") for i in range(3)]
PAIRS = "SELECT ?x ?y WHERE { ?c :p ?x } SEQ { ?c :p ?y }"


def test_a_timeline_counts_dates_where_times_are_dates() -> None:
    engine = Engine(PAIRS, render=render_datetime, explain=True)
    timeline = timeline_of([*engine.push_all(DATED), *engine.close()])
    written = texts(timeline.svg)
    assert repr(timeline) == "<timeline of 3 matches>"
    assert written[0] == "3 matches"
    assert {"10:00:00", "10:01:00", "10:02:00", "from 31 January 2026"} <= set(written)
    assert "?x 0 ?y 1" in written
    assert timeline.svg.count("<circle") == 6  # the events of three pairs


@pytest.mark.parametrize("years", [("9998", "12000"), ("-0044", "0001"), ("-0010", "20000")])
def test_a_timeline_shows_years_that_datetimes_of_python_do_not_have(years: tuple[str, str]) -> None:
    engine = Engine(PAIRS, render=render_datetime, explain=True)
    events = [event(f":c :p {number}", f"{year}-01-01T00:00:00Z") for number, year in enumerate(years)]
    found = [*engine.push_all(events), *engine.close()]
    picture = timeline_of(found).svg
    ElementTree.fromstring(picture)
    written = texts(picture)
    assert f"from 1 January {years[0]}" in written
    ticks = [int(text) for text in written if re.fullmatch(r"-?\d{4,}", text)]
    assert 1 <= len(ticks) <= 7
    assert all(int(years[0]) <= year <= int(years[1]) for year in ticks)


def test_a_timeline_counts_numbers_as_the_stream_does(tmp_path: Path) -> None:
    engine = Engine(PAIRS, explain=True)
    engine.push_all([event(f":acme :p {i}", 10 * i) for i in range(50)])
    timeline = engine.close().timeline()
    assert repr(timeline) == "<timeline of the first 40 of 49 matches>"
    assert {"0", "100", "200"} <= set(texts(timeline.svg))
    timeline.save(tmp_path / "t.svg")
    assert (tmp_path / "t.svg").read_text() == timeline.svg
    with pytest.raises(ValueError, match="is written as SVG"):
        timeline.save(tmp_path / "t.png")


def rises() -> str:
    """The picture of the README: its query over a few more rows."""
    query = re.search(r"```sparql rising.rq\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert query
    prices = [(1, "acme", 10), (3, "acme", 12), (4, "bolt", 7), (9, "bolt", 8), (11, "acme", 14), (14, "acme", 15)]
    ticks = [{"at": time, "company": company, "price": price, "volume": 100} for time, company, price in prices]
    return run(query[1], ticks, time="at", subject="company", explain=True).collect().timeline().svg


def test_the_picture_of_the_readme_is_what_a_timeline_draws() -> None:
    assert (ROOT / "docs" / "rises.svg").read_text() == rises()


def test_the_reason_of_a_match_is_its_events_in_time() -> None:
    engine = Engine(PAIRS, explain=True)
    engine.push_all([event(":acme :p 1", 1), event(":acme :p 2", 4)])
    (match,) = engine.close()
    html = match.why()._repr_html_()
    written = texts(html)
    assert written[:1] == ["why q1"]
    assert [line for line in written if ":p" in line] == [":acme :p 1", ":acme :p 2"]
    assert "SEQ: left ends before right starts" in html
    assert "├─ event :acme :p 1 [1, 1]" in html
    assert repr(match.why()) == str(match.why())


def test_a_match_of_run_without_an_explanation_says_what_to_give_to_run() -> None:
    events = [event(":a :p 1", 1), event(":a :q 2", 2)]
    (bare,) = run(QUERY, events)
    with pytest.raises(ValueError, match=r"give explain=True to run\(…\) or Engine\(…\)"):
        bare.why()
    (explained,) = run(QUERY, events, explain=True)
    assert ":a :q 2 [2, 2]" in str(explained.why())


# --- the notebooks of examples/ ---------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_shows_when_it_is_run(path: Path) -> None:
    """``python -m tests.notebooks`` writes what it shows into it."""
    for cell, outputs in executed(read(path), path.name):
        assert cell["outputs"] == outputs, "".join(cell["source"])


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_cell_can_be_copied(path: Path) -> None:
    """No cell reaches behind the public names, and no query keeps more for ever than something for each key."""
    for node in (node for source in sources(path) for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.ImportFrom):
            assert node.module == "etalis_py"
        elif isinstance(node, ast.Constant) and "SELECT" in str(node.value):
            kept = [
                warning for warning in compile(str(node.value)).check() if "grows with the keys" not in str(warning)
            ]
            assert kept == []


def test_the_line_that_opens_them_is_on_a_page() -> None:
    page = (ROOT / "docs" / "how-to-embed.md").read_text()
    named = re.search(r"^pip install 'etalis-py\[(\w+)\]' && jupyter lab (\S+)$", page, re.MULTILINE)
    assert named
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(line.startswith("jupyterlab") for line in extras[named[1]])
    assert (ROOT / named[2]).exists()
