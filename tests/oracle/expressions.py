"""Expressions on a solution: [EP] §4.2's μ(σ(F)), where σ puts the interval in place of the time functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from etalis_compiler import ast
from etalis_rules.terms import XSD, iri_value, is_blank, is_literal, literal, parts

from . import functions
from .plan import Condition, Lasting
from .solutions import AFTER, BEFORE, Instant, Solution, canonical, is_made
from .times import date_time, day_time_duration, duration, duration_of, shift
from .values import ExpressionError, boolean, effective_boolean_value, number

COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Undetermined(Exception):
    """An answer that rests on the order of nodes that rules made, whose names are nobody's business."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an expression is evaluated: μ, the interval, how to ask EXISTS and, in a grouped query, the group."""

    mu: Mapping[str, str]
    start: int | None
    end: int | None
    known: Instant
    exists: Callable[[ast.Group, Solution], bool]
    members: Sequence[Solution] | None = None
    variables: frozenset[str] = frozenset()

    def at(self, solution: Solution) -> Environment:
        return replace(
            self,
            mu=dict(solution.mu),
            start=solution.start,
            end=solution.end,
            known=solution.known,
            members=None,
        )

    @property
    def solution(self) -> Solution:
        return Solution(tuple(sorted(self.mu.items())), self.start, self.end, self.known)


def holds(condition: Condition, env: Environment) -> bool:
    """A condition is fulfilled when it evaluates to true; an error is not true."""
    if isinstance(condition, Lasting):
        return lasts(condition, env.start, env.end)
    try:
        return effective_boolean_value(evaluate(condition, env))
    except ExpressionError:
        return False


def lasts(bound: Lasting, start: int | None, end: int | None) -> bool:
    """end − start ≤ bound, months counted by calendar from the start; the timeless last no time at all."""
    if start is None or end is None:
        return True
    parsed = duration(bound.lexical)
    if parsed is None:
        raise ValueError(f"not a duration: {bound.lexical!r}")
    limit = shift(start, *parsed)
    return end < limit or (end == limit and not bound.strict)


def value_or_unbound(expression: ast.Expression, env: Environment) -> str:
    try:
        return evaluate(expression, env)
    except ExpressionError:
        return ""


def evaluate(e: ast.Expression, env: Environment) -> str:
    """The term an expression has for its value; raises ExpressionError where it has none."""
    match e:
        case ast.Var(name):
            term = env.mu.get(name, "")
            if not term:
                raise ExpressionError(f"?{name} is unbound")
            return term
        case ast.Term(spelling):
            return spelling
        case ast.Unary("!", operand):
            return boolean(not effective_boolean_value(evaluate(operand, env)))
        case ast.Unary(sign, operand):
            term = evaluate(operand, env)
            return functions.negate(term) if sign == "-" else functions.calculate("+", _zero(), term)
        case ast.Binary("||" | "&&" as operator, left, right):
            return _logic(operator == "||", left, right, env)
        case ast.Binary(operator, left, right) if operator in COMPARISONS:
            return boolean(_comparison(operator, left, right, env))
        case ast.Binary(operator, left, right):
            return functions.calculate(operator, evaluate(left, env), evaluate(right, env))
        case ast.In(operand, choices, negated):
            return boolean(_is_in(evaluate(operand, env), choices, env) != negated)
        case ast.Exists(group, negated):
            return boolean(env.exists(group, env.solution) != negated)
        case ast.Call(name, arguments):
            return _call(name.upper(), arguments, env)
        case ast.FunctionCall(iri, arguments):
            return functions.cast(iri_value(iri), evaluate(arguments[0], env))
        case ast.Aggregate():
            return _aggregate(e, env)
    raise NotImplementedError(f"the oracle does not define {type(e).__name__}")


def _zero() -> str:
    return literal("0", XSD + "integer")


def _logic(is_or: bool, left: ast.Expression, right: ast.Expression, env: Environment) -> str:
    """SPARQL §17.2: true || error is true, false && error is false."""
    error: ExpressionError | None = None
    for side in (left, right):
        try:
            if effective_boolean_value(evaluate(side, env)) == is_or:
                return boolean(is_or)
        except ExpressionError as e:
            error = e
    if error:
        raise error
    return boolean(not is_or)


def _comparison(operator: str, left: ast.Expression, right: ast.Expression, env: Environment) -> bool:
    if _is_duration_call(left):
        return _against_duration(operator, right, env)
    if _is_duration_call(right):
        return _against_duration(MIRRORED.get(operator, operator), left, env)
    return functions.compare(operator, evaluate(left, env), evaluate(right, env))


def _is_duration_call(e: ast.Expression) -> bool:
    return isinstance(e, ast.Call) and e.name.upper() == "GETDURATION"


def _against_duration(operator: str, other: ast.Expression, env: Environment) -> bool:
    """``getDURATION() op d``: a year-month part of d is counted by calendar from the start."""
    term = evaluate(other, env)
    parsed = duration_of(term)
    mine = _call("GETDURATION", (), env)
    if parsed is None or parsed[0] == 0:
        return functions.compare(operator, mine, term)
    assert env.start is not None
    assert env.end is not None
    limit = shift(env.start, *parsed)
    a, b = literal(str(int(env.end)), XSD + "integer"), literal(str(int(limit)), XSD + "integer")
    return functions.compare(operator, a, b)


