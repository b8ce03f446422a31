"""The fast path for N-Quads is pyoxigraph's parse, line by line."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from etalis_rules.terms import XSD, literal
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import split_lines
from etalis_py.streams.quads import read_quads
from etalis_py.values.oxigraph_terms import spell, spell_term
from tests.draws import examples

# Spellings that are canonical, and all the other ways a line may be written, or be wrong.
IRIS = st.one_of(
    st.sampled_from(
        [
            "<urn:a>",
            "<http://ex.org/a?b=c#d>",
            "<http://ex.org/a%20b>",
            "<http://ex.org/é/ß>",
            "<http://ex.org/\\u0041>",
            "<http://a:80/>",
            "<http://a:b/>",
            "<http://a#b#c>",
            "<http://%/>",
            "<http://ex.org/{x}>",
            "<relative>",
            "<urn:>",
            "<a://>",
            "<http://u@h/>",
            "<http:///p>",
            "<http://[::1]/>",
            "<urn:a b>",
            "<mailto:a@b>",
            "<http://a:99999/>",
            "<urn://x>",
            "<x:?#>",
        ]
    ),
    st.text("abc:/?#%20@é[]'é", min_size=1, max_size=8).map(lambda text: f"<http:{text}>"),
)
STRINGS = st.one_of(
    st.text(max_size=8).map(lambda text: literal(text)),
    st.text("ab\\\"'nrtu0041\n é\x7f\x80", max_size=8).map(lambda text: f'"{text}"'),
)
LANGUAGES = ("@en", "@EN-us", "@en-GB", "@en-gb", "@e", "@en--ltr", "@de-1996", " @en", "@abcdefghij")
DATATYPES = (f"{XSD}integer", f"{XSD}string", "urn:t", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
TAILS = st.sampled_from(["", *LANGUAGES, *(f"^^<{datatype}>" for datatype in DATATYPES), "^^urn:t"])
LITERALS = st.builds(lambda text, tail: text + tail, STRINGS, TAILS)
BLANKS = st.sampled_from(["_:a", "_:A1", "_:a.b", "_:é", "_:1", "_:a-b", "_:", "_:a_b", "_:a."])
GAPS = st.sampled_from([" ", "\t", "  ", "", " \t"])
ENDS = st.sampled_from([" .", ".", " . ", " . # comment", "", " .x", "\t."])
QUOTED = st.builds("<<( {} {} {} )>>".format, st.one_of(IRIS, BLANKS), IRIS, st.one_of(IRIS, BLANKS, LITERALS))
ANY = st.one_of(IRIS, BLANKS, LITERALS, QUOTED)


@st.composite
def lines(draw: st.DrawFn) -> str:
    terms = [draw(st.one_of(IRIS, BLANKS)), draw(IRIS), draw(ANY)]
    if draw(st.booleans()):
        terms.append(draw(st.one_of(IRIS, BLANKS)))
    gap = draw(GAPS)
    return gap.join(terms) + draw(ENDS)


def by_pyoxigraph(line: str) -> list | str:
    try:
        return [spell(quad) for quad in ox.parse(line, format=ox.RdfFormat.N_QUADS)]
    except (SyntaxError, ValueError):
        return "error"


def by_us(line: str) -> list | str:
    errors: list[StreamError] = []
    quads = read_quads([(line, 1)], graphs=True, messages=False, on_error=errors.append)
    found = [quad[:4] for quad in quads if quad]
    return "error" if errors else found


@given(lines())
@settings(max_examples=examples(10 / 3))
def test_a_line_is_read_as_pyoxigraph_reads_it(line: str) -> None:
    if "\n" not in line and "\r" not in line:
        assert by_us(line) == by_pyoxigraph(line)


@given(lines())
@settings(max_examples=examples(10 / 3))
def test_a_quad_is_cut_into_the_spellings_of_its_terms(line: str) -> None:
    try:
        quads = list(ox.parse(line, format=ox.RdfFormat.N_QUADS))
    except SyntaxError:
        return
    for quad in quads:
        graph = "" if quad.graph_name == ox.DefaultGraph() else str(quad.graph_name)
        assert spell(quad) == (str(quad.subject), str(quad.predicate), spell_term(quad.object), graph)


@given(st.text('<>:/#%"\\@^_. \tabuU09é-', max_size=40))
@settings(max_examples=examples(10 / 3))
def test_noise_is_read_as_pyoxigraph_reads_it(line: str) -> None:
    assert by_us(line) == by_pyoxigraph(line)


@pytest.mark.parametrize(
    "line",
    [
        "<http://ex.org/s> <http://ex.org/p> <http://ex.org/o> <http://ex.org/g> .",
        f'<urn:s>\t<urn:p>\t"1"^^<{XSD}integer> .',
        '_:b1 <urn:p> "a \\"quoted\\" \\\\ text\\n"@en-gb <urn:g> .',
        "<http://ex.org/a%20b?c=d#e> <urn:p> _:b .",
    ],
)
def test_usual_lines_take_the_fast_path(line: str) -> None:
    assert split_lines(line)[0][0] != ""


@pytest.mark.parametrize(
    ("line", "spelled"),
    [
        ('<urn:s> <urn:p> "\\u0041" .', '"A"'),
        ('<urn:s> <urn:p> "chat"@FR .', '"chat"@fr'),
        (f'<urn:s> <urn:p> "x"^^<{XSD}string> .', '"x"'),
        (f'<urn:s> <urn:p> "01"^^<{XSD}integer> .', f'"01"^^<{XSD}integer>'),
        ('<urn:s> <urn:p> "a\\\'b" .', '"a\'b"'),
    ],
)
def test_spellings_become_canonical(line: str, spelled: str) -> None:
    assert by_us(line) == [("<urn:s>", "<urn:p>", spelled, "")]


def test_lines_are_counted_whatever_they_hold() -> None:
    text = "# a comment\n\n<urn:a> <urn:p> <urn:b> .\r\n   \n<urn:a> <urn:p> <urn:\\u0063> .\n"
    quads = read_quads([(text, 11)], graphs=True, messages=False, on_error=pytest.fail)
    assert [(quad[2], quad[4]) for quad in quads if quad] == [("<urn:b>", 13), ("<urn:c>", 15)]


def test_errors_name_line_reason_and_text() -> None:
    errors: list[StreamError] = []
    text = "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> b .\n<urn:a> <urn:p> <<( 1 <urn:p> <urn:b> )>> .\n"
    assert len(list(read_quads([(text, 1)], graphs=True, messages=False, on_error=errors.append))) == 1
    assert [(error.line, error.text[:19]) for error in errors] == [
        (2, "<urn:a> <urn:p> b ."),
        (3, "<urn:a> <urn:p> <<("),
    ]
    assert "The object of a triple must be" in errors[0].reason
    assert "subject of a triple must be" in errors[1].reason


def test_a_graph_in_n_triples_is_an_error() -> None:
    errors: list[StreamError] = []
    text = "<urn:a> <urn:p> <urn:b> <urn:g> .\n"
    assert list(read_quads([(text, 1)], graphs=False, messages=False, on_error=errors.append)) == []
    assert errors[0].line == 1
