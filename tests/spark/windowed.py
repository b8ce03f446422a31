"""Windowed programs, what the embedded engine says of them, and the pipeline without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

from etalis_py import Engine, Event, Program, compile
from etalis_py.spark.output.answers import Row, single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.windows import WindowOptions
from etalis_py.spark.shard.shard import Shard
from tests.spark.by_hand import PLACES, wants

SECOND = 1_000_000
EX = "http://example.org/"
S, U = f"<{EX}s>", f"<{EX}u>"

W = "FROM NAMED WINDOW :w ON :s [RANGE PT6S SLIDE PT3S]"
V = "FROM NAMED WINDOW :v ON :u [RANGE PT10S SLIDE PT5S]"
BODY = "{ WINDOW :w { ?x :p ?y } }"

# Divided by ?x, or by what is said.
KEYED = {
    "sliding": f"SELECT ?x ?y {W} {BODY}",
    "average": f"SELECT ?x (AVG(?y) AS ?a) {W} {BODY} GROUP BY ?x",
    "several aggregates": f"SELECT ?x (SUM(?y) AS ?a) (SAMPLE(?y) AS ?b) (GROUP_CONCAT(?y) AS ?c) {W} "
    "{ WINDOW :w { ?x :p ?y } FILTER (?y > 0) } GROUP BY ?x HAVING (COUNT(*) > 1)",
    "tumbling": f"SELECT DISTINCT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S TUMBLING] {BODY}",
    "t0": f"SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S SLIDE PT3S T0 2] {BODY}",
    "gaps": f"SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT2S SLIDE PT5S] {BODY}",
    "looking back": f"SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S SLIDE PT2S OFFSET PT3S] {BODY}",
    "interval": f"SELECT ?x FROM NAMED WINDOW :w ON :s [INTERVAL 5 12] {BODY}",
    "the instant": f"SELECT ?x ?y FROM NAMED WINDOW :w ON :s [NOW] {BODY}",
    "window close": f"SELECT ?x {W} REPORT ON WINDOW CLOSE {BODY}",
    "periodic": f"SELECT ?x {W} REPORT ON NON-EMPTY CONTENT, PERIODIC PT2S {BODY}",
    "at times": f"SELECT ?x {W} REPORT AT (5, 9, 25) {BODY}",
    "new at the close": f"SELECT ISTREAM ?x {W} REPORT ON WINDOW CLOSE {BODY}",
    "new since the start": f"SELECT ISTREAM ?x ?y FROM NAMED WINDOW :w ON :s [LANDMARK 4] {BODY}",
    "gone since the start": "SELECT DSTREAM ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [LANDMARK 4] "
    f"{BODY} GROUP BY ?x",
    "everything so far": f"SELECT ISTREAM ?x (MAX(?y) AS ?n) FROM NAMED WINDOW :w ON :s [IDENTITY] {BODY} GROUP BY ?x",
    "two streams": f"SELECT ?x ?y ?z {W} {V} {{ WINDOW :w {{ ?x :p ?y }} WINDOW :v {{ ?x :q ?z }} }}",
    "by objects": f"SELECT ?y ?x ?z {W} {V} {{ WINDOW :w {{ ?x :r ?y }} WINDOW :v {{ ?y :r ?z }} }}",
    "optional": f"SELECT ?x ?y ?z {W} {{ WINDOW :w {{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }} }}",
    "absent": f"SELECT ?x ?y {W} {{ WINDOW :w {{ ?x :p ?y FILTER NOT EXISTS {{ ?x :q ?z }} }} }}",
    "without": f"SELECT ?x ?y {W} {{ WINDOW :w {{ ?x :p ?y MINUS {{ ?x :q ?y }} }} }}",
    "one or the other": f"SELECT ?x {W} {{ WINDOW :w {{ {{ ?x :p ?y }} UNION {{ ?z :r ?x }} }} }}",
    "in the default graph": "SELECT ?x ?y FROM WINDOW :w ON :s [RANGE PT6S SLIDE PT3S] { ?x :p ?y }",
    "window on window": "SELECT ?x FROM NAMED WINDOW :v ON :s [RANGE PT8S SLIDE PT2S] "
    f"FROM NAMED WINDOW :w ON WINDOW :v [RANGE PT3S SLIDE PT1S] {BODY}",
    "of groups": f"SELECT ?x ?y ?n {W} {{ WINDOW :w {{ ?x :p ?y "
    "{ SELECT ?x (COUNT(*) AS ?n) { ?x :q ?z } GROUP BY ?x } } }",
    "made triples": f"CONSTRUCT {{ ?x :d ?n }} {W} {{ {{ SELECT ?x (COUNT(*) AS ?n) {BODY} GROUP BY ?x }} }}",
    "network": f"REGISTER STREAM :t AS CONSTRUCT {{ ?x :d ?y }} {W} {BODY} "
    "REGISTER QUERY counts AS SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :v ON :t [RANGE PT9S TUMBLING] "
    "{ WINDOW :v { ?x :d ?y } } GROUP BY ?x",
    "c-sparql": "REGISTER QUERY c AS SELECT ?x (COUNT(?y) AS ?n) FROM STREAM :s [RANGE 6s STEP 2s] "
    "{ ?x :p ?y } GROUP BY ?x",
}
# In one shard, with what is said of it.
WHOLE = {
    "count": (f"SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 3 EVENTS] {BODY}", "counts the items of all keys"),
    "triples": (f"SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE TRIPLES 4 SLIDE 2 TRIPLES] {BODY}", "counts the items"),
    "total": (f"SELECT (COUNT(*) AS ?n) {W} {BODY}", "an aggregate without GROUP BY"),
    "empty ones too": (f"SELECT (COUNT(*) AS ?n) {W} REPORT ON WINDOW CLOSE {BODY}", "an aggregate without GROUP BY"),
    "top": (f"SELECT ?x ?y {W} {BODY} ORDER BY DESC(?y) LIMIT 2", "ORDER BY, LIMIT and OFFSET"),
    "hidden": (f"SELECT ?y {W} {{ WINDOW :w {{ ?x :p ?y . ?x :q ?z }} }}", r"\?y: a pattern over a window is without"),
    "ask": (f"ASK {W} {BODY}", "ASK answers once for all"),
    "describe": (f"DESCRIBE ?x {W} {BODY}", "DESCRIBE"),
    "path": (f"SELECT ?x ?z {W} {{ WINDOW :w {{ ?x :p+ ?z }} }}", "a property path"),
    "new": (f"SELECT ISTREAM ?x {W} {BODY}", "ISTREAM compares with the evaluation before"),
    "gone": (f"SELECT DSTREAM ?x {W} {BODY}", "DSTREAM may tell of a key after its last item"),
    "on change": (f"SELECT ?x {W} REPORT ON CONTENT CHANGE {BODY}", "RSTREAM is asked for whenever an item of any key"),
    "cqels": ("SELECT ?x WHERE { STREAM :s [RANGE 5s] { ?x :p ?y } }", "ISTREAM is asked for whenever"),
    "landmark again": (f"SELECT ?x FROM NAMED WINDOW :w ON :s [LANDMARK 4] {BODY}", "RSTREAM is asked for"),
    "no common key": (
        f"SELECT ?x ?a {W} {{ WINDOW :w {{ ?x :p ?y . ?a :q ?y }} }}",
        r"no variable of its answer divides it: \?x: a pattern over a window is without it",
    ),
    "either window": (
        f"SELECT ?x {W} {V} {{ {{ WINDOW :w {{ ?x :p ?y }} }} UNION {{ WINDOW :v {{ ?x :q ?y }} }} }}",
        "not every solution|a window that some solutions do not use",
    ),
    "a window that may be empty": (
        f"SELECT ?x ?y ?z {W} {V} {{ WINDOW :w {{ ?x :p ?y }} OPTIONAL {{ WINDOW :v {{ ?x :q ?z }} }} }}",
        "a window that some solutions do not use",
    ),
    "kept, and looked at for ever": (
        f"SELECT ?x ?y FROM NAMED WINDOW :w ON :s [LANDMARK 4] REPORT PERIODIC PT2S {BODY}",
        "its windows keep what they hold",
    ),
    "changed when it closes": (
        f"SELECT ?x {W} REPORT ON CONTENT CHANGE AND WINDOW CLOSE {BODY}",
        "whether the content has changed",
    ),
    "optional before it is bound": (
        f"SELECT ?x {W} {{ VALUES ?y {{ 1 2 }} OPTIONAL {{ WINDOW :w {{ ?x :q ?y }} }} WINDOW :w {{ ?x :p ?y }} }}",
        r"\?x: it may be unbound before OPTIONAL",
    ),
    "absent before it is bound": (
        f"SELECT ?x {W} {{ {{ VALUES ?y {{ 1 2 }} FILTER NOT EXISTS {{ WINDOW :w {{ ?x :q ?y }} }} }} "
        "WINDOW :w { ?x :p ?y } }",
        r"\?x: it may be unbound before EXISTS",
    ),
    "given without a triple": (
        "SELECT ISTREAM ?x FROM NAMED WINDOW :w ON :s [LANDMARK 4] "
        f"{{ {{ VALUES ?x {{ :x1 :x2 :x3 }} }} UNION {BODY} }}",
        "not every solution uses a triple of a window",
    ),
    "rules feed windows": (
        "REGISTER STREAM :t AS CONSTRUCT { ?x :d ?z } WHERE { ?x :p ?y } SEQ { ?x :q ?z } "
        "SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :v ON :t [RANGE PT9S SLIDE PT3S] "
        "{ WINDOW :v { ?x :d ?y } } GROUP BY ?x",
        "windows and EP-SPARQL queries of the program may feed one another",
    ),
    "windows feed rules": (
        f"REGISTER STREAM :t AS CONSTRUCT {{ ?x :d ?y }} {W} {BODY} "
        "REGISTER QUERY rises AS SELECT ?x ?a ?b { ?x :d ?a } SEQ { ?x :d ?b } FILTER (?b > ?a)",
        "windows and EP-SPARQL queries of the program may feed one another",
    ),
    "a rule reads the unnamed stream": (
        f"SELECT ?x {W} {BODY} "
        "REGISTER QUERY pairs AS SELECT ?x ?z { STREAM :s { { ?x :p ?y } SEQ { ?x :q ?z } } }",
        "an EP-SPARQL query reads <http://example.org/s>",
    ),
    "facts": (
        "CONSTRUCT FACT Stay { ?x :in ?y } (UNION (SINCE ?x :p ?y) (TILL ?x :q ?z)) "
        "SELECT ?x ?y REPORT PERIODIC PT3S WHERE { CURRENT { ?x :in ?y } }",
        "facts hold over all streams",
    ),
    "items by name": (f"SELECT ?x ?g {W} {{ WINDOW :w {{ GRAPH ?g {{ ?x :p ?y }} }} }}", "names and times of items"),
    "event patterns": (
        "SELECT ?x ?y FROM NAMED :s WIN [RANGE 6] AS :w EVENT ON :w { ?x :p ?y } AS E1 EVENT ON :w { ?x :q ?z } AS E2 "
        "WHERE { MATCH { FIRST E1 SEQ E2 } }",
        "event patterns",
    ),
    "consumed": (
        "SELECT ?x ?y FROM NAMED :s WIN [LANDMARK 0] AS :w EVENT ON :w { ?x :p ?y } AS E1 "
        "EVENT ON :w { ?x :q ?z } AS E2 WHERE { MATCH { E1 SEQ RECENT E2 } } USING POLICY recent",
        "event patterns",
    ),
    "temporal": (f"SELECT ?x {W} {{ WINDOW :w {{ MATCH {{ {{?x :p ?y}} SEQ {{?x :q ?z}} }} }} }}", "event patterns"),
    "timestamp": (
        "REGISTER QUERY c AS SELECT ?x ?y FROM STREAM :s [RANGE 6s STEP 2s] "
        "{ ?x :p ?y . ?x :q ?z FILTER (timestamp(?x :p ?y) < timestamp(?x :q ?z)) }",
        "timestamp",
    ),
    "network of the whole": (
        f"REGISTER STREAM :t AS CONSTRUCT {{ :all :d ?n }} {W} {{ {{ SELECT (COUNT(*) AS ?n) {BODY} }} }} "
        "REGISTER QUERY top AS SELECT (MAX(?n) AS ?m) FROM NAMED WINDOW :v ON :t [RANGE PT9S TUMBLING] "
        "{ WINDOW :v { :all :d ?n } }",
        "no variable|an aggregate without GROUP BY",
    ),
    "keys that do not meet": (
        f"REGISTER STREAM :t AS CONSTRUCT {{ ?z :d ?x }} {W} {{ WINDOW :w {{ ?x :p ?y . ?x :r ?z }} }} "
        "REGISTER QUERY counts AS SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :v ON :t [RANGE PT9S TUMBLING] "
        "{ WINDOW :v { ?x :d ?y } } GROUP BY ?x",
        r"counts is keyed by \?x, but what .* makes for it by \?x",
    ),
}
PROGRAMS = KEYED | {name: text for name, (text, _) in WHOLE.items()}


def stream(seed: int, size: int = 60) -> list[Event]:
    """Two streams, ordered by end: ties, intervals, several triples in an item, numbers and nodes, named items."""
    rng = random.Random(seed)
    node = lambda: f"<{EX}x{rng.randrange(6)}>"  # noqa: E731
    found = []
    for number in range(size):
        end = rng.randrange(1, 30)
        triples = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            predicate = rng.choice(("p", "q", "r"))
            value = node() if predicate == "r" else f'"{rng.randrange(4)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            triples.append((node(), f"<{EX}{predicate}>", value))
        graph = f"<{EX}g{number}>" if rng.random() < 0.3 else ""
        start = end - rng.choice((0, 0, 1))
        found.append(Event(start * SECOND, end * SECOND, tuple(triples), rng.choice((S, S, U)), graph))
    return sorted(found, key=lambda e: e.end)


def embedded(program: Program | str, events: Iterable[Event], **options: Any) -> list[str]:
    """The ids of the embedded engine's matches."""
    engine = Engine(program, **options)
    return sorted(m.id for m in [*engine.push_all(sorted(events, key=lambda e: e.end)), *engine.close()])


