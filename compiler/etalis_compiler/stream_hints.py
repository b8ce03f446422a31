"""Hints for what other stream processors write: their languages, their words for operators, keys and windows.

What they know of an operator is how it is written here; which tokens fit a place, ``syntax_hints`` knows.
"""

from __future__ import annotations

import re

from .diagnostics import Source
from .lexing import Token

_AROUND = 60  # characters on both sides of an error in which the words that led to it are looked for
_NEAR = 2  # characters that may lie between these words and the error
_BY_KEY = (
    "parts that share a variable match for each of its values, so nothing is partitioned; aggregates take "
    "GROUP BY ?key, and REPEAT, DISJOINT, SKIP and THROTTLE take BY ?key"
)
_WINDOWS = (
    "{ … } WITHIN 10 SECONDS is a window that slides with each event; one that reports every ten seconds is "
    "FROM NAMED WINDOW :w ON :stream [RANGE 10s TUMBLING] WHERE { WINDOW :w { … } }"
)
_KEPT = (
    "matches that do not overlap are { … } DISJOINT BY ?key, at most one an hour { … } THROTTLE 1 h BY ?key; "
    "{ … } SKIP PAST (getENDTIME()) BY ?key goes on after a time of the last match"
)
_OF_RUNS = (
    "what ends a run comes after REPEAT: a session is { … } REPEAT 1 OR MORE BY ?key GAP 30 min MAXIMAL "
    "AS (COUNT(*) AS ?n), and one that an event ends { … } REPEAT 1 OR MORE BY ?key UNTIL { ?key :logs :out }"
)
_WHICH_RUN = (
    "LONGEST reports the longest run at each of its elements, MAXIMAL each run once, when it is over, and "
    "UNTIL { … } the one that an event ends"
)
_ABSENT = (
    "absence lies between two matches, { A } SEQ NOT { N } SEQ { C }, or lasts for a time, { A } SEQ NOT { N } "
    "WITHIN 10 s, also from the start: { START } SEQ NOT { N } WITHIN 10 s; what has not come so far is "
    "FILTER NOT EXISTS { N }"
)
_HABITS = tuple(
    (re.compile(pattern, re.IGNORECASE), advice)
    for pattern, advice in (
        (
            r"\bEVENTS?\s{1,9}(?:PARTITION\s{1,9}BY|GROUP\s{1,9}BY|BY|PER|FOR)\b",
            "WITHIN 5 EVENTS counts all events; the last five of each ?key are "
            "{ … } REPEAT 5 BY ?key AS (AVG(?x) AS ?mean)",
        ),
        (
            r"\bREPEAT\s[\w\s]{1,30}\b(?:GROUP|PARTITION)\s{1,9}BY\b",
            "the key of a run is written { … } REPEAT 3 BY ?key",
        ),
        (r"\bAFTER\s{1,9}MATCH\b|\bSKIP\s{1,9}(?:BY|PAST\s{1,9}(?:LAST|FIRST)|TO\s{1,9}(?:NEXT|LAST|FIRST))\b", _KEPT),
        (r"\bTHROTTLE\s{0,9}\}|\bSKIP\s{0,9}(?:\}|\d)|\bSKIP\s{1,9}(?:PAST|TO)\s{1,9}\?", _KEPT),
        (
            r"\bTHROTTLE\s{1,9}BY\b|\bDISJOINT\s{1,9}(?:ON|FOR)\s{1,9}\?\w{1,99}|\b(?:DISJOINT|THROTTLE\s{1,9}\w{1,20}(?:\s{1,9}[a-z]{1,9})?)\s{1,9}\?\w{1,99}",
            "the key comes last, after BY: { … } DISJOINT BY ?key, { … } THROTTLE 1 h BY ?key",
        ),
        (r"\}\s{0,9}(?:UNTIL|MAXIMAL|LONGEST|GAP)\b|\bSESSION(?:IZE)?\b", _OF_RUNS),
        (r"\b(?:GREEDY|RELUCTANT|POSSESSIVE|LAZY)\b", _WHICH_RUN),
        (
            r"\bREPEAT\s[^{}()]{1,60}\bWHERE\s{1,9}[?!\w]",
            "the condition on the elements stands in parentheses: WHERE (?x > PREVIOUS(?x))",
        ),
        (
            r"[(&|!]\s{0,9}NEXT\s{0,9}\(",
            "WHERE looks at the elements before: PREVIOUS(?x), FIRST(?x); what comes after a run is { … } NEXT { … }",
        ),
        (
            r"\}\s{0,9}(?:NEXT|FIRST|LAST|TOP)\s{1,9}\d",
            "three in a row are { A } REPEAT 3 BY ?key; the next one and the one after it { A } NEXT { B } NEXT { B }",
        ),
        (r"[^\s}]\s{1,9}(?:UNLESS|WITHOUT)\s{0,9}\{", _ABSENT),
        (r"\bNEXT\s{1,9}NOT\b|(?:\{|\bWHERE)\s{0,9}NOT\s{0,9}\{", _ABSENT),
        (
            r"\b(?:CONSTRUCT|SELECT\s[^{}]{1,40})\s{1,9}AT\s{1,9}END\b|\bAT\s{1,9}END\s{0,9}(?:\Z|;|\})",
            "AT END stands after the template, and makes what it derives points: CONSTRUCT { … } AT END WHERE { … }",
        ),
        (
            r"\bWITHIN\s{1,9}\w{1,20}(?:\s{1,9}\w{1,12})?\s{1,9}AS\b",
            "what a run counts comes before its WITHIN: { … } REPEAT 2 OR MORE AS (COUNT(*) AS ?n) WITHIN 10 s",
        ),
        (
            r"\b(?:FIRST|LAST|PREVIOUS)\s{0,9}\(\s{0,9}(?:\w{1,20}\s{0,9}\(|\()",
            "FIRST, LAST and PREVIOUS take a variable: bind it in the element, { … BIND (getENDTIME() AS ?t) }",
        ),
        (r"\b(?:PREV|LAG)\s{0,9}\(", "the value in the element before is PREVIOUS(?x), two before PREVIOUS(?x, 2)"),
        (r"\bUNTIL\s{1,9}\?", "what ends a run is a pattern in braces: UNTIL { ?key :logs :out }"),
        (r"\bEVERY\s{1,9}\d|\}\s{0,9}(?:TUMBLING|SLIDING|HOPPING|WINDOW|EVERY|SLIDE)\b|\bSLIDE\s{1,9}\d", _WINDOWS),
        (
            r"\bPARTITION(?:ED)?\s{1,9}BY\b|\bKEY\s{0,9}BY\b|\bPER\s{1,9}\?\w|"
            r"\bWITHIN\s{1,9}\w{1,20}(?:\s{1,9}(?!GROUP|ORDER)\w{1,12})?\s{1,9}BY\b",
            _BY_KEY,
        ),
        (
            r"\bEVERY\s{0,9}(?:EVENT\b|\{|\()",
            "every match is reported, so nothing is written for it; matches that do not overlap are { … } DISJOINT",
        ),
        (
            r"\b(?:BACKGROUND|KNOWLEDGE|REFERENCE|STATIC)\s{0,9}\{",
            "background knowledge has no keyword: its triples stand in the pattern, "
            "EVENT { ?order :sku ?p . ?p :limit ?l }, and --background names its file",
        ),
        (
            r"\bEVENT\s{1,9}\?\w{1,99}\s{1,9}[:<?a]",
            "the pattern of an event stands in braces: EVENT { ?thing :price ?x }",
        ),
        (
            r"\?\w{1,99}\.[A-Za-z]\w{0,99}\s{0,9}[<>=!]",
            "a property is a triple, and its value is compared in a filter: { ?thing :price ?x FILTER (?x > 5) }",
        ),
        (
            r"\bWHERE\s{0,9}\{\s{0,9}\?\w{1,99}\s{0,9}(?:[<>]|!?=)|\}\s{0,9}(?:IF|WHEN)\s{0,9}\(",
            "a condition is a filter: FILTER (?x > 5)",
        ),
        (
            r"(?<!GROUP )(?<!ORDER )\bBY\s{1,9}(?:\?\w{1,99}\s{1,9}){0,9}\?\w{1,99}\s{0,9},",
            "several keys are separated by spaces: BY ?c ?x",
        ),
    )
)
_LOOKED_AT = 5_000  # characters of a text in which other languages are recognised
# other languages, of which [REQ] prints several, and what to write instead
_FOREIGN = tuple(
    (re.compile(pattern, re.IGNORECASE), advice)
    for pattern, advice in (
        (
            r"\bmatch_recognize\b|\bpattern\s{0,9}\(\s{0,9}[a-z]",
            "this is MATCH_RECOGNIZE; here (A B+) is { A } SEQ { { B } REPEAT 1 OR MORE BY ?key }; what DEFINE says is "
            "the WHERE of REPEAT, WHERE (?price < PREVIOUS(?price)), and MEASURES its AS (LAST(?price) AS ?bottom)",
        ),
        (
            r"\bcreate\s{1,9}(?:or\s{1,9}replace\s{1,9})?(?:stream|table)\b|\bdefine\s{1,9}stream\b",
            "a stream is not declared in a query: etalis run --stream ticks.csv names it, and a mapping says what its "
            "columns mean; a derived event is a CONSTRUCT query",
        ),
        (
            r"\bemit\s{1,9}changes\b|\bwindow\s{1,9}(?:tumbling|hopping|session)\s{0,9}\(",
            f"this is ksqlDB; here {_WINDOWS}; every new result is reported, so nothing is written for that",
        ),
        (
            r"\bfrom\s{1,9}(?:every\s{1,9})?\(?\s{0,9}\w{1,99}\s{0,9}=\s{0,9}\w{1,99}\s{0,9}\[",
            "this is Siddhi's language; here one event after another is { … } SEQ { … }, without every; a condition "
            "is FILTER (?x > 5), a limit of time WITHIN 10 MINUTES, and a derived event a CONSTRUCT query",
        ),
        (
            r"\bmatch\s{0,9}\(\s{0,9}\w{0,99}\s{0,9}[:)]",
            "this is Cypher; here a node is a variable, its label a type and its property or edge a predicate, as in "
            "SELECT ?a WHERE { ?a a :Tick ; :price ?x ; :next ?b FILTER (?x > 5) }",
        ),
        (
            r"\A\s{0,9}[a-z]\w{0,99}\([^(){}]{0,200}\)\s{0,9}(?::-|<-|\.)",
            "this is a rule of logic programming; here it is CONSTRUCT { ?c :rises true } WHERE { { ?c :price ?x } SEQ "
            "{ ?c :price ?y } FILTER (?y > ?x) }; an answer-set program is a file of background knowledge: "
            "--background rules.lp",
        ),
        (
            r"\btimer\s{0,9}:\s{0,9}within\b",
            "this is Esper's language; here a limit of time is { { A } SEQ { B } } WITHIN 10 SECONDS",
        ),
        (
            r"\btimer\s{0,9}:\s{0,9}(?:interval|at)\b",
            "this is Esper's language; here what does not happen in time is { A } SEQ NOT { B } WITHIN 10 SECONDS",
        ),
        (
            r"\bcreate\s{1,9}(?:window|schema)\b|\bpattern\s{0,9}\[|\binsert\s{1,9}into\b",
            "this is Esper's language; here one event after another is { … } SEQ { … }, alternatives are UNION, a "
            "limit of time is WITHIN 10 MINUTES, and a derived event is a CONSTRUCT query",
        ),
        (
            r"\bfrom\s{1,9}\w{1,99}\s{0,9}\[rescan\b",
            "this is SNEEql; here a stored graph is read again with FROM <locations> [RESCAN 20 SECONDS] and its "
            "triples are matched in WHERE { … }",
        ),
        (
            r"\bfrom\s{1,9}\w{1,99}\s{0,9}\[\s{0,9}(?:rows|range|now|unbounded|partition)\b",
            "this is CQL; here the last five triples of a stream are SELECT ?price FROM NAMED WINDOW :w ON :Prices "
            "[RANGE TRIPLES 5] WHERE { WINDOW :w { ?item :price ?price } }",
        ),
        (
            r"\bfilter\s{0,9}\(\s{0,9}seq\s{0,9}\(",
            "this is CQELS-CEP; here SEQ stands between the patterns, { ?x :p ?y } SEQ { ?x :q ?z } WITHIN 10 SECONDS, "
            "and an event that must not come between is { … } SEQ NOT { … } SEQ { … }",
        ),
    )
)
# operators between patterns as other languages call them, and how they are written here
_RUNS = (
    "a run is written { A } REPEAT 2 TO 5 BY ?key, or REPEAT 1 OR MORE; what it counts comes with AS (COUNT(*) AS ?n)"
)
_NEXT_OR_SEQ = "one after the other is { A } SEQ { B }, the very next one { A } NEXT { B }"
_ABSENCES = (
    "absence is { A } SEQ NOT { N } SEQ { C } between two, { A } SEQ NOT { N } WITHIN 10 SECONDS for a time, and "
    "{ P } NOT { N } inside one"
)
_OPTIONAL = (
    "what may be missing is { A } SEQ OPTIONAL { B } SEQ { C } between two, and { A } SEQ OPTIONAL { B } "
    "WITHIN 10 SECONDS at the end"
)
_UNFINISHED = re.compile(r"\bSEQ\s{1,9}(NOT|OPTIONAL)\b", re.IGNORECASE)
_CALLED_ELSEWHERE = {
    **dict.fromkeys(("+", "*"), _RUNS),
    **dict.fromkeys(("->", "-", "FOLLOWED", "FOLLOWEDBY", "FOLLOWS", "THEN", "BEFORE", "PRECEDES"), _NEXT_OR_SEQ),
    **dict.fromkeys(("AFTER", "AFTERWARDS"), f"the earlier one is written first: {_NEXT_OR_SEQ}"),
    **dict.fromkeys(("CONTAINS", "INCLUDES"), "A contains B is written { B } DURING { A }"),
    **dict.fromkeys(
        ("OVERLAPPEDBY", "MEETBY", "METBY", "STARTEDBY", "FINISHEDBY"), "exchange the two sides: { B } … { A }"
    ),
    **dict.fromkeys(
        ("COINCIDES", "SIMULTANEOUS"), "the same interval is { A } EQUALS { B }, a shared instant { A } PAR { B }"
    ),
    **dict.fromkeys(("WITHOUT", "NOTNEXT", "NOTFOLLOWEDBY", "ABSENT", "UNLESS"), _ABSENCES),
    "JOIN": (
        "patterns that share a variable are joined: { A } AND { B } in any order, { A } SEQ { B } one after the other"
    ),
    **dict.fromkeys(("OR", "XOR"), "one or the other is { A } UNION { B }"),
    **dict.fromkeys(("TIMES", "ONEORMORE", "REPEATED"), _RUNS),
    "FINISH": "did you mean FINISHES?",
}
_INVERSES = {"MET": "MEETS", "OVERLAPPED": "OVERLAPS", "STARTED": "STARTS", "FINISHED": "FINISHES"}
_INVERSE = re.compile(rf"\b({'|'.join(_INVERSES)})\s{{1,9}}BY\b", re.IGNORECASE)
# mistakes that only several words or marks together reveal
_IN_WORDS = (
    (re.compile(r"\}\s{0,9}\{\s{0,9}\d{1,9}\s{0,9}(?:,\s{0,9}\d{0,9}\s{0,9})?\}"), _RUNS),
    (re.compile(r"\}\s{0,9}\d{1,9}\s{1,9}TIMES\b", re.IGNORECASE), _RUNS),
    (re.compile(r"\}\s{0,9}IMMEDIATELY\b", re.IGNORECASE), _NEXT_OR_SEQ),
    (re.compile(r"\}\s{0,9}AND\s{1,9}NOT\b", re.IGNORECASE), _ABSENCES),
    (re.compile(r"\}\s{0,9}\?\s|\bOPTIONAL\s{1,9}(?:SEQ|NEXT)\b|\}\s{0,9}OPTIONAL\s{0,9}\}", re.IGNORECASE), _OPTIONAL),
    (
        re.compile(
            r"\bREPEAT\s{0,9}[+*?{(}]|\bREPEAT\s{1,9}\d{1,9}\s{0,9}(?:\.\.|[-+,]|TO\s{1,9}[a-z])", re.IGNORECASE
        ),
        _RUNS,
    ),
    (re.compile(r"\bNEXT\s{1,9}OPTIONAL\b", re.IGNORECASE), _OPTIONAL),
    (re.compile(r"\bREPEAT\s{1,9}(?:BY|GAP|WHERE|LONGEST|MAXIMAL|UNTIL|AT|FROM|MIN|MAX)\b", re.IGNORECASE), _RUNS),
)
_COUNTED = re.compile(
    r"\bREPEAT\b[^{}()]{1,90}(?:\(\s{0,9}|\bAS\s{1,9})(?:COUNT|SUM|AVG|MIN|MAX|FIRST|LAST)\b", re.IGNORECASE
)
_ENDED_BY_ONE = re.compile(r"\bREPEAT\b[^{}]{1,120}\bUNTIL\s{0,9}\{[^{}]{0,120}\}\s{0,9}UNION\b", re.IGNORECASE)
_ENDED_BY_EITHER = (
    "this UNION is one of the whole run with something else; two events that may end a run stand inside the braces: "
    "UNTIL { { ?key :logs :out } UNION { ?key :is :away } }"
)


