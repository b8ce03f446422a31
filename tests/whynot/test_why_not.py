"""Realistic mistakes, and what why-not says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etalis_py import Event, compile, event
from etalis_py.cli.main import main
from etalis_py.whynot import Report, Work

P = "PREFIX : <http://example.org/>\n"


def trace(*items: tuple[str, int]) -> list[Event]:
    return [event(triples, time) for triples, time in items]


TICKS = trace((":acme :price 10", 1), (":globex :price 20", 2), (":acme :price 12.9", 4), (":globex :price 19", 6))
ORDERS = "SELECT ?c { { ?c :order ?x } SEQ { ?c :ship ?y } }"


def only(report: Report) -> tuple[str, str, str]:
    """The only likely blame: its kind, its condition, and the measure of its nearest miss."""
    likely = [blame for blame in report.blames if blame.likely]
    assert len(likely) == 1, report
    [blame] = likely
    return blame.kinds[0], blame.conditions[0], blame.misses[0].because[0]


@pytest.mark.parametrize(
    ("query", "stream", "expected"),
    [
        pytest.param(
            "SELECT ?c { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x * 1.3) }",
            TICKS,
            ("filter", "FILTER (?y > ?x * 1.3)", "12.9 > 13 fails by 0.1"),
            id="a filter just missed",
        ),
        pytest.param(
            ORDERS,
            trace((":a :order 1", 1), (":A :ship 2", 2)),
            ("key", "the same ?c in both parts", ":a here, :A in ?c :ship ?y: differs in upper and lower case only"),
            id="a key in another case",
        ),
        pytest.param(
            "SELECT ?n { { ?a :order ?n } SEQ { ?b :ship ?n } }",
            trace((":a :order 10", 1), (':b :ship "10"', 2)),
            (
                "key",
                "the same ?n in both parts",
                '10 here, "10" in ?b :ship ?n: the same text, but one is an xsd:integer and the other a plain string',
            ),
            id="a key of another type",
        ),
        pytest.param(
            "SELECT ?c { { { ?c :order ?x } SEQ { ?c :ship ?y } } WITHIN 10 s }",
            trace((":a :order 1", 1), (":a :ship 2", 14)),
            ("window", "WITHIN 10 s", "it lasts 13 s, 3 s too long"),
            id="a window exceeded",
        ),
        pytest.param(
            ORDERS,
            trace((":a :ship 1", 1), (":a :order 2", 14)),
            (
                "order",
                "{ ?c :order ?x } SEQ { ?c :ship ?y }",
                "they come in the other order: the right part [1] is over before the left part [14] starts",
            ),
            id="the other order",
        ),
        pytest.param(
            ORDERS,
            trace((":a :ship 1 ; :order 2", 1)),
            (
                "order",
                "{ ?c :order ?x } SEQ { ?c :ship ?y }",
                "the left part [1] ends at the moment the right part [1] starts",
            ),
            id="at the same time",
        ),
        pytest.param(
            "SELECT ?c { ?c :prize ?x }",
            TICKS,
            ("term", ":prize in ?c :prize ?x", ":price instead would match: spelt a little differently"),
            id="a predicate misspelt",
        ),
        pytest.param(
            "SELECT ?c { { ?c :order ?x } SEQ { ?c :ship ?y } FILTER NOT EXISTS { ?c :cancel ?w } }",
            trace((":a :order 1", 1), (':a :cancel "late"', 2), (":a :ship 3", 3)),
            ("absence", "FILTER NOT EXISTS { ?c :cancel ?w }", 'blocked by :a :cancel "late" [2]'),
            id="blocked by NOT EXISTS",
        ),
        pytest.param(
            "SELECT ?c { { ?c :order ?x } SEQ { ?c :ship ?y } MINUS { ?c :cancel ?w } }",
            trace((":a :order 1", 1), (':a :cancel "late"', 2), (":a :ship 3", 3)),
            ("minus", "MINUS { ?c :cancel ?w }", 'blocked by :a :cancel "late" [2]'),
            id="blocked by MINUS",
        ),
        pytest.param(
            "SELECT ?c { ?c :price ?x FILTER (?x > 10) }",
            trace((':a :price "12"', 1)),
            (
                "filter",
                "FILTER (?x > 10)",
                '"12" > 10 does not hold: one is a plain string and the other an xsd:integer',
            ),
            id="a number that is a text",
        ),
        pytest.param(
            "SELECT ?c (SUM(?x) AS ?s) { ?c :price ?x } GROUP BY ?c HAVING (SUM(?x) > 50)",
            TICKS,
            ("having", "HAVING (SUM(?x) > 50)", "39 > 50 fails by 11"),
            id="HAVING",
        ),
        pytest.param(
            "SELECT ?c { { ?c :order ?x } EQUALS { ?c :ship ?y } }",
            trace((":a :order 1", 1), (":a :ship 2", 3)),
            (
                "interval",
                "{ ?c :order ?x } EQUALS { ?c :ship ?y }",
                "the intervals differ: [1] and [3], starts 2 s apart and ends 2 s apart",
            ),
            id="other intervals",
        ),
    ],
)
def test_the_condition_to_blame_and_by_how_much(
    query: str, stream: list[Event], expected: tuple[str, str, str]
) -> None:
    assert only(compile(P + query).why_not(stream)) == expected


def test_the_part_of_the_answer_that_was_expected() -> None:
    program = compile(P + "SELECT ?c { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }")
    assert program.why_not(TICKS).matches == ("?c = :acme [1, 4]",)
    report = program.why_not(TICKS, where="?c = :globex", at=6)
    assert report.matches == ()
    refused = {blame.kinds[0]: blame.misses[0].because[0] for blame in report.blames if blame.likely}
    assert refused == {
        "filter": "19 > 20 fails by 1",
        "order": "they come in the other order: the right part [2] is over before the left part [6] starts",
    }
    assert program.why_not(TICKS, where={"c": "<http://example.org/acme>"}, at="4/5").matches == ("?c = :acme [1, 4]",)
    assert "1 match ending from 4 to 5:" in str(program.why_not(TICKS, at="4/5"))


def test_a_term_that_was_asked_for_is_misspelt() -> None:
    program = compile(P + "SELECT ?c { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }")
    kind, condition, because = only(program.why_not(TICKS, where="?c = :Acme"))
    assert (kind, condition) == ("where", "what was asked for: ?c = :Acme")
    assert because == "?c = :acme has matches: differs in upper and lower case only"


def test_two_conditions_together() -> None:
    query = P + "SELECT ?c { { { ?c :order ?x } SEQ { ?c :ship ?y } } WITHIN 5 s FILTER (?x > 10) }"
    [blame] = compile(query).why_not(trace((":a :order 1", 1), (":a :ship 2", 30))).blames
    assert blame.conditions == ("FILTER (?x > 10)", "WITHIN 5 s")
    assert blame.misses[0].because == ("1 > 10 fails by 9", "it lasts 29 s, 24 s too long")


def test_a_match_that_a_policy_used_up() -> None:
    program = compile(P + "SELECT ?c ?y { { ?c :order ?x } SEQ { ?c :ship ?y } } USING POLICY recent")
    stream = trace((":a :order 1", 1), (":a :ship 3", 3), (":a :ship 4", 4))
    assert only(program.why_not(stream, where="?y = 4"))[:2] == ("policy", "USING POLICY recent")


def test_a_match_that_is_cut_off() -> None:
    program = compile(P + "SELECT ?c { ?c :price ?x } LIMIT 1")
    assert only(program.why_not(TICKS, where="?c = :globex"))[:2] == ("limit", "LIMIT 1")


def test_rules_are_asked_in_turn() -> None:
    rule = P + "CONSTRUCT { ?c :down true } { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y < ?x * 0.9) }"
    program = compile([rule, P + "SELECT ?c { { ?c :down true } SEQ { ?c :price ?z } }"])
    report = program.why_not(TICKS, where="?c = :globex")
    [inner] = report.rules
    assert inner.query == "q1"
    assert only(inner) == ("filter", "FILTER (?y < ?x * 0.9)", "19 < 18 fails by 1")


def test_a_part_that_only_the_engine_can_evaluate() -> None:
    query = (
        P
        + """SELECT ?c ?n { { SELECT ?c (COUNT(*) AS ?n) { ?c :price ?x } GROUP BY ?c }
      SEQ { ?c :halt ?h } FILTER (?n > 2) }"""
    )
    report = compile(query).why_not([*TICKS, *trace((":acme :halt 1", 9))])
    assert "2 > 2 fails by 0" not in str(report)
    assert only(report)[:2] == ("filter", "FILTER (?n > 2)")


def test_late_events_are_mentioned() -> None:
    report = compile(P + ORDERS).why_not(trace((":a :ship 2", 5), (":a :order 1", 3)))
    assert report.notes == (
        "1 event came too late and took no part, the first of them [3]: allow for it with --lateness.",
    )


def test_work_is_bounded_and_counts_say_so() -> None:
    stream = [event(f":s{i} :price {i}", i) for i in range(120)]
    program = compile(P + "SELECT ?c { { ?c :price ?x } SEQ { ?d :price ?y } FILTER (?x > 1000) }")
    report = program.why_not(stream, work=Work(steps=1_000, solutions=100, seconds=0.01))
    [blame] = (b for b in report.blames if b.kinds == ("filter",))
    assert not blame.exact
    assert "refuses at least" in str(report)
    assert "≥" in str(report)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"where": "?d = :acme"}, "query q1 has no variable ?d; its variables are ?c, ?x, ?y"),
        ({"where": "?c ="}, "where is not a condition such as '?c = :acme'"),
        ({"at": "noon"}, "at must be a time of the stream, or two of them as T1/T2"),
        ({"query": "q7"}, "there is no query q7; the program has q1"),
    ],
)
def test_wrong_questions(asked: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        compile(P + ORDERS).why_not(TICKS, **asked)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, stream = tmp_path / "late.rq", tmp_path / "s.nq"
    query.write_text(P + "SELECT ?c { { { ?c :order ?x } SEQ { ?c :ship ?y } } WITHIN 10 s }")
    lines = [(1, ":a :order 1"), (14, ":a :ship 2")]
    stream = tmp_path / "s.jsonl"
    prefix = "@prefix : <http://example.org/> . "
    stream.write_text("".join(json.dumps({"time": t, "triples": f"{prefix}{text} ."}) + "\n" for t, text in lines))
    assert main(["why-not", str(query), "--stream", str(stream)]) == 0
    assert "it lasts 13 s, 3 s too long" in capsys.readouterr().out
    assert main(["why-not", str(query), "--stream", str(stream), "--json", "--where", "?c = :a"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["blames"][0]["nearest"][0]["because"][0]["over"] == "3 s"
    assert report["plan"]["wanted"] == {"count": 0, "exact": True}
    assert main(["why-not", str(query), "--stream", str(stream), "--where", "?z = 1"]) == 2
    assert "its variables are ?c, ?x, ?y" in capsys.readouterr().err
    assert main(["why-not", str(query), "--stream", str(stream), "--where", "?c ="]) == 2
    assert capsys.readouterr().err.startswith("etalis: --where is not a condition such as '?c = :acme': ")
    assert main(["why-not", str(query), "--stream", str(stream), "--at", "noon"]) == 2
    assert capsys.readouterr().err.startswith("etalis: --at must be a time of the stream, or two of them as T1/T2 (")


# --- Allen's relations, NOT, NEXT and REPEAT -------------------------------------------------------------------

ORDERED = [event(":a :p 1", (1, 4)), event(":a :n 3", 5), event(":a :q 2", (6, 9)), event(":b :p 1", 10)]


def blamed(text: str, events: list[Event]) -> list[tuple[str, str]]:
    report = compile(text).why_not(events, where="?c = :a")
    return [(" and ".join(b.conditions), b.misses[0].because[0]) for b in report.blames if b.likely]


@pytest.mark.parametrize(
    ("pattern", "condition", "because"),
    [
        (
            "{ ?c :p ?x } OVERLAPS { ?c :q ?y }",
            "{ ?c :p ?x } OVERLAPS { ?c :q ?y }",
            "[1, 4] and [6, 9]: the start of the right should be before the end of the left, and is 2 s later",
        ),
        (
            "{ ?c :p ?x } SEQ NOT { ?c :n ?z } SEQ { ?c :q ?y }",
            "SEQ NOT { ?c :n ?z } SEQ",
            "blocked by :a :n 3 [5]",
        ),
        (
            "{ ?c :p ?x } SEQ NOT { ?c :n ?z } WITHIN 3 s",
            "SEQ NOT { ?c :n ?z } WITHIN 3 s",
            "blocked by :a :n 3 [5]",
        ),
        (
            "{ { ?c :p ?x } SEQ { ?c :q ?y } } NOT { ?c :n ?z }",
            "NOT { ?c :n ?z }",
            "blocked by :a :n 3 [5]",
        ),
        (
            "{ ?c :p ?x } SEQ NOT { ?c :n ?z FILTER (?z > ?x) } WITHIN 3 s",
            "SEQ NOT { ?c :n ?z FILTER (?z > ?x) } WITHIN 3 s",
            "blocked by :a :n 3 [5]",
        ),
        (  # ?z outside is another one's affair: what is absent agrees with the group that it is absent from
            "{ { ?c :p ?x } SEQ { ?c :q ?y } } NOT { ?c :n ?z } BIND (9 AS ?z)",
            "NOT { ?c :n ?z }",
            "blocked by :a :n 3 [5]",
        ),
    ],
)
def test_what_stands_between_is_named(pattern: str, condition: str, because: str) -> None:
    assert blamed(f"SELECT ?c {{ {pattern} }}", ORDERED) == [(condition, because)]


def test_a_nearer_one_is_named() -> None:
    events = [event(":a :p 1", 1), event(":a :q 1", 2), event(":a :q 5", 3)]
    assert blamed("SELECT ?c { { ?c :p ?x } NEXT { ?c :q ?y } FILTER (?y > 2) }", events) == [
        ("FILTER (?y > 2)", "1 > 2 fails by 1"),
        ("no nearer ?c :q ?y", "blocked by :a :q 1 [2]"),
    ]


def test_what_is_next_but_for_a_condition_on_both_is_named() -> None:
    events = [event(":a :p 5", 1), event(":a :q 3", 2)]
    assert blamed("SELECT ?c { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y > ?x) } }", events) == [
        ("FILTER (?y > ?x)", "3 > 5 fails by 2"),
    ]
    late = (
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?c { { ?c :p ?x BIND (getENDTIME() AS ?t) } "
        "NEXT { ?c :q ?y FILTER (getENDTIME() > ?t + 'PT3S'^^xsd:duration) } }"
    )
    [(condition, _)] = blamed(late, events)
    assert condition == 'FILTER (getENDTIME() > ?t + "PT3S"^^xsd:duration)'


def test_a_nearer_one_that_does_not_fit_is_not_named() -> None:
    """Of the :q only those that are higher than their :p may be nearer."""
    events = [event(":a :p 1", 1), event(":a :q 0", 2), event(":a :q 2", 3), event(":a :q 5", 4)]
    assert blamed("SELECT ?c { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y > ?x) } FILTER (?y > 3) }", events) == [
        ("FILTER (?y > 3)", "2 > 3 fails by 1"),
        ("no nearer ?c :q ?y", "blocked by :a :q 2 [3]"),
    ]


def test_a_run_that_is_too_short_or_interrupted() -> None:
    events = [event(":a :p 1", 1), event(":a :p 1", 2), event(":a :n 7", 3), event(":a :p 1", 4)]
    text = "SELECT ?c { { ?c :p ?x } REPEAT 3 OR MORE BY ?c NOT { ?c :n ?z } }"
    assert blamed(text, events) == [
        ("NOT { ?c :n ?z } in REPEAT 3 OR MORE BY ?c", "blocked by :a :n 7 [3]"),
        ("REPEAT 3 OR MORE BY ?c", "a run of 2, 3 are asked for"),
    ]


# --- windows ---------------------------------------------------------------------------------------------------

WINDOWED = "FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?c :p ?x . ?c :q ?y } FILTER (?x > ?y) }"


def test_a_filter_over_a_window() -> None:
    events = trace((":a :p 1", 1), (":a :q 3", 4), (":b :p 4", 6), (":b :q 1", 9))
    report = compile(f"SELECT ?c ?x ?y {WINDOWED}").why_not(events, where="?c = :a")
    assert only(report) == ("filter", "FILTER (?x > ?y)", "1 > 3 fails by 2")
    assert [(node.all.number, node.wanted.number) for node in (report.plan, report.plan.parts[0])] == [(1, 0), (2, 1)]
    assert "WINDOW :w { ?c :p ?x . ?c :q ?y }" in str(report)


def test_a_window_that_is_too_short() -> None:
    report = compile(f"SELECT ?c ?x ?y {WINDOWED}").why_not(trace((":a :p 9", 1), (":a :q 3", 8)))
    assert only(report) == ("window", "WINDOW :w, 5 s long", "a window of 10 s would hold it")
    report = compile(f"SELECT ?c ?x ?y {WINDOWED}").why_not(trace((":a :p 9", 1), (":a :q 3", 3)))
    assert report.matches == ("?c = :a, ?x = 9, ?y = 3 [0, 5]",)
    assert not report.blames


def test_having_over_a_window() -> None:
    text = "SELECT ?c (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?c :p ?x } } GROUP BY ?c"
    report = compile(f"{text} HAVING (COUNT(*) > 1)").why_not(trace((":a :p 1", 1), (":b :p 2", 2)), where="?c = :a")
    assert only(report) == ("having", "HAVING (COUNT(*) > 1)", "the group is refused by it")
    assert report.plan.broken


def test_which_windowed_query_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, stream = tmp_path / "q.rq", tmp_path / "s.jsonl"
    query.write_text(f"PREFIX : <http://example.org/>\nREGISTER QUERY both AS SELECT ?c ?x ?y {WINDOWED}\n")
    stream.write_text('{"time": 1, "triples": ":a :p 9 ."}\n{"time": 8, "triples": ":a :q 3 ."}\n')
    assert main(["why-not", str(query), "--stream", str(stream), "--name", "both"]) == 0
    assert "a window of 10 s would hold it" in capsys.readouterr().out
    assert main(["why-not", str(query), "--stream", str(stream), "--name", "other"]) == 2
    assert "there is no query other; the program has both" in capsys.readouterr().err


DERIVED = """
REGISTER STREAM :rises AS CONSTRUCT { ?c :rise ?y } { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }
REGISTER STREAM :dear AS CONSTRUCT { ?c :dear ?y } FROM NAMED WINDOW :v ON :rises [RANGE PT10S]
  { WINDOW :v { ?c :rise ?y FILTER (?y > 100) } }
