"""The constructs that ``benchmarks.constructs`` measures: each of the language reference in one small query.

A stream has one event a second about 50 subjects.  In a stream of values each says ``:p`` and a value of one kind, of
which there are 1,000 different ones unless the kind has fewer; in the stream of pairs ``:p``, ``:q`` and ``:r`` come in
turn with small integers, and in that of intervals each event lasts for up to five seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from etalis_rules.terms import XSD

from etalis_py.events import Event
from etalis_py.values.functions import CASTS

BASE = "http://example.org/"
NAMED = f"<{BASE}s>"
SECOND = 1_000_000
SUBJECTS = 50

Quad = tuple[str, str, str, str]


def _typed(name: str, write: Callable[[int], str]) -> Callable[[int], str]:
    return lambda k: f'"{write(k)}"^^<{XSD}{name}>'


def _day(k: int) -> str:
    return f"20{k % 20 + 10}-{k % 12 + 1:02}-{k % 28 + 1:02}"


VALUES: dict[str, Callable[[int], str]] = {
    "integer": _typed("integer", str),
    "decimal": _typed("decimal", lambda k: f"{k}.25"),
    "double": _typed("double", lambda k: f"{k}.5"),
    "float": _typed("float", lambda k: f"{k}.5"),
    "string": lambda k: f'"text {k}"',
    "language": lambda k: f'"text {k}"@{("en", "de-AT")[k % 2]}',
    "direction": lambda k: f'"text {k}"@ar--rtl',
    "boolean": _typed("boolean", lambda k: ("true", "false")[k % 2]),
    "dateTime": _typed("dateTime", lambda k: f"{_day(k)}T{k % 24:02}:{k % 60:02}:07Z"),
    "date": _typed("date", _day),
    "time": _typed("time", lambda k: f"{k % 24:02}:{k % 60:02}:07"),
    "duration": _typed("dayTimeDuration", lambda k: f"PT{k}S"),
    "yearMonthDuration": _typed("yearMonthDuration", lambda k: f"P{k % 100}M"),
    "iri": lambda k: f"<{BASE}x{k}>",
    "blank": lambda k: f"_:x{k}",
    "triple": lambda k: f"<<( <{BASE}x{k}> <{BASE}q> <{BASE}y> )>>",
    "unknown": lambda k: f'"{k}"^^<{BASE}unit>',
    "numeral": lambda k: f'"{k}"',
    "mixed": lambda k: _MIXED[k % len(_MIXED)](k),
    "many doubles": _typed("double", lambda k: f"{k}.5"),
    "many strings": lambda k: f'"text {k}"',
}
_MIXED: tuple[Callable[[int], str], ...] = tuple(
    VALUES[kind] for kind in ("integer", "decimal", "double", "string", "language", "date", "iri", "blank", "numeral")
)


def values(kind: str, number: int, stream: str = "") -> list[Event]:
    """A stream of values."""
    write, distinct = VALUES[kind], number if kind.startswith("many ") else 1_000
    terms = [write(k) for k in range(distinct)]
    return [_event(n, f"<{BASE}s{n % SUBJECTS}>", "p", terms[n * 7919 % distinct], 0, stream) for n in range(number)]


def _drawn(n: int, most: int) -> int:
    """A number below ``most`` that looks drawn at random."""
    mixed = (n + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    return (mixed ^ mixed >> 27) % most


def pairs(number: int) -> list[Event]:
    """The stream of pairs."""
    return [
        _event(n, f"<{BASE}s{n // 3 * 7 % SUBJECTS}>", "pqr"[n % 3], VALUES["integer"](_drawn(n, 100)), 0)
        for n in range(number)
    ]


def intervals(number: int) -> list[Event]:
    """The stream of intervals."""
    return [
        _event(
            n // 2, f"<{BASE}s{n // 8 % SUBJECTS}>", "pq"[_drawn(n, 2)], VALUES["integer"](n % 100), _drawn(n + 1, 6)
        )
        for n in range(number)
    ]


def moves(number: int) -> list[Event]:
    """Short chains of moves, and prices between them."""
    return [
        _event(n, f"<{BASE}s{n}>", "moves", f"<{BASE}s{n + 1}>", 0)
        if n % 8 < 3
        else _event(n, f"<{BASE}s{n % SUBJECTS}>", "p", VALUES["integer"](n % 100), 0)
        for n in range(number)
    ]


def _event(n: int, s: str, p: str, o: str, lasting: int, stream: str = "") -> Event:
    end = (1_767_225_600 + n) * SECOND
    return Event(end - lasting * SECOND, end, ((s, f"<{BASE}{p}>", o),), stream, "")


STREAMS: dict[str, Callable[[int], list[Event]]] = {
    "pairs": pairs,
    "intervals": intervals,
    "moves": moves,
    "windowed": lambda number: values("integer", number, NAMED),
}


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct of the language, a query that uses it, and the stream it reads."""

    group: str
    name: str
    query: str
    stream: str
    policy: str = "unrestricted"
    background: tuple[Quad, ...] = ()

    def events(self, number: int) -> list[Event]:
        """Its events."""
        make = STREAMS.get(self.stream)
        return values(self.stream, number) if make is None else make(number)


