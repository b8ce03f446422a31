"""Background knowledge from files and from rdflib objects, as triples of canonical spellings.

A *document* is one file or one object in memory; parsing it gives its triples by graph name (``""`` is the default
graph).  Either all of a document is read or none of it: an error names the file and the line.  Lexical forms stay as
they were written (``"01"^^xsd:integer`` stays), nothing is ever fetched from the network, and the blank nodes of two
documents never meet: their labels carry a hash of their document, so that the same document always gives the same.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

import pyoxigraph
import rdflib
from etalis_rules import terms
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from etalis_py.events import Triple
from etalis_py.knowledge.errors import KnowledgeError

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
_IRI = re.compile(r"IRI '([^']+)'")
SUFFIXES = (*_OXIGRAPH, *_RDFLIB)


@dataclass(frozen=True, slots=True)
class Document:
    """One source before it is parsed: its name, its content and a digest of both content and syntax."""

    name: str
    suffix: str
    content: bytes | tuple[tuple[str, Triple], ...]
    digest: str
    base: str = ""


def documents(source: Source, *, base: str = "", suffix: str = "") -> list[Document]:
    """The documents of a source: a file, all files of a glob or folder, an rdflib Graph or Dataset, or triples.

    ``suffix`` (such as ``".ttl"``) overrides the syntax that the file's name tells; ``.gz`` is looked through.
    """
    if isinstance(source, str | Path):
        return [_file(path, base, suffix) for path in expand(source)]
    quads = tuple(_of_rdflib(source) if isinstance(source, rdflib.Graph) else _of_triples(source))
    digest = hashlib.blake2b(digest_size=16)
    for graph, (s, p, o) in quads:
        digest.update(f"{s} {p} {o} {graph}\n".encode())
    name = "rdflib graph" if isinstance(source, rdflib.Graph) else "triples in memory"
    return [Document(name, "", quads, digest.hexdigest())]


def expand(source: str | Path) -> list[Path]:
    """The files that a path or glob names, in the order of their names."""
    text = str(source)
    if text.startswith(("http://", "https://", "ftp://")):
        raise KnowledgeError(
            f"{text} is a network address, and background knowledge is read from files only",
            hint="download the file and give its path",
        )
    path = Path(text.removeprefix("file://"))
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if _suffix(p) in SUFFIXES)
        if not found:
            raise KnowledgeError(f"the folder holds no RDF file ({', '.join(SUFFIXES)})", source=text)
        return found
    if path.is_file():
        return [path]
    found = sorted(Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file())
    if not found:
        what = "no file matches this pattern" if glob.has_magic(text) else "there is no such file"
        raise KnowledgeError(what, source=text, hint="give a path, a folder or a glob such as data/*.ttl")
    return found


def parse(document: Document) -> ByGraph:
    """The triples of a document by graph name."""
    if isinstance(document.content, tuple):
        result: ByGraph = {}
        for graph, triple in document.content:
            result.setdefault(graph, []).append(triple)
        return result
    if document.suffix in _RDFLIB:
        return _parse_by_rdflib(document, document.content)
    return _parse_by_oxigraph(document, document.content)


def read(source: Source, *, graph: str = "", base: str = "", suffix: str = "") -> ByGraph:
    """All triples of a source by graph name; its default graph becomes ``graph`` when one is given."""
    result: ByGraph = {}
    for document in documents(source, base=base, suffix=suffix):
        for name, triples in parse(document).items():
            result.setdefault(name or graph, []).extend(triples)
    return result


# ---------------------------------------------------------------------------------------------------------- files


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return name[name.rindex(".") :] if "." in name else ""


def _file(path: Path, base: str, suffix: str) -> Document:
    suffix = suffix or _suffix(path)
    if suffix not in SUFFIXES:
        raise KnowledgeError(
            f"the ending {suffix or '(none)'} tells no RDF syntax",
            source=str(path),
            hint=f"name it with one of {', '.join(SUFFIXES)} (.gz may follow), or give suffix=",
        )
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise KnowledgeError(f"the file cannot be read: {error}", source=str(path)) from error
    digest = hashlib.blake2b(f"{suffix} {base}\n".encode(), digest_size=16)
    digest.update(data)
    return Document(str(path), suffix, data, digest.hexdigest(), base)


def _parse_by_oxigraph(document: Document, data: bytes) -> ByGraph:
    syntax = _OXIGRAPH[document.suffix]
    memo: dict[str, str] = {}
    same = memo.setdefault
    blanks = _Blanks(document.digest)
    result: ByGraph = {}
    try:
        for quad in pyoxigraph.parse(data, syntax, base_iri=document.base or None):
            s, p, o = str(quad.subject), str(quad.predicate), str(quad.object)
            if s[0] == "_":
                s = blanks[s]
            if o[0] == "_":
                o = blanks[o]
            elif o[:2] == "<<":
                raise KnowledgeError("triple terms (RDF 1.2) are not supported", source=document.name)
            name = quad.graph_name
            graph = "" if isinstance(name, pyoxigraph.DefaultGraph) else str(name)
            if graph[:1] == "_":
                graph = blanks[graph]
            triple = (same(s, s), same(p, p), same(o, o))
            try:
                result[graph].append(triple)
            except KeyError:
                result[graph] = [triple]
    except SyntaxError as error:
        raise _syntax_error(document, data, error) from None
    return result


class _Blanks(dict[str, str]):
    """The labels of one document's blank nodes: the document's hash and a number in the order of appearance."""

    def __init__(self, digest: str) -> None:
        super().__init__()
        self._prefix = f"_:d{digest[:12]}n"

    def __missing__(self, label: str) -> str:
        self[label] = new = f"{self._prefix}{len(self)}"
        return new


def _syntax_error(document: Document, data: bytes, error: SyntaxError) -> KnowledgeError:
    message = str(error.msg or error)
    line, column = error.lineno or 0, error.offset or 0
    if line:  # the parser's own text repeats the place
        message = message.partition(": ")[2] or message
    elif document.suffix in (".rdf", ".owl", ".xml"):
        message, line, column = _xml_place(data, message)
    hint = ""
    if "LoadDocumentCallback" in message or "remote context" in message:
        message = "the document asks for a remote @context, and remote contexts are never fetched"
        hint = "write the context's definitions into the file"
    elif "No scheme" in message:
        hint = "write the IRI in full, declare @base in the file, or give base="
    return KnowledgeError(message, source=document.name, line=line, column=column, hint=hint)


def _xml_place(data: bytes, message: str) -> tuple[str, int, int]:
    """The place of an XML error, which the RDF/XML parser does not tell."""
    named = _IRI.search(message)
    if named:
        found = [m.start() + 1 for m in re.finditer(b"[\"']" + re.escape(named[1].encode()) + b"[\"']", data)]
        if len(found) != 1:
            return message, 0, 0
        before = data[: found[0]]
        return message, before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    parser = expat.ParserCreate()
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        return f"{message} ({expat.ErrorString(error.code)})", error.lineno, error.offset + 1
    return message, 0, 0


# --------------------------------------------------------------------------------------------------------- rdflib

_rdflib_lock = threading.Lock()


def _parse_by_rdflib(document: Document, data: bytes) -> ByGraph:
    """For the syntaxes that only rdflib reads.  Its literals are made with their lexical form untouched."""
    dataset = rdflib.Dataset()
    with _rdflib_lock:
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            dataset.parse(data=data, format=_RDFLIB[document.suffix], publicID=document.base or None)
        except Exception as error:
            line = getattr(error, "getLineNumber", lambda: 0)() or getattr(error, "lines", 0) or 0
            raise KnowledgeError(f"{type(error).__name__}: {error}", source=document.name, line=line) from error
        finally:
            rdflib.NORMALIZE_LITERALS = before
    blanks = _Blanks(document.digest)
    result: ByGraph = {}
    for graph, triple in _of_rdflib(dataset):
        s, p, o = (blanks[t] if t[:2] == "_:" else t for t in triple)
        result.setdefault(blanks[graph] if graph[:2] == "_:" else graph, []).append((s, p, o))
    return result


def _of_rdflib(graph: rdflib.Graph) -> Iterator[tuple[str, Triple]]:
    if isinstance(graph, rdflib.Dataset):
        for s, p, o, context in graph.quads():
            name = getattr(context, "identifier", context)
            in_default = name is None or name == DATASET_DEFAULT_GRAPH_ID
            yield "" if in_default else of_rdflib_term(name), _rdflib_triple(s, p, o)
    else:
        for s, p, o in graph:
            yield "", _rdflib_triple(s, p, o)


def _rdflib_triple(s: object, p: object, o: object) -> Triple:
    return check_triple((of_rdflib_term(s), of_rdflib_term(p), of_rdflib_term(o)))


def of_rdflib_term(term: object) -> str:
    """The canonical spelling of an rdflib term."""
    if isinstance(term, rdflib.URIRef):
        return terms.iri(str(term))
    if isinstance(term, rdflib.BNode):
        return f"_:{term}"
    if isinstance(term, rdflib.Literal):
        return terms.literal(str(term), str(term.datatype or ""), term.language or "")
    raise KnowledgeError(f"{term!r} ({type(term).__name__}) is no RDF term")


def _of_triples(triples: Iterable[Triple] | Mapping[str, Iterable[Triple]]) -> Iterator[tuple[str, Triple]]:
    for triple in triples:
        if not (isinstance(triple, tuple) and len(triple) in (3, 4)):
            raise KnowledgeError(
                f"{repr(triple)[:200]} is no triple", hint="give (s, p, o) or (s, p, o, graph) as N-Triples text"
            )
        s, p, o = check_triple(triple[:3])
        yield (triple[3] if len(triple) == 4 else ""), (s, p, o)


def check_triple(triple: tuple[str, ...]) -> Triple:
    """The triple, or an error that says which of its terms cannot stand where it stands."""
    s, p, o = triple
    if not (isinstance(s, str) and s[:1] in ("<", "_")):
        raise KnowledgeError(f"{s!r} cannot be a subject", hint="an IRI in angle brackets or a blank node _:x")
    if not (isinstance(p, str) and p[:1] == "<"):
        raise KnowledgeError(f"{p!r} cannot be a predicate", hint="an IRI in angle brackets")
    if not (isinstance(o, str) and o[:1] in ("<", "_", '"')):
        raise KnowledgeError(
            f"{o!r} cannot be an object", hint="an IRI, a blank node or a literal in N-Triples spelling"
        )
    return s, p, o
