"""Finds the kind of value that an expression has (number, text …), if the query text alone determines it, and says
which kinds the functions and operators take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from etalis_rules.datetimes import DATE, DATE_TIME, instant
from etalis_rules.durations import parse_duration
from etalis_rules.messages import closest
from etalis_rules.terms import XSD, is_iri, is_literal, is_triple, parts

from . import ast

NUMBER, TEXT, TRUTH, TIME, DURATION, IRI, OTHER = "number", "text", "truth value", "time", "duration", "IRI", "literal"
TRIPLE = "triple term"
SUBJECT = "subject of a triple"

_DATATYPES = {
    **dict.fromkeys(("dateTime", "date", "time", "dateTimeStamp"), TIME),
    **dict.fromkeys(("duration", "dayTimeDuration", "yearMonthDuration"), DURATION),
    **dict.fromkeys(("integer", "decimal", "double", "float", "int", "long", "short", "byte"), NUMBER),
    **dict.fromkeys(("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"), NUMBER),
    **dict.fromkeys(("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"), NUMBER),
    "boolean": TRUTH,
    "string": TEXT,
}
_OTHER_DATATYPES = frozenset(
    (
        "anyURI", "base64Binary", "hexBinary", "gDay", "gMonth", "gMonthDay", "gYear", "gYearMonth", "language", "Name",
        "NCName", "NMTOKEN", "NMTOKENS", "normalizedString", "token", "QName", "NOTATION", "ENTITY", "ENTITIES", "ID",
        "IDREF", "IDREFS", "anySimpleType", "anyAtomicType", "anyType",
    )
)  # fmt: skip
_FORMS = {
    "integer": re.compile("[+-]?[0-9]+"),
    "decimal": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"),
    "double": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
    "boolean": re.compile("true|false|0|1"),
    "dateTime": DATE_TIME,
    "date": DATE,
    "duration": re.compile("[^ W]*"),
    "dayTimeDuration": re.compile("[^ YMWT]*(T[^ W]*)?"),
    "yearMonthDuration": re.compile("[^ DTW]*"),
}
_FORM_OF = {
    **{name: "integer" for name, kind in _DATATYPES.items() if kind == NUMBER},
    "decimal": "decimal",
    "double": "double",
    "float": "double",
    "dateTimeStamp": "dateTime",
}
_CALLS = {
    **dict.fromkeys(("GETSTARTTIME", "GETENDTIME", "NOW"), TIME),
    **dict.fromkeys(("GETDURATION", "TIMEZONE"), DURATION),
    **dict.fromkeys(("STR", "LANG", "UCASE", "LCASE", "CONCAT", "ENCODE_FOR_URI", "STRUUID", "TZ"), TEXT),
    **dict.fromkeys(("SUBSTR", "STRBEFORE", "STRAFTER", "REPLACE", "STRLANG", "STRLANGDIR"), TEXT),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), TEXT),
    **dict.fromkeys(("STRLEN", "RAND", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), NUMBER),
    **dict.fromkeys(("ABS", "CEIL", "FLOOR", "ROUND"), NUMBER),
    **dict.fromkeys(("BOUND", "SAMETERM", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC"), TRUTH),
    **dict.fromkeys(("ISTRIPLE", "HASLANG", "HASLANGDIR"), TRUTH),
    "LANGDIR": TEXT,
    "TRIPLE": TRIPLE,
    **dict.fromkeys(("REGEX", "CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES"), TRUTH),
    **dict.fromkeys(("IRI", "URI", "DATATYPE", "UUID", "PREDICATE"), IRI),
}
_COMPUTED = {
    **{(NUMBER, operator, NUMBER): NUMBER for operator in "+-*/"},
    (NUMBER, "/", ""): NUMBER,
    (TIME, "-", TIME): DURATION,
    **{(TIME, operator, DURATION): TIME for operator in "+-"},
    **{(DURATION, operator, DURATION): DURATION for operator in "+-"},
    **{(DURATION, operator, NUMBER): DURATION for operator in "*/"},
    (NUMBER, "*", DURATION): DURATION,
    (DURATION, "+", TIME): TIME,
    (DURATION, "/", DURATION): NUMBER,
}
"""The kinds of calculations; of what depends on the data, a quotient by a number may be a duration."""
CONDITION = frozenset({TRUTH, TEXT, NUMBER})
"""The kinds that are true or false ([SPARQL 1.1 Query] §17.2.2)."""
_TEXT, _NUMBER, _TRIPLE, _IRI = frozenset({TEXT}), frozenset({NUMBER}), frozenset({TRIPLE}), frozenset({IRI})
_DAY, _CLOCK = frozenset({"dateTime", "date"}), frozenset({"dateTime", "time"})
_MOMENT = _DAY | _CLOCK
_LITERAL = frozenset({TRUTH, TEXT, NUMBER, DURATION, OTHER}) | _MOMENT
_TAKES: dict[str, tuple[frozenset[str], ...]] = {
    "IF": (CONDITION,),
    **dict.fromkeys(("STRLEN", "UCASE", "LCASE", "ENCODE_FOR_URI", "BNODE"), (_TEXT,)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), (_TEXT,)),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"), (_TEXT, _TEXT)),
    **dict.fromkeys(("LANGMATCHES", "STRLANG"), (_TEXT, _TEXT)),
    **dict.fromkeys(("REGEX", "STRLANGDIR"), (_TEXT, _TEXT, _TEXT)),
    "REPLACE": (_TEXT, _TEXT, _TEXT, _TEXT),
    "SUBSTR": (_TEXT, _NUMBER, _NUMBER),
    **dict.fromkeys(("ABS", "CEIL", "FLOOR", "ROUND"), (_NUMBER,)),
    **dict.fromkeys(("YEAR", "MONTH", "DAY"), (_DAY,)),
    **dict.fromkeys(("HOURS", "MINUTES", "SECONDS"), (_CLOCK,)),
    **dict.fromkeys(("TIMEZONE", "TZ"), (_MOMENT,)),
    "STR": (_LITERAL | _IRI,),
    **dict.fromkeys(("LANG", "LANGDIR", "DATATYPE"), (_LITERAL,)),
    **dict.fromkeys(("IRI", "URI"), (_IRI | _TEXT,)),
    "STRDT": (_TEXT, _IRI),
    "TRIPLE": (_IRI, _IRI),
    **dict.fromkeys(("SUBJECT", "PREDICATE", "OBJECT"), (_TRIPLE,)),
}
"""What the functions take in each place; where nothing is said, anything.  Of times, each datatype is named."""
_CAST_TAKES = {
    **dict.fromkeys((name for name, kind in _DATATYPES.items() if kind in (NUMBER, TRUTH)), CONDITION),
    **dict.fromkeys((name for name, kind in _DATATYPES.items() if kind == DURATION), frozenset({TEXT, DURATION})),
    "string": _LITERAL - {OTHER} | _IRI,
    **dict.fromkeys(("dateTime", "date"), _TEXT | _DAY),
    "time": _TEXT | _CLOCK,
}
_NO_KINDS: Mapping[str, str] = MappingProxyType({})
# functions whose value is a whole number
_WHOLE = frozenset({"STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES"})
_LOGIC = frozenset({"&&", "||", "=", "!=", "<", "<=", ">", ">="})


def kind_of_term(spelling: str) -> str:
    """The kind of a constant; ``OTHER`` for a literal of a datatype that is none of the usual ones."""
    if is_iri(spelling):
        return IRI
    if is_triple(spelling):
        return TRIPLE
    _, datatype, language = parts(spelling)
    if language or not datatype:
        return TEXT
    return _DATATYPES.get(datatype.removeprefix(XSD), OTHER) if datatype.startswith(XSD) else OTHER


def no_datatype(spelling: str) -> tuple[str, str]:
    """The datatype of a literal that has the namespace of XSD and is none of XSD, and the likeliest one that is meant.

    >>> no_datatype('"5"^^<http://www.w3.org/2001/XMLSchema#Integer>'), no_datatype('"5"')
    (('Integer', 'integer'), ('', ''))
    """
    if not spelling.startswith('"') or (datatype := parts(spelling)[1]) is None or not datatype.startswith(XSD):
        return "", ""
    name = datatype.removeprefix(XSD)
    known = _DATATYPES.keys() | _OTHER_DATATYPES
    return ("", "") if name in known else (name, closest(name, sorted(known)))


def no_value(spelling: str) -> str:
    """The datatype of XSD of a literal whose text is no value of it; "" for any other term.

    >>> no_value('"2026-02-30"^^<http://www.w3.org/2001/XMLSchema#date>'), no_value('"5"')
    ('date', '')
    """
    if not spelling.startswith('"') or (datatype := parts(spelling)[1]) is None or not datatype.startswith(XSD):
        return ""
    name, text = datatype.removeprefix(XSD), parts(spelling)[0]
    form = _FORMS.get(_FORM_OF.get(name, name))
    fits = form is None or form.fullmatch(text) is not None
    if fits and name in ("dateTime", "dateTimeStamp", "date"):
        fits = instant(text) is not None
    elif fits and _DATATYPES.get(name) == DURATION:
        fits = parse_duration(text) is not None
    return "" if fits else name


def taken(call: ast.Call | ast.FunctionCall) -> tuple[frozenset[str], ...]:
    """What a function takes in each place, everything else is an error; of the places left out nothing is known.

    Of times, the datatypes are named: ``dateTime``, ``date``, ``time``.
    """
    if isinstance(call, ast.FunctionCall):
        kinds = _CAST_TAKES.get(call.iri[1:-1].removeprefix(XSD)) if call.iri[1:].startswith(XSD) else None
        return () if kinds is None else (kinds,)
    if call.name == "CONCAT":
        return (_TEXT,) * len(call.arguments)
    return _TAKES.get(call.name, ())


def takes(kinds: frozenset[str], e: ast.Expression, kind: str) -> bool:
    """Whether an argument may be one of these, as far as its own ``kind`` is known."""
    if kind == TIME:
        return bool(kinds & _MOMENT) and datatype_of_time(e) in ("", *kinds)
    return kind in ("", *kinds) or (kind == SUBJECT and IRI in kinds)


def can_be_computed(left: str, operator: str, right: str) -> bool:
    """Whether a calculation with values of these kinds may have a value; "" is any kind."""
    return any(
        operator == known and left in ("", one) and right in ("", other) for one, known, other in _COMPUTED if other
    )


def computed_columns(query: ast.Query) -> Iterator[tuple[str, ast.Expression]]:
    """The variables to which a query gives the value of an expression, in SELECT, GROUP BY or a run."""
    for part in ast.walk(query):
        if isinstance(part, ast.Projection) and part.expression is not None:
            yield part.variable.name, part.expression


def is_whole_number(e: ast.Expression) -> bool:
    """Whether the value is an integer if there is one, judging by the text."""
    match e:
        case ast.Aggregate("COUNT"):
            return True
        case ast.Call(name):
            return name in _WHOLE
    return False


def datatype_of_time(e: ast.Expression) -> str:
    """``dateTime``, ``date`` or ``time`` for a value that is one of these; no value of one is comparable to another's.

    ``""`` if it is none of them, or if it depends on the data.
    """
    match e:
        case ast.Call("GETSTARTTIME" | "GETENDTIME" | "NOW"):
            return "dateTime"
        case ast.FunctionCall(iri, _, _):
            datatype = iri[1:-1]
        case ast.Term(spelling) if is_literal(spelling):
            datatype = parts(spelling)[1]
        case _:
            return ""
    name = datatype.removeprefix(XSD).removesuffix("Stamp")
    return name if datatype.startswith(XSD) and _DATATYPES.get(name) == TIME else ""


def kind_of(e: ast.Expression, known: Mapping[str, str] = _NO_KINDS) -> str:
    """The kind of value, or ``""`` if it depends on the data; ``known``: the kinds of some variables."""
    match e:
        case ast.Var(name):
            return known.get(name, "")
        case ast.Term(spelling):
            return kind_of_term(spelling)
        case ast.Unary(operator, operand):
            if operator == "!":
                return TRUTH
            kind = kind_of(operand, known)
            return kind if kind in (NUMBER, DURATION) else ""
        case ast.Binary(operator, left, right):
            if operator in _LOGIC:
                return TRUTH
            return _COMPUTED.get((kind_of(left, known), operator, kind_of(right, known)), "")
        case ast.In() | ast.Exists():
            return TRUTH
        case ast.Call(name, _):
            return _CALLS.get(name, "")
        case ast.FunctionCall(iri, _, _):
            return _DATATYPES.get(iri[1:-1].removeprefix(XSD), "") if iri[1:].startswith(XSD) else ""
        case ast.Aggregate(name, _, _, _):
            return NUMBER if name in ("COUNT", "AVG", "SUM") else ""
    return ""
