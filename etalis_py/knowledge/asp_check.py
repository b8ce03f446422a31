"""Checks an answer-set program before it runs, with errors at their lines: syntax, unsafe rules, undefined names.

clingo silently takes an atom that nothing defines as false, so a misspelled one goes unnoticed.  Here it is an error:
an atom must be the head of some rule, declared in a ``%!`` line, or named by ``#defined``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import clingo
import clingo.ast as syntax

from etalis_py.knowledge.errors import KnowledgeError

Signature = tuple[str, int]
Place = tuple[int, int]  # line and column

BASE, OVER = "base", "over"
_PLACE = re.compile(r"<(?:block|string)>:(\d+):(\d+)(?:-\d+)?(?::\d+)?(?:-\d+)?: (?:error|info|note): ")
_UNSAFE = re.compile(r"'(\w+)' is unsafe")
_RENAMED = {"EOF": "end of the program"}


@dataclass(slots=True)
class ProgramAtoms:
    """The atoms that a program defines, those it uses, and its parts with their numbers of parameters.

    ``optimizes``: it prefers some answer sets.  ``called`` has the code functions that it calls (``@f``).
    """

    defined: set[Signature] = field(default_factory=set)
    used: list[tuple[Signature, Place]] = field(default_factory=list)
    parts: list[tuple[Signature, Place]] = field(default_factory=list)
    optimizes: bool = False
    called: list[tuple[str, Place]] = field(default_factory=list)


class _Walk(syntax.Transformer):
    """Enters the atoms of statements into ``names``; a head defines its atoms, but not those of its conditions."""

    def __init__(self, names: ProgramAtoms) -> None:
        self.names = names
        self.head = False

    def statement(self, node: syntax.AST) -> None:
        begin = node.location.begin
        match node.ast_type:
            case syntax.ASTType.Rule:
                self._defining(node.head)
                self.visit_sequence(node.body)
            case syntax.ASTType.External:
                self._defining(node.atom)
                self.visit_sequence(node.body)
            case syntax.ASTType.Defined:
                self.names.defined.add((("" if node.positive else "-") + node.name, node.arity))
            case syntax.ASTType.Program:
                self.names.parts.append(((node.name, len(node.parameters)), (begin.line, begin.column)))
            case _:
                self.names.optimizes |= node.ast_type is syntax.ASTType.Minimize
                self.visit_children(node)

    def _defining(self, node: syntax.AST) -> None:
        self.head = True
        self.visit(node)
        self.head = False

    def visit_ConditionalLiteral(self, node: syntax.AST) -> syntax.AST:
        self.visit(node.literal)
        head, self.head = self.head, False
        self.visit_sequence(node.condition)
        self.head = head
        return node

    def visit_Function(self, node: syntax.AST) -> syntax.AST:
        if node.external:
            begin = node.location.begin
            self.names.called.append((node.name, (begin.line, begin.column)))
        self.visit_sequence(node.arguments)
        return node

    def visit_SymbolicAtom(self, node: syntax.AST) -> syntax.AST:
        begin = node.symbol.location.begin
        for signature in _signatures(node.symbol):
            if self.head:
                self.names.defined.add(signature)
            else:
                self.names.used.append((signature, (begin.line, begin.column)))
        self.visit(node.symbol)
        return node


def _signatures(symbol: Any, sign: str = "") -> Iterable[Signature]:
    match symbol.ast_type:
        case syntax.ASTType.Function:
            yield sign + symbol.name, len(symbol.arguments)
        case syntax.ASTType.UnaryOperation:
            yield from _signatures(symbol.argument, "" if sign else "-")
        case syntax.ASTType.Pool:
            for argument in symbol.arguments:
                yield from _signatures(argument, sign)


def names_of(text: str, source: str) -> ProgramAtoms:
    """The names of a program; raises an error at the line that is not well-formed."""
    names = ProgramAtoms()
    walk = _Walk(names)
    messages: list[str] = []
    try:
        syntax.parse_string(text, walk.statement, logger=lambda _, message: messages.append(message))
        control = clingo.Control(["--warn=none"], logger=lambda _, message: messages.append(message))
        control.add(BASE, [], text)
        control.ground([])  # no part, but the safety of the rules is still checked
    except RuntimeError as error:
        raise clingo_error(messages or [str(error)], source, text.splitlines()) from None
    for name, (line, column) in names.called:
        raise KnowledgeError(
            f"the function @{name} is not allowed: there is no code that it could call",
            source=source,
            line=line,
            column=column,
            hint="write what it computes as rules, or give its values as triples that the program reads",
        )
    return names


def clingo_error(messages: Sequence[str], source: str, lines: Sequence[str]) -> KnowledgeError:
    """clingo's messages as an error at the line of the program that they are about."""
    first = messages[0].strip()
    place = _PLACE.match(first)
    line, column = (int(place[1]), int(place[2])) if place else (0, 0)
    message, hint = _PLACE.sub("", first), ""
    unsafe = list(dict.fromkeys(_UNSAFE.findall(first)))
    if unsafe:
        many = len(unsafe) > 1
        message = (
            f"the variable{'s' if many else ''} {', '.join(unsafe)} {'are' if many else 'is'} unsafe: no positive "
            f"literal of the rule says which values {'they have' if many else 'it has'}"
        )
        hint = "add a literal that binds each variable, such as one that is read"
    elif "syntax error" in message:
        for name, meaning in _RENAMED.items():
            message = message.replace(f"unexpected {name}", f"unexpected {meaning}")
        hint = "a rule reads head :- body. and ends with a dot"
    if line > len(lines):
        line, column = len(lines), 0
    shown = lines[line - 1].strip() if line else ""
    return KnowledgeError(
        message + (f"\n  {shown}" if shown else ""), source=source, line=line, column=column, hint=hint
    )


def require_defined(used: Iterable[tuple[Signature, Place]], defined: Iterable[Signature], source: str) -> None:
    """Raise an error at the first atom that nothing defines."""
    known = sorted(set(defined))
    for (name, arity), (line, column) in used:
        if (name, arity) in known:
            continue
        near = [f"{n}/{a}" for n, a in known if n == name]
        near += [f"{n}/{a}" for close in get_close_matches(name, [n for n, _ in known]) for n, a in known if n == close]
        meant = f"did you mean {near[0]}? " if near else ""
        raise KnowledgeError(
            f"nothing defines {name}/{arity}: it is the head of no rule and declared in no %! line",
            source=source,
            line=line,
            column=column,
            hint=f"{meant}declare it with %! reads or %! event, or write #defined {name}/{arity}. if it may be absent",
        )
