"""The rules of a program whose derived triples were wanted, and the questions to ask about them in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from etalis_compiler.pipeline import CompiledQuery
from etalis_compiler.rsp import WindowPlan
from etalis_rules import algebra as alg

from etalis_py.engine.program import Program
from etalis_py.whynot.question import fixed
from etalis_py.whynot.search import Search

Rule = CompiledQuery | WindowPlan
Where = tuple[alg.Expr, ...]
_PLACES = ("subject", "predicate", "object")


def to_ask_of_rules(program: Program, search: Search, seen: frozenset[str]) -> Iterator[tuple[Rule, Where]]:
    """For each triple pattern of the plan without a fitting occurrence: a question to each rule that derives it."""
    asked = set(seen)
    rules: tuple[Rule, ...] = (*program.compilation.queries, *program.plans)
    for triple in _missing(search):
        for rule in rules:
            if rule.name not in asked and (where := _derives(rule, triple, search.question.where)) is not None:
                asked.add(rule.name)
                yield rule, where


def _missing(search: Search) -> Iterator[alg.Triple]:
    """The triple patterns that no occurrence fits, including those over windows, whatever these held."""
    windows = search.windows
    for part in alg.read_of_stream(search.question.plan):
        for triple in alg.triples_of(part) or ():
            alone = alg.BGP((triple,), "" if part.stream in windows else part.stream, None)
            if alg.constant_of(triple.predicate) and not search.wanted(alone, at_end=False).number:
                yield triple


def select_of(rule: Rule) -> alg.Select:
    return rule.select if isinstance(rule, WindowPlan) else rule.algebra


def _derives(rule: Rule, triple: alg.Triple, wanted_where: Iterable[alg.Expr]) -> Where | None:
    """The conditions on the rule's solution to derive the wanted triple; None if it cannot."""
    terms = fixed(tuple(wanted_where))
    for template in rule.template:
        where = []
        for place in _PLACES:
            wanted, derived = getattr(triple, place), getattr(template, place)
            term = alg.term_in(terms, wanted)
            if constant := alg.constant_of(derived):
                if term and term != constant:
                    break
            elif term and alg.variable_of(derived) in alg.scope(select_of(rule).pattern):
                where.append(alg.Apply("=" if term[0] == "<" else "SAMETERM", (derived, alg.Const(term))))
        else:
            return tuple(where)
    return None
