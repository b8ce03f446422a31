"""Many queries that are equal up to constants: together they answer what each answers alone, by ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import etalis_py.engine.query_families as families
from etalis_py import Engine, compile, event
from tests.draws import examples

VALUES = ("0", "1", "2", "3", "4", "2.5", "2.50", "3.5e0", '"x"', ":c0", ":c1", ":c2")
SHAPES = (
    "SELECT ?a ?b WHERE {{ {{ :c{0} :p ?a }} SEQ {{ :c{1} :p ?b }} FILTER (?b > ?a * {2}) }}",
    "SELECT ?c WHERE {{ ?c :p ?a FILTER (?a > {0}) }}",
    "SELECT ?c ?a WHERE {{ ?c :p ?a FILTER ({0}.5 >= ?a) }}",
    "SELECT ?a WHERE {{ :c{0} :p ?a FILTER (?a < {1}) }}",
    "SELECT ?a ?b WHERE {{ {{ ?c :p ?a }} SEQ {{ ?c :p ?b }} FILTER (?b > ?a + {0}) }}",
    "SELECT ?a ?b WHERE {{ {{ ?c :p ?a }} NEXT {{ ?c :p ?b FILTER (?b > {0}) }} }}",
    "SELECT ?a ?b WHERE {{ {{ ?c :p ?a }} NEXT {{ ?c :p ?b FILTER (?b > ?a + {0}) }} }}",
    "SELECT ?a WHERE {{ {{ :c{0} :p ?a }} SEQ NOT {{ ?c :q ?b FILTER (?b > ?a + {1}) }} WITHIN 2 s }}",
    "SELECT ?a ?d WHERE {{ {{ ?c :p ?a }} SEQ NOT {{ ?c :q ?b FILTER (?b > ?a + {0}) }} SEQ {{ ?c :p ?d }} }}",
    "SELECT ?a ?b WHERE {{ {{ {{ :c{0} :p ?a }} SEQ {{ ?c :q ?b }} }} WITHIN {1} s }}",
    "SELECT ?a ?b WHERE {{ {{ {{ :c{0} :p ?a }} SEQ {{ :c{0} :p ?b }} FILTER (?b > ?a) }} WITHIN PT{1}S }}",
    "SELECT ?d WHERE {{ {{ {{ ?d :p ?a }} SEQ {{ ?d :p ?b }} }} WITHIN {0} s }}",
    "SELECT ?d ?a WHERE {{ {{ {{ ?d :q ?b }} SEQ {{ :c{0} :p ?a }} FILTER (?a > ?b) }} WITHIN {1}.5 SECONDS }}",
    "SELECT ?z {{ {{ {{ {{ :c{0} :p ?a }} SEQ {{ ?c :q ?b }} }} WITHIN {1} s }} SEQ {{ ?c :p ?z }} }} WITHIN {2} s",
    "SELECT ?a ?b WHERE {{ {{ {{ :c{0} :p ?a }} NEXT {{ ?c :p ?b }} }} WITHIN {1} s }}",
    "SELECT ?d {{ {{ {{ ?d :q ?a }} NEXT {{ {{ :c{0} :p ?a }} SEQ {{ ?d :p ?b }} }} WITHIN {1} s }} WITHIN {1} s }}",
    "SELECT ?a ?b WHERE {{ {{ {{ :c{0} :p ?a }} SEQ NOT {{ ?c :q ?a }} SEQ {{ ?c :p ?b }} }} WITHIN {1} s }}",
    "SELECT ?a ?b WHERE {{ {{ {{ :c{0} :p ?a }} AND {{ :c{1} :q ?b }} }} WITHIN {2} s }}",
    "SELECT ?a ?b WHERE {{ {{ :c{0} :p ?a }} SEQ NOT {{ :c{1} :q ?z }} SEQ {{ ?c :p ?b }} }}",
    "SELECT ?a WHERE {{ {{ ?c :p ?a }} SEQ NOT {{ ?c :q {0} }} SEQ {{ ?c :p ?b }} }}",
    "SELECT ?a WHERE {{ :c{0} :p ?a . ?d :q ?a }}",
    "SELECT ?a WHERE {{ {{ :c{0} :p ?a }} EQUALS {{ :c{1} :q ?b }} }}",
    "SELECT ?b ?z WHERE {{ {{ :c{0} :p ?b }} BIND (?b * {1} + 1 AS ?z) FILTER (?z < {2}) }}",
    "SELECT ?b WHERE {{ {{ :c{0} :p ?a }} AND {{ ?c :q ?b FILTER (?b != {1}) }} }}",
    "SELECT ?c WHERE {{ {{ ?c :r {0} }} SEQ {{ ?c :r ?b }} }}",
    "SELECT ?a WHERE {{ {{ :c{0} :p ?a }} UNION {{ :c{1} :q ?a FILTER (?a > {2}) }} }}",
    "SELECT ?a ?b WHERE {{ {{ :c{0} :p ?a }} UNION {{ {{ ?c :q ?a }} SEQ {{ ?c :p ?b }} }} }}",
    "SELECT ?a ?b WHERE {{ :c{0} :p ?a OPTIONAL {{ :c{1} :q ?b FILTER (?b < ?a + {2}) }} }}",
    "SELECT ?z {{ {{ ?c :p ?a OPTIONAL {{ ?c :q ?w FILTER (?w < {0}) }} }} SEQ {{ ?c :p ?b OPTIONAL {{ ?c :q ?w }} }} "
    "BIND (?w * {1} AS ?z) }}",
    "SELECT ?c (SUM(?w) AS ?n) {{ ?c :p ?a OPTIONAL {{ :c{0} :q ?w }} "
    "OPTIONAL {{ ?c :q ?b OPTIONAL {{ ?c :r ?w }} }} }} GROUP BY ?c",
    "SELECT ?w WHERE {{ {{ {{ ?c :p ?a VALUES ?w {{ UNDEF 1 }} }} NEXT {{ ?c :p ?w }} }} WITHIN {0} s }}",
    "SELECT ?a ?b WHERE {{ {{ ?c :p ?a }} OPTIONALSEQ {{ ?c :p ?b FILTER (?b > {0}) }} }}",
    "SELECT ?a WHERE {{ ?d :p ?a FILTER NOT EXISTS {{ ?d :q ?b FILTER (?b = {0}) }} }}",
    "SELECT ?a WHERE {{ :c{0} :p ?a MINUS {{ ?d :q ?a }} }}",
    "SELECT ?a WHERE {{ ?d :p ?a MINUS {{ :c{0} :q ?b OPTIONAL {{ ?d :q ?a FILTER (?a > {1}) }} }} }}",
    "SELECT (COUNT(*) AS ?n) WHERE {{ :c{0} :p ?a }} GROUP BY ?a",
    "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?s) WHERE {{ :c{0} :p ?a }}",
    "SELECT (COUNT(?b) AS ?n) (MAX(?b) AS ?m) WHERE {{ {{ ?c :q ?a }} SEQ {{ ?c :p ?b }} }}",
    "SELECT ?c (SUM(?a * {2}) AS ?n) WHERE {{ ?c :p ?a FILTER (?a >= {0}) }} GROUP BY ?c HAVING (COUNT(*) > {1})",
    "SELECT (MAX(?a) AS ?n) (AVG(?a) AS ?m) WHERE {{ :c{0} :p ?a }} WITHIN 3 s",
    "SELECT ?c (COUNT(?a) AS ?n) WHERE {{ ?c :p ?a FILTER (?a != {0}) }} WITHIN 2 s GROUP BY ?c",
    "SELECT (COUNT(*) AS ?n) WHERE {{ :c{0} :p ?a }} HAVING (COUNT(*) < {1})",
    "SELECT ?a (COUNT(*) AS ?n) WHERE {{ :c{0} :p ?a }} GROUP BY ?a ORDER BY DESC(?n) ?a LIMIT 2",
    "SELECT DISTINCT ?a WHERE {{ {{ :c{0} :p ?a }} SEQ {{ ?c :p ?b FILTER (?b < {1}) }} }}",
    "SELECT ?a ?b WHERE {{ {{ :c{0} :p ?a }} AND {{ :c{1} :q ?b }} }} ORDER BY DESC(?b) LIMIT 3 OFFSET 1",
    "SELECT ?b WHERE {{ {{ SELECT (MIN(?a) AS ?b) WHERE {{ :c{0} :p ?a }} }} FILTER (?b < {1}) }}",
    "SELECT ?a ?b {{ {{ SELECT DISTINCT ?a {{ :c{0} :p ?a . ?c :p ?d }} LIMIT 2 }} SEQ {{ :c{1} :q ?b }} }}",
    "SELECT ?a {{ {{ SELECT ?a ?c {{ ?c :p ?a FILTER (?a > {0}) }} ORDER BY DESC(?a * {1}) LIMIT 3 OFFSET 1 }} }}",
    "SELECT ?a ?b {{ {{ :c{0} :p ?a }} SEQ {{ SELECT DISTINCT ?b {{ ?c :q ?b }} }} FILTER (?a != {1}) }}",
    "DESCRIBE ?c WHERE {{ ?c :p ?a FILTER (?a > {0}) }}",
    "DESCRIBE ?a :c1 WHERE {{ {{ :c{0} :p ?a }} SEQ {{ :c{1} :q ?b }} }}",
    "SELECT ?a WHERE {{ {{ :c{0} :p ?a }} SEQ NOT {{ :c{1} :q ?b }} WITHIN 2 s }}",
    "SELECT ?a WHERE {{ {{ ?c :p ?a FILTER (?a > {0}) }} SEQ NOT {{ ?c :q ?b }} WITHIN 1 s }}",
    "SELECT ?c ?n WHERE {{ ?c :p ?a }} REPEAT 2 OR MORE BY ?c WHERE (?a > {0}) AS (COUNT(*) AS ?n)",
    "SELECT ?n WHERE {{ :c{0} :p ?a }} REPEAT 2 TO 3 NOT {{ :c{1} :q ?z }} AS (COUNT(*) AS ?n)",
    "SELECT ?c ?s WHERE {{ ?c :p ?a FILTER (?a >= {0}) }} REPEAT 2 OR MORE BY ?c LONGEST AS (SUM(?a) AS ?s)",
    "SELECT ?s WHERE {{ :c{0} :p ?a }} REPEAT 2 OR MORE NOT {{ ?c :q ?a }} LONGEST AS (COUNT(*) AS ?s)",
    "SELECT ?a WHERE {{ :c{0} :p+ ?a FILTER (?a != {1}) }}",
    "SELECT ?d ?a WHERE {{ {{ ?d (:p|^:q)+ ?a }} SEQ {{ :c{0} :p/:q ?b }} }}",
    "SELECT ?d WHERE {{ {{ ?d :p+ :c{0} }} SEQ {{ :c{1} !:q ?b }} }} WITHIN 2 s",
    "SELECT ?a WHERE {{ :c{0} :p* ?a }}",
    "SELECT ?a WHERE {{ ?a (:p|:q)? :c{0} FILTER (?a != :c{1}) }}",
    "ASK {{ :c{0} (:p/:q)* ?a FILTER (?a != :c{1}) }}",
    "ASK {{ :c{0} :p ?a }}",
    "ASK {{ {{ ?c :p ?a FILTER (?a > {0}) }} SEQ {{ :c{1} :p ?b }} }} WITHIN {2} s",
    "ASK {{ {{ :c{0} :q ?a }} SEQ NOT {{ :c{1} :p ?b }} WITHIN 2 s }}",
    "ASK {{ {{ SELECT (COUNT(*) AS ?n) WHERE {{ :c{0} :p ?a }} }} FILTER (?n < {1}) }}",
    "CONSTRUCT {{ :c{0} :r ?a }} WHERE {{ {{ :c{1} :p ?a }} SEQ {{ ?d :q ?b }} }}",
    "CONSTRUCT {{ ?c :r {0} }} WHERE {{ ?c :p ?a FILTER (?a >= {1}) }}",
)


@st.composite
def texts(draw, most=8, least=2):
    """Queries of a few wordings, some with a name, some by a policy of their own."""
    chosen = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3, unique=True))
    constants = st.tuples(*[st.integers(0, 4)] * 3)
    queries = draw(st.lists(st.tuples(st.sampled_from(chosen), constants), min_size=least, max_size=most))
    named = draw(st.booleans())
    return [f"REGISTER QUERY n{i} AS " * named + text.format(*some) for i, (text, some) in enumerate(queries)]


@st.composite
def streams(draw):
    one = st.tuples(st.sampled_from((0, 1, 1, 2)), st.integers(0, 3), st.sampled_from("ppq"), st.sampled_from(VALUES))
    events, time = [], 0
    for step, company, predicate, value in draw(st.lists(one, min_size=4, max_size=12)):
        time += step
        events.append(event(f":c{company} :{predicate} {value}", time))
    return events


POLICY = st.sampled_from(("unrestricted", "chronological", "recent"))
EXECUTOR = st.sampled_from(("rows", "columns"))


@pytest.fixture(autouse=True)
def from_two_on(monkeypatch):
    monkeypatch.setattr(families, "FEWEST", 2)


def one_by_one(queries, policy):
    """The same program without a family."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "FEWEST", 10**9)
        return compile(queries, policy=policy)


