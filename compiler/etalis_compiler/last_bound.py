"""A WITHIN that bounds the last group of a sequence alone, where it says next to nothing: the whole is probably meant.

    { {A} SEQ {B} SEQ {C} WITHIN 100 s }      bounds C, for WITHIN belongs to the group directly before it

Nothing is told of a C that takes several events, which may well have a bound of its own, nor where another group of
the sequence has one, nor of ``SEQ { {C} WITHIN 100 s }``, which can only mean C.
"""

from __future__ import annotations

from . import ast
from .diagnostics import Diagnostic, Source, shorten


def last_bounds(group: ast.Group, source: Source) -> list[Diagnostic]:
    """A warning for each sequence of a group that ends so."""
    return [_warning(e, bound, source) for e in group.elements if (bound := _last_bound(e)) is not None]


def _last_bound(sequence: object) -> ast.Within | None:
    operands = _operands(sequence)
    if len(operands) < 2 or any(isinstance(one, ast.Within) for one in operands[:-1]):
        return None
    last = operands[-1]
    return last if isinstance(last, ast.Within) and _is_one_event(last.pattern) else None


def _operands(pattern: object) -> list[object]:
    """The groups of a chain of operators that relate them in time, as they are written without braces of their own."""
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


def _warning(sequence: ast.Element, bound: ast.Within, source: Source) -> Diagnostic:
    def text(node: ast.Element) -> str:
        return source.text[node.span.start : node.span.end]

    last, length = text(bound.pattern), text(bound)[len(text(bound.pattern)) :].strip()
    whole = source.text[sequence.span.start : bound.pattern.span.end]
    return source.diagnostic(
        "warning",
        "last-bound",
        f"this {length} bounds {shorten(last)} alone, a single event, and not what stands before it",
        bound.span.start,
        bound.span.end,
        hint=f"to bound all of it, write {{ {' '.join(whole.split())} }} {length}; if the last group is meant, write "
        f"{{ {' '.join(last.split())} {length} }}",
    )
