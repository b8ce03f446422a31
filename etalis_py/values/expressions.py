"""Expressions as Python source.

A filter conjunct or a BIND is written into the body of a generated function as one Python expression; nothing walks an
expression tree while events flow.  Errors of SPARQL are ``SparqlError`` exceptions: in a condition an error counts as
false, so conjunction needs no three-valued logic there (``strict=False``); below a negation or inside a function it
does.

``Emitter`` writes the source; ``Bindings`` says what a variable is called in the function being written;
``GlobalNames`` collects the objects that the source refers to.  ``condition`` and ``term`` make ordinary functions of
expressions, for everything that is not generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, Protocol

from etalis_rules import algebra as alg
from etalis_rules.digits import LONG
from etalis_rules.places import SOURCE, source_time
from etalis_rules.terms import parts

from etalis_py.values import (
    ORDERED,
    SparqlError,
    add,
    and_,
    decode,
    div,
    ebv,
    encode,
    eq,
    ge,
    gt,
    in_,
    le,
    lt,
    mul,
    ne,
    neg,
    not_,
    or_,
    pos,
    sub,
)
from etalis_py.values.functions import FUNCTIONS, FunctionSpec, UnknownFunction, find_function
from etalis_py.values.generated import CompiledText
from etalis_py.values.intervals import TIME_FUNCTIONS, span_compare, span_equals
from etalis_py.values.types import to_double

COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "<": ("lt", lt),
    "<=": ("le", le),
    ">": ("gt", gt),
    ">=": ("ge", ge),
    "=": ("eq", eq),
    "!=": ("ne", ne),
}
LEVELS = 16  # of an expression that are nested inline; deeper parts get functions of their own
_ARITHMETIC: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("add", add),
    "-": ("sub", sub),
    "*": ("mul", mul),
    "/": ("div", div),
}


def seed_of(*key: object) -> bytes:
    """The seed of RAND, UUID and BNODE: a function of the solution they stand in, so that a replay repeats itself."""
    return blake2b(repr(key).encode(), digest_size=16).digest()


FLOATS: frozenset[type] = frozenset((float,))
PLAIN: frozenset[type] = frozenset((int, float))
"""Between two values of one of these classes Python's ``+ -`` are SPARQL's; a product of integers is bounded."""

_WITH_CONTEXT = frozenset(name for name, spec in FUNCTIONS.items() if spec.context in ("base", "seed"))
"""The functions whose last argument the compiler adds: the base IRI, or the seed of the call."""


@dataclass(slots=True)
class GlobalNames:
    """The global names of generated source: objects under stable names, each object once."""

    objects: dict[str, Any] = field(default_factory=dict)
    _by_key: dict[tuple[str, object], str] = field(default_factory=dict)

    def use(self, name: str, value: Any) -> str:
        """A named object (a function of the library)."""
        self.objects[name] = value
        return name

    def constant(self, key: object, value: Any) -> str:
        """An object without a name of its own; ``key`` says when two are the same."""
        name = self._by_key.get((type(value).__name__, key))
        if name is None:
            name = f"K{len(self._by_key)}"
            self._by_key[(type(value).__name__, key)] = name
            self.objects[name] = value
        return name


@dataclass(frozen=True, slots=True)
class Bindings:
    """The names of an expression's inputs in a function: Python source for terms, decoded values, start, end, instant.

    ``values`` holds variables whose decoded value is at hand; ``exists`` is the source of a function for EXISTS, or
    empty where none can occur.
    """

    terms: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)
    start: str = "start"
    end: str = "end"
    now: str = "end"
    exists: str = ""


@dataclass(slots=True)
class Emitter:
    """Writes expressions for one function."""

    names: GlobalNames
    bindings: Bindings
    temporaries: int = 0
    level: int = 0
    ready: dict[alg.Expr, str] = field(default_factory=dict)
    """Values that are already in a Python variable, by expression."""

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"_{self.temporaries}"

    # --- terms and values ---

    def term(self, e: alg.Expr) -> str:
        """Source of the term an expression yields; it may raise."""
        match e:
            case alg.Var(name):
                return self.bindings.terms.get(name, "''")
            case alg.Const(term):
                return repr(term)
            case alg.Apply() if self.level == LEVELS:
                return self._apart(e, "term")
        with self._deeper():
            return self._computed_term(e)

    def _computed_term(self, e: alg.Expr) -> str:
        match e:
            case alg.Apply("COALESCE" | "IF" as op, args):
                # The chosen argument keeps its lexical form.
                first = [f"lambda: {self.value(args[0])}"] if op == "IF" else []
                chosen = [f"lambda: {self._bound_term(a)}" for a in args[len(first) :]]
                spec = find_function(op, len(args))
                return f"{self.names.constant(spec.name, spec.call)}({', '.join(first + chosen)})"
            case alg.Apply(op, args):
                spec = self._function(op, args)  # type: ignore[assignment]
                if spec is not None and spec.gives == "term":
                    return self._call(spec, args)
        return f"{self.names.use('encode', encode)}({self.value(e)})"

    def value(self, e: alg.Expr) -> str:
        """Source of the value an expression yields; it may raise."""
        if e in self.ready:
            return self.ready[e]
        match e:
            case alg.Var(name):
                known = self.bindings.values.get(name)
                return known or f"{self.names.use('decode', decode)}({self.bindings.terms.get(name, repr(''))})"
            case alg.Const(term):
                return self._constant(decode(term), term)
            case alg.Exists():
                return self._exists(e)
            case alg.Apply() if self.level == LEVELS:
                return self._apart(e, "value")
            case alg.Apply(op, args):
                with self._deeper():
                    return self._apply(op, args)
        raise TypeError(f"not an expression: {e!r}")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    def _apart(self, e: alg.Expr, kind: Literal["value", "term", "test"]) -> str:
        """A call of a separate function, as Python limits the nesting of brackets and lambdas."""
        variables = sorted(alg.variables(e))
        names = GlobalNames()
        inner = Emitter(names, Bindings({v: f"x{i}" for i, v in enumerate(variables)}, now="now", exists="exists"))
        given = ", ".join(("start, end, now, exists", *(f"x{i}" for i in range(len(variables)))))
        text = f"def apart({given}):\n    return {getattr(inner, kind)(e)}\n"
        function = self.names.constant((kind, e), define(text, "apart", names))
        b = self.bindings
        terms = (b.terms.get(v, "''") for v in variables)
        return f"{function}({', '.join((b.start, b.end, b.now, b.exists or 'None', *terms))})"

    def _constant(self, value: Any, term: str) -> str:
        if (value.__class__ is int and len(term) < LONG) or value.__class__ is str or value.__class__ is bool:
            return repr(value)
        return self.names.constant(term, value)

    def _apply(self, op: str, args: tuple[alg.Expr, ...]) -> str:
        if op in COMPARISONS:
            return self._compare(op, *args)
        if op in _ARITHMETIC:
            return self._calculate(op, *args)
        match op:
            case "&&":
                thunks = ", ".join(f"lambda: {self.value(a)}" for a in args)
                return f"{self.names.use('and_', and_)}({thunks})"
            case "||":
                thunks = ", ".join(f"lambda: {self.value(a)}" for a in args)
                return f"{self.names.use('or_', or_)}({thunks})"
            case "!":
                if _cannot_fail(args[0]):
                    return f"(not {self.value(args[0])})"
                return f"{self.names.use('not_', not_)}({self.value(args[0])})"
            case "neg":
                return f"{self.names.use('neg', neg)}({self.value(args[0])})"
            case "pos":
                return f"{self.names.use('pos', pos)}({self.value(args[0])})"
            case "IN":
                return self._in(args)
            case "BOUND":
                return f"({self.term(args[0])} != '')"
        if op in TIME_FUNCTIONS:
            name = self.names.use(op.lower(), TIME_FUNCTIONS[op])
            return f"{name}({', '.join(self._interval(args))})"
        spec = self._function(op, args)
        if spec is None:
            raise UnknownFunction(f"{op} is not a function this engine knows")
        call = self._call(spec, args)
        return f"{self.names.use('decode', decode)}({call})" if spec.gives == "term" else call

    def _calculate(self, op: str, left: alg.Expr, right: alg.Expr) -> str:
        """Arithmetic: Python's own where it is SPARQL's (two integers, two doubles), else the library's."""
        name, function = _ARITHMETIC[op]
        exact = self.names.use(name, function)
        if op == "/":
            return f"{exact}({self.value(left)}, {self.value(right)})"
        for one, other, order in ((left, right, "{0} {1} {2}"), (right, left, "{2} {1} {0}")):
            number = decode(other.term) if isinstance(other, alg.Const) else None
            if number.__class__ in (int, float, Decimal) and not isinstance(one, alg.Const):
                a, constant = self._temporary(), self.value(other)
                as_double = self.names.constant(("double", other), to_double(number))
                fast = order.format(a, op, as_double)
                call = f"{exact}({a}, {constant})" if one is left else f"{exact}({constant}, {a})"
                return f"({fast} if ({a} := {self.value(one)}).__class__ is float else {call})"
        a, b = self._temporary(), self._temporary()
        plain = self.names.use("FLOATS", FLOATS) if op == "*" else self.names.use("PLAIN", PLAIN)
        return (
            f"({a} {op} {b} if ({a} := {self.value(left)}).__class__ is ({b} := {self.value(right)}).__class__"
            f" and {a}.__class__ in {plain} else {exact}({a}, {b}))"
        )

    def _compare(self, op: str, left: alg.Expr, right: alg.Expr) -> str:
        python = "==" if op == "=" else op
        if isinstance(left, alg.Apply) and left.op == "GETDURATION":
            return self._span(python, left, right)
        if isinstance(right, alg.Apply) and right.op == "GETDURATION":
            mirrored = alg.MIRRORED[op]
            return self._span("==" if mirrored == "=" else mirrored, right, left)
        a, b = self._temporary(), self._temporary()
        name, function = COMPARISONS[op]
        slow = f"{self.names.use(name, function)}({a}, {b})"
        one, other = f"({a} := {self.value(left)})", f"({b} := {self.value(right)})"
        ordered = self.names.use("ORDERED", ORDERED)
        return f"({a} {python} {b} if {one}.__class__ is {other}.__class__ and {a}.__class__ in {ordered} else {slow})"

    def _interval(self, args: tuple[alg.Expr, ...]) -> tuple[str, str]:
        """Source of the start and the end that a function of the interval is about."""
        return self._time(self.bindings.start, args), self._time(self.bindings.end, args)

    def _time(self, tick: str, args: tuple[alg.Expr, ...]) -> str:
        return f"{self.names.use('source_time', source_time)}({tick})" if args == SOURCE else tick

    def _span(self, python: str, duration: alg.Apply, limit: alg.Expr) -> str:
        arguments = f"({', '.join((*self._interval(duration.args), self.value(limit)))})"
        if python in ("==", "!="):
            return f"({self.names.use('span_equals', span_equals)}{arguments} {python} True)"
        return f"({self.names.use('span_compare', span_compare)}{arguments} {python} 0)"

    def _in(self, args: tuple[alg.Expr, ...]) -> str:
        thunks = ", ".join(f"lambda: {self.value(a)}" for a in args[1:])
        choices = f"({thunks},)" if thunks else "()"
        return f"{self.names.use('in_', in_)}({self.value(args[0])}, {choices})"

    def _exists(self, e: alg.Exists) -> str:
        if not self.bindings.exists:
            raise UnknownFunction("EXISTS is not allowed here; move it into a FILTER of the WHERE clause")
        return f"{self.bindings.exists}({self.names.constant(e.pattern, e.pattern)})"

    # --- functions ---

    def _function(self, op: str, args: tuple[alg.Expr, ...]) -> FunctionSpec | None:
        if alg.is_function_iri(op):
            return find_function(op[1:-1], len(args))
        if not op[:1].isalpha() or op in ("IN", "BOUND") or op in TIME_FUNCTIONS or op in ("neg", "pos"):
            return None
        return find_function(op, len(args) - (op in _WITH_CONTEXT or args == SOURCE))

    def _call(self, spec: FunctionSpec, args: tuple[alg.Expr, ...]) -> str:
        context: list[str] = []
        match spec.context:
            case "base":
                *args, base = args  # type: ignore[assignment]
                context = [repr(parts(base.term)[0])]  # type: ignore[union-attr]
            case "instant":
                context = [self._time(self.bindings.now, args)]
                args = ()
            case "seed":
                *args, seed = args  # type: ignore[assignment]
                context = self._seed(seed)
        match spec.takes:
            case "term":
                given = [self._bound_term(a) for a in args]
            case "thunk":
                given = [f"lambda: {self.value(a)}" for a in args]
            case _:
                given = [self.value(a) for a in args]
        name = self.names.constant(spec.name, spec.call)
        return f"{name}({', '.join(context + given)})"

    def _seed(self, seed: alg.Expr) -> list[str]:
        """The seed and the number of a call, as ``etalis_compiler.random_seeds`` wrote them into the expression."""
        number, *drawn_from = seed.args  # type: ignore[union-attr]
        terms = ", ".join(self.term(v) for v in drawn_from)
        return [
            f"{self.names.use('seed_of', seed_of)}({self.bindings.start}, {self.bindings.end}, {terms})",
            parts(number.term)[0],  # type: ignore[union-attr]
        ]

    def _bound_term(self, e: alg.Expr) -> str:
        source = self.term(e)
        if isinstance(e, alg.Var):
            return f"{self.names.use('bound', bound)}({source})"
        return source

    # --- conditions ---

    def test(self, e: alg.Expr) -> str:
        """Source that is true exactly when the expression is; it may raise where the expression is an error."""
        match e:
            case alg.Apply("&&" | "||") if self.level == LEVELS:
                return self._apart(e, "test")
            case alg.Apply("||"):
                *tried, last = _disjuncts(e)
                with self._deeper():
                    return f"({' or '.join([*map(self._tried, tried), self.test(last)])})"
            case alg.Apply("&&", args):
                with self._deeper():
                    return f"({' and '.join(map(self.test, args))})"
            case alg.Apply(op, _) if op in COMPARISONS or op in ("BOUND", "!", "IN", "SAMETERM"):
                return self.value(e)
            case alg.Exists():
                return self.value(e)
        return f"{self.names.use('ebv', ebv)}({self.value(e)})"

    def truth(self, e: alg.Expr) -> str:
        """Source of whether the expression is true; it raises exactly where the expression is an error."""
        is_condition = isinstance(e, alg.Apply) and (e.op in COMPARISONS or e.op in ("BOUND", "!", "IN", "SAMETERM"))
        return self.value(e) if is_condition else f"{self.names.use('ebv', ebv)}({self.value(e)})"

    def _tried(self, e: alg.Expr) -> str:
        """The test of an alternative, whose error is not that of the whole."""
        test = self.test(e)
        return test if _cannot_fail(e) else f"{self.names.use('holds', holds)}(lambda: {test})"