def unnamed(query):
    """The text without the name that it may have."""
    return re.sub(r"^REGISTER QUERY \w+ AS ", "", query)


def answers(matches):
    return [(m.query, m.id, m.start, m.end, m.to_dict()) for m in matches]


@given(texts(), streams(), POLICY, EXECUTOR)
def test_together_they_answer_in_order_what_they_answer_one_by_one(queries, events, policy, executor):
    plain = one_by_one(queries, policy)
    together = compile(queries, policy=policy)
    assert together.queries == plain.queries
    expected = Engine(plain, executor="rows")
    engine = Engine(together, executor=executor)
    for one in events:
        assert answers(engine.push(one)) == answers(expected.push(one))
    assert answers(engine.close()) == answers(expected.close())
    assert engine.counters.matches == expected.counters.matches


# Each example compiles every one of its queries, so there are few of them, and none is made smaller.
@settings(max_examples=examples(1 / 30), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(10, 200).flatmap(lambda size: texts(size, size)), streams(), POLICY, EXECUTOR, st.data())
def test_large_sets_answer_what_each_of_their_queries_answers(queries, events, policy, executor, data):
    """They feed one another; some are taken away in the middle of the stream, and take nothing with them."""
    over = data.draw(st.integers(0, len(events)))
    parts = queries[: len(queries) // 2], queries[len(queries) // 2 :]
    named = [
        [f"REGISTER QUERY {name}{i} AS {unnamed(q)}" for i, q in enumerate(part) if "CONSTRUCT" not in q]
        for name, part in zip("mn", parts, strict=True)
    ]
    made = [unnamed(query) for query in queries if "CONSTRUCT" in query]
    found = Engine(compile(named[0] + made, policy=policy), executor=executor)
    expected = Engine(one_by_one(named[0] + made, policy))
    results = []
    for engine, program in ((found, compile(named[1])), (expected, one_by_one(named[1], policy))):
        added = engine.add(program, policy=policy)
        results.append(answers(engine.push_all(events[:over])))
        engine.remove(added)
        results[-1] += answers([*engine.push_all(events[over:]), *engine.close()])
    assert sorted(map(str, results[0])) == sorted(map(str, results[1]))


@given(texts(), streams(), POLICY, st.tuples(EXECUTOR, EXECUTOR), st.data())
def test_a_snapshot_goes_on_where_it_was_taken(queries, events, policy, executors, data):
    program = compile(queries, policy=policy)
    whole = Engine(program)
    expected = answers([*whole.push_all(events), *whole.close()])
    cut = data.draw(st.integers(0, len(events)))
    first, second = (
        Engine(one, executor=e) for one, e in zip((program, compile(queries, policy=policy)), executors, strict=True)
    )
    found = answers(first.push_all(events[:cut]))
    second.restore(first.snapshot())
    assert found + answers([*second.push_all(events[cut:]), *second.close()]) == expected


@settings(max_examples=examples(1 / 3))  # each makes as many engines as it has queries
@given(texts(most=4), texts(most=3), streams(), POLICY, EXECUTOR, st.data())
def test_an_added_query_begins_with_nothing_and_a_removed_one_leaves_nothing(
    queries, others, events, policy, executor, data
):
    """Each answers what it answers alone over what came while it ran; an open instant belongs to both times.

    What only the end of the stream or a time to come decides is not told of a query that is gone by then.
    """
    begun, over = sorted(data.draw(st.tuples(*[st.integers(0, len(events))] * 2)))
    _come_and_go(queries, others, events, policy, executor, (begun, over))


# As above: each example makes an engine of its own for every query, twice.
@settings(max_examples=examples(1 / 30), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    st.integers(10, 100).flatmap(lambda size: st.tuples(*[texts(size, size)] * 2)),
    streams(),
    POLICY,
    EXECUTOR,
    st.data(),
)
def test_queries_come_and_go_among_many(sets, events, policy, executor, data):
    begun, over = sorted(data.draw(st.tuples(*[st.integers(0, len(events))] * 2)))
    _come_and_go(*sets, events, policy, executor, (begun, over))


def _come_and_go(queries, others, events, policy, executor, cuts):
    """``others`` are added one by one at the first cut, and removed and added together at the second."""
    begun, over = cuts
    given, more = (
        [f"REGISTER QUERY {name}{i} AS {unnamed(query)}" for i, query in enumerate(some) if _is_plain(query)]
        for name, some in (("n", queries), ("m", others))
    )
    if not given or not more:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "FEWEST", 1)
        engine = Engine(compile(given, policy=policy), executor=executor)
        found = answers(engine.push_all(events[:begun]))
        added = [engine.add(text, policy=policy) for text in more]
        found += answers(engine.push_all(events[begun:over]))
        for name in added:
            engine.remove(name)
        engine.add(compile(more, policy=policy))
        found += answers([*engine.push_all(events[over:]), *engine.close()])
    first, second = (_opened(events, cut) for cut in (begun, over))
    removed = events[over - 1].end if over else 0
    expected = [one for query in given for one in _alone(query, policy, events)]
    for query in more:
        alone = _alone(query, policy, events[first:over])
        expected += [one for one in alone if one[3] is not None and one[3] * 1_000_000 < removed]
        expected += _alone(query, policy, events[second:])
    assert sorted(map(str, found)) == sorted(map(str, expected))


