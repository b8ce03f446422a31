"""Closed knowledge on disk, so that a second start needs neither parsing nor clingo.

An entry is named by a hash of everything it depends on: the content of the documents, the entailment regime, the logic
program and this encoding's version.  Its file is a header (magic, version, checksum) and one MessagePack object: the
list of terms and, for each graph, columns of 32-bit numbers into it, little-endian.  Columns are decoded table by
table when they are first asked for.  A file that is cut or altered is rebuilt, with a warning; writing is by rename,
so readers never see half an entry; the oldest entries go when there are more than ``KEPT``.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import msgspec

from etalis_py.events import Triple
from etalis_py.knowledge.closed_graph import ClosedGraph
from etalis_py.knowledge.errors import KnowledgeWarning
from etalis_py.knowledge.graph import Graph, PairColumns, PredicatePairs
from etalis_py.knowledge.schema_closure import Numbering, SchemaAnswer, Specimen
from etalis_py.knowledge.solving import program_text

MAGIC = b"etalis-knowledge"
VERSION = 1
KEPT = 32
WORTH_SECONDS = 0.2  # results that took less time than this are not kept
_DIGEST = 16


class _Table(msgspec.Struct, array_like=True):
    predicate: int
    subjects: bytes
    objects: bytes


class _Closure(msgspec.Struct, array_like=True):
    specimens: list[tuple[int, list[int], list[int], list[int]]]
    derived: list[tuple[int, int, int]]
    feeding: list[int]
    feeding_classes: list[int]


class _Graph(msgspec.Struct, array_like=True):
    name: str
    asserted: list[_Table]
    derived: list[_Table]
    closure: _Closure


class _Knowledge(msgspec.Struct, array_like=True):
    terms: list[str]
    graphs: list[_Graph]


def entry(folder: Path, regime: str, parts: Iterable[str]) -> Path:
    """The file of an entry; ``parts`` identify the documents and their graphs."""
    digest = hashlib.blake2b(f"{VERSION} {regime}\n".encode(), digest_size=_DIGEST)
    if regime != "rdf":
        digest.update(program_text(regime.removesuffix("-full")).encode())
    for part in parts:
        digest.update(f"{part}\n".encode())
    return folder / f"{digest.hexdigest()}.knowledge"


# ------------------------------------------------------------------------------------------------------------ write


def write(file: Path, graphs: dict[str, ClosedGraph]) -> None:
    """Write an entry; if that is not possible, warn and continue without."""
    payload = msgspec.msgpack.encode(_encode(graphs))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with open(handle, "wb") as out:
                out.write(header(payload))
                out.write(payload)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
        entries = sorted(file.parent.glob("*.knowledge"), key=lambda f: f.stat().st_mtime)
        for old in entries[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(
            f"the cache of background knowledge cannot be written: {error}; set ETALIS_CACHE_DIR or cache=False",
            KnowledgeWarning,
            stacklevel=3,
        )


def header(payload: bytes | memoryview) -> bytes:
    """The header of a file with this payload."""
    return MAGIC + bytes([VERSION]) + hashlib.blake2b(payload, digest_size=_DIGEST).digest()


def _encode(graphs: dict[str, ClosedGraph]) -> _Knowledge:
    numbering = Numbering(())
    records = [
        _Graph(
            name,
            [_encode_table(numbering, p, table) for p, table in graph.asserted.tables.items() if len(table)],
            [_encode_table(numbering, p, table) for p, table in graph.derived_tables().items()],
            _encode_closure(numbering, graph.closure),
        )
        for name, graph in graphs.items()
    ]
    return _Knowledge(list(numbering.numbers), records)


def _encode_table(numbering: Numbering, predicate: str, table: PredicatePairs) -> _Table:
    """Encode a table with the pairs of each subject together, so that they can be read quickly."""
    number = numbering.number
    pairs = ((s, o) for s, objects in table.forward.items() for o in objects)
    flat = array("i", (number(term) for pair in pairs for term in pair))
    return _Table(number(predicate), _to_bytes(flat[0::2]), _to_bytes(flat[1::2]))


def _encode_closure(numbering: Numbering, closure: SchemaAnswer) -> _Closure:
    def numbers(terms: Iterable[str]) -> list[int]:
        return [numbering.number(term) for term in terms]

    return _Closure(
        [
            (numbering.number(p), numbers(x.predicates), numbers(x.subject_classes), numbers(x.object_classes))
            for p, x in closure.specimens.items()
        ],
        [(numbering.number(s), numbering.number(p), numbering.number(o)) for s, p, o in closure.derived],
        numbers(sorted(closure.feeding)),
        numbers(sorted(closure.feeding_classes)),
    )


def _to_bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


# ------------------------------------------------------------------------------------------------------------- read


def read(file: Path, regime: str) -> dict[str, ClosedGraph] | None:
    """The graphs of an entry; ``None`` if there is no entry, or a damaged one (then with a warning)."""
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _distrust(file, str(error))
        return None
    start = len(MAGIC) + 1 + _DIGEST
    if data[: len(MAGIC) + 1] != MAGIC + bytes([VERSION]):
        _distrust(file, "it does not begin as such a file does")
        return None
    payload = memoryview(data)[start:]
    if header(payload) != data[:start]:
        _distrust(file, "its checksum is wrong")
        return None
    try:
        record = msgspec.msgpack.decode(payload, type=_Knowledge)
        return {graph.name: _decode_graph(record.terms, graph, regime) for graph in record.graphs}
    except (msgspec.MsgspecError, IndexError, ValueError) as error:
        _distrust(file, str(error))
        return None


def _distrust(file: Path, why: str) -> None:
    warnings.warn(f"{file}: this cache file cannot be used ({why}); it is rebuilt", KnowledgeWarning, stacklevel=4)


def _decode_graph(terms: list[str], record: _Graph, regime: str) -> ClosedGraph:
    asserted = Graph.of_tables(_decode_tables(terms, record.asserted))
    derived = _decode_tables(terms, record.derived)
    return ClosedGraph(asserted, regime, _decode_closure(terms, record.closure), derived)


def _decode_tables(terms: list[str], records: list[_Table]) -> dict[str, PredicatePairs]:
    """The tables; their numbers are looked up later, so each is checked to be that of a term."""
    tables = {}
    for record in records:
        subjects, objects = _from_bytes(record.subjects), _from_bytes(record.objects)
        if len(subjects) != len(objects):
            raise ValueError("a table has columns of different lengths")
        for numbers in (subjects, objects, (record.predicate,)):
            if numbers and not 0 <= min(numbers) <= max(numbers) < len(terms):
                raise ValueError("a number stands for no term")
        tables[terms[record.predicate]] = PredicatePairs(PairColumns(terms, subjects, objects))
    return tables


def _decode_closure(terms: list[str], record: _Closure) -> SchemaAnswer:
    def named(numbers: Iterable[int]) -> tuple[str, ...]:
        numbers = tuple(numbers)
        if numbers and min(numbers) < 0:
            raise ValueError("a number stands for no term")
        return tuple(terms[n] for n in numbers)

    derived: tuple[Triple, ...] = tuple(cast("Triple", named(triple)) for triple in record.derived)
    return SchemaAnswer(
        {},
        {named([p])[0]: Specimen(named(q), named(c), named(d)) for p, q, c, d in record.specimens},
        derived,
        frozenset(named(record.feeding)),
        frozenset(named(record.feeding_classes)),
    )


def _from_bytes(data: bytes) -> array[int]:
    numbers = array("i")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
