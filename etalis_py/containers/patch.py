"""PATCH: the part of SPARQL 1.1 Update that edits one graph, run on the triples of one resource.

It accepts ``INSERT DATA``, ``DELETE DATA``, ``DELETE WHERE`` and ``DELETE … INSERT … WHERE`` over basic graph
patterns, in sequence.  Everything else (LOAD, GRAPH, FILTER, paths …) is refused with a note on what is accepted: a
patch reads nothing but the resource, and its cost is bounded by a number of steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyoxigraph as ox
from etalis_rules.terms import is_blank, is_literal

from etalis_py.events import Triple

from .graphs import BLANK, Base, spelled_term
from .problems import Problem

MEDIA_TYPE = "application/sparql-update"

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\r\n]*)
      | (?P<iri><[^\x00-\x20<>"{}|^`\\]*>)
      | (?P<string>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''
          |"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<variable>[?$]\w+)
      | (?P<brace>[{}])
      | (?P<end>;)
      | (?P<word>[^\s<>"'{}?$;#]+)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = "urn:etalis:variable:"
_STEPS = 100_000
_PATTERNS = 100
_TAKEN = "INSERT DATA, DELETE DATA, DELETE WHERE and DELETE/INSERT … WHERE over triples"


@dataclass(frozen=True, slots=True)
class Operation:
    """Delete and insert these templates for each solution of ``where`` (one empty solution if it is empty)."""

    delete: tuple[Triple, ...]
    insert: tuple[Triple, ...]
    where: tuple[Triple, ...]


def parse_patch(text: str, path: str, base: Base) -> tuple[Operation, ...]:
    """The operations of an update; a ``Problem`` says what is not accepted."""
    tokens = _tokens(text)
    prologue, position = "", 0
    operations = []
    while position < len(tokens):
        kind, word = tokens[position]
        upper = word.upper()
        if upper in ("PREFIX", "BASE"):
            width = 3 if upper == "PREFIX" else 2
            prologue += " ".join(t for _, t in tokens[position : position + width]) + "\n"
            position += width
        elif kind == "end":
            position += 1
        else:
            operation, position = _operation(tokens, position, prologue, path, base)
            operations.append(operation)
    if not operations:
        raise Problem("bad-request", f"the patch holds no operation; taken are {_TAKEN}")
    return tuple(operations)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise Problem(
                "bad-request",
                f"line {line} of the patch: cannot read {text[position : position + 20]!r}; taken are {_TAKEN}",
            )
        position = match.end()
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match[0]))
    return tokens


def _operation(
    tokens: list[tuple[str, str]], position: int, prologue: str, path: str, base: Base
) -> tuple[Operation, int]:
    blocks: dict[str, tuple[Triple, ...]] = {}
    data = False
    while position < len(tokens) and tokens[position][0] == "word":
        word = tokens[position][1].upper()
        if word not in ("INSERT", "DELETE", "WHERE") or word in blocks:
            raise Problem("bad-request", f"{tokens[position][1]!r} is not taken in a patch; taken are {_TAKEN}")
        position += 1
        following = tokens[position][1].upper() if position < len(tokens) else ""
        if word != "WHERE" and following in ("DATA", "WHERE"):
            data = following == "DATA"
            if following == "WHERE" and word == "DELETE":
                position += 1
                blocks["DELETE"], position = _block(tokens, position, prologue, path, base)
                blocks["WHERE"] = blocks["DELETE"]
                break
            position += 1
        blocks[word], position = _block(tokens, position, prologue, path, base)
        if data or word == "WHERE":
            break
    if not blocks or (not data and "WHERE" not in blocks):
        raise Problem("bad-request", f"expected an operation with its WHERE; taken are {_TAKEN}")
    result = Operation(blocks.get("DELETE", ()), blocks.get("INSERT", ()), blocks.get("WHERE", ()))
    if len(result.where) > _PATTERNS:
        raise Problem("too-large", f"the WHERE of the patch has {len(result.where)} triples; at most {_PATTERNS}")
    if any(is_blank(t) for triple in result.delete for t in triple):
        raise Problem("bad-request", "a blank node in DELETE names nothing; use a variable and a WHERE")
    if data and any(t.startswith(f"<{_VARIABLE}") for triple in (*result.delete, *result.insert) for t in triple):
        raise Problem("bad-request", "INSERT DATA and DELETE DATA take no variables; use DELETE/INSERT … WHERE")
    return result, position


def _block(
    tokens: list[tuple[str, str]], position: int, prologue: str, path: str, base: Base
) -> tuple[tuple[Triple, ...], int]:
    if position >= len(tokens) or tokens[position][1] != "{":
        raise Problem("bad-request", f"expected {{ in the patch after {tokens[position - 1][1]!r}")
    parts, start = [], position
    position += 1
    while position < len(tokens) and tokens[position][1] not in "{}":
        kind, text = tokens[position]
        parts.append(f"<{_VARIABLE}{text[1:]}>" if kind == "variable" else text)
        position += 1
    if position >= len(tokens) or tokens[position][1] == "{":
        raise Problem("bad-request", "a patch takes triples between braces, no groups or graphs within them")
    # Tokens are separated by spaces, but the parts of one term ("x"^^xsd:int, "a"@en) must touch.
    text = re.sub(r"(?<=[\"']) (?=\^\^|@)|(?<=\^\^) (?=<)", "", " ".join(parts))
    try:
        quads = list(
            ox.parse(
                f"{prologue}{text}" + ("" if text.endswith(".") or not text else " ."),
                ox.RdfFormat.TURTLE,
                base_iri=base.inner + path[1:],
            )
        )
    except (SyntaxError, ValueError) as error:
        raise Problem(
            "bad-request", f"the triples in braces {start} of the patch cannot be read: {error}; taken are {_TAKEN}"
        ) from None
    labels: dict[str, str] = {}
    spell = partial(spelled_term, base=base, blanks=labels, kind="bad-request")
    return tuple((spell(q.subject), spell(q.predicate), spell(q.object)) for q in quads), position + 1


def relabelled(operations: tuple[Operation, ...], blank: str) -> tuple[Operation, ...]:
    """Operations parsed in another process, where blank nodes begin with ``blank``, as if parsed here."""

    def here(triples: tuple[Triple, ...]) -> tuple[Triple, ...]:
        named = [tuple(BLANK + t[len(blank) :] if t.startswith(blank) else t for t in triple) for triple in triples]
        return tuple((s, p, o) for s, p, o in named)

    return tuple(Operation(here(one.delete), here(one.insert), here(one.where)) for one in operations)


def apply(operations: tuple[Operation, ...], triples: tuple[Triple, ...]) -> tuple[Triple, ...]:
    """The triples after the operations; a ``Problem`` if a pattern takes too many steps."""
    graph = dict.fromkeys(triples)
    for operation in operations:
        solutions = list(_solutions(operation.where, list(graph), {}, [_STEPS])) if operation.where else [{}]
        if not solutions:
            raise Problem("conflict", "the WHERE of the patch matches nothing in the resource; read it again")
        if len(solutions) * (len(operation.delete) + len(operation.insert)) > _STEPS:
            raise Problem("limit", f"the patch changes more than {_STEPS} triples; write a narrower pattern")
        removed = [t for mu in solutions for t in _filled(operation.delete, mu, "")]
        added = [t for i, mu in enumerate(solutions) for t in _filled(operation.insert, mu, f"s{i}x")]
        if not operation.where:
            missing = [t for t in removed if t not in graph]
            if missing:
                raise Problem("conflict", f"DELETE DATA names a triple that is not there: {' '.join(missing[0])}")
        for triple in removed:
            graph.pop(triple, None)
        graph.update(dict.fromkeys(added))
    return tuple(graph)


def _solutions(
    patterns: tuple[Triple, ...], graph: list[Triple], mu: dict[str, str], steps: list[int]
) -> Iterator[dict[str, str]]:
    if not patterns:
        yield mu
        return
    for triple in graph:
        steps[0] -= 1
        if steps[0] < 0:
            raise Problem("limit", f"the WHERE of the patch takes more than {_STEPS} steps; write a narrower pattern")
        bound = _match(patterns[0], triple, mu)
        if bound is not None:
            yield from _solutions(patterns[1:], graph, bound, steps)


def _match(pattern: Triple, triple: Triple, mu: dict[str, str]) -> dict[str, str] | None:
    bound = mu
    for wanted, term in zip(pattern, triple, strict=True):
        if wanted.startswith(f"<{_VARIABLE}") or is_blank(wanted):
            if bound.get(wanted, term) != term:
                return None
            bound = {**bound, wanted: term}
        elif wanted != term:
            return None
    return bound


def _filled(template: tuple[Triple, ...], mu: dict[str, str], fresh: str) -> Iterator[Triple]:
    for triple in template:
        s, p, o = (mu.get(t, t) if not is_blank(t) else t.replace(BLANK, BLANK + fresh, 1) for t in triple)
        if any(t.startswith(f"<{_VARIABLE}") for t in (s, p, o)):
            raise Problem(
                "bad-request", f"a variable of the patch is not in its WHERE: {s} {p} {o}".replace(_VARIABLE, "?")
            )
        if not is_literal(s) and p.startswith("<"):
            yield s, p, o
