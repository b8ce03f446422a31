"""Families whose queries find nothing, leave a variable unbound, draw a warning, or have IRIs for names."""

from __future__ import annotations

from pathlib import Path

import pytest

from etalis_py import Engine, compile, event, run
from etalis_py.engine import query_families as families
from etalis_py.engine.query_families import GatheredQueries
from tests.engine.test_families import answers, one_by_one
from tests.oracle.traces import at


@pytest.fixture(autouse=True)
def from_two_on(monkeypatch):
    monkeypatch.setattr(families, "FEWEST", 2)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("pattern", ["{{ ?c :p ?a }}", "{{ ?c :p ?a FILTER (?a > {0}) }}"])
def test_each_query_of_a_family_counts_nothing_when_the_stream_ends(pattern, executor):
    engine = Engine(
        compile([f"SELECT (COUNT(?a) AS ?n) {pattern.format(n)}" for n in range(4)], policy="recent"), executor=executor
    )
    assert len(engine.rules.outputs) == 1
    found = [*engine.push(event(":c :q 1", 1)), *engine.close()]
    assert [(m.query, m["n"]) for m in found] == [("q1", 0), ("q2", 0), ("q3", 0), ("q4", 0)]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_minus_without_a_variable_that_both_sides_bind_removes_nothing_in_a_family(executor):
    """?c is unbound on the right; that both are solutions of one query is no shared variable."""
    text = "SELECT ?a {{ ?c :p ?a MINUS {{ :c{0} :q ?b OPTIONAL {{ ?c :none ?w }} }} }}"
    engine = Engine(compile([text.format(n) for n in range(3)]), executor=executor)
    assert len(engine.rules.outputs) == 1
    matches = [*engine.push_all([event(":c1 :q 3", 1), event(":c1 :p 5", 2)]), *engine.close()]
    assert [(m.query, m["a"]) for m in matches] == [("q1", 5), ("q2", 5), ("q3", 5)]


def test_values_without_a_parameter_stand_in_a_family():
    text = "SELECT ?w {{ {{ {{ ?c :p ?a VALUES ?w {{ UNDEF 1 }} }} NEXT {{ ?c :q ?w }} }} WITHIN {0} s }}"
    queries = [text.format(n) for n in (1, 2, 3, 4)]
    engine = Engine(compile(queries, policy="recent"))
    assert len(engine.rules.outputs) == 1
    found = [*engine.push(event(":a :p 5", 1)), *engine.push(event(":a :q 1", 3)), *engine.close()]
    expected = Engine(one_by_one(queries, "recent"))
    assert answers(found) == answers(
        [*expected.push(event(":a :p 5", 1)), *expected.push(event(":a :q 1", 3)), *expected.close()]
    )
    assert [m.query for m in found] == ["q2", "q3", "q4"]


def bounded(n: int) -> str:
    """A query whose WITHIN bounds its last event alone, which draws a warning."""
    return f"PREFIX : <urn:> SELECT ?x {{ {{ :s{n} :temp ?x }} SEQ {{ :s{n} :alarm ?y }} WITHIN {n} s }}"


def test_queries_that_carry_a_warning_are_a_family_and_warned_of_once() -> None:
    texts = [bounded(n) for n in range(1, 7)]
    program = compile(texts)
    [warning] = program.warnings
    assert warning.code == "last-bound"
    assert warning.message.startswith("this WITHIN 1 s bounds { :s1 :alarm ?y } alone")
    assert warning.message.endswith("(q1 stands for 6 queries that differ in constants only: q1, q2, … q6)")
    assert "q1 stands for 6 queries" in str(program.explain())
    events = [at(t, f"s{n} {p} 1") for t, p in ((1, "temp"), ((6, 9), "alarm")) for n in (2, 3, 5)]
    found = [(m.query, m.start, m.end) for m in run(program, events)]
    alone = [(f"q{n}", m.start, m.end) for n, text in enumerate(texts, 1) for m in run(text, events)]
    assert found == alone == [("q3", 1, 9), ("q5", 1, 9)]


def test_the_warning_of_a_family_names_the_file_of_the_text(tmp_path: Path) -> None:
    files = [tmp_path / f"a{n}.rq" for n in range(1, 5)]
    for n, file in enumerate(files, 1):
        file.write_text(bounded(n), encoding="utf-8")
    [warning] = compile(files).warnings
    assert warning.source == str(files[0])
    assert "stands for 4 queries" in warning.message


def test_check_warns_once_of_a_family() -> None:
    texts = [f"SELECT ?x {{ {{ ?c :of :s{n} }} SEQ {{ ?c :temp ?x }} }}" for n in range(5)]
    [warning] = compile(texts).check()
    assert (warning.code, warning.source) == ("unbounded", "<query>")
    assert "(q1 stands for 5 queries" in warning.message
    rules = [f"CONSTRUCT {{ :s{n} :was ?c }} {{ {{ ?c :of :s{n} }} SEQ {{ ?c :temp ?x }} }}" for n in range(4)]
    found = compile([*rules, "SELECT ?c { :s2 :was ?c }"]).check()
    assert [warning.code for warning in found].count("unused") == 3


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("n{0}", "n{0}"),
        (":n{0}", "<http://example.org/n{0}>"),
        ("b:n{0}", "<urn:b:n{0}>"),
        ("<urn:n{0}>", "<urn:n{0}>"),
    ],
)
def test_names_of_all_kinds_are_those_of_a_family(name: str, spelled: str) -> None:
    texts = [f"PREFIX b: <urn:b:> REGISTER QUERY {name.format(n)} AS SELECT ?a {{ :c{n} :p ?a }}" for n in range(5)]
    compilation = compile(texts).compilation
    assert isinstance(compilation, GatheredQueries)
    assert not compilation.rest
    assert compilation.names == tuple(spelled.format(n) for n in range(5))
    found = run(texts, [event(" ".join(f":c{n} :p {n} ." for n in range(5)), 1)])
    assert {match.query: match["a"] for match in found} == {spelled.format(n): n for n in range(5)}


def test_a_name_that_has_to_be_parsed_is_in_no_family() -> None:
    texts = [f"BASE <http://b.org/> REGISTER QUERY <n{n}> AS SELECT ?a {{ :c{n} :p ?a }}" for n in range(5)]
    assert compile(texts).compilation.names == tuple(f"<http://b.org/n{n}>" for n in range(5))


@pytest.mark.parametrize("name", [":n{0}", "<urn:n{0}>", "n{0}"])
@pytest.mark.parametrize("beside", [0, 4], ids=["alone", "beside a family"])
def test_a_query_that_is_added_keeps_the_name_that_it_registers(name: str, beside: int) -> None:
    """The fourth of a kind may begin a family, as the first may beside another one."""
    engine = Engine([f"REGISTER QUERY m{n} AS SELECT ?a {{ :c{n} :r ?a }}" for n in range(beside)])
    text = "REGISTER QUERY " + name + " AS SELECT ?a {{ {{ :c{0} :p ?a }} SEQ {{ :c{0} :q ?b }} }}"
    added = [engine.add(text.format(n)) for n in range(6)]
    engine.remove(added[1])
    both = [event(" ".join(f":c{n} :{p} 1 ." for n in range(6)), at) for at, p in enumerate("pq")]
    found = {match.query for match in (*engine.push_all(both), *engine.close())}
    spelled = "<http://example.org/n{0}>" if name[0] == ":" else name
    assert found == {spelled.format(n) for n in (0, 2, 3, 4, 5)}
