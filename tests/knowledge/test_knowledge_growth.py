"""Small files that would take all memory are refused before they do; what grows as files usually do is read."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from etalis_py import Engine, Limits, compile
from etalis_py.knowledge import KnowledgeError, load
from etalis_py.values.limits import LIMITS

pytestmark = pytest.mark.usefixtures("still_heap")

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def xml(entities: list[str], text: str) -> str:
    declared = "\n".join(f'<!ENTITY {name} "{value}">' for name, value in (e.split("=", 1) for e in entities))
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [\n{declared}\n]>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e:">'
        f'<rdf:Description rdf:about="urn:a">{text}</rdf:Description></rdf:RDF>'
    )


def laughs(levels: int, width: int = 10) -> list[str]:
    """Entities of which each is ten times the one before."""
    return ["a0=0123456789", *(f"a{n}={f'&a{n - 1};' * width}" for n in range(1, levels))]


def refused(path: Path, limits: Limits = LIMITS) -> str:
    began = time.process_time()
    with pytest.raises(KnowledgeError) as caught:
        load(path, cache=False, limits=limits)
    assert time.process_time() - began < 10
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".rdf", ".owl", ".xml", ".trix"])
def test_entities_of_entities_are_refused_before_a_parser_expands_them(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"laughs{suffix}"
    path.write_text(xml(laughs(10), "<e:p>&a9;</e:p>"))
    assert path.stat().st_size < 1000
    assert refused(path).endswith(
        ": the entity a7 stands for 100,000,000 bytes, more than the 16,000,000 of a term\n"
        "  write the text where it belongs, or raise Limits(term_characters=…)"
    )


def test_a_literal_of_many_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "literal.rdf"
    path.write_text(xml(laughs(6), f"<e:p>{'&a5;' * 20}</e:p>"))  # 20 million characters
    assert path.stat().st_size < 1000
    assert "a term of 20,000,002 characters, more than 16,000,000" in refused(path)


def test_entities_that_are_used_often_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "often.rdf"
    path.write_text(xml(laughs(6), "".join(f"<e:p>{n}&a5;</e:p>" for n in range(140))))
    size = path.stat().st_size
    assert f"its entities make this document of {size:,} bytes longer by more than 134,217,728" in refused(path)


def test_entities_for_the_beginnings_of_addresses_are_usual(tmp_path: Path) -> None:
    path = tmp_path / "usual.rdf"
    path.write_text(xml([f"rdf={RDF}", "e=urn:e:"], '<rdf:type rdf:resource="&e;Bank"/><e:q>&#38;</e:q>'))
    knowledge = load(path, cache=False, entailment="rdf", limits=Limits(expanded_bytes=0))
    assert sorted(knowledge.said()) == [
        ("<urn:a>", f"<{RDF}type>", "<urn:e:Bank>"),
        ("<urn:a>", "<urn:e:q>", '"&"'),
    ]


@pytest.mark.parametrize("suffix", [".ttl", ".jsonld"])
def test_a_long_prefix_that_is_used_often_is_refused(tmp_path: Path, suffix: str) -> None:
    long = "urn:" + "x" * 10_000 + "#"
    turtle = f"@prefix p: <{long}> .\n" + "".join(f"p:{n} a p:c .\n" for n in range(300))
    objects = ",".join(f'{{"@id": "p:{n}", "@type": "p:c"}}' for n in range(300))
    path = tmp_path / f"prefix{suffix}"
    path.write_text(turtle if suffix == ".ttl" else f'{{"@context": {{"p": "{long}"}}, "@graph": [{objects}]}}')
    assert "longer by more than 1,000,000" in refused(path, Limits(expanded_bytes=1_000_000))
    assert len(load(path, cache=False, entailment="rdf").default) == 300


def test_a_compressed_file_is_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.ttl.gz"
    member = gzip.compress(b"\n" * 100_000, mtime=0)
    path.write_bytes(member * 30)
    assert path.stat().st_size < 50_000
    limits = Limits(unpacked_bytes=2_000_000)
    assert refused(path, limits).endswith(
        "the file unpacks to more than 2,000,000 bytes\n"
        "  unpack it first if that is what it should have, or raise Limits(unpacked_bytes=…)"
    )
    path.write_bytes(member * 20)
    assert len(load(path, cache=False, limits=limits).default) == 0


def test_the_limits_of_an_engine_hold_for_its_background(tmp_path: Path) -> None:
    path = tmp_path / "long.ttl"
    path.write_text(f'<urn:a> <urn:p> "{"x" * 2000}" .')
    program = compile("SELECT ?x { ?x :p ?y }")
    Engine(program, background=[path])
    with pytest.raises(KnowledgeError, match='a term of 2,002 characters, more than 1,500: "x'):
        Engine(program, background=[path], limits=Limits(term_characters=1_500))


@pytest.mark.parametrize("ending", ["ttl", "nt"])
def test_a_term_that_the_parser_does_not_take_is_told(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"long.{ending}"
    path.write_text(f'<urn:a> <urn:p> "{"x" * 17_000_000}" .\n')
    with pytest.raises(KnowledgeError, match=rf"long.{ending}: a term or a comment has more than 16,777,216 bytes"):
        load([str(path)], cache=False)
