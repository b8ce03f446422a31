"""Puts syntax errors into words: the text found, the tokens that would fit, and what the writer probably meant."""

from __future__ import annotations

import re

from etalis_rules.durations import UNITS
from etalis_rules.messages import closest

from .ast import AFTER_A_GROUP, TIGHT, Operator
from .automaton import Unexpected
from .building.facts import FACTS
from .building.windows import DURATIONS
from .diagnostics import QueryError, Source, shorten
from .lexing import AGGREGATES, BUILTINS, CAMEL, Token, tokens, words
from .sql_hints import sql_hint
from .stream_hints import language_hint, stream_hint

_IRI = words("IRIREF PNAME_LN PNAME_NS")
_LITERAL = words("STRING INTEGER NUMBER SIGNED TRUE FALSE")
_TERM = _IRI | _LITERAL | {"VAR", "BLANK", "NAME", "(", "[", "<<(", "<<"}
_EXPRESSION = _IRI | _LITERAL | words("VAR BUILTIN AGGREGATE COUNT GROUP_CONCAT EXISTS NOT TIMESTAMP")
_EXPRESSION |= words("PREVIOUS FIRST LAST")
_EXPRESSION |= {"!", "+", "-", "(", "<<("}
_OPERATOR = words("= != < > <= >= + - * / && || IN SIGNED")
_PATH = _IRI | {"VAR", "NAME", "a", "^", "!", "("}
_PROPERTY = _IRI | {"NAME", "a"}
_COMPARED = words("< > <= >= = !=")
_PATH_MARK = words("? * + / |")
_AMOUNT = words("INTEGER NUMBER DURATION STRING EVENTS EVENT TRIPLES TRIPLE BGP")
_CONSTRAINT = _IRI | (_EXPRESSION - _LITERAL - {"VAR", "!", "+", "-", "<<("})
_GROUP_PART = words("FILTER OPTIONAL MINUS BIND VALUES SERVICE GRAPH STREAM WINDOW CURRENT MATCH EVENT {")
_JOINED = AFTER_A_GROUP | {operator.value for operator in Operator}
_TIGHT = AFTER_A_GROUP | {operator.value for operator in TIGHT}
_MODIFIERS = words("GROUP GROUPBY ORDER ORDERBY LIMIT OFFSET VALUES USING")
_NEXT = words("SELECT CONSTRUCT ASK DESCRIBE BASE PREFIX VERSION REGISTER ;")
_AFTER_GROUP = (_MODIFIERS - {"VALUES"}) | _NEXT | {"HAVING", "WHERE", "FROM"}

