"""The rules of a program whose derived triples were wanted: what to ask of them in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from etalis_compiler.pipeline import CompiledQuery
from etalis_rules import algebra as alg

from etalis_py.program import Program
from etalis_py.whynot.question import Question, fixed, plan_of
from etalis_py.whynot.search import Search

_PLACES = ("subject", "predicate", "object")


def to_ask_of_rules(program: Program, search: Search, seen: frozenset[str]) -> Iterator[Question]:
    """For each triple pattern of the plan without a fitting occurrence: a question to each rule for it."""
    asked = set(seen)
    for part in alg.subpatterns(search.question.plan):
        if not isinstance(part, alg.BGP) or part.graph is not None:
            continue
        for triple in part.triples:
            alone = replace(part, triples=(triple,))
            if not isinstance(triple.predicate, alg.Const) or search.wanted(alone, at_end=False).number:
                continue
            for rule in program.compilation.queries:
                if rule.name not in asked and (where := _derives(rule, triple, search.question)) is not None:
                    asked.add(rule.name)
                    yield Question(rule, plan_of(rule.algebra), where)


def _derives(rule: CompiledQuery, triple: alg.Triple, question: Question) -> tuple[alg.Expr, ...] | None:
    """What the rule's solution must fulfil to derive the wanted triple; None where it cannot."""
    terms = fixed(question.where)
    for template in rule.template:
        where = []
        for place in _PLACES:
            wanted, derived = getattr(triple, place), getattr(template, place)
            term = wanted.term if isinstance(wanted, alg.Const) else terms.get(wanted.name, "")
            if isinstance(derived, alg.Const):
                if term and term != derived.term:
                    break
            elif term and derived.name in alg.scope(rule.algebra.pattern):
                where.append(alg.Apply("=" if term[0] == "<" else "SAMETERM", (derived, alg.Const(term))))
        else:
            return tuple(where)
    return None