PREFIXES = f"PREFIX : <{BASE}> PREFIX xsd: <{XSD}> "


def _filters(group: str, kind: str, *tests: str) -> list[Construct]:
    return [
        Construct(group, f"{test} · {kind}", f"SELECT ?s ?x WHERE {{ ?s :p ?x FILTER ({test}) }}", kind)
        for test in tests
    ]


def _binds(group: str, kind: str, *expressions: str) -> list[Construct]:
    return [
        Construct(group, f"{e} · {kind}", f"SELECT ?s ?y WHERE {{ ?s :p ?x BIND ({e} AS ?y) }}", kind)
        for e in expressions
    ]


_ORDERED = (
    "integer",
    "decimal",
    "double",
    "float",
    "string",
    "boolean",
    "dateTime",
    "date",
    "time",
    "duration",
    "yearMonthDuration",
)
_SAME = ("iri", "language", "triple")


def _compared(kind: str, *operators: str) -> Iterator[Construct]:
    """Comparisons with one of the values."""
    for op in operators:
        query = f"SELECT ?s ?x WHERE {{ ?s :p ?x FILTER (?x {op} {VALUES[kind](550)}) }}"
        yield Construct("operators", f"?x {op} constant · {kind}", query, kind)


OPERATORS = [one for kind in _ORDERED for one in _compared(kind, "=", "!=", "<")]
OPERATORS += [one for kind in _SAME for one in _compared(kind, "=", "!=")]
OPERATORS += _compared("unknown", "=")
OPERATORS += [
    *_filters("operators", "integer", "?x <= 500 && ?x > 20", "?x < 20 || ?x >= 900", "!(?x < 500)"),
    *_filters("operators", "integer", "?x IN (1, 2, 3, 500)", "?x NOT IN (1, 2, 3)", "BOUND(?x)", "?x"),
    *_filters("operators", "iri", "?x IN (:x1, :x2, :x500)", "sameTerm(?x, :x500)", "?s != ?x"),
    *_filters("operators", "string", '?x IN ("text 1", "text 2")', "?x", "?x != ?s"),
    *_filters("operators", "mixed", "?x = 504", '?x != "text 3"', "?x < 500", "!(?x < 500)", "?x"),
    *_filters("operators", "many doubles", "?x < 500", "?x = 500.5", "?x IN (1.5, 2.5)"),
    *_filters("operators", "many strings", '?x = "text 500"', '?x < "text 3"'),
    *_binds("operators", "integer", "?x + 1", "?x - 1", "?x * 2", "?x / 3", "-?x", "+?x", "?x > 500"),
    *_binds("operators", "decimal", "?x + 1", "?x * 1.5", "?x / 3"),
    *_binds("operators", "double", "?x + 1", "?x * 1.5", "?x / 3"),
    *_binds("operators", "many doubles", "?x * 1.5", "?x / 3"),
    *_binds("operators", "float", "?x + 1"),
    *_binds("operators", "dateTime", '?x + "PT1H"^^xsd:dayTimeDuration', '?x - "2020-01-01T00:00:00Z"^^xsd:dateTime'),
    *_binds("operators", "mixed", "?x + 1", "?x / 3"),
]