# sets of token types that share one name, in the order in which they are looked for
_TOGETHER: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(_EXPRESSION), "an expression"),
    (frozenset(_CONSTRAINT), "a condition in parentheses"),
    (frozenset(_TERM), "a term (variable, IRI, literal, blank node)"),
    (frozenset(_PATH), "a property (IRI, variable or path)"),
    (_OPERATOR, "an operator"),
    (_PATH_MARK, "a path operator"),
    (_AMOUNT, "a length of time or a number of events"),
    (_GROUP_PART, "a pattern such as FILTER, OPTIONAL or '{'"),
    (_JOINED, "an operator between groups such as SEQ or UNION"),
    (_MODIFIERS, "a modifier such as GROUP BY or LIMIT"),
    (_NEXT, "a query"),
    (_LITERAL, "a literal"),
    (_IRI, "an IRI"),
)
_WORD = "the word AGGREGATE"  # the token type AGGREGATE is that of SUM and AVG
_SINGLE = {
    "IRIREF": "an IRI in angle brackets",
    "VAR": "a variable",
    "BLANK": "a blank node",
    "PNAME_LN": "a prefixed name",
    "PNAME_NS": "a prefix and ':'",
    "DURATION": "a duration such as PT5M",
    "SIGNED": "a number",
    "NUMBER": "a number",
    "INTEGER": "a whole number",
    "STRING": "a string",
    "LANGTAG": "a language tag",
    "NAME": "a name",
    "BUILTIN": "a function",
    "AGGREGATE": "an aggregate",
    "$END": "the end",
    _WORD: "AGGREGATE",
}
_SHOWN = 8
_UPDATE = words("INSERT DELETE LOAD CLEAR DROP CREATE ADD MOVE COPY")
# what other systems write between the brackets of a window
_OTHER_WINDOWS = {
    **dict.fromkeys(("ROWS", "ELEMENTS", "COUNT"), "count triples, events or solutions: [RANGE TRIPLES 10]"),
    **dict.fromkeys(("LAST", "SINCE", "WITHIN"), "the last five minutes are [RANGE 5m SLIDE 1m]"),
    **dict.fromkeys(("SLIDING", "HOPPING"), "a sliding window is [RANGE 5m SLIDE 1m]"),
    **dict.fromkeys(("FIXED", "BATCH", "SESSION"), "windows that follow on one another are [RANGE 5m TUMBLING]"),
    "UNBOUNDED": "all that there was is [ALL], or [LANDMARK t] from a time on",
}
_CLAUSES = {"GROUP": "GROUP BY ?key", "HAVING": "HAVING (COUNT(*) > 5)", "ORDER": "ORDER BY ?key", "LIMIT": "LIMIT 10"}
_AGGREGATED = "the aggregates are COUNT, SUM, MIN, MAX, AVG, SAMPLE and GROUP_CONCAT"
_COMMENT = re.compile(r"//|/\*|--")
_OPEN_IRI = re.compile(r"<[A-Za-z][\w+.-]{0,20}:[^<>\s]{1,999}(?=\s|\Z)")
_AFTER_COMMA = re.compile(r",\s{0,9}[^\s,]{1,99}\s{1,9}\Z")
_APART = re.compile(r"\s{1,9}(\w{1,99})")
_LISTS = "after ',' comes another object, after ';' another property; a triple ends with '.'"
_FILE = re.compile(r"[^\s{}<>]{1,255}\.(?:rq|sparql|txt)")
_PAIRS = {"{": "}", "(": ")", "[": "]"}


def explain(unexpected: Unexpected, source: Source, literals: dict[str, str]) -> QueryError:
    """The error for a token that the grammar does not allow at its place."""
    token, last = unexpected.token, unexpected.last
    spelled = {name: text for text, name in literals.items()} | {"_AGGREGATES": _WORD}
    accepted = {spelled.get(kind, kind) for kind in unexpected.accepted}
    before = {spelled.get(kind, kind) for kind in unexpected.before}
    expected = in_words(accepted)
    problem = "the text ends here" if token.type == "$END" else f"unexpected '{shorten(token.text)}'"
    wanted = _list(expected)
    hint = _hint(token, last, accepted, before, source)
    start, end = token.start, token.end
    if token.type == "$END" and last is not None:
        start = end = last.end
    return source.error("syntax", f"{problem}; expected {wanted}", start, end, hint=hint, expected=expected)


def in_words(accepted: set[str]) -> list[str]:
    """The tokens that may come next, listed in words."""
    left, words = set(accepted) - {"GROUPBY", "ORDERBY"}, []
    for kinds, name in _TOGETHER:
        if kinds <= accepted and kinds & left:
            words.append(name)
            left -= kinds
    for kind in sorted(left, key=lambda k: (k not in ("}", ")", "]", "."), k)):
        word = _SINGLE.get(kind) or (kind if kind.isalpha() and kind != "a" else f"'{kind}'")
        if word not in words:
            words.append(word)
    return words


def _list(words: list[str]) -> str:
    shown = words[:_SHOWN]
    if len(words) > _SHOWN:
        return ", ".join(shown) + ", …"
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "nothing more"


