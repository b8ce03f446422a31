"""Outer nodes: a mandatory left and an optional right, over a batch.

OPTIONAL joins a left with every compatible right that ended by the end of the left, OPTIONALSEQ with every one that
ended before the left began, EQUALSOPTIONAL with every one of the same interval; a left without a partner is reported
alone.  MINUS drops a left if it has a compatible right that shares a variable of ``scope`` with it.  EXISTS says in the
column ``mark`` whether there is a compatible right.

Rights that come later change nothing, and all rights of a batch are stored before its lefts are looked at; so each left
is decided once.

Cost: as for a join, but of MINUS and EXISTS without a condition a look at one goal.  A WITHIN around an OPTIONAL or
OPTIONALSEQ is the bound of the join; older rights are looked at only by lefts that found none, and without a condition
that is one goal.  State: all rights (within the bound, where the condition has one; the first of each key and those
within a WITHIN, where no condition looks at others); of EQUALSOPTIONAL none.

A trace of ``{?c :q ?y} OPTIONAL {?c :p ?x}``: p 1@1 waits; q 2@2 gives (1, 2); p 3@3 waits; q 4@4 gives (1, 4), (3, 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import is_decided_by_key
from etalis_rules.relations import ASKED, LEFT_LAST, TOGETHER, OuterOp
from etalis_rules.sides import equal_sides
from etalis_rules.terms import FALSE, TRUE

from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps, longest_micros
from etalis_py.executors.columns.join_comparisons import split_conditions
from etalis_py.executors.columns.joins import NO_OPERATORS, Waiting, compatible, timed_keys
from etalis_py.executors.columns.kernels.consuming import pick, remove_marked
from etalis_py.executors.columns.kernels.joining import ANY, BEFORE, UNBOUNDED, UNTIL
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.tables import NO_TIMES, SolutionTable, canonical, concat_tables, first_end, in_order
from etalis_py.executors.columns.terms import Terms
from etalis_py.sparql import prepare

WIDER = 8
"""How many times as far back lefts without a partner look each time."""
_RELATIONS = {OuterOp.OPTIONALSEQ: BEFORE, OuterOp.EQUALSOPTIONAL: ANY}


class OuterOperator:
    """One outer node and the rights that wait at it."""

    def __init__(self, node: ir.Outer, shown: alg.Bound | None, terms: Terms, sources: Sources) -> None:
        """``shown``: how long a right is still shown at most, where something says how long."""
        self.node = node
        self.terms = terms
        self.sources = sources
        self.left = node.left.columns
        self.right = () if node.right is None else node.right.columns
        self.compared, rest = split_conditions(node.condition, self.right, self.left, node.certain)
        self.rest, self.asked = RuleSteps(rest, sources), RuleSteps(node.condition, sources)
        self.after = RuleSteps(node.steps, sources)
        decided = is_decided_by_key(node)
        self.shown = longest_micros(shown)
        self.first = self.shown is not None and decided
        """Whether of each key only the first right is kept, and those that are still shown."""
        self.longest = self.shown if self.first else longest_micros(node.bound)
        self.lasting = sources.longest(node.bound)
        self.bound = UNBOUNDED if self.longest is None else self.longest
        self.key_left = [self.left.index(name) for name in node.certain]
        self.key_right = [self.right.index(name) for name in node.certain] if self.right else []
        shared = set(self.left) & set(self.right)
        equal = equal_sides(node)
        self.by_left = KeyOfSide(self.left, self.key_left, [e for e, _ in equal])
        self.by_right = KeyOfSide(self.right, self.key_right, [e for _, e in equal])
        self.shared = shared & set(node.scope) if node.op is OuterOp.MINUS else shared
        self.unsure = sorted(self.shared - set(node.certain))
        self.by_key = node.op in ASKED and decided
        """Whether a left has a partner as soon as its key has a goal that ended by then."""
        self.seen = self._seen_in_background()
        self.clear()

    def clear(self) -> None:
        """Forget all goals."""
        equal = len(self.by_left.equal)
        self.keys = Keys(len(self.node.certain) + equal, others=equal)
        count = len(self.compared.lefts)
        self.goals = ColumnGoalStore(self.keys, len(self.right), count, self.longest, self.lasting, first=self.first)
        self.of_right, self.of_left = self.compared.waiting(), self.compared.arriving()

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by side: only rights wait."""
        if self.node.right is None or self.node.op in TOGETHER:
            return {}
        return {"G": Waiting(self.goals, self.keys, self.by_right, self.of_right)}

    # --- a batch ---

    def advance(self, left: SolutionTable, right: SolutionTable | None = None) -> SolutionTable:
        """The solutions for the lefts of the batch: with partners, alone, or with a mark."""
        pairs: Bindings | None = None
        hit = np.zeros(len(left), np.bool_)
        if self.node.policy:
            left = canonical(left, self.terms)
        if right is not None and self.by_key:
            hit = self._met(left, right)
        elif right is not None:
            pairs, rows = self._pairs(left, canonical(right, self.terms) if self.node.policy else right)
            hit[rows] = True
        alone = Bindings.of(self.terms, left, self.left)
        if self.node.op in (OuterOp.MINUS, OuterOp.EXISTS):
            return self._tested(alone, hit)
        parts = [] if pairs is None else [self.after.applied(pairs)]
        if self.node.background is not None:
            partners = self._in_background(alone, self.node.background)
            hit[partners.rows] = True
            parts.append(self.after.applied(partners))
        parts.append(self.after.applied(alone.keep(~hit)))
        head = self.node.head
        return in_order(concat_tables([part.table(head) for part in parts], len(head)))

    def _tested(self, alone: Bindings, hit: np.ndarray) -> SolutionTable:
        """Evaluate MINUS or EXISTS; ``hit`` marks the lefts that have a partner in the stream."""
        if self.node.background is not None and not hit.all():
            rows = np.flatnonzero(~hit)
            hit[rows] = self.seen(alone.keep(rows))
        if self.node.op is OuterOp.MINUS:
            return self.after.applied(alone.keep(~hit)).table(self.node.head)
        true, false = self.terms.id_of(TRUE), self.terms.id_of(FALSE)
        mark = np.where(hit, np.int32(true), np.int32(false))
        marked = replace(alone, columns={**alone.columns, self.node.mark: mark})
        return self.after.applied(marked).table(self.node.head)

    # --- partners in the stream ---

    def _met(self, left: SolutionTable, right: SolutionTable) -> np.ndarray:
        """A mask of the lefts that have a partner."""
        waiting = self.keys.numbers(right.matrix(self.key_right), create=True)
        values, *_ = self.of_right.values(Bindings.of(self.terms, right, self.right))
        self.goals.insert(waiting, right.end, right.start, right.matrix(), values, first_end(left, right))
        if self.node.op is OuterOp.MINUS and not self.shared:
            return np.zeros(len(left), np.bool_)
        return self.goals.met(self.keys.numbers(left.matrix(self.key_left), create=False), left.end)

    def _pairs(self, left: SolutionTable, right: SolutionTable) -> tuple[Bindings, np.ndarray]:
        """The pairs that pass the condition, and the rows of the lefts that have a partner.

        Under a consuming policy each left, or each right, is in one pair at most (``_picked``).
        """
        if self.node.op in TOGETHER:
            keys = Keys(len(self.key_left) + 2, np.int64)
            goals = ColumnGoalStore(keys, len(self.right), len(self.compared.lefts), None)
            waiting = keys.numbers(timed_keys(right, self.key_right), create=True)
            sought = keys.numbers(timed_keys(left, self.key_left), create=False)
            self.of_right, self.of_left = self.compared.waiting(), self.compared.arriving()
        else:
            keys, goals = self.keys, self.goals
            waiting = self.by_right.numbers(keys, right, self.terms, create=True)
            sought = self.by_left.numbers(keys, left, self.terms, create=False)
        x_values, x_failed, x_odd = self.of_right.values(Bindings.of(self.terms, right, self.right))
        y_values, y_failed, y_odd = self.of_left.values(Bindings.of(self.terms, left, self.left))
        waiting[x_failed] = -1
        sought[y_failed] = -1
        goals.odd |= x_odd
        goals.insert(waiting, right.end, right.start, right.matrix(), x_values, first_end(left, right))
        goals.fit()
        one = (self.of_left.sorts == self.of_right.sorts) | (self.of_left.sorts == 0) | (self.of_right.sorts == 0)
        fast = not goals.odd and not y_odd and bool(one.all())
        relation = _RELATIONS.get(self.node.op, UNTIL)
        codes = self.compared.codes if fast else NO_OPERATORS
        steps = self.rest if fast else self.asked

        def paired(sought: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray, Bindings]:
            every = goals.pairs(relation, sought, (left.end, left.start, y_values), bound, codes)
            _, places, rows = next(every, (None, NO_TIMES, NO_TIMES))
            return places, rows, steps.applied(self._frame(goals, places, left, rows))

        if self.shown is not None:
            return self._shown(left, sought, self.shown, paired)
        places, rows, frame = paired(sought, self.bound)
        if self.node.policy == "" or self.node.op not in _RELATIONS:
            return frame, rows[frame.rows]
        chosen = self._picked(goals, sought, places[frame.rows], rows[frame.rows])
        return frame.keep(chosen), rows[frame.rows][chosen]

    def _shown(
        self,
        left: SolutionTable,
        sought: np.ndarray,
        shown: int,
        paired: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray, Bindings]],
    ) -> tuple[Bindings, np.ndarray]:
        """The pairs that are still shown, and the rows of all lefts that have a partner, however old.

        Rights that are no longer shown are only looked at for the lefts that have no other partner, and further and
        further back, since most have one that is not much older.
        """
        keys = distinct_numbers(sought[sought >= 0])
        keys = keys[self.goals.live_keys()[keys]]
        firsts = self.goals.firsts(keys)
        _, rows, frame = paired(sought, shown)
        hit = rows[frame.rows]
        if self.first:
            self.goals.keep_firsts(keys, firsts)
            over = left.start - 1 if self.node.op in LEFT_LAST else left.end
            return frame, np.flatnonzero(self.goals.met(sought, over))
        self.goals.keep_from(keys, firsts)
        others = np.where(np.isin(sought, keys), sought, -1)
        others[hit] = -1
        bound = shown
        while bound != UNBOUNDED and (others >= 0).any():
            reach = int(left.end.max() - self.goals.ends[firsts].min())
            bound = bound * WIDER if bound * WIDER < reach else UNBOUNDED
            _, rows, older = paired(others, bound)
            self.goals.keep_from(keys, firsts)
            hit = np.append(hit, rows[older.rows])
            others[hit] = -1
        return frame, hit

    def _frame(self, goals: ColumnGoalStore, places: np.ndarray, left: SolutionTable, rows: np.ndarray) -> Bindings:
        """Compatible pairs of waiting rights and lefts; in MINUS only variables in scope are compared."""
        terms = goals.terms[places]
        end = left.end[rows]
        start = np.minimum(goals.starts[places], left.start[rows])
        numbers = np.arange(len(rows))
        lefts = {name: column[rows] for name, column in zip(self.left, left.columns, strict=True)}
        rights = {name: terms[:, i].copy() for i, name in enumerate(self.right)}
        if self.node.op is not OuterOp.MINUS:
            return compatible(Bindings(self.terms, end, end, start, rights, numbers), lefts, self.unsure)
        scope = {name: rights[name] for name in self.unsure}
        frame = Bindings(self.terms, end, end, start, rights, numbers)
        kept = np.full(len(rows), bool(self.shared))
        if self.shared and len(self.unsure) == len(self.shared):
            both = [(lefts[name] != 0) & (scope[name] != 0) for name in self.unsure]
            kept &= np.logical_or.reduce(both)
        for name in self.unsure:
            kept &= (lefts[name] == scope[name]) | (lefts[name] == 0) | (scope[name] == 0)
        return replace(frame, columns={**rights, **lefts}).keep(kept)

    def _picked(self, goals: ColumnGoalStore, sought: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The numbers of the pairs that a consuming policy selects.

        In OPTIONALSEQ each left takes one right; in EQUALSOPTIONAL, as in EQUALS, each right takes one left.
        """
        latest = self.node.policy == "recent"
        chosen = np.empty(len(rows), np.int64)
        if self.node.op in LEFT_LAST:
            taken = np.zeros(len(goals.ends), np.bool_)
            chosen = chosen[: pick(latest, places, rows, taken, chosen)]
            remove_marked(sought[rows[chosen]], taken, *goals.arena)
            return chosen
        order = np.lexsort((rows, places))
        taken = np.zeros(int(rows.max(initial=-1)) + 1, np.bool_)
        chosen = chosen[: pick(latest, rows[order], places[order], taken, chosen)]
        return np.sort(order[chosen])

    # --- partners in the background ---

    def _in_background(self, alone: Bindings, pattern: alg.Pattern) -> Bindings:
        binds = tuple(sorted(alg.scope(pattern) - frozenset(self.left)))
        return RuleSteps((ir.Background(pattern, binds), *self.node.condition), self.sources).applied(alone)

    def _seen_in_background(self):
        """A function that tells for each left whether the background has a partner for it."""
        pattern = self.node.background
        if pattern is None:
            return None
        if self.node.op is OuterOp.EXISTS:

            def exists(alone: Bindings) -> np.ndarray:
                seen = np.zeros(len(alone), np.bool_)
                numbered = replace(alone, rows=np.arange(len(alone)))
                seen[self._in_background(numbered, pattern).rows] = True
                return seen

            return exists
        shared = [name for name in self.node.scope if name in self.left]
        prepared = prepare(pattern)
        certain = alg.certain(pattern)

        def removed(mu: dict[str, str]) -> bool:
            if certain & mu.keys():
                return next(iter(prepared.solve(mu, self.sources.background, None)), None) is not None  # type: ignore[arg-type]
            return any(
                solution.keys() & mu.keys() and all(solution.get(k, v) == v for k, v in mu.items())
                for solution, _, _ in prepared.solve({}, self.sources.background, None)  # type: ignore[arg-type]
            )

        def minus(alone: Bindings) -> np.ndarray:
            texts = [self.terms.spellings(alone.columns[name]) for name in shared]
            rows = list(zip(*texts, strict=True)) if texts else [()] * len(alone)
            known = {row: removed({n: v for n, v in zip(shared, row, strict=True) if v}) for row in set(rows)}
            return np.array([known[row] for row in rows], np.bool_)

        return minus