def parts_of(program: Program | str, shards: int, **options: Any) -> list[RoutedPart]:
    chosen = WindowOptions(options.pop("report", None), options.pop("duplicates", False))
    return plan(program, shards, options.pop("background", None), options.pop("entailment", "rdfs"), None, chosen)[1]


def routed(events: Iterable[Event], part: RoutedPart, shard: int) -> list[Event]:
    """What one shard of a part gets."""
    found = []
    streams = {leaf.stream for leaf, _ in part.routes}
    for e in events:
        name = e.stream or part.unnamed
        if part.items:
            found += [e] if part.everything or name in streams else []
            continue
        for triple in e.triples:
            if any(
                wants(leaf, triple, name)
                and (not place or crc32(triple[PLACES.index(place)].encode()) % part.part.shards == shard)
                for leaf, place in part.routes
            ):
                found.append(Event(e.start, e.end, (triple,), e.stream))
    return sorted(found, key=lambda e: e.end)


def run_by_hand(program: Program | str, events: Sequence[Event], shards: int, **options: Any) -> list[str]:
    """The ids of the matches that the shards find, one after the other and without Spark."""
    chosen = WindowOptions(options.get("report"), options.get("duplicates", False))
    specs, parts = plan(program, shards, options.get("background"), options.get("entailment", "rdfs"), None, chosen)
    rows: list[Row] = []
    for part in parts:
        for number in range(part.part.shards):
            shard = Shard(specs[part.part.program], part.part, number)
            mine = routed(events, part, number)
            if mine:
                rows += single(shard.push(mine))
            rows += single(shard.finish())
    assert all(r[0] == "match" for r in rows), rows
    return sorted(r[3] for r in rows)