_WHOLE = [iri.removeprefix(XSD) for iri in CASTS if "nteger" in iri or iri.endswith(("ong", "nt", "hort", "yte"))]
FUNCTIONS = [
    *_binds("functions", "numeral", *(f"xsd:{name}(?x)" for name in _WHOLE)),
    *_binds("functions", "string", "xsd:duration(?x)", "xsd:dayTimeDuration(?x)", "xsd:yearMonthDuration(?x)"),
    *_binds("functions", "double", "ABS(?x)", "ROUND(?x)", "CEIL(?x)", "FLOOR(?x)"),
    *_binds("functions", "many doubles", "ROUND(?x)", "STR(?x)"),
    *_binds("functions", "integer", "IF(?x > 500, 1, 0)", "COALESCE(?x / 0, ?x)", "isNumeric(?x)", "ABS(?x)"),
    *_binds("functions", "integer", "xsd:string(?x)", "xsd:double(?x)", "xsd:decimal(?x)", "xsd:boolean(?x)"),
    *_binds("functions", "integer", "xsd:float(?x)", "STR(?x)", "DATATYPE(?x)", "STRDT(STR(?x), xsd:integer)"),
    *_binds("functions", "numeral", "xsd:decimal(?x) + 1"),
    *_binds("functions", "string", "STRLEN(?x)", "SUBSTR(?x, 2)", "SUBSTR(?x, 2, 3)", "UCASE(?x)", "LCASE(?x)"),
    *_binds("functions", "string", 'CONCAT(?x, "!")', 'STRBEFORE(?x, " ")', 'STRAFTER(?x, " ")', "ENCODE_FOR_URI(?x)"),
    *_binds("functions", "string", 'REPLACE(?x, "t", "T")', 'REPLACE(?x, "T", "", "i")', "MD5(?x)", "SHA1(?x)"),
    *_binds("functions", "string", "SHA256(?x)", "SHA384(?x)", "SHA512(?x)", 'STRLANG(?x, "en")', "IRI(?x)", "URI(?x)"),
    *_binds("functions", "string", 'STRLANGDIR(?x, "ar", "rtl")', "BNODE(?x)", "CONCAT(?x, STR(?s))"),
    *_binds("functions", "many strings", "STRLEN(?x)", 'CONCAT(?x, "!")'),
    *_filters("functions", "string", 'CONTAINS(?x, "5")', 'STRSTARTS(?x, "text 5")', 'STRENDS(?x, "5")'),
    *_filters("functions", "string", 'REGEX(?x, "5+")', 'REGEX(?x, "TEXT", "i")', "STRLEN(?x) > 6"),
    *_filters("functions", "many strings", 'CONTAINS(?x, "5")', 'REGEX(?x, "5+")'),
    *_filters("functions", "mixed", "isIRI(?x)", "isURI(?x)", "isBlank(?x)", "isLiteral(?x)", "isNumeric(?x)"),
    *_filters("functions", "mixed", "DATATYPE(?x) = xsd:integer", 'LANG(?x) = "en"', "STRLEN(STR(?x)) > 6"),
    *_filters("functions", "language", 'LANGMATCHES(LANG(?x), "de")', "hasLANG(?x)"),
    *_filters("functions", "direction", "hasLANGDIR(?x)"),
    *_binds("functions", "language", "LANG(?x)", "STR(?x)", "STRLEN(?x)"),
    *_binds("functions", "direction", "LANGDIR(?x)"),
    *_binds("functions", "mixed", "COALESCE(?x + 1, STR(?x))", "IF(isIRI(?x), STR(?x), ?x)"),
    *_binds("functions", "dateTime", "YEAR(?x)", "MONTH(?x)", "DAY(?x)", "HOURS(?x)", "MINUTES(?x)", "SECONDS(?x)"),
    *_binds("functions", "dateTime", "TIMEZONE(?x)", "TZ(?x)", "xsd:date(?x)", "xsd:time(?x)", "STR(?x)"),
    *_binds("functions", "date", "xsd:dateTime(?x)", "YEAR(?x)"),
    *_binds("functions", "triple", "SUBJECT(?x)", "PREDICATE(?x)", "OBJECT(?x)", "isTRIPLE(?x)"),
    *_binds("functions", "iri", "TRIPLE(?s, :q, ?x)", "STR(?x)"),
    *_binds("functions", "integer", "NOW()", "RAND()", "UUID()", "STRUUID()", "BNODE()"),
    *_binds("functions", "integer", "getSTARTTIME()", "getENDTIME()", "getDURATION()"),
]