def _is_plain(query):
    """Is it a query that makes nothing and none of whose goals are shared with others that run already?"""
    shared = ("?a + ", "?d ", " :r ", "OPTIONALSEQ", "{ ?c :q ?a } SEQ", "{ ?c :p ?a } SEQ NOT", ":p+ ", ":p* ")
    return not any(word in query for word in ("CONSTRUCT", "DESCRIBE", "COUNT", *shared))


def _opened(events, cut):
    """Where the instant begins that is open after so many events."""
    return next((i for i, one in enumerate(events) if cut and one.end == events[cut - 1].end), 0)


def _alone(query, policy, events):
    engine = Engine(query, policy=policy, executor="rows")
    return answers([*engine.push_all(events), *engine.close()])


def test_texts_that_are_added_one_by_one_become_a_family():
    engine = Engine()
    text = "REGISTER QUERY n{0} AS SELECT ?a WHERE {{ {{ :c{0} :p ?a }} SEQ {{ :c{0} :p ?b }} }}"
    added = [engine.add(text.format(n)) for n in range(6)]
    assert len(engine.rules.outputs) == 4  # three by themselves, the others together
    with pytest.raises(ValueError, match="queries named n5 are running already"):
        engine.add(text.format(5))
    engine.push(event(":c5 :p 1", 1))
    engine.advance(1_000_000)
    engine.remove(added[5])
    with pytest.raises(KeyError, match="no program program6"):
        engine.remove(added[5])
    engine.add(text.format(5))
    found = [*engine.push_all([event(f":c{n} :p 2", t) for t in (2, 3) for n in range(6)]), *engine.close()]
    assert [(m.query, m["a"]) for m in found] == [(f"n{n}", 2) for n in range(6)]
    assert set(engine.programs) == {*added[:5], "program6"}


