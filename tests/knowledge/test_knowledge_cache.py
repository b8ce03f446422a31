"""The cache on disk: cold, warm, changed, damaged."""

import os
import warnings

import pytest
from etalis_compiler.tables import cache_directory
from etalis_rules.terms import RDF_TYPE as TYPE

from etalis_py.knowledge import KnowledgeWarning, cache, load, schema_closure
from tests.knowledge.rdfs_by_definition import DOMAIN, MEMBERSHIP, SUB_CLASS

a, b, c, p, x, y = (f"<urn:{name}>" for name in "abcpxy")
FACTS = [(a, SUB_CLASS, b), (b, SUB_CLASS, c), (p, DOMAIN, a), (x, p, '"é"'), (y, TYPE, b), (p, TYPE, MEMBERSHIP)]


@pytest.fixture(autouse=True)
def _everything_is_worth_keeping(monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "facts.nt"
    path.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in FACTS))
    return path


def entries(folder):
    return list(folder.glob("*.knowledge"))


def test_warm_equals_cold_without_parsing_or_clingo(tmp_path, source, monkeypatch):
    cold = load(source, named={"urn:g": source}, cache=tmp_path / "cache")
    assert len(entries(tmp_path / "cache")) == 1
    monkeypatch.setattr(schema_closure, "answer_set", None)
    monkeypatch.setattr("etalis_py.knowledge.knowledge.parse", None)
    warm = load(source, named={"urn:g": source}, cache=tmp_path / "cache")
    for name in ("", "<urn:g>"):
        assert set(warm.graph(name)) == set(cold.graph(name))
        assert set(warm.stated(name)) == set(cold.stated(name))
    assert len(warm.default) == len(cold.default) == len(set(cold.default))
    assert warm.schema.specimens == cold.schema.specimens
    assert warm.schema.type_tests(c) == cold.schema.type_tests(c)
    # What was read back is maintained as what was made.
    for k in (cold, warm):
        k.update(remove=[(x, p, '"é"')])
    assert set(warm.default) == set(cold.default)
    assert not warm.default.contains(x, TYPE, c)


def test_the_key_is_the_content_the_regime_and_the_graph(tmp_path, source):
    folder = tmp_path / "cache"
    load(source, cache=folder)
    load(source, cache=folder)
    load(FACTS, cache=folder)  # in memory: another document
    load(source, entailment="rdf", cache=folder)
    load([], named={"urn:g": source}, cache=folder)
    assert len(entries(folder)) == 4
    source.write_text(f"{x} {p} {y} .\n")
    assert set(load(source, cache=folder).default) == {(x, p, y)}
    assert len(entries(folder)) == 5


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "empty", "valid checksum, other content"])
def test_a_damaged_entry_is_rebuilt_with_a_warning(tmp_path, source, damage):
    good = set(load(source, cache=tmp_path).default)
    (file,) = entries(tmp_path)
    data = file.read_bytes()
    file.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "flipped": data[:-1] + bytes([data[-1] ^ 1]),
            "foreign": b"something else",
            "empty": b"",
            "valid checksum, other content": cache.header(b"\x01") + b"\x01",
        }[damage]
    )
    with pytest.warns(KnowledgeWarning, match="rebuilt"):
        assert set(load(source, cache=tmp_path).default) == good
    assert file.read_bytes() == data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(source, cache=tmp_path)


def _rebuilt(tmp_path, source, payload):
    good = set(load(source, cache=tmp_path).default)
    (file,) = entries(tmp_path)
    file.write_bytes(cache.header(payload) + payload)
    with pytest.warns(KnowledgeWarning, match="rebuilt"):
        assert set(load(source, cache=tmp_path).default) == good


@pytest.mark.parametrize("change", ["number too large", "number below zero", "columns of two lengths", "half a number"])
@pytest.mark.parametrize("part", ["asserted", "derived"])
def test_a_wrong_structure_with_the_right_checksum_is_rebuilt(tmp_path, source, change, part):
    load(source, cache=tmp_path)
    (file,) = entries(tmp_path)
    data = file.read_bytes()
    record = cache.msgspec.msgpack.decode(data[len(cache.header(b"")) :], type=cache._Knowledge)
    table = getattr(record.graphs[0], part)[0]
    last = {"number too large": (10**6).to_bytes(4, "little"), "number below zero": b"\xff\xff\xff\xff"}
    table.subjects = {
        "columns of two lengths": table.subjects + b"\0\0\0\0",
        "half a number": table.subjects + b"\0",
    }.get(change) or table.subjects[:-4] + last[change]
    _rebuilt(tmp_path, source, cache.msgspec.msgpack.encode(record))


def test_a_closure_with_a_wrong_number_and_the_right_checksum_is_rebuilt(tmp_path, source):
    load(source, cache=tmp_path)
    (file,) = entries(tmp_path)
    record = cache.msgspec.msgpack.decode(file.read_bytes()[len(cache.header(b"")) :], type=cache._Knowledge)
    for number in (-1, 10**6):
        record.graphs[0].closure.feeding = [number]
        _rebuilt(tmp_path, source, cache.msgspec.msgpack.encode(record))


def test_every_flipped_bit_is_found(tmp_path, source):
    good = set(load(source, cache=tmp_path).default)
    (file,) = entries(tmp_path)
    data = file.read_bytes()
    for place in range(0, len(data), 7):
        file.write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert cache.read(file, "rdfs") is None
        assert told
    assert set(load(source, cache=tmp_path).default) == good


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path, source):
    (tmp_path / "file").write_text("")
    with pytest.warns(KnowledgeWarning, match="ETALIS_CACHE_DIR"):
        assert load(source, cache=tmp_path / "file" / "below").default.contains(x, TYPE, c)


def test_old_entries_go(tmp_path, source, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 2)
    for number in range(4):
        source.write_text(f'{x} {p} "{number}" .\n')
        load(source, cache=tmp_path)
        for file in entries(tmp_path):
            os.utime(file, (number, number) if file.stat().st_mtime > 1000 else None)
    assert len(entries(tmp_path)) == 2


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ETALIS_CACHE_DIR", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"
    monkeypatch.delenv("ETALIS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "etalis-py"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says XDG
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "etalis-py"


def test_quick_work_is_not_kept(tmp_path, source, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SECONDS", 60)
    load(source, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
