"""Reading background knowledge: syntaxes, spellings, blank nodes, errors."""

import gzip
import json
import os
from pathlib import Path

import pytest
import rdflib
from etalis_rules import terms
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.knowledge import KnowledgeError, load
from etalis_py.knowledge.loading import SourceDocument, parse, read

A, P, B = "<http://e/a>", "<http://e/p>", "<http://e/b>"
ONE = f'"01"^^<{terms.XSD}integer>'
XSD = f"@prefix xsd: <{terms.XSD}> . @prefix : <http://e/> .\n"


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


SAME = {
    "x.ttl": XSD + ':a :p "01"^^xsd:integer .',
    "x.nt": f"{A} {P} {ONE} .\n",
    "x.nq": f"{A} {P} {ONE} .\n",
    "x.trig": XSD + '{ :a :p "01"^^xsd:integer }',
    "x.n3": XSD + ':a :p "01"^^xsd:integer .',
    "x.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description rdf:about="http://e/a"><e:p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">01</e:p>'
    "</rdf:Description></rdf:RDF>",
    "x.jsonld": json.dumps({"@id": "http://e/a", "http://e/p": {"@value": "01", "@type": terms.XSD + "integer"}}),
    "x.trix": '<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/"><graph><triple><uri>http://e/a</uri>'
    '<uri>http://e/p</uri><typedLiteral datatype="http://www.w3.org/2001/XMLSchema#integer">01</typedLiteral>'
    "</triple></graph></TriX>",
    "x.hext": json.dumps(["http://e/a", "http://e/p", "01", terms.XSD + "integer", "", ""]) + "\n",
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_syntax_keeps_the_lexical_form(tmp_path, name, ending):
    found = read(write(tmp_path, name + ending, SAME[name]))
    assert [t for triples in found.values() for t in triples] == [(A, P, ONE)]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "EN-us"]))
def test_literals_come_out_in_the_canonical_spelling(text, language):
    spelling = terms.literal(text, language=language)
    document = SourceDocument("literal.nt", ".nt", f"{A} {P} {spelling} .\n".encode(), "0" * 32)
    assert parse(document) == {"": [(A, P, spelling)]}


def test_named_graphs_of_a_file_and_names_given(tmp_path):
    quads = write(tmp_path, "x.trig", "@prefix : <http://e/> . :a :p :b . :g { :b :p :a }")
    k = load(quads, named={"http://e/h": quads}, cache=False)
    assert set(k.default) == {(A, P, B)}
    assert set(k.graph("<http://e/g>")) == {(B, P, A)}
    assert set(k.graph("<http://e/h>")) == {(A, P, B)}
    assert k.names() == ["<http://e/g>", "<http://e/h>"]


def test_globs_folders_and_lists(tmp_path):
    one, two = write(tmp_path, "1.nt", f"{A} {P} {B} .\n"), write(tmp_path, "2.ttl", f"{B} {P} {A} .")
    write(tmp_path, "notes.txt", "not RDF")
    both = {(A, P, B), (B, P, A)}
    for source in (str(tmp_path / "[12].*"), tmp_path, [one, two], (str(one), str(two))):
        assert set(load(source, cache=False).default) == both


def test_rdflib_objects():
    graph = rdflib.Graph().parse(data=XSD + ':a :p "x"@EN, "s", :b .', format="turtle")
    assert set(load(graph, cache=False).default) == {(A, P, '"x"@en'), (A, P, '"s"'), (A, P, B)}
    dataset = rdflib.Dataset()
    dataset.parse(data="@prefix : <http://e/> . :a :p :b . :g { :b :p :a }", format="trig")
    k = load(dataset, cache=False)
    assert (set(k.default), set(k.graph("<http://e/g>"))) == ({(A, P, B)}, {(B, P, A)})


def test_triples_in_memory_may_name_their_graph():
    k = load([(A, P, B), (B, P, A, "<http://e/g>")], cache=False)
    assert (set(k.default), set(k.graph("<http://e/g>"))) == ({(A, P, B)}, {(B, P, A)})