def _hint(token: Token, last: Token | None, accepted: set[str], before: set[str], source: Source) -> str:
    """A guess at what the writer meant, or the empty string."""
    text, upper = token.text, token.text.upper()
    previous = last.text if last else ""
    if said := language_hint(source) or _of_marks(token, last, source):
        return said
    if said := stream_hint(token, last, accepted, before, source):
        return said
    if said := sql_hint(token, last, accepted, source):
        return said
    if "SEQ" in accepted:
        accepted = accepted | _TIGHT
    after = source.text[token.end : token.end + 1]
    if "AS" in accepted and ")" not in accepted and "DISTINCT" not in accepted and token.type == "VAR":
        return "a computed column is written (expression AS ?name)"
    if text == "=" and previous == "=" and last is not None and last.end == token.start:
        return "equality is written with a single '='"
    if previous.upper() in ("FILTER", "HAVING") and token.type in _TERM and "(" in accepted:
        return f"the condition stands in parentheses: {previous.upper()} (?x > 5)"
    if text in _COMPARED and last is not None and last.type in _PROPERTY and "VAR" in accepted:
        return f"a value is compared in a filter: {{ ?thing {previous} ?value FILTER (?value {text} …) }}"
    if text == "?" and after.isspace() and accepted & {"VAR"}:
        return "a variable is written in one piece, as ?room"
    if previous.upper() == "ON" and token.type == "VAR" and "STREAM" in accepted:
        return "a window is over one stream: ON :stream; without a window, a pattern hears all streams"
    if "RANGE" in accepted and upper in _OTHER_WINDOWS:
        return _OTHER_WINDOWS[upper]
    if accepted & {"SINCE", "TILL"} or accepted == {"UNION"}:
        return FACTS
    if _WORD in accepted:
        return "what is counted comes after AGGREGATE: (AGGREGATE ?room, COUNT ?user WHERE (CURRENT …) …)"
    if upper.startswith("NOW-") and "NOW" in accepted:
        return "put spaces around '-': [NOW - 10m TO NOW - 5m SLIDE 1m]"
    if token.type == "$END":
        return _unclosed(source, len(source.text) + 1)
    if upper in _UPDATE and "SELECT" in accepted:
        return "SPARQL Update is not supported; a rule that derives triples is a CONSTRUCT query"
    if upper == "WITHIN" and "VALUES" in accepted and not accepted & {"WITHIN", "FILTER", "SEQ"}:
        return "WITHIN stands before GROUP BY, ORDER BY and LIMIT: WHERE { … } WITHIN 10 SECONDS GROUP BY ?room"
    if upper == "WITHIN" and "WHERE" in accepted:
        return "WITHIN stands behind the pattern: WHERE { … } WITHIN 10 SECONDS"
    if upper == "POLICY" and "USING" in accepted:
        return "a policy is written USING POLICY recent"
    if upper in ("SEQOPTIONAL", "OPTIONALEQUALS"):
        return (
            "there are OPTIONALSEQ (left side optional and earlier), EQUALSOPTIONAL (right side optional) and "
            "{ A } SEQ OPTIONAL { B } SEQ { C } (middle optional)"
        )
    if upper == "NOT" and previous.upper() == "SEQ" and "OPTIONAL" in accepted:
        return "after SEQ OPTIONAL { B } comes SEQ { C }; what must be absent stands in the branches of a UNION"
    if token.type == "IRIREF" and accepted & {"<", "*", ")"} and "<" in accepted:
        return "put a space after '<': it reads as the beginning of an IRI"
    if upper == "AS" and previous.upper() == "EVENT":
        return "an event has no name; EVENT ?g { … } binds the name of its graph"
    if "BUILTIN" in accepted and token.type == "DURATION":
        return f'in an expression a length of time is a literal: "{text.upper()}"^^xsd:duration'
    if "&&" in accepted and last is not None and last.type == "INTEGER" and text.lower() in UNITS:
        return 'in an expression a length of time is a literal, such as "PT5S"^^xsd:duration'
    if upper == "AS" or ("AS" in accepted and ")" not in accepted and upper in ("WHERE", "FROM", "{", "(", ";")):
        return "a computed column is written (expression AS ?name)"
    if upper in _AFTER_GROUP and "}" in accepted:
        if upper in _CLAUSES and _brackets(source, token.start) and not _brackets(source, len(source.text) + 1):
            return f"{token.text} stands behind the last '}}' of WHERE: WHERE {{ … }} {_CLAUSES[upper]}"
        return _unclosed(source, token.start)
    if text in ("}", ")", "]"):
        return _closing(text, source, token)
    near = _keyword(token, accepted)
    if near:
        return f"did you mean {near}?"
    if last is not None and last.type in ("NAME", "BUILTIN"):
        near = _keyword(last, before)
        if near:
            return f"did you mean {near} instead of '{shorten(last.text)}'?"
    if previous == "^^" and token.type == "NAME":
        return f"a datatype has a prefix: ^^xsd:{text}"
    if previous.upper() == "PREFIX":
        return "a prefix ends with ':', as in PREFIX ex: <http://…>"
    if token.type == "NAME" and "VAR" in accepted:
        if "BUILTIN" in accepted and after in ("(", " "):
            near = closest(text, [*BUILTINS, *AGGREGATES, "COUNT", "GROUP_CONCAT", "EXISTS"])
            if near:
                return f"did you mean {CAMEL.get(near, near)}?"
            if after == "(":
                return f"there is no function {text}(); {_AGGREGATED}"
        return f"a variable begins with '?' (?{text}), a name of the vocabulary with ':' (:{text})"
    if text == ":" and (name := _APART.match(source.text, token.end)):
        return f"a name follows its ':' without a blank: :{name[1]}"
    if "." in accepted and "VAR" not in accepted and token.type in _TERM:
        listed = _AFTER_COMMA.search(source.text[max(0, token.start - 200) : token.start])
        return _LISTS if listed else "end the triple before with '.'"
    if token.type == "STRING" and accepted >= _PATH:
        return "a property is a name of the vocabulary, as :price, or an IRI"
    if "DURATION" in accepted:
        return DURATIONS
    if upper in _JOINED and "}" in accepted:
        return f"{upper} stands between groups in braces: {{ … }} {upper} {{ … }}"
    if last is None and upper == "@PREFIX":
        return "in a query a prefix is declared without '@' and '.': PREFIX ex: <http://…>"
    if last is None and _FILE.fullmatch(source.text.strip()):
        return "this is the name of a file, which is given without -q: etalis run rising.rq"
    if last is None and "SELECT" in accepted:
        return "a query begins with SELECT, CONSTRUCT, ASK or DESCRIBE, after its PREFIX lines"
    return ""