def language_hint(source: Source) -> str:
    """What is written here instead of a text in another language, or the empty string."""
    return next((advice for pattern, advice in _FOREIGN if pattern.search(source.text, 0, _LOOKED_AT)), "")


def stream_hint(token: Token, last: Token | None, accepted: set[str], before: set[str], source: Source) -> str:
    """How to say what a writer of another language meant by a token that does not fit, or the empty string."""
    if advice := _of_habit(token, source):
        return advice
    return _elsewhere(token, accepted, source) or (_elsewhere(last, before, source) if last else "")


def _of_habit(token: Token, source: Source) -> str:
    """A hint for words of other stream processors that led to this token."""
    begin = max(0, token.start - _AROUND)
    for habit, advice in _HABITS:
        for found in habit.finditer(source.text, begin, token.end + _AROUND):
            if found.end() + _NEAR >= token.start and found.start() <= token.end:
                return advice
    return ""


def _elsewhere(token: Token, accepted: set[str], source: Source) -> str:
    """A hint with our name of another language's operator, if an operator between groups may stand here."""
    around = source.text[max(0, token.start - 40) : token.end + 40]
    if "SEQ" in accepted and (inverse := _INVERSE.search(around)):
        return f"exchange the two sides: {{ B }} {_INVERSES[inverse[1].upper()]} {{ A }}"
    for pattern, advice in _IN_WORDS:
        if pattern.search(around):
            return advice
    if "SEQ" in accepted and _ENDED_BY_ONE.search(source.text, max(0, token.start - 400), token.start):
        return _ENDED_BY_EITHER
    if _COUNTED.search(source.text, max(0, token.start - 120), token.end):
        return _RUNS
    if accepted == {"SEQ", "WITHIN"}:
        begun = _UNFINISHED.findall(source.text, max(0, token.start - _LOOKED_AT), token.start)
        return f"say until when: {_OPTIONAL if begun and begun[-1].upper() == 'OPTIONAL' else _ABSENCES}"
    return _CALLED_ELSEWHERE.get(token.text.upper(), "") if "SEQ" in accepted else ""