def test_names_of_programs_stay_short_while_programs_come_and_go():
    engine = Engine()
    text = "REGISTER QUERY n{0} AS SELECT ?a {{ :c{0} :p ?a }}"
    running = [engine.add(text.format(n)) for n in range(8)]
    for n in range(8, 40):
        engine.remove(running.pop(0))
        running.append(engine.add(text.format(n)))
    assert list(engine.programs) == running
    assert max(map(len, running)) == len("program40")


def test_beside_families_the_first_text_of_a_kind_begins_one():
    engine = Engine(compile([f"REGISTER QUERY n{n} AS SELECT ?a {{ :c{n} :p ?a }}" for n in range(4)]))
    text = "REGISTER QUERY {1}{0} AS SELECT ?a ?b {{ {{ :c{0} :p ?a }} SEQ {{ :c{0} :q ?b }} }}"
    engine.push(event(":c1 :p 1", 1))
    added = [engine.add(text.format(n, "m")) for n in range(3)]
    assert len(engine.rules.outputs) == 2
    engine.push_all([event(f":c{n} :p {n}", 2) for n in range(3)])
    both = engine.add([text.format(3, "k"), "REGISTER QUERY single AS SELECT ?a { ?a :r 1 }"])
    engine.remove(added[0])
    last = engine.add("REGISTER QUERY other AS SELECT ?a { :c2 :q ?a }")
    engine.remove(both)
    engine.remove(added[2])
    found = engine.push_all([event(f":c{n} :q {n}", 3) for n in range(4)])
    assert [(m.query, m.start) for m in [*found, *engine.close()] if m.start > 2 or m.query[0] == "m"] == [
        ("m1", 1), ("m1", 2), ("other", 3)
    ]  # fmt: skip
    assert set(engine.programs) == {"program1", added[1], last}
    assert [query for program in engine.programs.values() for query in program.queries] == [
        "n0", "n1", "n2", "n3", "m1", "other"
    ]  # fmt: skip


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_each_ask_of_a_family_answers_once_and_anew_when_it_is_added_again(executor):
    """What is true is said at the first instant of it, what never was at the end."""
    text = "REGISTER QUERY {1} AS ASK {{ :c{0} :p ?a FILTER (?a > 1) }}"
    engine = Engine(compile([text.format(n, name) for n, name in enumerate(("x", "y", "z"))]), executor=executor)
    added = engine.add(text.format(3, "w"))
    assert len(engine.rules.outputs) == 1
    found = engine.push_all([event(":c1 :p 2", 1), event(":c3 :p 2", 1), event(":c1 :p 2", 2)])
    engine.remove(added)
    engine.add(text.format(3, "w"))
    later = [*engine.push_all([event(f":c{n} :p {n}", 3) for n in range(4)]), *engine.close()]
    assert [(m.query, m.boolean, m.end) for m in found] == [("y", True, 1), ("w", True, 1)]
    assert [(m.query, m.boolean, m.end) for m in later] == [("z", True, 3), ("w", True, 3), ("x", False, None)]