def _is_in(term: str, choices: Sequence[ast.Expression], env: Environment) -> bool:
    error: ExpressionError | None = None
    for choice in choices:
        try:
            if functions.equal(term, evaluate(choice, env)):
                return True
        except ExpressionError as e:
            error = e
    if error:
        raise error
    return False


def _call(name: str, arguments: Sequence[ast.Expression], env: Environment) -> str:
    match name:
        case "GETDURATION" | "GETSTARTTIME" | "GETENDTIME":
            if env.start is None or env.end is None:
                raise ExpressionError(f"{name} of a timeless solution")
            if name == "GETDURATION":
                return day_time_duration(env.end - env.start)
            return date_time(env.start if name == "GETSTARTTIME" else env.end)
        case "NOW" if env.known == AFTER and env.end is not None:
            raise Undetermined("the time of what only the end of the stream ends")
        case "NOW":
            if env.known in (BEFORE, AFTER):
                raise ExpressionError("no instant")
            return date_time(int(env.known))
        case "BOUND":
            (variable,) = arguments
            return boolean(not isinstance(variable, ast.Var) or bool(env.mu.get(variable.name)))
        case "IF":
            condition, yes, no = arguments
            return evaluate(yes if effective_boolean_value(evaluate(condition, env)) else no, env)
        case "COALESCE":
            for argument in arguments:
                term = value_or_unbound(argument, env)
                if term:
                    return term
            raise ExpressionError("COALESCE without a value")
    return functions.call(name, [evaluate(a, env) for a in arguments])


def _aggregate(e: ast.Aggregate, env: Environment) -> str:
    """SPARQL §18.5.1 over the group's solutions in canonical order; each sees its own interval."""
    if env.members is None:
        raise ExpressionError("an aggregate outside a group")
    members = sorted(env.members, key=lambda s: (s.known, *canonical(s, env.variables)))
    if e.operand is None:
        return _integer(len({s.mu for s in members}) if e.distinct else len(members))
    terms: list[str] = []
    failed = False
    for member in members:
        term = value_or_unbound(e.operand, env.at(member))
        failed |= not term
        if term and not (e.distinct and term in terms):
            terms.append(term)
    name = e.name.upper()
    if name == "COUNT":
        return _integer(len(terms))
    if name == "SAMPLE":
        if not terms:
            raise ExpressionError("SAMPLE of nothing")
        return _folded("MIN", terms, None)
    if failed:
        raise ExpressionError(f"{name} of an error")
    return _folded(name, terms, e.separator)


def _integer(n: int) -> str:
    return literal(str(n), XSD + "integer")


def _folded(name: str, terms: list[str], separator: str | None) -> str:
    if name == "GROUP_CONCAT":
        texts = [parts(functions.string_of(t))[0] for t in terms]
        return literal((" " if separator is None else separator).join(texts))
    if name in ("MIN", "MAX"):
        if not terms:
            raise ExpressionError(f"{name} of nothing")
        best = terms[0]
        for term in terms[1:]:
            compared = order(*((term, best) if name == "MIN" else (best, term)))
            if compared < 0 or (compared == 0 and term < best):
                best = term
        blank = {term for term in terms if is_blank(term)}
        if is_blank(best) and len(blank) > 1 and any(map(is_made, blank)):
            raise Undetermined(f"{name} of several nodes, some of them made by rules")
        return best
    total = _zero()
    for term in terms:
        total = functions.calculate("+", total, term)
    if name == "SUM" or not terms:
        return total
    return functions.calculate("/", total, _integer(len(terms)))


KINDS = ("boolean", "string", "language", "dateTime", "date", "time", "duration")
"""The kinds of literals after the numbers, in the order in which ORDER BY puts them."""


def order(a: str, b: str) -> int:
    """SPARQL §15.1: unbound, blank nodes, IRIs, literals; of one kind by ``<`` where defined, else spelled.

    The standard leaves the order of the kinds of literals open; docs/semantics.md has it.
    """
    rank_a, rank_b = _rank(a), _rank(b)
    if rank_a != rank_b:
        return -1 if rank_a < rank_b else 1
    if is_literal(a):
        try:
            if functions.less(a, b):
                return -1
            if functions.less(b, a):
                return 1
            if number(a) and number(b):
                return 0
        except ExpressionError:
            pass
    return (a > b) - (a < b)


def _rank(term: str) -> int:
    if not is_literal(term):
        return 0 if not term else 1 if is_blank(term) else 2
    n = number(term)
    if n is not None:
        return 3 if n.value != n.value else 4
    _, datatype, language = parts(term)
    kind = "language" if language else (datatype.strip("<>") or XSD + "string").removeprefix(XSD)
    if kind in ("dayTimeDuration", "yearMonthDuration"):
        kind = "duration"
    return 5 + (KINDS.index(kind) if kind in KINDS else len(KINDS))
