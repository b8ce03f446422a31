"""Background knowledge from files and from rdflib objects, as triples of canonical spellings.

A *document* is one file or one object in memory; parsing it gives its triples by graph name (``""`` is the default
graph).  Either all of a document is read or none of it: an error names the file and the line.  Lexical forms stay as
they were written (``"01"^^xsd:integer`` stays), nothing is ever fetched from the network, and the blank nodes of two
documents are always distinct: their labels carry a hash of their document, so that the same document always gives the
same labels.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import sys
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pyoxigraph
from etalis_rules.messages import FROM_LATIN1, INTO_UTF8
from etalis_rules.terms import with_blanks

from etalis_py.events import Triple
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.growth_limits import LONG, Growth, check_entities, unpacked
from etalis_py.knowledge.triples import check_triple
from etalis_py.values.limits import LIMITS, Limits
from etalis_py.values.oxigraph_terms import parsed, spell_term, with_prefixes

if TYPE_CHECKING:
    import rdflib

    Source = str | Path | rdflib.Graph | Iterable[Triple]
ByGraph = dict[str, list[Triple]]

_OXIGRAPH = {
    ".ttl": pyoxigraph.RdfFormat.TURTLE,
    ".turtle": pyoxigraph.RdfFormat.TURTLE,
    ".nt": pyoxigraph.RdfFormat.N_TRIPLES,
    ".nq": pyoxigraph.RdfFormat.N_QUADS,
    ".trig": pyoxigraph.RdfFormat.TRIG,
    ".rdf": pyoxigraph.RdfFormat.RDF_XML,
    ".owl": pyoxigraph.RdfFormat.RDF_XML,
    ".xml": pyoxigraph.RdfFormat.RDF_XML,
    ".jsonld": pyoxigraph.RdfFormat.JSON_LD,
    ".json": pyoxigraph.RdfFormat.JSON_LD,
    ".n3": pyoxigraph.RdfFormat.N3,
}
_RDFLIB = {".trix": "trix", ".hext": "hext"}
_XML = {".rdf", ".owl", ".xml", ".trix"}
_IRI = re.compile(r"IRI '([^']+)'")
_ENDS_EARLY = 3
"""The code of expat for a document that ends inside an element, or before the first one."""
SUFFIXES = (*_OXIGRAPH, *_RDFLIB)
_NO_BASE = "urn:etalis:no-base:/"
"""Stands for the base of a document of JSON-LD that has none, so that relative IRIs are seen."""
_ABSOLUTE = "write the IRI in full, declare @base in the file, or give base="


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One source before it is parsed: its name, its content and a digest of both content and syntax."""

    name: str
    suffix: str
    content: bytes | tuple[tuple[str, Triple], ...]
    digest: str
    base: str = ""


def documents(source: Source, *, base: str = "", suffix: str = "", limits: Limits = LIMITS) -> list[SourceDocument]:
    """The documents of a source: a file, all files of a glob or folder, a text of Turtle, an rdflib graph, or triples.

    ``suffix`` (such as ``".ttl"``) overrides the syntax given by the file's name; a ``.gz`` ending is skipped.
    """
    if isinstance(source, str) and _is_text(source):
        return [_document(with_prefixes(source).encode(), "the Turtle text", ".ttl", base)]
    if isinstance(source, str | Path):
        return [_file(path, base, suffix, limits) for path in expand(source)]
    name, quads = _quads_of(source)
    digest = hashlib.blake2b(digest_size=16)
    for graph, (s, p, o) in quads:
        digest.update(f"{s} {p} {o} {graph}\n".encode())
    return [SourceDocument(name, "", quads, digest.hexdigest())]


def _is_text(source: str) -> bool:
    """Whether it is Turtle, not the name of a file: it has several lines, or ends with a full stop after blanks."""
    return ("\n" in source or bool(re.search(r"\s\S.*\.\s*$", source))) and not os.path.exists(source)


def expand(source: str | Path) -> list[Path]:
    """The files that a path or glob names, sorted by name."""
    text = str(source)
    if text.startswith(("http://", "https://", "ftp://")):
        raise KnowledgeError(
            f"{text} is a network address, and background knowledge is read from files only",
            hint="download the file and give its path",
        )
    path = Path(text.removeprefix("file://"))
    # The methods of Path raise an error for what is too long for a name.
    if os.path.isdir(path):
        files = sorted(p for p in path.iterdir() if _suffix(p) in SUFFIXES)
        if not files:
            raise KnowledgeError(f"the folder holds no RDF file ({', '.join(SUFFIXES)})", source=text)
        return files
    if os.path.isfile(path):
        return [path]
    if os.path.exists(path):
        raise KnowledgeError(
            "this is no regular file, and background knowledge is in files whose names tell their syntax",
            source=text,
            hint="write what comes out of a pipe into a file first, such as background.ttl",
        )
    files = sorted(Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file())
    if not files:
        what = "no file matches this pattern" if glob.has_magic(text) else "there is no such file"
        raise KnowledgeError(what, source=text, hint="give a path, a folder or a glob such as data/*.ttl")
    return files