def test_an_ask_that_is_added_again_answers_anew():
    engine = Engine("SELECT ?a { ?c :p ?a }")
    for time in (1, 3):
        added = engine.add("REGISTER QUERY any AS ASK { ?c :q ?a }")
        engine.push_all([event(":c :q 1", time), event(":c :p 1", time + 1)])
        engine.remove(added)
    assert engine.counters.matches == 3


def test_a_query_of_another_shape_touches_no_row_of_a_family():
    engine = Engine(compile([f"REGISTER QUERY n{n} AS SELECT ?a {{ :c{n} :p ?a }}" for n in range(8)]))
    single = engine.add("REGISTER QUERY n8 AS SELECT ?a { :c8 :p ?a }")
    engine.add("REGISTER QUERY other AS SELECT ?a ?b { { :c1 :p ?a } SEQ { :c1 :q ?b } }")
    (relation,) = (r for r in engine._rule_stages[0][1].families.relations.values() if len(r.rows) == 9)
    version, rows = relation.version, list(relation.rows.values())
    engine.add("REGISTER QUERY third AS SELECT ?a { ?a :q 1 }")
    assert relation.version == version
    assert list(relation.rows.values()) == rows
    engine.remove(single)
    engine.add("REGISTER QUERY n8 AS SELECT ?a { :c9 :p ?a }")
    engine.add("REGISTER QUERY fourth AS SELECT ?a { ?a :r 1 }")
    found = [*engine.push_all([event(f":c{n} :p 1", 1) for n in range(10)]), *engine.close()]
    assert [m.query for m in found] == [*(f"n{n}" for n in range(8)), "n8"]