REGISTER QUERY late AS SELECT ?c { { ?c :price ?x } SEQ { ?c :dear ?y } }
REGISTER QUERY soon AS SELECT ?c ?y FROM NAMED WINDOW :w ON :dear [RANGE PT10S] { WINDOW :w { ?c :dear ?y } }
"""


def test_rules_that_feed_windows_are_asked_in_turn() -> None:
    events = trace((":a :price 10", 1), (":a :price 9", 2), (":b :price 1", 3), (":b :price 2", 4))
    program = compile(DERIVED)
    for name in ("soon", "late"):
        [dear] = program.why_not(events, query=name, where="?c = :b").rules
        assert only(dear) == ("filter", "FILTER (?y > 100)", "2 > 100 fails by 98")
        [dear] = program.why_not(events, query=name, where="?c = :a").rules
        [rises] = dear.rules
        assert ("FILTER (?y > ?x)",) in [blame.conditions for blame in rises.blames]
        assert not program.why_not(events, query=name, where="?c = :b").rules[0].rules
    with pytest.raises(ValueError, match="name the query that is meant: soon, late"):
        program.why_not(events)
    with pytest.raises(ValueError, match=r"there is no query none; the program has .*soon.*late"):
        program.why_not(events, query="none")


def test_a_loop_at_two_times_is_counted_with_its_hull() -> None:
    events = trace(("<urn:a> <urn:p> <urn:a>", 0), ("<urn:a> <urn:p> <urn:a>", 3))
    report = compile("SELECT * { ?x <urn:p>* ?y }").why_not(events)
    assert report.plan.all.number == len(report.matches) == 3


def test_rows_are_read_as_by_run() -> None:
    rows = [{"at": 1, "c": "acme", "x": 9}, {"at": 2, "c": "bank", "x": 12}]
    program = compile("SELECT ?c { ?c :x ?x FILTER (?x > 10) }")
    mapping = {"time": "{at}", "subject": ":{c}", "predicate": ":x", "object": "{x}"}
    for how in ({"time": "at", "subject": "c"}, {"mapping": mapping}):
        report = program.why_not(rows, where="?c = :acme", **how)
        assert report.blames[0].misses[0].because == ("9 > 10 fails by 1",)
    with pytest.raises(TypeError, match=r"where is a condition such as '\?c = :acme', .*, not 3 \(int\)"):
        program.why_not(rows, where=3, **how)