def test_blank_nodes_stay_in_their_document_and_are_the_same_each_time(tmp_path):
    one = write(tmp_path, "1.ttl", "_:x <http://e/p> [ <http://e/p> _:x ] .")
    two = write(tmp_path, "2.ttl", "_:x <http://e/p> <http://e/a> .")
    assert read(one) == read(one)
    labels = [{t for triple in read(f)[""] for t in triple if t.startswith("_:")} for f in (one, two)]
    assert [len(x) for x in labels] == [2, 1]
    assert not labels[0] & labels[1]


# ---------------------------------------------------------------------------------------------------------- errors

BAD = {
    "x.ttl": ("@prefix : <http://e/> .\n:a :p :b .\n:a :p .\n", 3),
    "x.nt": (f"{A} {P} {B} .\n{A} {P} .\n", 2),
    "x.nq": (f"{A} {P} {B} .\n\n{A} oops\n", 3),
    "x.trig": ("@prefix : <http://e/> .\n{ :a :p :b\n", 3),
    "x.rdf": ('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<rdf:Description>\n</rdf:RDF>', 3),
    "x.owl": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n\n'
        '<rdf:Description rdf:about="urn:x y"/>\n</rdf:RDF>',
        3,
    ),
    "x.jsonld": ('{"@id": "http://e/a",\n "http://e/p": }', 2),
    "x.ttl.gz": ("@prefix : <http://e/> .\n:a :p ] .\n", 2),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_names_itself_and_the_line(tmp_path, name):
    text, line = BAD[name]
    path = write(tmp_path, name, text)
    with pytest.raises(KnowledgeError) as caught:
        load(path, cache=False)
    assert (caught.value.source, caught.value.line) == (str(path), line)
    assert str(caught.value).startswith(f"{path}, line {line}")


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
def test_xml_that_is_cut_off_between_two_elements_is_refused(tmp_path: Path, kept: int) -> None:
    """The parser takes what came before for all of it."""
    about = '<rdf:Description rdf:about="urn:a"><u:b rdf:resource="urn:c"/></rdf:Description>'
    lines = [
        '<?xml version="1.0"?>',
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:u:">',
        about,
        about,
        "</rdf:RDF>",
    ]
    whole = write(tmp_path, "whole.rdf", "\n".join(lines))
    assert read(whole) == {"": [("<urn:a>", "<urn:u:b>", "<urn:c>")] * 2}
    with pytest.raises(KnowledgeError, match=r"ends before its elements are closed\n  it seems to be cut off"):
        read(write(tmp_path, "cut.rdf", "\n".join(lines[:kept])))


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("ttl", '<urn:a> <urn:b> "caf\xe9" .'),
        ("nt", '<urn:a> <urn:b> "caf\xe9" .'),
        ("rdf", '<?xml version="1.0" encoding="ISO-8859-1"?><r>caf\xe9</r>'),
    ],
)
def test_a_text_that_is_not_in_utf_8_says_how_to_convert_it(tmp_path: Path, ending: str, text: str) -> None:
    file = tmp_path / f"b.{ending}"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(KnowledgeError, match="iconv -f WINDOWS-1252 -t UTF-8 FILE"):
        read(file)


@pytest.mark.parametrize("ending", ["ttl", "nt", "trig", "rdf", "jsonld", "n3"])
def test_a_mark_at_the_beginning_of_a_text_says_nothing(tmp_path: Path, ending: str) -> None:
    """As programs of Windows write it."""
    texts = {
        "rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:u:">'
        '<rdf:Description rdf:about="urn:a"><u:b rdf:resource="urn:c"/></rdf:Description></rdf:RDF>',
        "jsonld": '{"@id": "urn:a", "urn:u:b": {"@id": "urn:c"}}',
    }
    file = tmp_path / f"b.{ending}"
    file.write_text(texts.get(ending, "<urn:a> <urn:u:b> <urn:c> ."), encoding="utf-8-sig")
    assert read(file) == {"": [("<urn:a>", "<urn:u:b>", "<urn:c>")]}