LENGTHS = "REGISTER QUERY n{0} AS SELECT ?a ?b WHERE {{ {{ {1} SEQ {2} }} WITHIN {3} }}"


@pytest.mark.parametrize(
    ("sides", "by_length"),
    [
        (("{ :c1 :p ?a }", "{ :c2 :p ?b }"), {2: [(10, 12), (12, 14)], 4: [(10, 12), (10, 14), (12, 14)]}),
        (("{ ?c :p ?a }", "{ ?c :p ?b }"), {2: [(10, 12), (12, 14)], 4: [(10, 12), (12, 14)]}),
    ],
)
def test_queries_that_differ_in_the_length_of_a_window_are_one_family(sides, by_length):
    lengths = (0, 4, 2, 4, 1)
    engine = Engine(compile([LENGTHS.format(n, *sides, f"{length} s") for n, length in enumerate(lengths)]))
    assert len(engine.rules.outputs) == 1
    events = [event(":c1 :p 1", 10), event(":c2 :p 2", 12), event(":c1 :p 3", 12), event(":c2 :p 4", 14)]
    found = {n: [] for n in range(5)}
    for match in [*engine.push_all(events), *engine.close()]:
        found[int(match.query[1:])].append((match.start, match.end))
    assert {n: sorted(spans) for n, spans in found.items()} == {
        n: by_length.get(length, []) for n, length in enumerate(lengths)
    }


