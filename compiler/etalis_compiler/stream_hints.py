"""Hints for words of other stream processors: keys, windows, and which matches are kept."""

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
        (r"\bPREV\s{0,9}\(", "the value in the element before is PREVIOUS(?x), two before PREVIOUS(?x, 2)"),
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


def stream_hint(token: Token, source: Source) -> str:
    """How to say what a writer of another language meant by a token that does not fit, or the empty string."""
    begin = max(0, token.start - _AROUND)
    for habit, advice in _HABITS:
        for found in habit.finditer(source.text, begin, token.end + _AROUND):
            if found.end() + _NEAR >= token.start and found.start() <= token.end:
                return advice
    return ""
