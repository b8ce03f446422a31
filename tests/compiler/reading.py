"""Reading rules from their text: the inverse of ``print_rules``, which shows that the text says all there is to say.

The definition lines make the rules; the event-driven rules below each must be those that follow from it, so that a
text that was changed by hand in one place only is not taken for something it does not say.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, cast

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.definitions import INFIX, NOT, required
from etalis_rules.printing import print_rules
from etalis_rules.traversal import name_fields

from tests.compiler.tokens import Token, Unspelling, bound_of, tokens

_NODES = {cls.__name__.lower(): cls for cls in typing.get_args(ir.Node)}
_PREFIX = re.compile(r"prefix ([A-Za-z][A-Za-z0-9_-]*)?: *<([^<>\s]*)>")
_END = Token("end", "the end of the line", 0)


class RulesError(ValueError):
    """A text that is no text of rules: what was found in which line, and what belongs there."""

    def __init__(self, line: int, column: int, message: str):
        super().__init__(f"line {line}, column {column}: {message}")
        self.line, self.column = line, column


def read_rules(text: str) -> ir.Rules:
    """The rules that ``print_rules`` printed.

    A node's id may be left out (it follows from the definition), and so may the event-driven rules.  Raises
    ``RulesError``, and nothing else, for a text that is none of rules.
    """
    try:
        return _read(text)
    except RecursionError:
        raise RulesError(1, 1, "an expression or a pattern is nested too deep to be read") from None


def _read(text: str) -> ir.Rules:
    lines = text.split("\n")
    prefixes: dict[str, str] = {}
    policy = "unrestricted"
    nodes: dict[str, ir.Node] = {}
    names: dict[str, str] = {}
    outputs: list[ir.Output] = []
    strata: tuple[tuple[str, ...], ...] | None = None
    order: tuple[str, ...] | None = None
    spelling = Unspelling(prefixes)
    known = _Known(names, nodes)
    for number, line in enumerate(lines, 1):
        if not line.strip() or line[0] in " %":
            continue
        if line.startswith("prefix "):
            found = _PREFIX.fullmatch(line.rstrip())
            if found is None:
                raise RulesError(number, 8, "expected a prefix with its colon and an IRI, as in: prefix p: <urn:p#>")
            prefixes[found[1] or ""] = found[2]
            continue
        reader = _Line(line, number, spelling, known)
        match reader.word("policy, prefix, query, strata, order or the name of a node"):
            case "policy":
                policy = reader.text()
            case "query":
                name = reader.text()
                reader.mark(":=")
                outputs.append(reader.defined(ir.Output, "output", query=name))
            case "strata":
                reader.mark(":=")
                strata = tuple(tuple(names.get(n, n) for n in stratum) for stratum in reader.words())
            case "order":
                reader.mark(":=")
                order = tuple(names.get(n, n) for stratum in reader.words() for n in stratum)
            case name:
                identifier, node = _node(reader)
                if name in names:
                    reader.fail(f"there is a node {name} already")
                names[name] = identifier
                nodes[identifier] = node
        reader.end()
    if strata is None:
        raise RulesError(len(lines), 1, "the text ends without the line 'strata := …'")
    if order is None:
        order = tuple(n for stratum in strata for n in stratum if n in nodes)
    missing = [n for n in order if n not in nodes] + [n for n in nodes if n not in order]
    if missing:
        raise RulesError(len(lines), 1, f"the strata and the nodes do not fit: {missing[0]} stands in one of them only")
    rules = ir.Rules(tuple((n, nodes[n]) for n in order), tuple(outputs), strata, policy)
    _verify(rules, lines, prefixes)
    return rules


class _Known(NamedTuple):
    """The nodes that are defined so far: their ids by their names, and what they are."""

    ids: dict[str, str]
    nodes: dict[str, ir.Node]


def _node(reader: _Line) -> tuple[str, ir.Node]:
    identifier = reader.optional_word()
    head = reader.head()
    reader.mark(":=")
    kind = reader.word("what the node is")
    cls = _NODES.get(kind)
    if cls is None:
        reader.fail(f"{kind} is no kind of node: expected one of {', '.join(sorted(_NODES))}{_near(kind, _NODES)}")
    node = cast(ir.Node, reader.arguments(cls, head=head))
    if isinstance(node, ir.Closure) and {*node.ends, *node.edge.columns, *head} != {*node.ends}:
        reader.fail("the columns of a closure and of its edge are its two ends")
    due = ir.identify(node)
    if identifier and identifier != due:
        reader.fail(f"the id {identifier} does not fit the definition, whose id is {due}: leave it out or correct it")
    return due, node


def _verify(rules: ir.Rules, lines: list[str], prefixes: dict[str, str]) -> None:
    """The event-driven rules in the text, if there are any, must be those of the definitions."""
    given = [(i, line.strip()) for i, line in enumerate(lines, 1) if line[:1] == " " and line.strip()]
    if not given:
        return
    printed = print_rules(rules, prefixes).split("\n")
    due = [line.strip() for line in printed if line[:1] == " " and line.strip()]
    for (number, line), wanted in zip(given, due, strict=False):
        if line != wanted:
            raise RulesError(
                number, 1, f"this rule does not follow from the definition above it, which gives: {wanted}"
            )
    if len(given) != len(due):
        number, missing = given[-1][0], "" if len(given) > len(due) else f", for instance: {due[len(given)]}"
        raise RulesError(number, 1, f"{len(due)} rules follow from the definitions, {len(given)} are given{missing}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    """The types of a class's fields, resolved."""
    return typing.get_type_hints(cls)


