"""The value space of SPARQL 1.1: terms to values and back, the operators, time, and the order of terms.

Pure functions on immutable values; knows only the spelling of terms (``etalis_rules.terms``), nothing of rules, goals
or queries.  A *term* is a canonical N-Triples spelling, a *value* the Python object it stands for (``types``).  Errors
are exceptions (``SparqlError``).
"""

from etalis_rules.calendar import add_months

from etalis_py.values.codec import decode, decode_number, decode_or_none, encode
from etalis_py.values.errors import SparqlError, Unbound
from etalis_py.values.operators import (
    add,
    and_,
    div,
    ebv,
    eq,
    ge,
    gt,
    in_,
    le,
    lt,
    mul,
    ne,
    neg,
    not_,
    not_in,
    or_,
    pos,
    same_term,
    sub,
)
from etalis_py.values.ordering import order_key, order_key_of, rank_key
from etalis_py.values.temporal import compare_span, shift, within
from etalis_py.values.types import (
    EQUATED,
    EXACT,
    NUMERIC,
    ORDERED,
    BlankValue,
    Date,
    DateTime,
    Duration,
    IriValue,
    LangString,
    Opaque,
    Time,
    Value,
    XsdFloat,
)

__all__ = [
    "EQUATED",
    "EXACT",
    "NUMERIC",
    "ORDERED",
    "BlankValue",
    "Date",
    "DateTime",
    "Duration",
    "IriValue",
    "LangString",
    "Opaque",
    "SparqlError",
    "Time",
    "Unbound",
    "Value",
    "XsdFloat",
    "add",
    "add_months",
    "and_",
    "compare_span",
    "decode",
    "decode_number",
    "decode_or_none",
    "div",
    "ebv",
    "encode",
    "eq",
    "ge",
    "gt",
    "in_",
    "le",
    "lt",
    "mul",
    "ne",
    "neg",
    "not_",
    "not_in",
    "or_",
    "order_key",
    "order_key_of",
    "pos",
    "rank_key",
    "same_term",
    "shift",
    "sub",
    "within",
]