@pytest.mark.parametrize("sides", [("{ :c1 :p ?a }", "{ :c2 :p ?b }"), ("{ ?c :p ?a }", "{ ?d :p ?b }")])
def test_goals_are_kept_as_long_as_the_longest_window_that_runs(sides):
    texts = [LENGTHS.format(n, *sides, f"{length} s") for n, length in enumerate((3, 5, 3))]
    engine = Engine(compile(texts), sweep_every=10)
    name = engine.add(LENGTHS.format(9, *sides, "50 s"))
    assert len(engine.rules.outputs) == 1

    def goals_after(first, last):
        for t in range(first, last):
            engine.push(event(":c1 :p 1", t))
        return engine.counters.kept().goals

    longest = goals_after(0, 100)
    engine.remove(name)
    shorter = goals_after(100, 200)
    assert 50 <= longest <= 4 * 70
    assert 3 <= shorter <= longest / 4


def test_what_is_no_family_by_its_policy_leaves_the_goals_of_families_alone():
    """OPTIONALSEQ is none under a consuming policy."""
    steps = [f"REGISTER QUERY m{n} AS SELECT ?a WHERE {{ {{ :c{n} :p ?a }} SEQ {{ :c{n} :p ?b }} }}" for n in range(4)]
    gaps = [f"SELECT ?a WHERE {{ {{ :c{n} :q ?b }} OPTIONALSEQ {{ :c{n} :r ?a }} }}" for n in range(4)]
    engine = Engine(compile(steps))
    engine.push(event(":c1 :p 1", 1))
    added = engine.add(compile(gaps), policy="recent")
    engine.push(event(":c2 :p 2", 2))
    engine.remove(added)
    found = [*engine.push_all([event(":c1 :p 3", 3), event(":c2 :p 3", 3)]), *engine.close()]
    assert [(match.query, match["a"]) for match in found] == [("m1", 1), ("m2", 2)]


def test_the_order_of_lengths_tells_families_apart():
    """A bound inside another one is dropped where it is the longer, so the two orders have other rules."""
    inner = "{{ {{ {{ :c1 :p ?a }} SEQ {{ :c1 :p ?b }} }} WITHIN {} s }}"
    nested = f"SELECT ?b WHERE {{{{ {inner} SEQ {{{{ :c1 :p ?c }}}} }}}} WITHIN {{}} s"
    lengths = ((1, 3), (3, 1), (2, 2), (2, 5), (5, 2), (2, 2), (4, 9), (9, 4))
    queries = [nested.format(*some) for some in lengths]
    events = [event(f":c1 :p {t}", t) for t in range(12)]
    engine, plain = Engine(compile(queries)), Engine(one_by_one(queries, "unrestricted"), executor="rows")
    expected = answers([*plain.push_all(events), *plain.close()])
    assert answers([*engine.push_all(events), *engine.close()]) == expected
    assert len(engine.rules.outputs) == 3


def test_constants_inside_strings_comments_and_other_clauses_are_none():
    text = "PREFIX : <http://x/> SELECT ?a {{ # :c{0} 7\n :c{0} :p ?a FILTER (STR(?a) != ':c{0} 7') }} LIMIT {1}"
    engine = Engine(compile([text.format(n, n + 1) for n in range(4)]))
    events = [event(f"<http://x/c{n}> <http://x/p> {n}", n) for n in range(4)]
    found = [m.query for m in [*engine.push_all(events), *engine.close()]]
    assert found == ["q1", "q2", "q3", "q4"]


def test_the_rules_are_as_many_as_the_wordings():
    queries = [f"SELECT ?a WHERE {{ :c{n} :p ?a FILTER (?a > {n}) }}" for n in range(50)]
    assert len(Engine(compile(queries)).rules.outputs) == 1
    assert len(Engine(one_by_one(queries, "unrestricted")).rules.outputs) == 50


