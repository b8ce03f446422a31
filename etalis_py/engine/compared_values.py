"""Values of another kind than a query needs: the texts "12.50 EUR", "1,200.50" or "n/a" where it needs numbers.

SPARQL compares no text with a number, so a filter lets none through (nor does ``?x > "100"`` let a number through), and
no text is added.  Two texts are compared letter by letter: "9" comes after "10", which matters where a source of JSON
has its numbers in quotes.  By itself a text is true unless it is empty, "False" as well.  No literal is the subject of
a triple, so "Ann" joins nothing that is said of :Ann.

Looked at are the objects of constant predicates, in patterns and conditions that every answer needs, in those that an
answer of a branch needs (of a UNION, of what is optional, or must not happen), and in aggregates.
Rules and a background may state the same predicate of things, so nothing is said of literals beside them.

>>> from etalis_py import compile
>>> values = ComparedValues.of(compile("SELECT ?c { ?c :paid ?x FILTER (?x > 100) }"))
>>> values.note("<http://example.org/paid>", ['"$120"'])
>>> list(values.warnings(""))
['all values of :paid are texts, as "$120": ?x > 100 lets none of them through']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import is_literal, parts

from etalis_py.engine.needed_values import COMPARISONS, branches, compared, conditions_of, objects_of, sentence
from etalis_py.engine.unseen_values import derives_events
from etalis_py.streams.templates import from_amount, guess

if TYPE_CHECKING:
    from etalis_py.engine.program import Program

_ARITHMETIC = frozenset("+-*/")
_BY_LETTERS = 'compares them letter by letter, so "9" comes after "10"'
_TRUTHS = frozenset(("true", "false", "yes", "no", "on", "off"))
_CAST = "; xsd:decimal(…) makes a number of one"

Effects = dict[str, str]
"""By predicate, what values of the wrong kind bring about."""
Demand = tuple[str, str, str]
"""That the values of a variable be numbers, texts, things (no literals) or, if texts, no numbers; and the effect."""


class ComparedValues:
    """State: for each predicate one text, one that looks like a number, one that looks like an amount, one other
    literal, and whether any is a thing.
    """

    def __init__(self, effects: dict[str, Effects], spelling: Spelling) -> None:
        self._effects, self._term = effects, spelling.term
        self._predicates = frozenset().union(*effects.values())
        self._text: dict[str, str] = {}
        self._quoted: dict[str, str] = {}
        self._amounts: dict[str, str] = {}
        self._other: dict[str, str] = {}
        self._things: set[str] = set()

    @classmethod
    def of(cls, program: Program) -> ComparedValues | None:
        """What looks at the values that a program compares, adds or joins; None if there are none."""
        spelling = Spelling(program.prefixes)
        effects: dict[str, Effects] = {"numbers": {}, "texts": {}, "order": {}, "truths": {}, "things": {}}
        derives = derives_events(program)
        for pattern in program.patterns:
            predicates = objects_of(pattern)
            demands = [(predicates, demand) for demand in _demands_of_all(pattern, derives)]
            for branch, of_branch in branches(pattern):
                demands += [(of_branch, demand) for demand in _demands(branch, spelling)]
            for known, (kind, name, effect) in demands:
                effects[kind].update(dict.fromkeys(known.get(name, ()), effect))
        return cls(effects, spelling) if any(effects.values()) else None

    @property
    def predicates(self) -> Collection[str]:
        """The predicates whose objects are looked at."""
        return self._predicates

    @property
    def only_literals(self) -> list[str]:
        """The predicates of which all objects so far are literals, where things are needed."""
        literal = self._text.keys() | self._other.keys()
        return [p for p in self._effects["things"] if p in literal and p not in self._things]

    def note(self, predicate: str, objects: Iterable[str]) -> None:
        """Take note of objects of a predicate that is looked at."""
        for term in objects:
            if not is_literal(term):
                self._things.add(predicate)
            elif not _is_text(term):
                self._other.setdefault(predicate, term)
            else:
                self._text.setdefault(predicate, term)
                if predicate not in self._quoted and _has_number(term):
                    self._quoted[predicate] = term
                elif predicate not in self._amounts and from_amount(parts(term)[0], ""):
                    self._amounts[predicate] = term

    def warnings(self, among: str, *, background: bool = False) -> Iterator[str]:
        """What is of the wrong kind, by predicate; ``among`` says of how many events this is known, "" if of all.

        With a ``background``, things may stand there.
        """

        def told(which: str, predicate: str, kind: str, value: str, effect: str, advice: str = "") -> str:
            return sentence(self._term, which, predicate, value, among=among, kind=kind, effect=effect + advice)

        numbers = self._effects["numbers"]
        for predicate, effect in sorted(numbers.items()):
            if (text := self._text.get(predicate)) is not None:
                which = "some values" if predicate in self._things or predicate in self._other else "all values"
                yield told(which, predicate, "texts", text, effect, _CAST if _has_number(text) else "")
        for predicate, effect in sorted(self._effects["order"].items()):
            if predicate not in numbers and (text := self._quoted.get(predicate) or self._amounts.get(predicate)):
                yield told("values", predicate, "texts", text, effect, _cast(text))
        for predicate, effect in sorted(self._effects["truths"].items()):
            if (text := self._text.get(predicate)) is not None and parts(text)[0].casefold() in _TRUTHS:
                yield told("values", predicate, "texts", text, effect, f" {self._term(text)}")
        for predicate, effect in sorted(self._effects["texts"].items()):
            if (other := self._other.get(predicate, "")) and predicate not in self._text and _is_number(other):
                yield told("all values", predicate, "numbers", other, effect)
        for predicate in () if background else sorted(self.only_literals):
            literal, effect = self._text.get(predicate) or self._other[predicate], self._effects["things"][predicate]
            yield told("all values", predicate, "texts" if _is_text(literal) else "literals", literal, effect)

    def by_type(self, texts: Collection[str], numbers: Collection[str], *, background: bool = False) -> Iterator[str]:
        """The same before any event, of predicates whose objects are all texts, or all numbers.

        With a ``background``, things may stand there.
        """
        for kind, wrong, advice in (
            ("numbers", texts, _CAST),
            ("texts", numbers, ""),
            ("things", {*texts, *numbers}, ""),
        ):
            for predicate, effect in sorted(self._effects[kind].items()):
                if predicate in wrong and not (background and kind == "things"):
                    values = "texts" if predicate in texts else "numbers"
                    yield f"{self._term(predicate)} is a column of {values}: {effect}{advice}"


def _demands(branch: alg.Pattern, spelling: Spelling) -> Iterator[Demand]:
    """What the conditions of a branch need the values of variables to be."""
    conditions = list(conditions_of(branch))
    yield from (("numbers", *one) for one in _of_numbers(conditions, spelling))
    yield from (("texts", *one) for one in _of_texts(conditions, spelling))
    yield from (("order", *one) for one in _of_any_order(conditions))
    yield from (("truths", *one) for one in _of_truths(conditions))


def _demands_of_all(pattern: alg.Pattern, derives: bool) -> Iterator[Demand]:
    """What aggregates need the values of variables to be, and what a whole pattern does; rules may derive things."""
    for call in _aggregates(pattern):
        if isinstance(call.operand, alg.Var):
            name, shown = call.operand.name, f"{call.name}(?{call.operand.name})"
            if call.name in ("SUM", "AVG"):
                yield "numbers", name, f"{shown} has no value with one of them"
            elif call.name in ("MIN", "MAX"):
                yield "order", name, f"{shown} {_BY_LETTERS}"
        elif call.operand is not None and call.name in ("SUM", "AVG", "MIN", "MAX"):
            for name in _calculated(call.operand):
                told = f"nothing can be calculated with ?{name}, so {call.name}(…) has no value with one of them"
                yield "numbers", name, told
    if not derives:
        yield from (("things", *one) for one in _of_things(pattern))


def _of_numbers(conditions: Iterable[alg.Expr], spelling: Spelling) -> Iterator[tuple[str, str]]:
    """The variables that are compared with a number, or calculated with, and what happens to a text."""
    for e in conditions:
        match e:
            case alg.Apply(op, (alg.Var(name), alg.Const(term))) if op in COMPARISONS and _is_number(term):
                yield name, f"?{name} {op} {spelling.term(term)} lets none of them through"
            case alg.Apply(op, (alg.Const(term), alg.Var(name))) if op in COMPARISONS and _is_number(term):
                yield name, f"{spelling.term(term)} {op} ?{name} lets none of them through"
            case alg.Apply(op, sides) if op in COMPARISONS:
                for name in dict.fromkeys(name for side in sides for name in _calculated(side)):
                    yield name, f"nothing can be calculated with ?{name}, so the filter lets none of them through"


def _of_texts(conditions: Iterable[alg.Expr], spelling: Spelling) -> Iterator[tuple[str, str]]:
    """The variables that are compared with a text, and what happens to a number."""
    for e in conditions:
        match e:
            case alg.Apply(op, (alg.Var(name), alg.Const(term))) if op in COMPARISONS and _is_text(term):
                shown = f"?{name} {op} {spelling.term(term)}"
            case alg.Apply(op, (alg.Const(term), alg.Var(name))) if op in COMPARISONS and _is_text(term):
                shown = f"{spelling.term(term)} {op} ?{name}"
            case _:
                continue
        advice = f"; write {parts(term)[0]} without quotes" if _has_number(term) else ""
        yield name, f"{shown} lets none of them through{advice}"


def _of_any_order(conditions: Iterable[alg.Expr]) -> Iterator[tuple[str, str]]:
    """The variables whose values are compared with one another, PREVIOUS and FIRST ones included."""
    for e in conditions:
        if isinstance(e, alg.Apply) and e.op in COMPARISONS:
            one, other = map(compared, e.args)
            if one is not None and other is not None:
                told = f"{one.shown} {e.op} {other.shown} {_BY_LETTERS}"
                yield from ((name, told) for name in dict.fromkeys((one.name, other.name)))


def _of_truths(conditions: Iterable[alg.Expr]) -> Iterator[tuple[str, str]]:
    """The variables that are conditions by themselves; what is told of them ends in one of the values."""
    for e in conditions:
        match e:
            case alg.Var(name) | alg.Apply("!", (alg.Var(name),)):
                yield name, f'?{name} is true for any text but ""; compare it, as in ?{name} ='


def _of_things(pattern: alg.Pattern) -> Iterator[tuple[str, str]]:
    """The variables that are subjects, too, or are compared with one: no literal is a subject."""
    triples = list(alg.needed_triples(pattern))
    subjects = {alg.variable_of(triple.subject) for triple in triples} - {""}
    for name in subjects:
        yield name, f"?{name} is the subject of another pattern, which no literal is, so they join nothing"
    for e in conditions_of(pattern):
        match e:
            case alg.Apply("=" as op, (alg.Var(one), alg.Var(other))) if (one in subjects) != (other in subjects):
                subject, name = (one, other) if one in subjects else (other, one)
                yield (
                    name,
                    f"?{one} {op} ?{other} lets none of them through, as ?{subject} is a subject: no literal is one",
                )


def _aggregates(pattern: alg.Pattern) -> Iterator[alg.AggregateCall]:
    for part in alg.subpatterns(pattern):
        yield from alg.aggregate_calls(part)


def _calculated(e: alg.Expr) -> Iterator[str]:
    """The variables of a calculation with numbers."""
    if isinstance(e, alg.Apply) and e.op in _ARITHMETIC:
        for arg in e.args:
            if isinstance(arg, alg.Var):
                yield arg.name
            yield from _calculated(arg)


def _is_text(term: str) -> bool:
    return term[:1] == '"' == term[-1:]


def _cast(text: str) -> str:
    """What makes a number of a text."""
    number = from_amount(parts(text)[0], "…")
    return f"; {number} makes a number of one" if number else _CAST


def _has_number(text: str) -> bool:
    """Whether a text looks like a number."""
    return guess(parts(text)[0]) != text


def _is_number(term: str) -> bool:
    return is_literal(term) and not _is_text(term) and guess(parts(term)[0]) == term
