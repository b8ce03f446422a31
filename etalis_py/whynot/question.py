"""The question: a query, and the part of its answer that was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from etalis_compiler.diagnostics import QueryError
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import CompiledQuery
from etalis_compiler.translate import translate
from etalis_rules import algebra as alg
from etalis_rules.terms import is_iri

from etalis_py.events.clock import Clock, TimeError, parse_interval

Where = str | Mapping[str, str]
At = str | int | tuple[int | str, int | str]


class WrongQuestion(ValueError):
    """An argument that cannot be used: its name, and what is wrong with it."""

    def __init__(self, argument: str, reason: str) -> None:
        self.argument, self.reason = argument, reason
        super().__init__(f"{argument} {reason}")


@dataclass(frozen=True, slots=True)
class Question:
    """The plan of the query, and the solutions that the question is about.

    ``where`` are the conjuncts that an expected answer fulfils, ``span`` the range of times, in microseconds, in which
    it ends.
    """

    query: CompiledQuery
    plan: alg.Pattern
    where: tuple[alg.Expr, ...] = ()
    span: tuple[int, int] | None = None

    def about(self, names: frozenset[str]) -> tuple[alg.Expr, ...]:
        """The conjuncts that can be decided with these variables."""
        return tuple(c for c in self.where if alg.variables(c) <= names)


def plan_of(select: alg.Select) -> alg.Pattern:
    """The pattern of a query, with the expressions of its SELECT unless there are aggregates."""
    pattern = select.pattern
    if not select.grouped:
        for variable, expression in select.extends:
            pattern = alg.Extend(pattern, variable, expression)
    return pattern


def conditions_of(where: Where, query: CompiledQuery) -> tuple[alg.Expr, ...]:
    """``?c = :acme && ?x > 3``, or ``{"c": "<http://example.org/acme>"}``, as conjuncts over the query's variables."""
    if isinstance(where, Mapping):
        where = " && ".join(
            f"?{name.removeprefix('?')} = {term}" if is_iri(term) else f"sameTerm(?{name.removeprefix('?')}, {term})"
            for name, term in where.items()
        )
    if not isinstance(where, str):
        raise TypeError(
            f"where is a condition such as '?c = :acme', or terms by variables, {{'c': '<http://example.org/acme>'}}, "
            f"not {where!r} ({type(where).__name__})"
        )
    text = where.strip()
    if not text:
        return ()
    try:
        document = parse(
            f"SELECT * WHERE {{ FILTER ({text}) }}", source="--where", base=query.base, prefixes=dict(query.prefixes)
        )
        select = translate(document.queries[0])
    except QueryError as error:
        reason = f"is not a condition such as '?c = :acme': {error.diagnostics[0].message}"
        raise WrongQuestion("where", reason) from None
    conditions = alg.expressions(select.pattern)
    known = known_variables(query)
    unknown = sorted(frozenset().union(*map(alg.variables, conditions)) - known)
    if unknown:
        names = ", ".join("?" + name for name in sorted(known)) or "none"
        raise ValueError(f"query {query.name} has no variable ?{unknown[0]}; its variables are {names}")
    return conditions


def known_variables(query: CompiledQuery) -> frozenset[str]:
    """The variables of a query that a user can name."""
    select = query.algebra
    names = alg.scope(plan_of(select)) | frozenset(select.variables) | {v for v, _ in select.extends}
    return frozenset(name for name in names if name[0] not in "._~")


def span_of(at: At | None, clock: Clock) -> tuple[int, int] | None:
    """``T`` or ``T1/T2`` in the stream's own time, as microseconds."""
    if at is None or at == "":
        return None
    text = "/".join(map(str, at)) if isinstance(at, tuple) else str(at)
    try:
        return parse_interval(text, clock)
    except TimeError as error:
        times = "numbers" if clock.kind == "integer" else "dateTimes such as 2024-03-01T13:00:00Z"
        reason = f"must be a time of the stream, or two of them as T1/T2 ({error}); this stream has {times}"
        raise WrongQuestion("at", reason) from None


def fixed(where: tuple[alg.Expr, ...]) -> dict[str, str]:
    """The variables that the conjuncts equate with an IRI, which may be bound before a pattern is evaluated."""
    terms: dict[str, str] = {}
    for condition in where:
        match alg.equated(condition):
            case op, name, term if is_iri(term) or op != "=":
                terms.setdefault(name, term)
    return terms


def chosen(queries: tuple[CompiledQuery, ...], name: str) -> CompiledQuery:
    """The query in question: the one named, else the only one that is not a rule, else the last."""
    if name:
        for query in queries:
            if query.name == name:
                return query
        raise ValueError(f"there is no query {name}; the program has {', '.join(q.name for q in queries)}")
    if not queries:
        raise ValueError("the program has no query to ask about")
    readers = [q for q in queries if q.syntax.kind != "construct"]
    if len(readers) > 1:
        raise ValueError(f"name the query that is meant: {', '.join(q.name for q in readers)}")
    return readers[0] if readers else queries[-1]