@pytest.mark.parametrize(
    "body",
    [
        "{{ {{ :c{0} :p ?a }} UNION {{ :c{1} :q ?a }} }}",
        "{{ :c{0} :p ?a OPTIONAL {{ :c{1} :q ?b }} }}",
        "{{ {{ :c{0} :p ?a }} OPTIONALSEQ {{ ?c :q ?a }} }}",
        "{{ ?c :p ?a FILTER NOT EXISTS {{ ?c :q {0} }} }}",
        "{{ :c{0} :p ?a MINUS {{ :c{1} :q ?a }} }}",
        "{{ :c{0} :p ?a }} GROUP BY ?a HAVING (COUNT(*) > {1}) ORDER BY ?a LIMIT 3",
        "{{ :c{0} :p ?a }} WITHIN 3 s GROUP BY ?a",
        "{{ :c{0} :p ?a }} ORDER BY DESC(?a) LIMIT 2",
        "{{ ?c :p ?a }} REPEAT 2 OR MORE BY ?a WHERE (?c != :c{0})",
        "{{ :c{0} :p ?a }} SEQ NOT {{ :c{1} :q ?b }} WITHIN 2 s",
        "{{ {{ SELECT DISTINCT ?a {{ :c{0} :p ?a }} ORDER BY DESC(?a * {1}) LIMIT 3 }} }}",
    ],
)
def test_what_a_query_may_say_of_its_solutions_is_said_of_each_of_a_family(body):
    engine = Engine(compile([f"SELECT ?a WHERE {body.format(n, n + 1)}" for n in range(4)]))
    assert len(engine.rules.outputs) == 1


def test_explain_shows_one_query_of_each_family_and_says_for_how_many_it_stands():
    queries = [f"REGISTER QUERY n{n} AS SELECT ?a WHERE {{ :c{n} :p ?a FILTER (?a > {n}) }}" for n in range(1200)]
    explained = compile(queries).explain()
    assert "n0 stands for 1,200 queries that differ in constants only: n0, n1, … n1199" in str(explained)
    assert "n1 " not in str(explained).replace("n1, …", "")
    assert len(explained.to_dict()["families"]) == 1
    assert repr(Engine(compile(queries))).startswith("<Engine: n0, n1, … n1199 (1,200 queries); ")


def test_explain_says_which_texts_are_alike_and_run_one_by_one():
    said = "q1 and 3 that are worded like it run one by one"
    asked = [f"SELECT (COUNT(?a) AS ?n) {{ :c{n} :p* ?a }}" for n in range(4)]
    assert said in str(compile(asked).explain())
    assert said in str(compile([*asked, *(f"SELECT ?a {{ :c{n} :p ?a }}" for n in range(4))]).explain())
    assert "one by one" not in str(compile(asked[:1]).explain())


def test_explain_compares_the_queries_of_one_text_with_each_other(monkeypatch):
    differ = "SELECT ?x { ?x :p 1 }; SELECT ?y { ?y :q ?z }; ASK { ?s :r 5 }; SELECT (COUNT(*) AS ?n) { ?a :b ?c }"
    assert "one by one" not in str(compile(differ).explain())
    looked_at = []
    wording_of = families.wording_of
    monkeypatch.setattr(families, "wording_of", lambda source: looked_at.append(source.text) or wording_of(source))
    program = compile("; ".join(f"SELECT ?x {{ ?x :p ?y FILTER (?y > {n}) }}" for n in range(40)))
    looked_at.clear()
    assert "q1 and 39 that are worded like it run one by one" in str(program.explain())
    assert sum(map(len, looked_at)) < len(program.compilation.queries[0].source.text)


def test_where_a_family_cannot_run_its_queries_run_one_by_one():
    queries = [f"SELECT ?a WHERE {{ :c{n} :p ?a FILTER (?a > {n}) }}" for n in range(4)]
    engine = Engine(compile(queries), explain=True)
    assert len(engine.rules.outputs) == 4
    matches = [*engine.push(event(":c2 :p 7", 1)), *engine.close()]
    assert [m.query for m in matches] == ["q3"]


def test_the_error_of_a_text_points_into_that_text():
    queries = [f"SELECT ?a WHERE {{ :c{n} :p ?a FILTER (?a > {n}) }}" for n in range(4)]
    queries[2] = "SELECT ?a WHERE { :c2 :p ?a FILTER (?a > ) }"
    with pytest.raises(ValueError, match=r"1:42"):
        compile(queries)
    with pytest.raises(ValueError, match="two queries are named q1"):
        compile([queries[0], "REGISTER QUERY q1 AS " + queries[1], queries[3]] * 2)