def _aggregate(name: str, call: str, kind: str = "integer", rest: str = "", key: str = " GROUP BY ?s") -> Construct:
    shown = "?s " if key else ""
    where = f"SELECT {shown}({call} AS ?y) WHERE {{ ?s :p ?x }}{rest}{key}"
    return Construct("aggregates", f"{name} · {kind}", where, kind)


_CALLS = (
    "COUNT(*)",
    "COUNT(?x)",
    "SUM(?x)",
    "AVG(?x)",
    "MIN(?x)",
    "MAX(?x)",
    "SAMPLE(?x)",
    "COUNT(DISTINCT ?x)",
    "SUM(DISTINCT ?x)",
    "AVG(DISTINCT ?x)",
    'GROUP_CONCAT(?x ; SEPARATOR = ",")',
)
_WITHIN = {"PT60S": " WITHIN PT60S", "20 EVENTS": " WITHIN 20 EVENTS"}
AGGREGATES = [
    *(_aggregate(f"{call} by key, {w}", call, rest=text) for w, text in _WITHIN.items() for call in _CALLS),
    *(_aggregate(f"{call}, PT60S", call, rest=" WITHIN PT60S", key="") for call in _CALLS),
    *(_aggregate(f"{call} by key, all", call) for call in _CALLS if "CONCAT" not in call),
    *(_aggregate(f"{call}, all", call, key="") for call in ("COUNT(*)", "SUM(?x)", "AVG(?x)", "MAX(?x)")),
    *(_aggregate("SUM(?x) by key, all", "SUM(?x)", kind) for kind in ("decimal", "double")),
    *(_aggregate(f"{call} by key, all", call, "many strings") for call in ("MIN(?x)", "COUNT(DISTINCT ?x)")),
    _aggregate("HAVING by key, all", "MAX(?x)", key=" GROUP BY ?s HAVING (COUNT(*) > 5)"),
    *(_aggregate(f"{call} by key, PT60S", call, "decimal", " WITHIN PT60S") for call in ("SUM(?x)", "AVG(?x)")),
    *(_aggregate(f"{call} by key, PT60S", call, "double", " WITHIN PT60S") for call in ("SUM(?x)", "AVG(?x)")),
    *(_aggregate(f"{call} by key, PT60S", call, "many doubles", " WITHIN PT60S") for call in ("MIN(?x)", "MAX(?x)")),
    _aggregate("MIN(?x) by key, PT60S", "MIN(?x)", "string", " WITHIN PT60S"),
    _aggregate("SUM(?x + 1) by key, PT60S", "SUM(?x + 1)", rest=" WITHIN PT60S"),
    _aggregate("SUM(?x) / 2 by key, PT60S", "SUM(?x) / 2", rest=" WITHIN PT60S"),
    _aggregate("HAVING by key, PT60S", "AVG(?x)", rest=" WITHIN PT60S", key=" GROUP BY ?s HAVING (AVG(?x) > 500)"),
    _aggregate("ORDER BY, LIMIT by key, all", "MAX(?x)", key=" GROUP BY ?s ORDER BY DESC(?y) LIMIT 3"),
]


