"""A WITHIN, SKIP, DISJOINT or THROTTLE of the last group of a sequence alone, where the whole is probably meant.

    { {A} SEQ {B} SEQ {C} WITHIN 100 s }      bounds C, for WITHIN belongs to the group directly before it
    { {A} SEQ {B} THROTTLE 1 h BY ?key }      keeps one B an hour, and all matches of it

Nothing is told of a C that takes several events, which may well have a bound of its own, nor where another group of
the sequence has one, nor of ``SEQ { {C} WITHIN 100 s }``, which can only mean C.
"""

from __future__ import annotations

from . import ast
from .diagnostics import Diagnostic, Source, shorten


def last_bounds(group: ast.Group, source: Source) -> list[Diagnostic]:
    """A warning for each sequence in a group whose last part alone has such a clause."""
    return [_warning(e, bound, source) for e in group.elements if (bound := _last_bound(e)) is not None]


def _last_bound(sequence: object) -> ast.Within | ast.Skip | None:
    operands = _operands(sequence)
    if len(operands) < 2 or any(isinstance(one, ast.Within | ast.Skip) for one in operands[:-1]):
        return None
    last = operands[-1]
    return last if isinstance(last, ast.Within | ast.Skip) and _is_one_event(_inside(last)) else None


def _inside(pattern: ast.Element) -> ast.Element:
    """The group before its clauses."""
    while isinstance(pattern, ast.Within | ast.Skip):
        pattern = pattern.pattern
    return pattern


def _operands(pattern: object) -> list[object]:
    """The groups that a chain of temporal operators relates, from left to right; what stands in braces is one group."""
    if not isinstance(pattern, ast.SeqNot | ast.SeqOptional) and not (
        isinstance(pattern, ast.Combined) and ast.keyword(pattern)
    ):
        return [pattern]
    return [operand for side, _ in ast.sides(pattern) for operand in _operands(side)]


def _is_one_event(pattern: object) -> bool:
    """Whether a single event makes each solution."""
    match ast.alone(pattern):
        case ast.Triples((ast.TriplePattern(predicate=ast.Var() | ast.Term()),)) | ast.EventGroup():
            return True
        case ast.StreamGroup(group=group):
            return _is_one_event(group)
        case ast.Group(elements):
            parts = [e for e in elements if not isinstance(e, ast.Filter | ast.Bind)]
            return len(parts) == 1 and _is_one_event(parts[0])
    return False


def _warning(sequence: ast.Element, bound: ast.Within | ast.Skip, source: Source) -> Diagnostic:
    def text(node: ast.Element) -> str:
        return source.text[node.span.start : node.span.end]

    group = _inside(bound)
    last, clause = text(group), text(bound)[len(text(group)) :].strip()
    bounds = isinstance(bound, ast.Within)
    whole = source.text[sequence.span.start : group.span.end]
    return source.diagnostic(
        "warning",
        "last-bound",
        f"this {clause} {'bounds' if bounds else 'is about'} {shorten(last)} alone, a single event, and not what "
        "stands before it",
        bound.span.start,
        bound.span.end,
        hint=f"{'to bound all of it' if bounds else 'for all of it'}, write {{ {' '.join(whole.split())} }} {clause}; "
        f"if the last group is meant, write {{ {' '.join(last.split())} {clause} }}",
    )
