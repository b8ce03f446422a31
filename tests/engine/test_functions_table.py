"""The built-ins of SPARQL 1.1 §17.4 as a table: call, arguments, result.

A cell is a term (``"a"@en``, ``<urn:a>``, ``_:b``), a number or ``lexical^^type``; ``error`` stands for a SPARQL error.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from etalis_rules import algebra as alg
from etalis_rules.terms import FALSE, RDF, TRUE, XSD

from etalis_py.values import SparqlError, decode, encode
from etalis_py.values.functions import CASTS, FUNCTIONS, UnknownFunction, find_function
from etalis_py.values.functions.iris import resolve

ERROR = "error"
SEED = b"match 1"
CONTEXTS: dict[str, tuple[Any, ...]] = {
    "": (),
    "base": ("http://example.org/dir/doc",),
    "instant": (1_000_000,),
    "seed": (SEED, 0),
}


def term(cell: str) -> str:
    if cell in ("true", "false"):
        return TRUE if cell == "true" else FALSE
    if cell == "" or cell[0] in '"<_':
        return cell
    lexical, _, name = cell.partition("^^")
    return f'"{lexical}"^^<{XSD}{name or ("integer" if re.fullmatch("-?[0-9]+", lexical) else "decimal")}>'


def call(name: str, *cells: str) -> str:
    """The term a function gives, called as generated code calls it."""
    spec = find_function(name, len(cells))

    def argument(cell: str) -> Any:
        if spec.takes == "thunk":
            return lambda: decode(term(cell))
        return term(cell) if spec.takes == "term" else decode(term(cell))

    try:
        result = spec.call(*CONTEXTS[spec.context], *map(argument, cells))
    except SparqlError:
        return ERROR
    return result if spec.gives == "term" else encode(result)


TABLE = [
    # terms
    ("STR", ['"01"^^<urn:t>'], '"01"'),
    ("STR", ["1.50"], '"1.50"'),
    ("STR", ['"a"@en'], '"a"'),
    ("STR", ["<urn:a>"], '"urn:a"'),
    ("STR", ["_:b"], ERROR),
    ("STR", [""], ERROR),
    ("LANG", ['"a"@en-GB'], '"en-gb"'),
    ("LANG", ['"a"'], '""'),
    ("LANG", ["1"], '""'),
    ("LANG", ["<urn:a>"], ERROR),
    ("DATATYPE", ['"a"'], f"<{XSD}string>"),
    ("DATATYPE", ['"a"@en'], f"<{RDF}langString>"),
    ("DATATYPE", ["1^^byte"], f"<{XSD}byte>"),
    ("DATATYPE", ['"a"^^<urn:t>'], "<urn:t>"),
    ("DATATYPE", ["<urn:a>"], ERROR),
    ("IRI", ['"b"'], "<http://example.org/dir/b>"),
    ("URI", ["<urn:a>"], "<urn:a>"),
    ("IRI", ['"http://a b"'], ERROR),
    ("IRI", ['"a"@en'], ERROR),
    ("IRI", ["1"], ERROR),
    ("STRDT", ['"123"', f"<{XSD}integer>"], "123"),
    ("STRDT", ['"a"', f"<{XSD}string>"], '"a"'),
    ("STRDT", ['"iiii"', "<http://example/romanNumeral>"], '"iiii"^^<http://example/romanNumeral>'),
    ("STRDT", ['"a"@en', "<urn:t>"], ERROR),
    ("STRDT", ["1", "<urn:t>"], ERROR),
    ("STRLANG", ['"chat"', '"EN"'], '"chat"@en'),
    ("STRLANG", ['"chat"@fr', '"en"'], ERROR),
    ("STRLANG", ['"chat"', '""'], ERROR),
    ("ISIRI", ["<urn:a>"], "true"),
    ("ISURI", ['"urn:a"'], "false"),
    ("ISBLANK", ["_:b"], "true"),
    ("ISLITERAL", ['"a"@en'], "true"),
    ("ISLITERAL", ["_:b"], "false"),
    ("ISIRI", [""], ERROR),
    ("ISNUMERIC", ["12"], "true"),
    ("ISNUMERIC", ['"12"'], "false"),
    ("ISNUMERIC", ["1200^^byte"], "false"),
    ("ISNUMERIC", ["<http://example/>"], "false"),
    ("SAMETERM", ["1", "01"], "false"),
    ("SAMETERM", ["<urn:a>", "<urn:a>"], "true"),
    # strings: the examples of the standard
    ("STRLEN", ['"chat"'], "4"),
    ("STRLEN", ['"食べ物"@ja'], "3"),
    ("STRLEN", ['"\U0001f600"'], "1"),
    ("STRLEN", ["1"], ERROR),
    ("SUBSTR", ['"foobar"', "4"], '"bar"'),
    ("SUBSTR", ['"foobar"@en', "4"], '"bar"@en'),
    ("SUBSTR", ['"foobar"', "4", "1"], '"b"'),
    ("SUBSTR", ['"12345"', "1.5", "2.6"], '"234"'),
    ("SUBSTR", ['"12345"', "0", "3"], '"12"'),
    ("SUBSTR", ['"12345"', "5", "-3"], '""'),
    ("SUBSTR", ['"12345"', "-3", "5"], '"1"'),
    ("SUBSTR", ['"12345"', "NaN^^double", "3"], '""'),
    ("SUBSTR", ['"12345"', "-42", "INF^^double"], '"12345"'),
    ("SUBSTR", ['"12345"', "-INF^^double", "INF^^double"], '""'),
    ("SUBSTR", ['"a"', "1" + "0" * 400], '""'),
    ("SUBSTR", ['"a"', '"1"'], ERROR),
    ("UCASE", ['"foo"'], '"FOO"'),
    ("UCASE", ['"foo"@en'], '"FOO"@en'),
    ("UCASE", ["1"], ERROR),
    ("LCASE", ['"BÄR"'], '"bär"'),
    ("STRSTARTS", ['"foobar"', '"foo"'], "true"),
    ("STRSTARTS", ['"foobar"@en', '"foo"@en'], "true"),
    ("STRSTARTS", ['"foobar"@en', '"foo"'], "true"),
    ("STRSTARTS", ['"foobar"', '"foo"@en'], ERROR),
    ("STRSTARTS", ['"foobar"@en', '"foo"@fr'], ERROR),
    ("STRENDS", ['"foobar"', '"bar"'], "true"),
    ("STRENDS", ['"foobar"', "1"], ERROR),
    ("CONTAINS", ['"foobar"', '"bar"'], "true"),
    ("CONTAINS", ['"foobar"@en', '"baz"'], "false"),
    ("STRBEFORE", ['"abc"', '"b"'], '"a"'),
    ("STRBEFORE", ['"abc"@en', '"bc"'], '"a"@en'),
    ("STRBEFORE", ['"abc"@en', '"b"@cy'], ERROR),
    ("STRBEFORE", ['"abc"', '""'], '""'),
    ("STRBEFORE", ['"abc"@en', '""@en'], '""@en'),
    ("STRBEFORE", ['"abc"@en', '"z"@en'], '""'),
    ("STRAFTER", ['"abc"', '"b"'], '"c"'),
    ("STRAFTER", ['"abc"@en', '"ab"'], '"c"@en'),
    ("STRAFTER", ['"abc"', '"xyz"'], '""'),
    ("STRAFTER", ['"abc"@en', '"z"'], '""'),
    ("STRAFTER", ['"abc"', '""'], '"abc"'),
    ("STRAFTER", ['"abc"@en', '""'], '"abc"@en'),
    ("ENCODE_FOR_URI", ['"Los Angeles"'], '"Los%20Angeles"'),
    ("ENCODE_FOR_URI", ['"a/é~b_c"@en'], '"a%2F%C3%A9~b_c"'),
    ("CONCAT", [], '""'),
    ("CONCAT", ['"foo"', '"bar"'], '"foobar"'),
    ("CONCAT", ['"foo"@en', '"bar"@en'], '"foobar"@en'),
    ("CONCAT", ['"foo"@en', '"bar"'], '"foobar"'),
    ("CONCAT", ['"foo"@en', '"bar"@es'], '"foobar"'),
    ("CONCAT", ['"foo"', "1"], ERROR),
    ("LANGMATCHES", ['"en-gb"', '"en"'], "true"),
    ("LANGMATCHES", ['"en"', '"EN-gb"'], "false"),
    ("LANGMATCHES", ['"fr"', '"*"'], "true"),
    ("LANGMATCHES", ['""', '"*"'], "false"),
    ("LANGMATCHES", ['"de-latn-de"', '"de-de"'], "false"),
    ("LANGMATCHES", ["1", '"*"'], ERROR),
    ("REGEX", ['"Alice"', '"^ali"', '"i"'], "true"),
    ("REGEX", ['"Alice"@en', '"^ali"'], "false"),
    ("REGEX", ["<urn:a>", '"a"'], ERROR),
    ("REPLACE", ['"abcd"', '"b"', '"Z"'], '"aZcd"'),
    ("REPLACE", ['"abab"@en', '"B"', '"Z"', '"i"'], '"aZaZ"@en'),
    # numbers
    ("ABS", ["-1.5"], "1.5"),
    ("ABS", ["-1^^byte"], "1"),
    ("ABS", ["-2^^float"], "2.0E0^^float"),
    ("ABS", ['"1"'], ERROR),
    ("ROUND", ["2.4999"], "2^^decimal"),
    ("ROUND", ["2.5"], "3^^decimal"),
    ("ROUND", ["-2.5"], "-2^^decimal"),
    ("ROUND", ["-2.5^^double"], "-2.0E0^^double"),
    ("ROUND", ["0.49999999999999994^^double"], "0.0E0^^double"),
    ("ROUND", ["-0.2^^double"], "-0.0E0^^double"),
    ("ROUND", ["4503599627370497^^double"], "4.503599627370497E15^^double"),
    ("ROUND", ["INF^^double"], "INF^^double"),
    ("ROUND", ["7"], "7"),
    ("CEIL", ["10.5"], "11^^decimal"),
    ("CEIL", ["-10.5"], "-10^^decimal"),
    ("CEIL", ["1.2^^float"], "2.0E0^^float"),
    ("CEIL", ["NaN^^double"], "NaN^^double"),
    ("FLOOR", ["-10.5"], "-11^^decimal"),
    ("FLOOR", ["1234567890123456789012345678901234567890.5"], "1234567890123456789012345678901234567890^^decimal"),
    ("FLOOR", ["true"], ERROR),
    # dates and times
    ("NOW", [], "1970-01-01T00:00:01Z^^dateTime"),
    ("YEAR", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "2011"),
    ("YEAR", ["-0044-03-15T00:00:00Z^^dateTime"], "-44"),
    ("MONTH", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "1"),
    ("DAY", ["2011-01-10T23:45:13.815-05:00^^dateTime"], "10"),
    ("DAY", ["2011-01-10^^date"], "10"),
    ("HOURS", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "14"),
    ("HOURS", ["14:45:13^^time"], "14"),
    ("MINUTES", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "45"),
    ("SECONDS", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "13.815"),
    ("SECONDS", ["2011-01-10T14:45:13Z^^dateTime"], "13^^decimal"),
    ("HOURS", ["2011-01-10^^date"], ERROR),
    ("YEAR", ['"2011"'], ERROR),
    ("TIMEZONE", ["2011-01-10T14:45:13.815-05:00^^dateTime"], "-PT5H^^dayTimeDuration"),
    ("TIMEZONE", ["2011-01-10T14:45:13.815Z^^dateTime"], "PT0S^^dayTimeDuration"),
    ("TIMEZONE", ["2011-01-10T14:45:13.815^^dateTime"], ERROR),
    ("TZ", ["2011-01-10T14:45:13.815-05:00^^dateTime"], '"-05:00"'),
    ("TZ", ["2011-01-10T14:45:13.815Z^^dateTime"], '"Z"'),
    ("TZ", ["2011-01-10T14:45:13.815^^dateTime"], '""'),
    ("TZ", ["1"], ERROR),
    # hashes
    ("MD5", ['"abc"'], '"900150983cd24fb0d6963f7d28e17f72"'),
    ("SHA1", ['"abc"'], '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
    ("SHA256", ['"abc"'], '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"'),
    ("MD5", ['"食べ物"'], '"e7ada485d13b1decf628c9211bc3a97b"'),
    ("MD5", ['"abc"@en'], ERROR),
    # forms
    ("COALESCE", ["", "1"], "1"),
    ("COALESCE", ["2", ""], "2"),
    ("COALESCE", ["", ""], ERROR),
    ("COALESCE", [], ERROR),
    ("IF", ["true", "1", "2"], "1"),
    ("IF", ["0", "1", "2"], "2"),
    ("IF", ["true", "1", ""], "1"),
    ("IF", ["false", "1", ""], ERROR),
    ("IF", ["<urn:a>", "1", "2"], ERROR),
]


@pytest.mark.parametrize(("name", "cells", "result"), TABLE)
def test_a_built_in(name: str, cells: list[str], result: str) -> None:
    expected = result if result == ERROR else term(result)
    assert call(name, *cells) == expected


def test_every_built_in_of_the_standard_is_in_the_table() -> None:
    standard = """STR LANG LANGMATCHES DATATYPE IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE
    ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW
    UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISURI ISBLANK ISLITERAL
    ISNUMERIC REGEX SUBSTR REPLACE
    TRIPLE SUBJECT PREDICATE OBJECT ISTRIPLE LANGDIR HASLANG HASLANGDIR STRLANGDIR"""
    assert set(FUNCTIONS) == set(standard.split())
    volatile = {name for name, spec in FUNCTIONS.items() if spec.volatile}
    assert volatile == {"BNODE", "RAND", "UUID", "STRUUID"} == alg.VOLATILE - {"NOW"}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("STRLENGTH", 1, "STRLENGTH is not a SPARQL function; did you mean STRLEN?"),
        ("SUBSTR", 1, "SUBSTR takes 2 to 3 arguments; 1 given"),
        ("NOW", 1, "NOW takes no argument; 1 given"),
        ("UCASE", 2, "UCASE takes 1 argument; 2 given"),
        (f"{XSD}interger", 1, f"did you mean {XSD}integer?"),
        ("http://example.org/f", 1, "<http://example.org/f> is not a function this engine knows"),
        (f"{XSD}integer", 2, "xsd:integer takes 1 argument; 2 given"),
    ],
)
def test_an_unknown_function_is_an_error_that_says_what_to_write(name: str, arguments: int, message: str) -> None:
    with pytest.raises(UnknownFunction, match=re.escape(message)):
        find_function(name, arguments)


def test_seeded_functions_repeat_themselves_and_differ_by_call_and_seed() -> None:
    for name in ("RAND", "UUID", "STRUUID", "BNODE"):
        function = FUNCTIONS[name].call
        answers = [encode(function(seed, index)) for seed in (b"one", b"two") for index in (0, 1)]
        assert len(set(answers)) == 4
        assert answers == [encode(function(seed, index)) for seed in ("one", "two") for index in (0, 1)]


def test_the_forms_of_seeded_results() -> None:
    rand = [FUNCTIONS["RAND"].call(SEED, index) for index in range(200)]
    assert all(0 <= number < 1 for number in rand)
    assert 0.4 < sum(rand) / len(rand) < 0.6
    pattern = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(f'"{pattern}"', call("STRUUID"))
    assert re.fullmatch(f"<urn:uuid:{pattern}>", call("UUID"))


def test_bnode_of_a_name_is_one_node_within_a_solution() -> None:
    bnode = FUNCTIONS["BNODE"].call
    assert bnode(SEED, 0, "a") == bnode(SEED, 7, "a")
    assert len({bnode(SEED, 0, "a"), bnode(SEED, 0, "b"), bnode(b"other", 0, "a"), bnode(SEED, 0)}) == 4
    with pytest.raises(SparqlError):
        bnode(SEED, 0, 1)


def test_coalesce_and_if_leave_the_rest_unevaluated() -> None:
    def never() -> Any:
        raise AssertionError("evaluated")

    assert FUNCTIONS["COALESCE"].call(lambda: 1, never) == 1
    assert FUNCTIONS["IF"].call(lambda: False, never, lambda: 2) == 2


# RFC 3986 §5.4, against the base http://a/b/c/d;p?q
REFERENCES = """
g:h g:h|g http://a/b/c/g|./g http://a/b/c/g|g/ http://a/b/c/g/|/g http://a/g|//g http://g|?y http://a/b/c/d;p?y
g?y http://a/b/c/g?y|#s http://a/b/c/d;p?q#s|g#s http://a/b/c/g#s|g?y#s http://a/b/c/g?y#s|;x http://a/b/c/;x
g;x http://a/b/c/g;x|g;x?y#s http://a/b/c/g;x?y#s|. http://a/b/c/|./ http://a/b/c/|.. http://a/b/|../ http://a/b/
../g http://a/b/g|../.. http://a/|../../ http://a/|../../g http://a/g|../../../g http://a/g|../../../../g http://a/g
/./g http://a/g|/../g http://a/g|g. http://a/b/c/g.|.g http://a/b/c/.g|g.. http://a/b/c/g..|..g http://a/b/c/..g
./../g http://a/b/g|./g/. http://a/b/c/g/|g/./h http://a/b/c/g/h|g/../h http://a/b/c/h|g;x=1/./y http://a/b/c/g;x=1/y
g;x=1/../y http://a/b/c/y|g?y/./x http://a/b/c/g?y/./x|g#s/../x http://a/b/c/g#s/../x
"""


@pytest.mark.parametrize("pair", re.split(r"[|\n]", REFERENCES.strip()))
def test_references_are_resolved_as_rfc_3986_says(pair: str) -> None:
    reference, iri = pair.split(" ")
    assert resolve(reference, "http://a/b/c/d;p?q") == iri


def test_an_empty_reference_and_bases_of_other_shapes() -> None:
    assert resolve("", "http://a/b?q#f") == "http://a/b?q"
    assert resolve("g", "http://a") == "http://a/g"
    with pytest.raises(SparqlError, match="BASE"):
        resolve("g", "")


def test_lone_surrogates_are_errors_not_crashes() -> None:
    broken = "a\ud800"
    for name in ("MD5", "ENCODE_FOR_URI"):
        with pytest.raises(SparqlError, match="surrogate"):
            FUNCTIONS[name].call(broken)
    with pytest.raises(SparqlError, match="surrogate"):
        FUNCTIONS["REGEX"].call(broken, "a")
    with pytest.raises(SparqlError, match="surrogate"):
        FUNCTIONS["REGEX"].call("a", broken)


def test_casts_are_found_by_the_iri_of_the_datatype() -> None:
    assert {"string", "boolean", "integer", "decimal", "float", "double", "dateTime"} <= {
        iri.removeprefix(XSD) for iri in CASTS
    }