def _within(graph: str) -> tuple[Quad, ...]:
    """What each subject is in, as background knowledge."""
    return tuple((f"<{BASE}s{k}>", f"<{BASE}in>", f"<{BASE}c{k % 7}>", graph) for k in range(SUBJECTS))


def _form(name: str, query: str, stream: str = "pairs", **more: Any) -> Construct:
    return Construct("forms", name, query, stream, **more)


_PAIR = "{{ ?s :p ?x }} {} {{ ?s :q ?y }}"
_THREE = "{ { ?s :p ?x } SEQ { ?s :q ?y } SEQ { ?s :r ?z } } WITHIN PT300S"
_ALLEN = ("EQUALS", "MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "PAR")
FORMS = [
    _form("SELECT", "SELECT ?s ?x WHERE { ?s :p ?x }"),
    _form("SELECT *", "SELECT * WHERE { ?s :p ?x }"),
    _form("SELECT DISTINCT", "SELECT DISTINCT ?s WHERE { ?s :p ?x }"),
    _form("SELECT REDUCED", "SELECT REDUCED ?s WHERE { ?s :p ?x }"),
    _form("SELECT (expression)", "SELECT ?s (?x + 1 AS ?y) WHERE { ?s :p ?x }"),
    _form("ORDER BY", "SELECT ?s ?x WHERE { ?s :p ?x } ORDER BY DESC(?x) ?s"),
    _form("LIMIT, OFFSET", "SELECT ?s ?x WHERE { ?s :p ?x } LIMIT 10000 OFFSET 10"),
    _form("sub-SELECT", "SELECT ?s ?y WHERE { { SELECT ?s (?x + 1 AS ?y) WHERE { ?s :p ?x } } }"),
    _form("ASK", "ASK { ?s :p ?x FILTER (?x > 1000) }"),
    _form("CONSTRUCT", "CONSTRUCT { ?s :seen ?x } WHERE { ?s :p ?x }"),
    _form("CONSTRUCT, blank node", "CONSTRUCT { [] :of ?s ; :seen ?x } WHERE { ?s :p ?x }"),
    _form("DESCRIBE", "DESCRIBE ?s WHERE { ?s :p ?x FILTER (?x < 2) }"),
    _form(
        "two rules", "CONSTRUCT { ?s :t ?y } WHERE { ?s :p ?x BIND (?x + 1 AS ?y) } ; SELECT ?s ?y WHERE { ?s :t ?y }"
    ),
    _form(
        "recursion, closure",
        "CONSTRUCT { ?x :r ?z } WHERE { ?x :moves ?z } ; "
        "CONSTRUCT { ?x :r ?z } WHERE { { { ?x :r ?y } SEQ { ?y :moves ?z } } WITHIN PT10S }",
        "moves",
    ),
    _form("group of two triples", "SELECT ?s ?x ?y WHERE { { ?s :p ?x . ?s :q ?y } WITHIN PT60S }"),
    _form("AND", f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('AND')} }} WITHIN PT60S }}"),
    _form("UNION", "SELECT ?s ?x WHERE { { ?s :p ?x } UNION { ?s :q ?x } }"),
    _form("VALUES", "SELECT ?s ?x WHERE { ?s :p ?x VALUES ?s { :s1 :s2 :s3 } }"),
    _form("BIND, FILTER", "SELECT ?s ?y WHERE { ?s :p ?x BIND (?x * 2 AS ?y) FILTER (?y > 50) }"),
    _form("OPTIONAL", "SELECT ?s ?x ?y WHERE { { ?s :p ?x OPTIONAL { ?s :q ?y } } WITHIN PT60S }"),
    _form(
        "OPTIONAL, FILTER",
        "SELECT ?s ?x ?y WHERE { { ?s :p ?x OPTIONAL { ?s :q ?y FILTER (?y >= ?x) } } WITHIN PT60S }",
    ),
    _form("MINUS", "SELECT ?s ?x WHERE { ?s :p ?x MINUS { ?s :q 5 } }"),
    _form("EXISTS", "SELECT ?s ?x WHERE { ?s :p ?x FILTER EXISTS { ?s :q 5 } }"),
    _form("NOT EXISTS", "SELECT ?s ?x WHERE { ?s :p ?x FILTER NOT EXISTS { ?s :q 5 } }"),
    _form("EXISTS ||", "SELECT ?s ?x WHERE { ?s :p ?x FILTER (?x > 50 || EXISTS { ?s :q 5 }) }"),
    _form("path /", "SELECT ?s ?x WHERE { { ?s :moves/:moves ?x } WITHIN PT10S }", "moves"),
    _form("path ^", "SELECT ?s ?x WHERE { ?x ^:p ?s }"),
    _form("path |", "SELECT ?s ?x WHERE { ?s :p|:q ?x }"),
    _form("path +", "SELECT ?s ?x WHERE { { ?s :moves+ ?x } WITHIN PT10S }", "moves"),
    _form("path !", "SELECT ?s ?x WHERE { ?s !:p ?x }"),
    _form("any predicate", "SELECT ?s ?r ?x WHERE { ?s ?r ?x }"),
    _form("triple term", "SELECT ?s ?a ?b WHERE { ?s :p <<( ?a :q ?b )>> }", "triple"),
    _form("EVENT", "SELECT ?s ?x WHERE { EVENT { ?s :p ?x FILTER (?x > 50) } }"),
    _form("background", "SELECT ?s ?x ?c WHERE { ?s :p ?x . ?s :in ?c }", background=_within("")),
    _form("GRAPH", "SELECT ?s ?x ?c WHERE { ?s :p ?x GRAPH :g { ?s :in ?c } }", background=_within(f"<{BASE}g>")),
    _form("SEQ", f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S }}"),
    _form("SEQ, recent", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('SEQ')} }}", policy="recent"),
    _form("SEQ, chronological", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('SEQ')} }}", policy="chronological"),
    _form("SEQ, ?x < ?y", f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S FILTER (?x < ?y) }}"),
    _form(
        "SEQ, STR(?x) < STR(?y)",
        f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S FILTER (STR(?x) < STR(?y)) }}",
    ),
    _form(
        "SEQ, ?x + 1 = ?y",
        f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S FILTER (?x + 1 = ?y) }}",
    ),
    _form(
        "SEQ, ?x / ?y > 2",
        f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S FILTER (?x / ?y > 2) }}",
    ),
    _form("SEQ of three", f"SELECT ?s ?x ?y ?z WHERE {{ {_THREE} }}"),
    *(
        _form(
            f"{call} of a SEQ of three{', ' if within else ''}{within}",
            f"SELECT ({call} AS ?n) WHERE {{ {_THREE} }}{f' WITHIN {within}' if within else ''}",
        )
        for call in ("COUNT(*)", "SUM(?z)", "MAX(?x)")
        for within in ("", "PT60S")
    ),
    _form("COUNT(*) of a SEQ of three by key", f"SELECT ?s (COUNT(*) AS ?n) WHERE {{ {_THREE} }} GROUP BY ?s"),
    *(_form(op, f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format(op)} }} WITHIN PT10S }}", "intervals") for op in _ALLEN),
    *(
        _form(
            f"{op}, recent",
            f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format(op)} }} WITHIN PT10S }}",
            "intervals",
            policy="recent",
        )
        for op in ("EQUALS", "PAR")
    ),
    _form("NEXT", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('NEXT')} }}"),
    _form(
        "NEXT with a condition",
        "SELECT ?s ?x ?y WHERE { { ?s :p ?x } NEXT { ?s :p ?y FILTER (?y > ?x) } } WITHIN PT3000S",
    ),
    _form("NEXT, recent", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('NEXT')} }}", policy="recent"),
    _form("NOT", f"SELECT ?s ?x ?y WHERE {{ {{ {{ {_PAIR.format('SEQ')} }} WITHIN PT300S }} NOT {{ ?s :r ?z }} }}"),
    _form("SEQ NOT SEQ", "SELECT ?s ?x ?y WHERE { { ?s :p ?x } SEQ NOT { ?s :r ?z } SEQ { ?s :q ?y } }"),
    _form("SEQ NOT WITHIN", "SELECT ?s ?x WHERE { { ?s :p ?x } SEQ NOT { ?s :q 5 } WITHIN PT100S }"),
    _form("REPEAT 3", "SELECT ?s WHERE { { ?s :p ?x } REPEAT 3 BY ?s }"),
    _form(
        "REPEAT OR MORE",
        "SELECT ?s ?n WHERE { { ?s :p ?x } REPEAT 3 OR MORE BY ?s NOT { ?s :q 5 } LONGEST AS (COUNT(*) AS ?n) }",
    ),
    _form(
        "REPEAT GAP MAXIMAL",
        "SELECT ?s ?n ?t WHERE { { ?s :p ?x } REPEAT 1 OR MORE BY ?s GAP 20 s MAXIMAL "
        "AS (COUNT(*) AS ?n, SUM(?x) AS ?t) }",
    ),
    _form(
        "REPEAT UNTIL",
        "SELECT ?s ?n ?t WHERE { { ?s :p ?x } REPEAT 1 OR MORE BY ?s UNTIL { ?s :q ?y FILTER (?y < 3) } "
        "AS (COUNT(*) AS ?n, SUM(?x) AS ?t) }",
    ),
    _form(
        "REPEAT WHERE MAXIMAL",
        "SELECT ?s ?n ?m WHERE { { ?s :p ?x } REPEAT 2 OR MORE BY ?s WHERE (?x > PREVIOUS(?x)) MAXIMAL "
        "AS (COUNT(*) AS ?n, MAX(?x) AS ?m) }",
    ),
    _form(
        "REPEAT WHERE",
        "SELECT ?s ?a ?b WHERE { { ?s :p ?x } REPEAT 3 BY ?s WHERE (?x > PREVIOUS(?x)) "
        "AS (FIRST(?x) AS ?a, LAST(?x) AS ?b) }",
    ),
    _form("OPTIONALSEQ", f"SELECT ?s ?x ?y WHERE {{ {{ {_PAIR.format('OPTIONALSEQ')} }} WITHIN PT100S }}"),
    _form("EQUALSOPTIONAL", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('EQUALSOPTIONAL')} }}", "intervals"),
    _form("WITHIN", f"SELECT ?s ?x ?y WHERE {{ {_PAIR.format('SEQ')} }} WITHIN PT100S"),
    _form(
        "getDURATION",
        f'SELECT ?s ?x ?y WHERE {{ {_PAIR.format("SEQ")} }} FILTER (getDURATION() < "PT100S"^^xsd:dayTimeDuration)',
    ),
    _form(
        "getENDTIME, BIND",
        "SELECT ?s ?y WHERE { { { { ?s :p ?x BIND (getENDTIME() AS ?then) } SEQ { ?s :q ?y } } "
        'WITHIN PT300S } FILTER (getENDTIME() - ?then <= "PT100S"^^xsd:dayTimeDuration) }',
    ),
    _form(
        "aggregate below a join",
        "SELECT ?s ?x ?n WHERE { { { ?s :q ?x } AND { SELECT ?s (COUNT(*) AS ?n) "
        "WHERE { ?s :p 5 } GROUP BY ?s } } WITHIN PT3000S }",
    ),
]


