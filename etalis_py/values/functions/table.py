"""The table of functions: every built-in of [SPARQL 1.1 Query] §17.4 and the casts of §17.5.

BOUND, EXISTS and NOT EXISTS are not here: they look at the solution, not at values.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from etalis_py.values.functions import dates, forms, numbers, regex, strings, terms
from etalis_py.values.functions.casts import CASTS
from etalis_py.values.functions.spec import FunctionSpec, UnknownFunction
from etalis_py.values.operators import same_term

_SPECS = (
    # §17.4.1 functional forms
    FunctionSpec("COALESCE", forms.coalesce, 0, None, takes="thunk"),
    FunctionSpec("IF", forms.if_, 3, 3, takes="thunk"),
    FunctionSpec("SAMETERM", same_term, 2, 2, takes="term"),
    # §17.4.2 terms
    FunctionSpec("ISIRI", terms.is_iri, 1, 1, takes="term"),
    FunctionSpec("ISURI", terms.is_iri, 1, 1, takes="term"),
    FunctionSpec("ISBLANK", terms.is_blank, 1, 1, takes="term"),
    FunctionSpec("ISLITERAL", terms.is_literal, 1, 1, takes="term"),
    FunctionSpec("ISNUMERIC", terms.is_numeric, 1, 1),
    FunctionSpec("STR", terms.str_, 1, 1, takes="term"),
    FunctionSpec("LANG", terms.lang, 1, 1),
    FunctionSpec("DATATYPE", terms.datatype, 1, 1, takes="term"),
    FunctionSpec("IRI", terms.iri, 1, 1, context="base"),
    FunctionSpec("URI", terms.iri, 1, 1, context="base"),
    FunctionSpec("BNODE", terms.bnode, 0, 1, context="seed"),
    FunctionSpec("STRDT", terms.strdt, 2, 2, gives="term"),
    FunctionSpec("STRLANG", terms.strlang, 2, 2),
    FunctionSpec("LANGDIR", terms.lang_dir, 1, 1),
    FunctionSpec("HASLANG", terms.has_lang, 1, 1),
    FunctionSpec("HASLANGDIR", terms.has_lang_dir, 1, 1),
    FunctionSpec("STRLANGDIR", terms.str_lang_dir, 3, 3),
    FunctionSpec("TRIPLE", terms.triple, 3, 3, takes="term", gives="term"),
    FunctionSpec("ISTRIPLE", terms.is_triple, 1, 1, takes="term"),
    FunctionSpec("SUBJECT", terms.subject_of, 1, 1, takes="term", gives="term"),
    FunctionSpec("PREDICATE", terms.predicate_of, 1, 1, takes="term", gives="term"),
    FunctionSpec("OBJECT", terms.object_of, 1, 1, takes="term", gives="term"),
    FunctionSpec("UUID", terms.uuid_iri, 0, 0, context="seed"),
    FunctionSpec("STRUUID", terms.struuid, 0, 0, context="seed"),
    # §17.4.3 strings
    FunctionSpec("STRLEN", strings.strlen, 1, 1),
    FunctionSpec("SUBSTR", strings.substr, 2, 3),
    FunctionSpec("UCASE", strings.ucase, 1, 1),
    FunctionSpec("LCASE", strings.lcase, 1, 1),
    FunctionSpec("STRSTARTS", strings.strstarts, 2, 2),
    FunctionSpec("STRENDS", strings.strends, 2, 2),
    FunctionSpec("CONTAINS", strings.contains, 2, 2),
    FunctionSpec("STRBEFORE", strings.strbefore, 2, 2),
    FunctionSpec("STRAFTER", strings.strafter, 2, 2),
    FunctionSpec("ENCODE_FOR_URI", strings.encode_for_uri, 1, 1),
    FunctionSpec("CONCAT", strings.concat, 0, None),
    FunctionSpec("LANGMATCHES", terms.lang_matches, 2, 2),
    FunctionSpec("REGEX", regex.regex, 2, 3),
    FunctionSpec("REPLACE", regex.replace, 3, 4),
    # §17.4.4 numbers
    FunctionSpec("ABS", numbers.abs_, 1, 1),
    FunctionSpec("ROUND", numbers.round_, 1, 1),
    FunctionSpec("CEIL", numbers.ceil_, 1, 1),
    FunctionSpec("FLOOR", numbers.floor_, 1, 1),
    FunctionSpec("RAND", terms.rand, 0, 0, context="seed"),
    # §17.4.5 dates and times
    FunctionSpec("NOW", dates.now, 0, 0, context="instant"),
    FunctionSpec("YEAR", dates.year, 1, 1),
    FunctionSpec("MONTH", dates.month, 1, 1),
    FunctionSpec("DAY", dates.day, 1, 1),
    FunctionSpec("HOURS", dates.hours, 1, 1),
    FunctionSpec("MINUTES", dates.minutes, 1, 1),
    FunctionSpec("SECONDS", dates.seconds, 1, 1),
    FunctionSpec("TIMEZONE", dates.timezone, 1, 1),
    FunctionSpec("TZ", dates.tz, 1, 1),
    # §17.4.6 hashes
    FunctionSpec("MD5", strings.md5, 1, 1),
    FunctionSpec("SHA1", strings.sha1, 1, 1),
    FunctionSpec("SHA256", strings.sha256, 1, 1),
    FunctionSpec("SHA384", strings.sha384, 1, 1),
    FunctionSpec("SHA512", strings.sha512, 1, 1),
)

FUNCTIONS: Mapping[str, FunctionSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Built-in name in capitals → function."""


def _hint(name: str, known: Mapping[str, FunctionSpec]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def find_function(name: str, arguments: int) -> FunctionSpec:
    """The function of a built-in name (in any case) or of an IRI (without brackets), for this number of arguments.

    >>> find_function("strlen", 1).name
    'STRLEN'
    """
    known = CASTS if ":" in name else FUNCTIONS
    spec = known.get(name if known is CASTS else name.upper())
    if spec is None:
        if known is CASTS:
            raise UnknownFunction(
                f"<{name}> is not a function this engine knows{_hint(name, CASTS)}; "
                "function IRIs are the casts of XML Schema, such as xsd:integer(?x)"
            )
        raise UnknownFunction(f"{name} is not a SPARQL function{_hint(name.upper(), FUNCTIONS)}")
    if not spec.accepts(arguments):
        raise UnknownFunction(f"{spec.name} takes {spec.arity}; {arguments} given")
    return spec
