"""Names and literals: prefixes, bases, escapes, canonical spellings."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from etalis_rules import terms
from etalis_rules.messages import closest
from etalis_rules.terms import OWL, RDF, RDFS, XSD

from ..ast import Blank, PathIri, Span, Term, TripleTerm, Var
from ..diagnostics import Diagnostic, Source
from ..iris import resolve
from ..lexing import Token

DEFAULT_VOCABULARY = "http://example.org/"
PREDECLARED = {
    "rdf": RDF,
    "rdfs": RDFS,
    "owl": OWL,
    "xsd": XSD,
    "prov": "http://www.w3.org/ns/prov#",
    "dul": "http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#",
}
# others that a query may forget to declare: the error says what to write
_WELL_KNOWN = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
}
_LOCAL_ESCAPE = re.compile(r"\\(.)")


class TermBuilder:
    """Keeps the prologue and makes terms.  Every method that the grammar names gets ``(children, start, end)``."""

    def __init__(self, source: Source, base: str, prefixes: dict[str, str]):
        self.source = source
        self.base = base
        self.prefixes = dict(prefixes)
        self.warnings: list[Diagnostic] = []
        self._blanks = 0
        self._blank_stem = "b"
        while re.search(rf"_:{self._blank_stem}[0-9]", source.text):
            self._blank_stem += "b"

    # --- findings ---

    def fail(self, message: str, start: int, end: int, *, code: str = "syntax", hint: str = "") -> NoReturn:
        raise self.source.error(code, message, start, end, hint=hint)

    def warn(self, message: str, start: int, end: int, *, code: str, hint: str = "") -> None:
        self.warnings.append(self.source.diagnostic("warning", code, message, start, end, hint=hint))

    # --- prologue ---

    def base_declaration(self, args: list[Any], start: int, end: int) -> None:
        self.base = resolve(args[0].text[1:-1], self.base or DEFAULT_VOCABULARY)

    def prefix_declaration(self, args: list[Any], start: int, end: int) -> None:
        self.prefixes[args[0].text[:-1]] = self._resolve(args[1].text[1:-1])

    # --- IRIs ---

    def _resolve(self, reference: str) -> str:
        return resolve(reference, self.base or DEFAULT_VOCABULARY)

    def in_vocabulary(self, local: str) -> str:
        """The IRI of a name without a prefix: in the namespace of the empty prefix, else relative to the base."""
        if "" in self.prefixes:
            return self.prefixes[""] + local
        base = self.base or DEFAULT_VOCABULARY
        if not local or base.endswith(("#", "/", ":", "?", "=")):
            return base + local
        return resolve("./" + local, base)  # "./", so that a name with a colon is not taken as a scheme

    def iri(self, args: list[Any], start: int, end: int) -> str:
        return self.iri_of(args[0])

    def iri_of(self, token: Token) -> str:
        """The spelling in angle brackets of an IRI, a prefixed or a bare name."""
        text = token.text
        if token.type == "IRIREF":
            return terms.iri(self._resolve(text[1:-1]))
        prefix, _, local = text.rpartition(":") if ":" not in text else text.partition(":")  # a bare name is all local
        local = _LOCAL_ESCAPE.sub(r"\1", local)
        if not prefix:
            return terms.iri(self.in_vocabulary(local))
        namespace = self.prefixes.get(prefix) or PREDECLARED.get(prefix)
        if namespace is None:
            near = "" if prefix in _WELL_KNOWN else closest(prefix, [*self.prefixes, *PREDECLARED])
            declaration = f"declare it: PREFIX {prefix}: <{_WELL_KNOWN.get(prefix, 'http://…')}>"
            if prefix == "timer":  # Esper's timer:interval
                declaration = "what does not happen in time is { A } SEQ NOT { B } WITHIN 10 SECONDS"
            self.fail(
                f"the prefix '{prefix}:' is not declared",
                token.start,
                token.end,
                code="unknown-prefix",
                hint=f"did you mean '{near}:'?" if near else declaration,
            )
        return terms.iri(namespace + local)

    def iri_term(self, args: list[Any], start: int, end: int) -> Term:
        return Term(args[0], span=Span(start, end))

    def bare_name(self, args: list[Any], start: int, end: int) -> Term:
        return Term(self.iri_of(args[0]), span=Span(start, end))

    # --- literals ---

    def string(self, token: Token) -> str:
        """The text between the quotes, with escapes replaced."""
        text = token.text
        width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
        return terms.unescape(text[width:-width])

    def version_declaration(self, args: list[Any], start: int, end: int) -> None:
        version, hint = self.string(args[0]), 'write VERSION "1.2", or leave it out'
        if args[0].text[:3] in ('"""', "'''"):
            self.fail("VERSION takes a string in single or double quotes", start, end, hint=hint)
        if version not in ("1.1", "1.2", "1.2-basic"):
            message = f"'{version}' is no known version of SPARQL; the query is read as one of 1.2"
            self.warn(message, start, end, code="version", hint=hint)

    def plain_literal(self, args: list[Any], start: int, end: int) -> Term:
        text, tag = args
        direction = tag.text.partition("--")[2] if tag else ""
        if direction not in ("", "ltr", "rtl"):
            hint = 'write "…"@ar--rtl or "…"@en--ltr'
            self.fail(f"'--{direction}' is not a base direction", tag.start, tag.end, hint=hint)
        return Term(terms.literal(self.string(text), language=tag.text[1:] if tag else ""), span=Span(start, end))

    def typed_literal(self, args: list[Any], start: int, end: int) -> Term:
        text, datatype = args
        return Term(terms.literal(self.string(text), datatype=terms.iri_value(datatype)), span=Span(start, end))

    def number(self, args: list[Any], start: int, end: int) -> Term:
        return self.number_of(args[0].text, start, end)

    @staticmethod
    def number_of(text: str, start: int, end: int) -> Term:
        kind = "double" if "e" in text or "E" in text else "decimal" if "." in text else "integer"
        return Term(f'"{text}"^^<{XSD}{kind}>', span=Span(start, end))

    def true(self, args: list[Any], start: int, end: int) -> Term:
        return Term(terms.TRUE, span=Span(start, end))

    def false(self, args: list[Any], start: int, end: int) -> Term:
        return Term(terms.FALSE, span=Span(start, end))

    # --- variables and blank nodes ---

    def variable(self, args: list[Any], start: int, end: int) -> Var:
        return Var(args[0].text[1:], span=Span(start, end))

    def blank_label(self, args: list[Any], start: int, end: int) -> Blank:
        return Blank(args[0].text[2:], span=Span(start, end))

    def blank_anonymous(self, args: list[Any], start: int, end: int) -> Blank:
        return self.fresh_blank(start, end)

    def fresh_blank(self, start: int, end: int) -> Blank:
        self._blanks += 1
        return Blank(f"{self._blank_stem}{self._blanks - 1}", span=Span(start, end))

    # --- triple terms ---

    def triple_term(self, args: list[Any], start: int, end: int) -> Term | TripleTerm:
        subject, verb, object = args
        predicate = Term(verb.iri, span=verb.span) if isinstance(verb, PathIri) else verb
        nodes = (subject, predicate, object)
        for node in nodes:
            self.no_list(node, "a triple term")
        if not self._is_subject(subject):
            return TripleTerm(subject, predicate, object, span=Span(start, end))
        if all(isinstance(node, Term) for node in nodes):
            return Term(terms.triple(*(node.spelling for node in nodes)), span=Span(start, end))
        return TripleTerm(subject, predicate, object, span=Span(start, end))

    def no_list(self, node: Any, where: str) -> None:
        """Refuse ``()`` where the grammar has no list, not even the empty one."""
        if isinstance(node, Term) and self.source.text[node.span.start] == "(":
            self.fail(f"() is not allowed in {where}", node.span.start, node.span.end, hint="write rdf:nil")

    def _is_subject(self, subject: Any) -> bool:
        """Whether a triple can have the subject; if not, SPARQL reads the term all the same, and it matches nothing."""
        if not isinstance(subject, TripleTerm) and (not isinstance(subject, Term) or terms.is_iri(subject.spelling)):
            return True
        kind = "literal" if isinstance(subject, Term) and terms.is_literal(subject.spelling) else "triple term"
        hint = "turn it round" if kind == "literal" else "give the inner triple a name: << :a :b :c ~ :name >>"
        message = f"a {kind} is the subject of no triple, so this triple term matches nothing"
        self.warn(message, subject.span.start, subject.span.end, code="triple-term", hint=hint)
        return False

    def nil(self, args: list[Any], start: int, end: int) -> Term:
        return Term(f"<{RDF}nil>", span=Span(start, end))