def _window(name: str, query: str) -> Construct:
    return Construct("windows", name, query, "windowed")


_BODY = "WHERE { WINDOW :w { ?s :p ?x } } GROUP BY ?s"


def _by_key(window: str, call: str = "AVG(?x)", form: str = "SELECT", rest: str = "") -> str:
    return f"{form} ?s ({call} AS ?y) FROM NAMED WINDOW :w ON :s [{window}] {_BODY}{rest}"


_RANGE = "RANGE PT60S SLIDE PT10S"
_ROWS = "FROM NAMED WINDOW :w ON :s [RANGE PT10S SLIDE PT10S] WHERE { WINDOW :w"
WINDOWS = [
    *(_window(f"{call} by key", _by_key(_RANGE, call)) for call in _CALLS),
    _window("AVG, tumbling", _by_key("RANGE PT60S TUMBLING")),
    _window("AVG, offset", _by_key("RANGE PT60S SLIDE PT10S OFFSET PT30S")),
    _window("AVG, 100 EVENTS", _by_key("RANGE 100 EVENTS SLIDE 20 EVENTS")),
    _window("AVG, 100 TRIPLES", _by_key("RANGE TRIPLES 100 SLIDE TRIPLES 20")),
    _window("AVG, every 100 ms", _by_key("RANGE PT60S SLIDE PT0.5S")),
    _window(
        "AVG, no key",
        f"SELECT (AVG(?x) AS ?y) FROM NAMED WINDOW :w ON :s [{_RANGE}] WHERE {{ WINDOW :w {{ ?s :p ?x }} }}",
    ),
    _window("HAVING", _by_key(_RANGE, rest=" HAVING (AVG(?x) > 500)")),
    _window("ORDER BY, LIMIT", _by_key(_RANGE, rest=" ORDER BY DESC(?y) LIMIT 3")),
    _window("SUM(?x + 1)", _by_key(_RANGE, "SUM(?x + 1)")),
    _window("FILTER in the window", _by_key(_RANGE).replace("?s :p ?x", "?s :p ?x FILTER (?x > 500)")),
    _window("ISTREAM of an average", _by_key(_RANGE, form="SELECT ISTREAM")),
    _window("DSTREAM of an average", _by_key(_RANGE, form="SELECT DSTREAM")),
    _window("SELECT of rows", f"SELECT ?s ?x {_ROWS} {{ ?s :p ?x }} }}"),
    _window("SELECT of rows, DISTINCT", f"SELECT DISTINCT ?s {_ROWS} {{ ?s :p ?x }} }}"),
    _window("CONSTRUCT", f"CONSTRUCT {{ ?s :seen ?x }} {_ROWS} {{ ?s :p ?x }} }}"),
    _window("ASK", f"ASK {_ROWS} {{ ?s :p 5 }} }}"),
    _window(
        "join of windows",
        "SELECT ?s ?x ?y FROM NAMED WINDOW :w ON :s [RANGE PT20S SLIDE PT10S] "
        "FROM NAMED WINDOW :v ON :s [RANGE PT60S SLIDE PT10S] WHERE { WINDOW :w { ?s :p ?x } WINDOW :v { ?s :p ?y } "
        "FILTER (?x < ?y) }",
    ),
    _window(
        "REPORT ON CONTENT CHANGE",
        _by_key("RANGE PT60S SLIDE PT10S").replace("WHERE", "REPORT ON CONTENT CHANGE WHERE"),
    ),
    _window(
        "SEQ of events",
        "SELECT ?s ?t ?x ?y FROM NAMED WINDOW :w ON :s [RANGE PT10S SLIDE PT10S] "
        "WHERE { WINDOW :w { MATCH { { ?s :p ?x } SEQ { ?t :p ?y } } } }",
    ),
    _window("facts", "CONSTRUCT FACT F { ?s :is ?x } (UNION (SINCE ?s :p ?x) (TILL ?s :p ?z))"),
]

CONSTRUCTS = (*OPERATORS, *FUNCTIONS, *AGGREGATES, *FORMS, *WINDOWS)
