"""The function library of SPARQL 1.1: built-ins, casts, regular expressions and aggregates.

Pure functions on values (``etalis_py.values``), presented in one table (``FUNCTIONS``, ``CASTS``, ``find_function``),
and aggregates as small accumulators that take solutions in and out of a sliding window (``accumulator``).  Knows values
and terms, nothing of rules, goals or queries.
"""

from etalis_py.values.functions.accumulators import Accumulator, pack_int, unpack_int
from etalis_py.values.functions.aggregates import (
    AGGREGATES,
    GroupConcat,
    accumulator,
    add_all,
    add_several,
    remove_all,
    remove_several,
    restore_accumulator,
    take_back,
)
from etalis_py.values.functions.casts import CASTS
from etalis_py.values.functions.regex import RegexError, compile_regex
from etalis_py.values.functions.spec import FunctionSpec, UnknownFunction
from etalis_py.values.functions.sums import PlainSum
from etalis_py.values.functions.table import FUNCTIONS, find_function

__all__ = [
    "AGGREGATES",
    "CASTS",
    "FUNCTIONS",
    "Accumulator",
    "FunctionSpec",
    "GroupConcat",
    "PlainSum",
    "RegexError",
    "UnknownFunction",
    "accumulator",
    "add_all",
    "add_several",
    "compile_regex",
    "find_function",
    "pack_int",
    "remove_all",
    "remove_several",
    "restore_accumulator",
    "take_back",
    "unpack_int",
]
