"""SEQ OPTIONAL as the union of the sequences that it stands for, one for each choice of the parts that come.

    {A} SEQ OPTIONAL {B} SEQ {C}      ↦   {A} SEQ {B} SEQ {C}  UNION  {A} SEQ NOT {B} SEQ {C}
    {A} SEQ OPTIONAL {B} WITHIN d     ↦   {A} SEQ {B}, which ends at most d after A  UNION  {A} SEQ NOT {B} WITHIN d

No solution is in two branches: of the same A and C, what one branch must have in a gap is what the other must not have.
Equal parts of the branches become one node.  The two parts that do not come in {A} SEQ OPTIONAL {B} SEQ OPTIONAL {C}
SEQ {D} are absent from the same gap, as {B} UNION {C} is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from etalis_rules import algebra as alg
from etalis_rules.relations import Op
from etalis_rules.terms import TRUE

from . import ast
from .across import Conditions
from .triple_blocks import FreshNames, error

Names = frozenset[str]
NONE: Names = frozenset()
Part = tuple[alg.Pattern, Conditions]
"""A part, and those of its filters that also read what stands to its left."""
After = Callable[[alg.Pattern], Part]
"""An optional part, given the pattern to its left."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A part that comes, what must not come in the gap before it, and its filters that read what stands to its left."""

    pattern: alg.Pattern
    absent: tuple[Part, ...]
    condition: Conditions = ()


def in_time(left: alg.Pattern, optional: After, bound: alg.Bound) -> alg.Pattern:
    """``{left} SEQ OPTIONAL {…} WITHIN bound``."""
    part, condition = optional(left)
    present = alg.filtered(alg.Join(Op.SEQ, left, part, deadline=bound), condition)
    return alg.Union(present, alg.Absence(left, part, None, bound, condition, optional=True))


def in_sequence(
    left: alg.Pattern, optionals: Sequence[After], right: alg.Pattern, names: FreshNames, span: ast.Span
) -> alg.Pattern:
    """``{left} SEQ OPTIONAL {…} … SEQ {right}``."""
    branches = []
    for come in product((True, False), repeat=len(optionals)):
        branch = _nested(left, _steps(left, optionals, come, right), NONE, names)
        if branch is None:
            raise error(
                span,
                "seq-optional",
                "an optional part shares a variable with a later part that the parts around its gap may leave unbound, "
                "and there are optional parts between them",
                "bind the variable in the first part, or write the alternatives with UNION",
            )
        branches.append(branch)
    return reduce(alg.Union, branches)


def _steps(left: alg.Pattern, optionals: Sequence[After], come: Sequence[bool], right: alg.Pattern) -> list[_Step]:
    """The parts after the first one, given which of the optional ones come."""
    steps: list[_Step] = []
    absent: tuple[Part, ...] = ()
    for optional, comes in zip(optionals, come, strict=True):
        part, condition = optional(left)
        if comes:
            steps.append(_Step(part, absent, condition))
            left, absent = alg.Join(Op.SEQ, left, part), ()
        else:
            absent = (*absent, (part, condition))
    return [*steps, _Step(right, absent)]


def _nested(left: alg.Pattern, steps: Sequence[_Step], outside: Names, names: FreshNames) -> alg.Pattern | None:
    """The sequence as nested pairs, from the left as far as possible; None where it cannot be said so.

    What is absent is compared with the solutions of the pair around its gap.  It has to be compatible with the whole
    solution, so a variable that it shares with a part outside of the pair must be bound inside.  Where a part that
    follows is in the way, all that follows becomes the right side of the pair; this right side must then not read what
    stands to its left.  ``outside``: the variables of parts that stand to the left of the whole.
    """
    for i, step in enumerate(steps):
        rest = steps[i + 1 :]
        following = NONE.union(*(alg.scope(later.pattern) for later in rest))
        shared = NONE.union(*(alg.scope(part) for part, _ in step.absent)) & (following | outside)
        if shared <= alg.certain(left) | alg.certain(step.pattern):
            left = _pair(left, step, names)
            continue
        right = None if _reads_left(step, rest) else _nested(step.pattern, rest, outside | alg.scope(left), names)
        if right is None or not shared & outside <= alg.certain(left) | alg.certain(right):
            return None
        return _pair(left, _Step(right, step.absent), names)
    return left


def _reads_left(step: _Step, rest: Sequence[_Step]) -> bool:
    """Whether a filter of the parts from this one on reads what stands to the left of it."""
    return bool(step.condition) or any(s.condition or any(c for _, c in s.absent) for s in rest)


def _pair(left: alg.Pattern, step: _Step, names: FreshNames) -> alg.Pattern:
    if not step.absent:
        return alg.filtered(alg.Join(Op.SEQ, left, step.pattern), step.condition)
    absent, condition = _any_of(step.absent, names)
    return alg.filtered(alg.Absence(left, absent, step.pattern, None, condition, optional=True), step.condition)


def _any_of(parts: Sequence[Part], names: FreshNames) -> Part:
    """The union of some parts; where there are several, a mark tells to which of them a condition belongs."""
    if len(parts) == 1:
        return parts[0]
    marked: list[alg.Pattern] = []
    conditions: Conditions = ()
    for part, condition in parts:
        if condition:
            mark = alg.Var(names.fresh("o"))
            part = alg.Extend(part, mark.name, alg.Const(TRUE))
            other = alg.Apply("!", (alg.Apply("BOUND", (mark,)),))
            conditions += tuple(alg.Apply("||", (other, test)) for test in condition)
        marked.append(part)
    return reduce(alg.Union, marked), conditions
