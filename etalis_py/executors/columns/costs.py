"""How much work the columns do for a rule: by kernels, once per distinct value, or row by row in Python.

An expression that compares numbers is a kernel's, and whether a term is a given string is told by its id.  Any other
expression is evaluated once for each combination of the terms that it reads, except where times or chance come in
(``is_timed``).  Some nodes are the operators of rows, given the solutions of each instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operator_words import keyword
from etalis_rules.operators import steps

from etalis_py.executors.columns.supported_rules import (
    TIMED,
    aggregates_by_kernel,
    by_instant,
    has_one_open_run,
    is_timed,
    is_windowed,
    steps_by_pairs,
)
from etalis_py.values import SparqlError, decode

SUMMED = ("integers", "decimals", "doubles")
"""What kernels add, of one kind at a time; over a window without groups, only the first."""
FEW_TEXTS = "few values of {} are texts"
"""What must hold of the values of MIN, MAX and SAMPLE for kernels where their order is remembered between batches."""
ONE_KIND = "the values of {} are all strings or all IRIs or nearly all numbers or times"
"""The same where the values of each batch are put in order anew."""
ARITHMETIC = frozenset(("+", "-", "*", "/", "neg"))


def is_numeric(e: alg.Expr) -> bool:
    """Whether the expression consists of variables, constants and arithmetic."""
    match e:
        case alg.Var() | alg.Const():
            return True
        case alg.Apply(op, args):
            return op in ARITHMETIC and all(map(is_numeric, args))
    return False


def compares_numbers(e: alg.Expr) -> bool:
    """Whether this is a comparison, or an IN, that kernels can be expected to decide, as it is about numbers."""
    if isinstance(e, alg.Apply) and e.op == "IN":
        return len(e.args) > 1 and all(map(compares_numbers, alternatives(e.args)))
    found = alg.comparison(e)
    if found is None or not all(map(is_numeric, found[1:])):
        return False
    op, left, right = found
    operations = alg.operators(left) | alg.operators(right)
    parts = (*alg.subexpressions(left), *alg.subexpressions(right))
    constants = [_is_number(term) for part in parts if (term := alg.constant_of(part))]
    return "/" not in operations and all(constants) and bool(op not in ("=", "!=") or operations or constants)


def alternatives(args: Sequence[alg.Expr]) -> Iterator[alg.Expr]:
    """The comparisons of which one holds if the first argument is IN the list of the others."""
    return (alg.Apply("=", (args[0], other)) for other in args[1:])


def is_plain_string(term: str) -> bool:
    """Whether a term is a string without a language; two of these are equal exactly if their spellings are."""
    return term[:1] == term[-1:] == '"'


def _is_number(term: str) -> bool:
    """Whether a constant is a number whose like the kernels parse; each time is parsed in Python, so once is enough."""
    try:
        return decode(term).__class__ in (int, float, Decimal)
    except SparqlError:
        return False


def asked_once(e: alg.Expr) -> Iterator[alg.Expr]:
    """The parts of a condition, or a BIND, that are evaluated once for each combination of terms."""
    match e:
        case alg.Var() | alg.Const() | alg.Apply("BOUND", (alg.Var(),)):
            return
        case alg.Apply("&&" | "||" | "!", args):
            for arg in args:
                yield from asked_once(arg)
        case _ if not compares_numbers(e) and not is_timed(e):
            yield e


def by_value(node: ir.Node) -> tuple[str, ...]:
    """The functions and operators of a node that are evaluated once per distinct value."""
    parts = [part for e in _expressions(node) for part in asked_once(e)]
    return tuple(dict.fromkeys(part.op for part in parts if isinstance(part, alg.Apply)))


def row_by_row(node: ir.Node, late: bool) -> str | None:
    """What in a node is done for each solution or instant in Python, if anything is."""
    match node:
        case ir.Group() if not aggregates_by_kernel(node):
            return "an aggregate"
        case ir.Slice() if NAME in node.child.columns:
            return "ORDER BY or LIMIT of a sub-SELECT in each of several queries"
        case ir.Skip():
            return "SKIP or THROTTLE"
        case ir.Closure():
            return "a path"
    timed = [part.op for e in _expressions(node) for part in alg.subexpressions(e) if isinstance(part, alg.Apply)]
    chance = next((op for op in timed if op in TIMED), None)
    if chance is not None and by_instant(node, late) is None:
        return "an expression that is drawn" if chance == "SEED" else "an expression over times"
    return by_instant(node, late)


def aggregated_while(
    calls: Iterable[alg.AggregateCall], *, kinds: Sequence[str], compared_as: str = FEW_TEXTS
) -> str | None:
    """What must hold of the values that kernels aggregate; the operator of rows goes on with any others.

    ``compared_as`` says it of those of MIN, MAX and SAMPLE.
    """
    names = list(dict.fromkeys(call.name for call in calls))
    summed = ", ".join(name for name in names if name in ("SUM", "AVG"))
    compared = ", ".join(name for name in names if name in ("MIN", "MAX", "SAMPLE"))
    numbers = " or ".join(f"all {kind}" for kind in kinds)
    parts = [f"the values of {summed} are {numbers}, and their totals fit"] if summed else []
    parts += [compared_as.format(compared)] if compared else []
    return " and ".join(parts) or None


def by_kernel_while(node: ir.Node) -> str | None:
    """What must hold of its input for kernels to evaluate a node; None if nothing must, or if no kernel does."""
    if has_one_open_run(node) or steps_by_pairs(node):
        chain = f"elements of the {keyword(node)} that agree on its BY variables come one after another"
        running = has_one_open_run(node)
        values = None if running else aggregated_while(node.aggregates, kinds=SUMMED, compared_as=ONE_KIND)
        return chain if values is None else f"{chain} and {values}"
    if not isinstance(node, ir.Group) or not aggregates_by_kernel(node):
        return None
    kinds = SUMMED[:1] if is_windowed(node) else SUMMED
    return aggregated_while(node.aggregates, kinds=kinds, compared_as=ONE_KIND)


def _expressions(node: ir.Node) -> Iterable[alg.Expr]:
    """The conditions, BINDs and operands of a node that are evaluated over columns."""
    if isinstance(node, ir.Group):
        if not aggregates_by_kernel(node):
            return ()
        operands = (call.operand for call in node.aggregates if call.operand is not None)
        return [*operands, *node.having, *(e for _, e in node.extends)]
    if steps_by_pairs(node) or has_one_open_run(node):
        return map(alg.elements_named, node.condition)
    return [step.expression for step in steps(node) if isinstance(step, (ir.Condition, ir.Assign))]