# --- random programs -------------------------------------------------------------------------------------------

_SHAPES = st.one_of(
    st.builds(
        lambda a, b, t0: f"[RANGE PT{a}S SLIDE PT{b}S T0 {t0}]", st.integers(1, 7), st.integers(1, 7), st.integers(0, 5)
    ),
    st.builds(lambda a: f"[RANGE PT{a}S TUMBLING]", st.integers(1, 7)),
    st.builds(lambda a: f"[LANDMARK {a}]", st.integers(0, 9)),
    st.builds(lambda a, b: f"[INTERVAL {a} {a + b}]", st.integers(0, 9), st.integers(0, 15)),
    st.sampled_from(["[NOW]", "[IDENTITY]", "[RANGE 3 EVENTS]", "[RANGE TRIPLES 4 SLIDE 2 TRIPLES]"]),
)
_REPORTS = st.sampled_from(
    [
        "",
        "",
        "REPORT ON WINDOW CLOSE",
        "REPORT ON CONTENT CHANGE",
        "REPORT ON CONTENT CHANGE AND NON-EMPTY CONTENT",
        "REPORT ON CONTENT CHANGE AND WINDOW CLOSE",
        "REPORT PERIODIC PT2S",
        "REPORT ON NON-EMPTY CONTENT, PERIODIC PT3S",
        "REPORT ON WINDOW CLOSE, PERIODIC PT2S",
        "REPORT AT (5, 9, 25)",
        "REPORT ON NON-EMPTY CONTENT",
    ]
)
_ONE = st.sampled_from(
    [
        "WINDOW :w { ?x :p ?y }",
        "WINDOW :w { ?x :p ?y . ?x :q ?z }",
        "WINDOW :w { ?x :p ?y OPTIONAL { ?x :q ?z } }",
        "WINDOW :w { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (?z > ?y) } }",
        "WINDOW :w { ?x :p ?y MINUS { ?x :q ?y } }",
        "WINDOW :w { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }",
        "WINDOW :w { ?x :p ?y FILTER EXISTS { ?z :r ?x } }",
        "WINDOW :w { { ?x :p ?y } UNION { ?x :q ?z } }",
        "WINDOW :w { { ?x :p ?y } UNION { ?z :r ?x } }",
        "WINDOW :w { ?x :r ?y . ?y :r ?z }",
        "WINDOW :w { ?x ?y ?z }",
        "WINDOW :w { ?x :p ?y BIND (?y + 1 AS ?z) }",
        "WINDOW :w { ?x :p ?y { SELECT ?x (MAX(?v) AS ?z) { ?x :q ?v } GROUP BY ?x } }",
        "WINDOW :w { ?x :p ?y { SELECT ?z { ?x :q ?z } } }",
        "WINDOW :w { VALUES ?x { :x1 :x2 :x3 } ?x :p ?y }",
        "WINDOW :w { ?x :p ?y } FILTER NOT EXISTS { WINDOW :w { ?a :q ?y } }",
        "OPTIONAL { WINDOW :w { ?x :p ?y } }",
    ]
)
_TWO = st.sampled_from(
    [
        "WINDOW :w { ?x :p ?y } WINDOW :v { ?x :q ?z }",
        "WINDOW :w { ?x :p ?y } OPTIONAL { WINDOW :v { ?x :q ?z } }",
        "WINDOW :w { ?x :p ?y } MINUS { WINDOW :v { ?x :q ?z } }",
        "{ WINDOW :w { ?x :p ?y } } UNION { WINDOW :v { ?x :q ?z } }",
        "WINDOW :w { ?x :r ?y } WINDOW :v { ?y :p ?z }",
        "WINDOW :v { ?x :p ?y } MINUS { WINDOW :w { ?x :p ?y } }",
    ]
)
_FORMS = st.sampled_from(
    [
        ("SELECT {} ?x ?y ?z", ""),
        ("SELECT {} ?x", ""),
        ("SELECT {} DISTINCT ?x ?z", ""),
        ("SELECT {} ?x (COUNT(*) AS ?n) (AVG(?y) AS ?a)", "GROUP BY ?x"),
        ("SELECT {} ?x ?y (COUNT(?z) AS ?n)", "GROUP BY ?x ?y HAVING (COUNT(*) > 1)"),
        ("SELECT {} ?y (COUNT(*) AS ?n)", "GROUP BY ?y"),
        ("SELECT {} (SUM(?y) AS ?n)", ""),
        ("CONSTRUCT {} {{ ?x :d ?y . ?x :e ?z }}", ""),
    ]
)
_OPERATORS = st.sampled_from(["", "", "ISTREAM", "DSTREAM"])


@st.composite
def windowed_queries(draw: st.DrawFn) -> str:
    """A windowed query; many of them may be divided, many may not."""
    two = draw(st.integers(0, 2)) == 0
    body, (head, tail) = draw(_TWO if two else _ONE), draw(_FORMS)
    if "GROUP" in body and "GROUP" in tail:
        head, tail = "SELECT {} ?x ?y ?z", ""
    clauses = [f"FROM NAMED WINDOW :w ON :s {draw(_SHAPES)}"]
    if two:
        clauses.append(f"FROM NAMED WINDOW :v ON {draw(st.sampled_from([':s', ':u']))} {draw(_SHAPES)}")
    head = head.format(draw(_OPERATORS)).replace("  ", " ")
    return f"{head} {' '.join(clauses)} {draw(_REPORTS)} WHERE {{ {body} }} {tail}"


def compiled(text: str) -> Program:
    return compile(text + "\n")
