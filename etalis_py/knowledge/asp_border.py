"""The border between triples and the numbers of an answer-set program: facts that go in, atoms that come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import clingo
from etalis_rules.terms import XSD, is_blank, is_iri, is_literal, literal, parts

from etalis_py.events import Triple
from etalis_py.knowledge.asp_interface import Argument, AspProgram, Declared
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.schema_closure import Numbering

Signature = tuple[str, int]
Facts = dict[Signature, dict[tuple[int, ...], None]]  # the arguments of the facts of each predicate, in order

_INTEGER = re.compile(r"[+-]?\d+")
_ATOM = re.compile(r'(?<![\w"])([a-z_]\w*)\(((?:[^()"]|"(?:[^"\\]|\\.)*")*)\)')


def read_facts(program: AspProgram, graph: Graph, numbering: Numbering) -> Facts:
    """The facts that a program reads from a graph; a predicate without any has an empty entry.

    Terms are numbered in the order of their spellings, so that a program that prefers the lowest number gives the same
    result in whatever order the graph was built.
    """
    read = [
        (declared, triple, values)
        for declared in program.reads
        for triple in _candidates(graph, declared.pattern)
        if (values := match(declared.pattern, triple)) is not None
    ]
    for term in sorted({v[a.name] for d, _, v in read for a in d.arguments if not a.integer}):
        numbering.number(term)
    facts: Facts = {(declared.name, len(declared.arguments)): {} for declared in program.reads}
    for declared, triple, values in read:
        numbers = [
            integer(a, values[a.name]) if a.integer else numbering.number(values[a.name]) for a in declared.arguments
        ]
        if None in numbers:
            raise KnowledgeError(
                f"{' '.join(triple)} cannot be read as {declared.head}: not an integer of 32 bits",
                source=program.source,
                line=declared.line,
                hint="correct the data, or read the argument as a term (without :int)",
            )
        facts[declared.name, len(declared.arguments)][tuple(n for n in numbers if n is not None)] = None
    return facts


def fact_lines(facts: Facts) -> Iterator[str]:
    """The facts as text, for a clingo in another process."""
    for (name, arity), rows in facts.items():
        yield f"#defined {name}/{arity}."
        for row in rows:
            yield f"{name}({','.join(map(str, row))})."


def _candidates(graph: Graph, pattern: Triple) -> Iterator[Triple]:
    s, p, o = (None if term[0] not in '<"_' else term for term in pattern)
    return graph.match(s, p, o)


def match(pattern: Triple, triple: Triple) -> dict[str, str] | None:
    """The values of the pattern's variables if the triple matches, else None."""
    values: dict[str, str] = {}
    for wanted, term in zip(pattern, triple, strict=True):
        if wanted[0] in '<"_':
            if wanted != term:
                return None
        elif values.setdefault(wanted, term) != term:
            return None
    return values


def integer(argument: Argument, term: str) -> int | None:
    """The value of an integer within the bounds of its argument; None for every other term."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if not (datatype.startswith(XSD) and _INTEGER.fullmatch(lexical)):
        return None
    value = int(lexical)
    return value if argument.low <= value <= argument.high else None


def constants(program: AspProgram, numbering: Numbering) -> dict[str, int]:
    """The numbers of the declared constants."""
    return {name: numbering.number(term) for name, term in program.constants.items()}


def shows(program: AspProgram) -> list[str]:
    """The lines that make clingo show the offered atoms and no others."""
    return [
        "#show.",
        *(f"#show {d.name}/{len(d.arguments)}. #defined {d.name}/{len(d.arguments)}." for d in program.offers),
    ]


def offers(program: AspProgram) -> dict[Signature, Declared]:
    """The offered atoms by their signatures."""
    return {(d.name, len(d.arguments)): d for d in program.offers}


def offered_triple(program: AspProgram, declared: Declared, values: Iterable[Any], terms: Mapping[int, str]) -> Triple:
    """The triple that an offered atom stands for; values are clingo symbols, or ints and str."""
    bound: dict[str, str] = {}
    for argument, value in zip(declared.arguments, values, strict=True):
        if isinstance(value, clingo.Symbol):
            kinds = {clingo.SymbolType.Number: "number", clingo.SymbolType.String: "string"}
            value = getattr(value, kinds[value.type]) if value.type in kinds else None
        term: str | None = None
        if isinstance(value, int):
            term = literal(str(value), XSD + "integer") if argument.integer else terms.get(value)
        elif isinstance(value, str):
            term = literal(value)
        if term is None:
            raise KnowledgeError(
                f"the argument {argument.name} of an offered {declared.head} stands for no term",
                source=program.source,
                line=declared.line,
                hint="offer what was read, a constant declared with %! const, an N:int or a string",
            )
        bound[argument.name] = term
    s, p, o = (bound.get(term, term) for term in declared.pattern)
    if not (is_iri(s) or is_blank(s)) or not is_iri(p):
        raise KnowledgeError(
            f"{declared.head} gave {s} {p} {o}, which is not a triple", source=program.source, line=declared.line
        )
    return s, p, o


def parse_atoms(text: str) -> Iterator[tuple[str, list[int | str | None]]]:
    """The atoms of a line that clingo printed."""
    for atom in _ATOM.finditer(text):
        values: list[int | str | None] = []
        for part in re.findall(r'"(?:[^"\\]|\\.)*"|[^,]+', atom[2]):
            values.append(_unquote(part) if part[0] == '"' else int(part) if _INTEGER.fullmatch(part) else None)
        yield atom[1], values


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])