def _near(word: str, choices: Any) -> str:
    near = get_close_matches(word, list(choices), n=1)
    return f"; did you mean {near[0]}?" if near else ""


class _Line:
    """Reads the tokens of one line, led by the types of what is to be read."""

    def __init__(self, line: str, number: int, spelling: Unspelling, known: _Known):
        self.number = number
        self.spelling = spelling
        self.known = known
        self.tokens = list(tokens(line))
        self.end_column = len(line) + 1
        self.at = 0

    # --- tokens ---

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else _END

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def fail(self, message: str) -> NoReturn:
        last = self.tokens[min(self.at, len(self.tokens)) - 1] if self.at else Token("", "", 1)
        raise RulesError(self.number, last.column, message)

    def expected(self, what: str) -> NoReturn:
        found = self.peek().text
        self.at += 1
        self.fail(f"found {found}, expected {what}")

    def is_mark(self, text: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "mark" and token.text == text

    def mark(self, text: str) -> None:
        if not self.is_mark(text):
            self.expected(text)
        self.at += 1

    def took(self, text: str) -> bool:
        if self.is_mark(text):
            self.at += 1
            return True
        return False

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.expected("the end of the line")

    # --- words and names ---

    def word(self, what: str) -> str:
        if self.peek().kind != "word":
            self.expected(what)
        return self.next().text

    def optional_word(self) -> str:
        return self.next().text if self.peek().kind == "word" else ""

    def text(self) -> str:
        found = self.spelling.text_of(self.peek())
        if found is None:
            self.expected("a word, a term or text between apostrophes (with a declared prefix)")
        self.at += 1
        return found

    def variable(self) -> str:
        name = self.spelling.variable_of(self.peek())
        if name is None:
            self.expected("a variable")
        self.at += 1
        return name

    def head(self) -> tuple[str, ...]:
        return self._listed("(", ")", self.variable)

    def words(self) -> tuple[tuple[str, ...], ...]:
        return self._listed("[", "]", lambda: self._listed("[", "]", self.text))

    def _listed(self, opening: str, closing: str, item: Callable[[], Any]) -> tuple[Any, ...]:
        self.mark(opening)
        items: list[Any] = []
        while not self.is_mark(closing):
            if items:
                self.mark(",")
            items.append(item())
        self.mark(closing)
        return tuple(items)

    # --- values by their type ---

    def defined(self, cls: type, word: str, **given: Any) -> Any:
        found = self.word(word)
        if found != word:
            self.fail(f"found {found}, expected {word}")
        return self.arguments(cls, **given)

    def arguments(self, cls: type, **given: Any) -> Any:
        """``(…)``: the parts of a class, those without a default by their place, then the others by name."""
        positional = [f for f in required(cls) if f.name not in given]
        by_name = {f.name for f in fields(cls)} - {f.name for f in required(cls)}
        parts = dict(given)
        self.mark("(")
        for i, f in enumerate(positional):
            if i:
                self.mark(",")
            parts[f.name] = self._field(cls, f.name)
        first = not positional
        while not self.is_mark(")"):
            if not first:
                self.mark(",")
            first = False
            name = self.word(f"the name of a part of {cls.__name__.lower()}")
            if name not in by_name or name in parts:
                self.fail(f"{name} is no further part of {cls.__name__.lower()}{_near(name, by_name)}")
            self.mark("=")
            parts[name] = self._field(cls, name)
        self.mark(")")
        return cls(**parts)

    def _field(self, cls: type, name: str) -> Any:
        hint = _hints(cls)[name]
        if name == "leaves":
            return self._listed("[", "]", self._leaf)
        return self.value(hint, name in name_fields(cls))

    def _leaf(self) -> str:
        name = self.word("the name of a node")
        if name not in self.known.ids:
            self.fail(f"{name} is not defined above")
        return self.known.ids[name]

    def _ref(self) -> ir.Ref:
        name = self.peek().text
        ref = ir.Ref(self._leaf(), self.head())
        columns = len(self.known.nodes[ref.node].head)
        if len(ref.columns) != columns:
            self.fail(f"{name} has {columns} columns, {len(ref.columns)} are given")
        return ref

    def value(self, hint: Any, names: bool = False) -> Any:
        if hint is str:
            if names and self.peek().text == "none":
                self.at += 1
                return ""
            return self.variable() if names else self.text()
        if isinstance(hint, type) and issubclass(hint, Enum):
            return hint(self.text())
        if hint is bool:
            found = self.word("true or false")
            if found not in ("true", "false"):
                self.fail(f"found {found}, expected true or false")
            return found == "true"
        if hint is int:
            if self.peek().kind != "number" or "." in self.peek().text:
                self.expected("a whole number")
            return int(self.next().text)
        if typing.get_origin(hint) is tuple:
            return self._tuple(typing.get_args(hint), names)
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            options = typing.get_args(hint)
            if type(None) in options and self.peek().text == "none":
                self.at += 1
                return None
            rest = [o for o in options if o is not type(None)]
            if len(rest) == 1:
                return self.value(rest[0], names)
            return self._one_of({o.__name__.lower(): o for o in rest})
        assert is_dataclass(hint)
        return self._one_of({cast(type, hint).__name__.lower(): hint})

    def _tuple(self, items: tuple[Any, ...], names: bool) -> tuple[Any, ...]:
        if items[1:] == (...,):
            return self._listed("[", "]", lambda: self.value(items[0], names))
        parts: list[Any] = []
        self.mark("[")
        for i, hint in enumerate(items):
            if i:
                self.mark(",")
            parts.append(self.value(hint, names))
        self.mark("]")
        return tuple(parts)

    def _one_of(self, options: dict[str, Any]) -> Any:
        """A value of one of these classes."""
        token = self.peek()
        called = self.is_mark("(", 1)
        if "ref" in options:
            return self._ref()
        if "bound" in options:
            word = self.word("below, upto or events")
            self.mark("(")
            bound = bound_of(word, self.next().text)
            if bound is None:
                self.fail("expected a window: below(P30D), upto(P1M) or events(3)")
            self.mark(")")
            return bound
        if "triple" in options:
            node = alg.Var | alg.Const
            return alg.Triple(self.value(node), self.value(node), self.value(node))
        if token.text == "_" and "any" in options:
            self.at += 1
            return ir.Any()
        if called and token.kind == "word" and token.text in options:
            return self.arguments(options[self.next().text])
        if "apply" in options and (called or self.is_mark("(")):
            return self._apply()
        name = self.spelling.variable_of(token) if "var" in options else None
        if name is not None:
            self.at += 1
            return alg.Var(name)
        term = self.spelling.term_of(token) if "const" in options else None
        if term is not None:
            self.at += 1
            return alg.Const(term)
        self.expected(f"one of {', '.join(sorted(options))}" if len(options) > 1 else next(iter(options)))

    def _apply(self) -> alg.Apply:
        expression = alg.Expr
        if self.took("("):
            left = self.value(expression)
            operator = self.next().text
            if operator not in INFIX:
                self.fail(f"found {operator}, expected an operator")
            right = self.value(expression)
            self.mark(")")
            return alg.Apply(operator, (left, right))
        name = self.text()
        return alg.Apply("!" if name == NOT else name, self._listed("(", ")", lambda: self.value(expression)))