def test_remote_contexts_are_refused_not_fetched(tmp_path):
    path = write(tmp_path, "x.jsonld", '{"@context": "http://127.0.0.1:9/context", "@id": "http://e/a", "name": "x"}')
    with pytest.raises(KnowledgeError, match="never fetched"):
        load(path, cache=False)


def test_a_pipe_is_not_called_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "facts.ttl")
    with pytest.raises(
        KnowledgeError, match=r"no regular file, .*\n?.*write what comes out of a pipe into a file first"
    ):
        load([str(tmp_path / "facts.ttl")])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.ttl", "no such file"),
        ("*.nothing", "no file matches"),
        ("http://example.org/x.ttl", "network address"),
        ("notes.txt", "is not that of an RDF syntax"),
        ("broken.nt.gz", "cannot be read"),
    ],
)
def test_sources_that_cannot_be_read(tmp_path, monkeypatch, source, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "broken.nt.gz").write_bytes(gzip.compress(b"x" * 1000)[:20])
    with pytest.raises(KnowledgeError, match=said):
        load(source, cache=False)


@pytest.mark.parametrize("count", [1, 100])
def test_a_text_of_turtle_may_be_longer_than_a_name(count: int) -> None:
    """Names have at most 255 bytes, and paths 4096."""
    lines = [f":thing{n} :label {'x' * 300!r} ." for n in range(count)]
    assert len(load("\n".join(lines), cache=False).default) == count


def test_a_name_that_no_file_can_have_is_no_file() -> None:
    with pytest.raises(KnowledgeError, match="no such file"):
        load("x" * 300, cache=False)


def test_relative_iris_need_a_base(tmp_path):
    path = write(tmp_path, "x.ttl", "<a> <p> <b> .")
    with pytest.raises(KnowledgeError, match="base="):
        load(path, cache=False)
    assert set(load(path, base="http://e/", cache=False).default) == {(A, P, B)}


@pytest.mark.parametrize(
    "document",
    [
        '{"@id": "a", "http://e/p": {"@id": "http://e/b"}}',
        '{"@id": "http://e/a", "http://e/p": {"@id": "a"}}',
        '{"@id": "http://e/a", "@type": "a"}',
        '{"@context": {"@vocab": "a"}, "@id": "http://e/a", "p": 1}',
        '{"@id": "http://e/a", "http://e/p": {"@value": "x", "@type": "a"}}',
        '{"@id": "a", "@graph": [{"@id": "http://e/a", "http://e/p": 1}]}',
    ],
)
def test_relative_iris_of_json_ld_need_a_base(tmp_path, document):
    """The parser would leave out what they are part of."""
    path = write(tmp_path, "x.jsonld", document)
    with pytest.raises(KnowledgeError, match=r"relative(.|\n)*base="):
        load(path, cache=False)
    assert sum(map(len, read(path, base="http://e/").values())) == 1


def test_bad_triples_and_regimes_say_what_is_wrong():
    with pytest.raises(KnowledgeError, match="cannot be a subject"):
        load([('"x"', P, B)], cache=False)
    with pytest.raises(KnowledgeError, match="cannot be a predicate"):
        load([(A, "_:p", B)], cache=False)
    with pytest.raises(KnowledgeError, match="rdf, rdfs, rdfs-full, owlrl"):
        load([(A, P, B)], entailment="owl", cache=False)


def test_nothing_half_loaded_stays(tmp_path):
    good, bad = write(tmp_path, "1.nt", f"{A} {P} {B} .\n"), write(tmp_path, "2.nt", f"{A} {P} {B} .\n oops")
    with pytest.raises(KnowledgeError):
        load([good, bad], cache=tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))
    k = load(good, cache=False)
    with pytest.raises(KnowledgeError):
        k.update(add=[(B, P, A), (B, P, "oops")])
    assert (k.version, set(k.default)) == (0, {(A, P, B)})
