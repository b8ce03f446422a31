"""Triple terms and base directions (RDF 1.2) in events, background and output, from the specifications."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from etalis_rules.terms import RDF, XSD

from etalis_py import Engine, event, read_stream, run
from etalis_py.knowledge import KnowledgeError, load
from etalis_py.streams import StreamError

TIME = f'<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "2024-01-01T00:00:00Z"^^<{XSD}dateTime> .'
TERMS = {
    "triple term": "<<( <urn:b> <urn:q> <urn:c> )>>",
    "triple term with a literal": '<<( <urn:b> <urn:q> "a )>> b"@en )>>',
    "nested": '<<( <urn:b> <urn:q> <<( <urn:b> <urn:q> "1"^^<urn:t> )>> )>>',
    "base direction": '"x"@ar--rtl',
}


def objects(stream: Any) -> list[str]:
    return [o for item in stream for _, _, o in item.triples]


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("suffix", [".ttl", ".nt", ".trig", ".nq"])
def test_background(tmp_path: Path, term: str, suffix: str) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_text(f"<urn:a> <urn:p> {term} .")
    assert list(load([str(path)], cache=False).default.match(None, None, None)) == [("<urn:a>", "<urn:p>", term)]


def test_reified_triples_and_annotations_of_turtle(tmp_path: Path) -> None:
    path = tmp_path / "facts.ttl"
    path.write_text(
        "<< <urn:b> <urn:q> <urn:c> ~ <urn:r> >> <urn:p> 1 . <urn:s> <urn:q> <urn:o> ~ <urn:t> {| <urn:p> 2 |} ."
    )
    reified = set(load([str(path)], cache=False).default.match(None, f"<{RDF}reifies>", None))
    assert reified == {
        ("<urn:r>", f"<{RDF}reifies>", "<<( <urn:b> <urn:q> <urn:c> )>>"),
        ("<urn:t>", f"<{RDF}reifies>", "<<( <urn:s> <urn:q> <urn:o> )>>"),
    }


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_events_of_files(tmp_path: Path, term: str) -> None:
    texts = {
        "stream.trig": f"{TIME}\n<urn:g> {{ <urn:a> <urn:p> {term} . }}\n",
        "stream.nq": f"{TIME}\n<urn:a> <urn:p> {term} <urn:g> .\n",
        "stream.jsonl": json.dumps({"time": 1, "triples": f"<urn:a> <urn:p> {term} ."}) + "\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert objects(read_stream(str(tmp_path / name))) == [term], name


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_frames_and_events_in_python(term: str) -> None:
    import pyarrow as pa

    frame = pa.table({"end": pa.array([1], pa.int64()), "s": ["<urn:a>"], "p": ["<urn:p>"], "o": [term]})
    (match,) = run("SELECT * { ?a <urn:p> ?x }", frame)
    assert match.bindings["x"] == term
    assert event(f"<urn:a> <urn:p> {term}", 1).triples == (("<urn:a>", "<urn:p>", term),)


def test_blank_nodes_inside_triple_terms_are_those_outside(tmp_path: Path) -> None:
    """In a document and in a message; the label of a message's node depends on its content alone."""
    for name in ("stream.nq", "stream.trig"):
        path = tmp_path / name
        statements = "<urn:a> <urn:p> <<( _:x <urn:q> _:y )>> {0} . _:x <urn:r> _:y {0} ."
        graph = f"<urn:g> {{ {statements.format('')} }}" if name.endswith("trig") else statements.format("<urn:g>")
        path.write_text(f"{TIME}\n{graph.replace(' . _', f' .{chr(10)}_')}\n")
        (item,) = read_stream(str(path))
        terms = {p: (s, o) for s, p, o in item.triples}
        x, y = terms["<urn:r>"]
        assert x != y
        assert terms["<urn:p>"][1] == f"<<( {x} <urn:q> {y} )>>", name
    lines = []
    for x, y in (("_:x", "_:y"), ("_:b", "_:a")):
        triples = f"<urn:a> <urn:p> <<( {x} <urn:q> {y} )>> . {x} <urn:r> {y} ."
        lines.append(json.dumps({"time": 1, "triples": triples}))
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(lines) + "\n")
    one, other = read_stream(str(path))
    assert one == other
    path = tmp_path / "facts.ttl"
    path.write_text("<urn:a> <urn:p> <<( _:x <urn:q> 1 )>> . _:x <urn:r> 2 .")
    facts = {p: (s, o) for s, p, o in load([str(path)], cache=False).default.match(None, None, None)}
    assert facts["<urn:p>"][1].startswith(f"<<( {facts['<urn:r>'][0]} ")