def _of_marks(token: Token, last: Token | None, source: Source) -> str:
    """A hint at a comment of another language, or at an IRI that nothing closes."""
    begins = last.start if last is not None and last.end == token.start and last.text in ("/", "-") else token.start
    if _COMMENT.match(source.text, begins):
        return "a comment begins with '#'"
    if token.text == "<" and (begun := _OPEN_IRI.match(source.text, token.start)):
        return f"this IRI is not closed: write '>' at its end, {begun[0]}>"
    return ""


def _keyword(token: Token, accepted: set[str]) -> str:
    """The keyword that fits the place and that the word nearly spells."""
    if not token.text[:1].isalpha() or len(token.text) < 3:
        return ""
    keywords = [k for k in accepted if k.isalpha() and k.isupper() and k not in _SINGLE]
    first = token.text[0].upper()  # the first letter is seldom wrong: DUSING is more likely DURING than USING
    near = closest(token.text, [k for k in keywords if k[0] == first]) or closest(token.text, keywords)
    return near if near.upper() != token.text.upper() else ""


def _brackets(source: Source, end: int) -> list[tuple[str, int]]:
    """The brackets still open at a place, innermost last (strings, IRIs and comments are skipped)."""
    opened: list[tuple[str, int]] = []
    literals = {mark: mark for mark in "{}()[]"} | {"a": "a"}
    try:
        for token in tokens(source, literals):
            if token.start >= end:
                break
            if token.text in _PAIRS:
                opened.append((token.text, token.start))
            elif token.text in _PAIRS.values() and opened and _PAIRS[opened[-1][0]] == token.text:
                opened.pop()
    except QueryError:
        return opened  # the rest is unreadable, but the open brackets are known
    return opened


def _unclosed(source: Source, end: int) -> str:
    opened = _brackets(source, end)
    if not opened:
        return ""
    mark, place = opened[-1]
    line, column = source.position(place)
    return f"the '{mark}' of line {line}, column {column} is not closed: add '{_PAIRS[mark]}'"


def _closing(text: str, source: Source, token: Token) -> str:
    opened = _brackets(source, token.start)
    if not opened:
        return f"no bracket is open here: leave this '{text}' out, or add the one that opens it"
    mark, place = opened[-1]
    if _PAIRS[mark] != text:
        line, column = source.position(place)
        return f"the '{mark}' of line {line}, column {column} must be closed by '{_PAIRS[mark]}' first"
    return ""