def _disjuncts(e: alg.Expr) -> list[alg.Expr]:
    """The alternatives of a chain of ``||``, from left to right."""
    waiting, flat = [e], list[alg.Expr]()
    while waiting:
        match waiting.pop():
            case alg.Apply("||", args):
                waiting += reversed(args)
            case other:
                flat.append(other)
    return flat


def bound(term: str) -> str:
    """The term, or the error that it is unbound."""
    if not term:
        raise SparqlError("the variable is unbound")
    return term


def holds(thunk: Callable[[], Any]) -> bool:
    """Whether it is true; an error is not."""
    try:
        return bool(thunk())
    except SparqlError:
        return False


def _cannot_fail(e: alg.Expr) -> bool:
    match e:
        case alg.Apply("BOUND", _) | alg.Exists():
            return True
        case alg.Apply("!", (inner,)):
            return _cannot_fail(inner)
        case alg.Apply("&&" | "||", args):
            return all(map(_cannot_fail, args))
    return False


# --- ordinary functions of expressions -------------------------------------------------------------------------


class Context(Protocol):
    """What an expression may use beyond its solution."""

    now: int

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool: ...


Solution = Mapping[str, str]


def _function_source(e: alg.Expr, names: GlobalNames) -> Emitter:
    terms = {v: f"mu.get({v!r}, '')" for v in alg.variables(e)}
    bindings = Bindings(
        terms,
        now="context.now",
        exists="(lambda pattern: context.exists(pattern, mu, start, end))",
    )
    return Emitter(names, bindings)


@lru_cache(maxsize=4096)
def condition(e: alg.Expr) -> Callable[[Solution, int, int, Any], bool]:
    """The expression as a test of a solution: ``f(mu, start, end, context)``; an error is False."""
    names = GlobalNames()
    source = _function_source(e, names).test(e)
    text = (
        "def condition(mu, start, end, context):\n"
        f"    try:\n        return bool({source})\n    except SparqlError:\n        return False\n"
    )
    return define(text, "condition", names)  # type: ignore[no-any-return]


@lru_cache(maxsize=4096)
def term(e: alg.Expr) -> Callable[[Solution, int, int, Any], str]:
    """The expression as a function that gives the term; an error gives the empty string (unbound)."""
    names = GlobalNames()
    source = _function_source(e, names).term(e)
    text = (
        "def term(mu, start, end, context):\n"
        f"    try:\n        return {source}\n    except SparqlError:\n        return ''\n"
    )
    return define(text, "term", names)  # type: ignore[no-any-return]


def define(text: str, name: str, names: GlobalNames) -> Any:
    """The function ``name`` that this source defines."""
    scope = {**names.objects, "SparqlError": SparqlError}
    CompiledText(text, f"expression {name}").run(scope)
    return scope[name]