def test_jelly(tmp_path: Path) -> None:
    from pyjelly.integrations.generic import generic_sink as sink
    from pyjelly.integrations.generic import serialize

    a, b = sink.IRI("urn:a"), sink.IRI("urn:b")
    graph = sink.GenericStatementSink()
    graph.add(sink.Triple(a, b, sink.Triple(a, b, a)))
    out: Any = io.BytesIO()
    serialize.grouped_stream_to_file((graph for _ in range(1)), out)
    path = tmp_path / "stream.jelly"
    path.write_bytes(out.getvalue())
    assert objects(read_stream(str(path))) == ["<<( <urn:a> <urn:b> <urn:a> )>>"]


@pytest.mark.parametrize("depth", [64, 65, 3_000])
def test_the_depth_of_triple_terms_is_bounded(tmp_path: Path, depth: int) -> None:
    term = "<<( <urn:b> <urn:q> " * depth + "1" + " )>>" * depth
    background = tmp_path / "facts.ttl"
    background.write_text(f"<urn:a> <urn:p> {term} .")
    stream = tmp_path / "stream.trig"
    stream.write_text(f"{TIME}\n<urn:g> {{ <urn:a> <urn:p> {term} . }}\n")
    if depth <= 64:
        assert objects(read_stream(str(stream)))[0].count("<<(") == depth
        assert len(load([str(background)], cache=False).default) == 1
    else:
        with pytest.raises(StreamError, match=r"more than 64 others|nest"):
            list(read_stream(str(stream)))
        with pytest.raises(KnowledgeError, match=r"more than 64 others|nest"):
            load([str(background)], cache=False)


def test_output_in_every_format(tmp_path: Path) -> None:
    from etalis_py.cli.main import main

    query, stream = tmp_path / "q.rq", tmp_path / "s.jsonl"
    query.write_text("SELECT ?t ?d { ?a <urn:p> ?t ; <urn:d> ?d }")
    term = TERMS["nested"]
    stream.write_text(json.dumps({"time": 1, "triples": f'<urn:a> <urn:p> {term} ; <urn:d> "x"@ar--rtl .'}) + "\n")
    written = {}
    for format in ("jsonl", "csv", "trig", "json", "parquet", "arrow", "sqlite"):
        target = tmp_path / f"out.{format}"
        options = ["run", str(query), "--stream", str(stream), "--format", format, "--sink", str(target)]
        assert main(options) == 0, format
        written[format] = target
    bindings = json.loads(written["jsonl"].read_text())["bindings"]
    inner = {"subject": {"type": "uri", "value": "urn:b"}, "predicate": {"type": "uri", "value": "urn:q"}}
    literal = {"type": "literal", "value": "1", "datatype": "urn:t"}
    nested = {"type": "triple", "value": {**inner, "object": literal}}
    assert bindings["t"] == {"type": "triple", "value": {**inner, "object": nested}}
    assert bindings["d"] == {"type": "literal", "value": "x", "xml:lang": "ar", "its:dir": "rtl"}
    for format in ("csv", "trig"):
        text = written[format].read_text()
        assert term in text.replace('""', '"'), format
    import pyoxigraph

    quads = list(pyoxigraph.parse(written["trig"].read_bytes(), pyoxigraph.RdfFormat.TRIG))
    assert any(isinstance(q.object, pyoxigraph.Triple) for q in quads)


def test_what_is_constructed_is_read_again(tmp_path: Path) -> None:
    """A rule derives a triple term, another reads it."""
    rules = """CONSTRUCT { ?w :told <<( ?s :p ?o )>> } WHERE { << ?s :p ?o >> :by ?w };
        SELECT ?who ?x WHERE { ?who :told <<( :a :p ?x )>> }"""
    reified = event(f":r <{RDF}reifies> <<( :a :p 1 )>> ; :by :bob", 1)
    engine = Engine("PREFIX : <http://example.org/> " + rules)
    found = [*engine.push_all([reified]), *engine.close()]
    assert [m.bindings["x"] for m in found if m.query == "q2"] == [f'"1"^^<{XSD}integer>']