def parse(document: SourceDocument, limits: Limits = LIMITS) -> ByGraph:
    """The triples of a document by graph name."""
    if isinstance(document.content, tuple):
        result: ByGraph = {}
        for graph, triple in document.content:
            result.setdefault(graph, []).append(triple)
        return result
    if document.suffix in _XML:
        check_entities(document.content, document.name, limits)
    if document.suffix in _RDFLIB:
        return _parse_by_rdflib(document, document.content)
    return _parse_by_oxigraph(document, document.content, limits)


def read(source: Source, *, graph: str = "", base: str = "", suffix: str = "") -> ByGraph:
    """All triples of a source by graph name; its default graph becomes ``graph`` if that is given."""
    result: ByGraph = {}
    for document in documents(source, base=base, suffix=suffix):
        for name, triples in parse(document).items():
            result.setdefault(name or graph, []).extend(triples)
    return result


# ---------------------------------------------------------------------------------------------------------- files


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return name[name.rindex(".") :] if "." in name else ""


def _file(path: Path, base: str, suffix: str, limits: Limits) -> SourceDocument:
    suffix = suffix or _suffix(path)
    if suffix not in SUFFIXES:
        raise KnowledgeError(
            f"the ending {suffix or '(none)'} is not that of an RDF syntax",
            source=str(path),
            hint=f"background knowledge is in files that end in {', '.join(SUFFIXES)} (.gz may follow), "
            "or in .lp for an answer-set program; a table is given as it is, as background=…, or by reference_table(…)",
        )
    try:
        data = unpacked(path.read_bytes(), str(path), limits)
    except (OSError, EOFError, zlib.error) as error:
        raise KnowledgeError(f"the file cannot be read: {error}", source=str(path)) from error
    return _document(data, str(path), suffix, base)


def _document(data: bytes, name: str, suffix: str, base: str) -> SourceDocument:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise KnowledgeError("this is a text in UTF-16", source=name, hint=INTO_UTF8)
    data = data.removeprefix(BOM_UTF8)  # some programs of Windows begin texts with it, and parsers refuse it
    digest = hashlib.blake2b(f"{suffix} {base}\n".encode(), digest_size=16)
    digest.update(data)
    return SourceDocument(name, suffix, data, digest.hexdigest(), base)


def _parse_by_oxigraph(document: SourceDocument, data: bytes, limits: Limits) -> ByGraph:
    syntax = _OXIGRAPH[document.suffix]
    memo: dict[str, str] = {}
    same = memo.setdefault
    growth = Growth(data, document.name, limits, memo)
    blanks = _Blanks(document.digest)
    result: ByGraph = {}
    base = document.base or (_NO_BASE if syntax is pyoxigraph.RdfFormat.JSON_LD else None)
    try:
        for quad in parsed(data, syntax, base_iri=base):
            s, p, o = str(quad.subject), str(quad.predicate), spell_term(quad.object)
            if s[0] == "_":
                s = blanks[s]
            if o[0] == "_":
                o = blanks[o]
            elif o[:2] == "<<":
                o = with_blanks(o, blanks.__getitem__)
            name = quad.graph_name
            graph = "" if isinstance(name, pyoxigraph.DefaultGraph) else str(name)
            if graph[:1] == "_":
                graph = blanks[graph]
            if len(s) > LONG or len(p) > LONG or len(o) > LONG:
                growth.take((s, p, o))
            triple = (same(s, s), same(p, p), same(o, o))
            try:
                result[graph].append(triple)
            except KeyError:
                result[graph] = [triple]
    except SyntaxError as error:
        raise _syntax_error(document, data, error) from None
    except ValueError as error:
        raise KnowledgeError(str(error), source=document.name) from None
    if document.suffix in _XML:
        _check_end(document, data)
    if base is _NO_BASE:
        _check_absolute(document, (*memo, *result))
    return result


def _check_absolute(document: SourceDocument, terms: Iterable[str]) -> None:
    """Refuse a document of JSON-LD with a relative IRI: without a base, the parser leaves out what has one."""
    for term in terms:
        _, stand_in, rest = term.partition(f"<{_NO_BASE}")
        if stand_in:
            relative = rest.partition(">")[0]
            raise KnowledgeError(
                f"the IRI {relative!r} is relative, and the document has no base", source=document.name, hint=_ABSOLUTE
            )


