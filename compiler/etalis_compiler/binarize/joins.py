"""The joins: AND, SEQ, EQUALS, Allen's relations and the others of ``relations.Op``."""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op

from ..known_at_end import settled
from .absence import longer, timed
from .builder import Lowered, LoweringContext, Names, NodeBuilder, guard, look_up, reads, steps, unite
from .exists import filter_exists, watched


def lower_join(pattern: alg.Join, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """Lower a join to the node At op Bt, and a look-up of each side's timeless solutions for the other's timed ones."""
    wanted, conditions, bound = above
    read = wanted | reads(pattern.condition)
    left_scope, right_scope = alg.scope(pattern.left), alg.scope(pattern.right)
    op = pattern.op
    certain = alg.certain(pattern.left) & alg.certain(pattern.right)
    key = certain if b.consuming and op is not Op.AND else None
    policy = b.policy if b.consuming and op is not Op.AND else ""
    # A bound on the right side of a nearest relation decides what is next: it stays, even if the whole has the same.
    begins = alg.is_start(pattern.left)
    word = alg.only_forward(pattern) or ("SEQ" if begins else "")
    second = pattern.right if word else _freed(pattern.right, bound)
    with b.sides(policy):
        left = b.lower(
            _freed(pattern.left, bound),
            _decisive((read | right_scope) & left_scope, b.ordering(pattern.left), key),
        )
        right = b.lower(second, _decisive((read | left_scope) & right_scope, b.ordering(pattern.right), key))
    if word:
        timed(left, word)
        timed(right, word)
    settled(left.late)
    settled(right.late)
    asking = tuple(c for c in conditions if alg.has_exists(c))  # only under a policy: see ``takes``
    plain = above._replace(conditions=tuple(c for c in conditions if c not in asking))
    pairs: list[ir.Ref] = []
    if left.timed is not None and right.timed is not None:
        columns = frozenset(left.timed.columns) | frozenset(right.timed.columns)
        head = tuple(sorted(columns if b.consuming else columns & wanted))
        late = b.late(left.timed, right.timed)
        tests = steps((*plain.conditions, *asking), bound if begins or late else None)
        kept = b.kept_for(bound, left.timed, right.timed)
        bound = longer(kept) if begins else kept
        leaves = watched((*asking, *filter(alg.has_exists, pattern.condition)), b)
        sides = (left.timed, right.timed, tuple(sorted(certain)))
        across, due = steps(pattern.condition), longer(pattern.deadline) if begins else pattern.deadline
        node = ir.Join(head, op, *sides, tests, bound, policy, leaves=leaves, condition=across, deadline=due)
        pairs.append(b.add(node))
    looked: list[ir.Ref] = []
    if left.timed is not None and right.timeless is not None:
        looked.append(look_up(left.timed, right.timeless, plain, b))
    if left.timeless is not None and right.timed is not None:
        looked.append(look_up(right.timed, left.timeless, plain, b))
    timeless = None
    if left.timeless is not None and right.timeless is not None:
        timeless = guard(alg.conjoin(left.timeless, right.timeless), plain.conditions)
    if not asking or not (looked or timeless is not None):
        return Lowered(unite([*pairs, *looked], wanted, b), timeless)
    # A policy only chooses among timed candidates; EXISTS on the other solutions is tested as for any pattern.
    rest = filter_exists(Lowered(unite(looked, wanted, b), timeless), alg.certain(pattern), b, asking)
    return rest._replace(timed=unite(pairs if rest.timed is None else [*pairs, rest.timed], wanted, b))


def _decisive(read: Names, ordering: Names, key: Names | None) -> Names:
    """The variables that a side must carry, given those read above; ``key`` is that of a join that consumes.

    All variables decide which candidate is taken.  But if nothing but the key is read, candidates with the same key and
    interval are interchangeable, so any of them may be taken.
    """
    return read if key is None or read <= key else read | ordering


def _freed(side: alg.Pattern, bound: alg.Bound | None) -> alg.Pattern:
    """The side without its bound, if it is a single triple and the join has the same bound, which tests the whole."""
    match side:
        case alg.Filter(child, conditions):
            return alg.Filter(_freed(child, bound), conditions)
        case alg.Within(alg.BGP(triples) as child, own) if len(triples) == 1 and own == bound:
            return child
    return side
