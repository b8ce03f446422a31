r"""REGEX and REPLACE: XPath's patterns on a linear-time engine."""

from __future__ import annotations

import time

import pytest

from etalis_py.values import LangString, SparqlError
from etalis_py.values.functions import RegexError, compile_regex
from etalis_py.values.functions.regex import regex, replace, translate

pytestmark = pytest.mark.usefixtures("still_heap")


@pytest.mark.parametrize(
    ("text", "pattern", "flags", "matches"),
    [
        ("abracadabra", "bra", "", True),
        ("abracadabra", "^a.*a$", "", True),
        ("abracadabra", "^bra", "", False),
        ("ABC", "b", "i", True),
        ("a\nb", "a.b", "", False),
        ("a\nb", "a.b", "s", True),
        ("a\nb", "^b$", "", False),
        ("a\nb", "^b$", "m", True),
        ("a\n", "a$", "", False),
        ("helloworld", "hello world", "x", True),
        ("hello world", "hello[ ]world", "x", True),
        ("hello world", r"hello\ sworld", "x", False),
        ("a.b", "a.b", "q", True),
        ("axb", "a.b", "q", False),
        ("A+B", "a+b", "qi", True),
        ("٣", r"^\d$", "", True),
        ("é_1", r"^\w+$", "", True),
        ("a-b", r"^\w+$", "", False),
        ("a-b", r"^[\w-]+$", "", True),
        ("a b", r"a\sb", "", True),
        ("a\u00a0b", r"a\sb", "", False),
        ("a b", r"^[^\s]+$", "", False),
        ("x:y", r"^\i\c*$", "", True),
        ("1x", r"^\i\c*$", "", False),
        ("Éa", r"^\p{Lu}\P{Lu}$", "", True),
        ("[]", r"^[\[\]]+$", "", True),
        ("a^b", r"a[\^]b", "", True),
        ("aaa", "^a{2,3}?$", "", True),
        ("ab", "(?:a)(b)", "", True),
        ("\U0001f600", "^.$", "", True),
        ("a/b#c", r"a\/b\#c", "", True),
        ("", "^$", "", True),
    ],
)
def test_regex(text: str, pattern: str, flags: str, matches: bool) -> None:
    assert regex(text, pattern, flags) is matches
    assert regex(LangString(text, "en"), pattern, flags) is matches


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "flags", "result"),
    [
        ("abracadabra", "bra", "*", "", "a*cada*"),
        ("abracadabra", "a.*a", "*", "", "*"),
        ("abracadabra", "a.*?a", "*", "", "*c*bra"),
        ("abracadabra", "a", "", "", "brcdbr"),
        ("abracadabra", "a(.)", "a$1$1", "", "abbraccaddabbra"),
        ("AAAA", "A+", "b", "", "b"),
        ("AAAA", "A+?", "b", "", "bbbb"),
        ("darted", "^(.*?)d(.*)$", "$1c$2", "", "carted"),
        ("abcd", "(ab)|(a)", "[1=$1][2=$2]", "", "[1=ab][2=]cd"),
        ("abc", "(b)", r"\$1$0\\", "", "a$1b\\c"),
        ("abc", "(b)", "$12", "", "ab2c"),
        ("abc", "b", "<$1>", "", "a<>c"),
        ("a.c", ".", "$1", "q", "a$1c"),
        ("食べ物食", "食", "x", "", "xべ物x"),
        ("", "a", "b", "", ""),
    ],
)
def test_replace(text: str, pattern: str, replacement: str, flags: str, result: str) -> None:
    assert replace(text, pattern, replacement, flags) == result
    assert replace(LangString(text, "en"), pattern, replacement, flags) == LangString(result, "en")


@pytest.mark.parametrize(
    ("pattern", "flags", "message"),
    [
        (r"(a)\1", "", "character 4: back-references are not supported"),
        ("a(?=b)", "", "character 2: look-ahead is not supported"),
        ("a(?!b)", "", "look-ahead"),
        ("(?<=a)b", "", "look-behind"),
        ("(?<!a)b", "", "look-behind"),
        ("(?>a)", "", "an atomic group"),
        ("[a-z-[aeiou]]", "", "class subtraction is not supported"),
        (r"\p{IsGreek}", "", "Unicode blocks are not supported"),
        (r"\pL", "", "needs a category in braces"),
        (r"\y", "", r"\y has no meaning here"),
        ("a\\", "", "nothing follows the backslash"),
        ("[abc", "", "not closed"),
        ("(a", "", "missing"),
        ("a++", "", "bad repetition operator"),
        ("a{2,1}", "", "invalid repetition"),
        ("a", "g", "flag 'g' is unknown"),
        ("a" * 20_000, "", "at most 10000"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(pattern: str, flags: str, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        compile_regex(pattern, flags)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        ("a*", "x", "matches the empty string"),
        ("a", "$", r"write \$"),
        ("a", "$x", r"write \$"),
        ("a", "\\n", "a backslash stands only before"),
    ],
)
def test_replacements_that_xpath_refuses(pattern: str, replacement: str, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        replace("aab", pattern, replacement)
    assert message in str(caught.value)


@pytest.mark.parametrize("arguments", [(1, "a"), ("a", 1), ("a", LangString("a", "en")), ("a", "a", 1)])
def test_other_values_are_type_errors(arguments: tuple[object, ...]) -> None:
    with pytest.raises(SparqlError):
        regex(*arguments)


def test_matching_time_grows_with_the_text_only() -> None:
    """(a+)+$ doubles a backtracking engine's time with every character."""
    begin = time.process_time()
    assert not regex("a" * 100_000 + "b", "(a+)+$")
    assert replace("ab" * 10_000, "(a+)+b", "x") == "x" * 10_000
    assert time.process_time() - begin < 5


def test_the_cache_of_patterns_is_bounded() -> None:
    for number in range(300):
        regex("a", f"b{number}")
    information = compile_regex.cache_info()
    assert information.currsize <= information.maxsize == 128


def test_white_space_outside_classes_goes_with_x() -> None:
    assert translate(" a [ b]\t\\ ", "x") == "a[ b][ ]"