class _Blanks(dict[str, str]):
    """The labels of one document's blank nodes: the document's hash and a number in the order of appearance."""

    def __init__(self, digest: str) -> None:
        super().__init__()
        self._prefix = f"_:d{digest[:12]}n"

    def __missing__(self, label: str) -> str:
        self[label] = new = f"{self._prefix}{len(self)}"
        return new


def _syntax_error(document: SourceDocument, data: bytes, error: SyntaxError) -> KnowledgeError:
    message = str(error.msg or error)
    line, column = error.lineno or 0, error.offset or 0
    if line:  # the parser's own message repeats the place
        message = message.partition(": ")[2] or message
    elif document.suffix in _XML:
        message, line, column = _xml_place(data, message)
    hint = ""
    if "LoadDocumentCallback" in message or "remote context" in message:
        message = "the document asks for a remote @context, and remote contexts are never fetched"
        hint = "write the context's definitions into the file"
    elif "No scheme" in message:
        hint = _ABSOLUTE
    elif "UTF-8" in message:
        hint = FROM_LATIN1 + (", and name UTF-8 in its first line" if document.suffix in _XML else "")
    return KnowledgeError(message, source=document.name, line=line, column=column, hint=hint)


def _xml_place(data: bytes, message: str) -> tuple[str, int, int]:
    """The place of an XML error, which the RDF/XML parser does not give."""
    named = _IRI.search(message)
    if named:
        lines = [m.start() + 1 for m in re.finditer(b"[\"']" + re.escape(named[1].encode()) + b"[\"']", data)]
        if len(lines) != 1:
            return message, 0, 0
        before = data[: lines[0]]
        return message, before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    if found := _malformed(data):
        return f"{message} ({found.reason})", found.line, found.column
    return message, 0, 0


class _Malformed(NamedTuple):
    """What makes a text no well-formed XML, and where."""

    code: int
    reason: str
    line: int
    column: int


def _malformed(data: bytes) -> _Malformed | None:
    from xml.parsers import expat  # only RDF/XML needs it

    parser = expat.ParserCreate()
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        return _Malformed(error.code, expat.ErrorString(error.code), error.lineno, error.offset + 1)
    return None


def _check_end(document: SourceDocument, data: bytes) -> None:
    """Refuse RDF/XML that ends before its elements do: the RDF/XML parser takes what came before for all of it."""
    found = _malformed(data)
    if found and found.code == _ENDS_EARLY:
        raise KnowledgeError(
            "the document ends before its elements are closed",
            source=document.name,
            line=found.line,
            column=found.column,
            hint="it seems to be cut off: copy or download it again",
        )


def _parse_by_rdflib(document: SourceDocument, data: bytes) -> ByGraph:
    """Parse the syntaxes that only rdflib reads."""
    from etalis_py.knowledge import from_rdflib  # rdflib takes a while to load

    try:
        quads = from_rdflib.parse(data, _RDFLIB[document.suffix], document.base)
    except from_rdflib.Unreadable as error:
        raise KnowledgeError(error.message, source=document.name, line=error.line) from error
    blanks = _Blanks(document.digest)
    result: ByGraph = {}
    for graph, triple in quads:
        s, p, o = (blanks[t] if t[:2] == "_:" else t for t in triple)
        result.setdefault(blanks[graph] if graph[:2] == "_:" else graph, []).append((s, p, o))
    return result


def _quads_of(source: object) -> tuple[str, tuple[tuple[str, Triple], ...]]:
    """The name of in-memory triples in messages, and the triples with their graphs."""
    if "rdflib" in sys.modules:  # otherwise it cannot be an rdflib graph
        from etalis_py.knowledge import from_rdflib

        if from_rdflib.is_graph(source):
            return "rdflib graph", tuple(from_rdflib.quads(source))
    if not isinstance(source, Iterable):
        raise TypeError(
            "the background is the paths of files, loaded knowledge or triples of N-Triples text, not "
            f"{source!r} ({type(source).__name__})"
        )
    return "triples in memory", tuple(_of_triples(cast("Iterable[Triple]", source)))


def _of_triples(triples: Iterable[Triple] | Mapping[str, Iterable[Triple]]) -> Iterator[tuple[str, Triple]]:
    for triple in triples:
        if not (isinstance(triple, tuple) and len(triple) in (3, 4)):
            raise KnowledgeError(
                f"{repr(triple)[:200]} is not a triple", hint="give (s, p, o) or (s, p, o, graph) as N-Triples text"
            )
        s, p, o = check_triple(triple[:3])
        yield (triple[3] if len(triple) == 4 else ""), (s, p, o)
