"""Expressions over many solutions: by kernels where numbers are compared, else once per distinct combination of terms.

A condition is taken apart at ``&&``, ``||`` and ``!``, and each part is evaluated only where it matters.  What the
kernels cannot decide is asked of ``values``, by the source that rows use, and remembered by term ids for as long as the
terms are: an answer is a function of its terms alone.  What depends on times or on chance (``is_timed``) is evaluated
for each solution.

Cost: some nanoseconds for a solution, an evaluation for each new combination of terms.  State: the answers, at most
``MOST_ANSWERS`` for each expression and ``MOST_IN_TOTAL`` for all of them, of about 30 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.costs import compares_numbers
from etalis_py.executors.columns.growable_array import GrowableArray
from etalis_py.executors.columns.kernels.computing import ASK, FALSE, TRUE
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.supported_rules import is_timed
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import AND, NOT, OR, truth
from etalis_py.values.many import Each, each_key, each_term, each_truth

MOST_ANSWERS = 1 << 18
"""How many combinations of terms an expression remembers before it forgets them all."""
MOST_IN_TOTAL = 1 << 22
"""How many all expressions remember together: each has the same share of them."""


@dataclass(frozen=True, slots=True)
class Given:
    """What an expression reads: the columns of its variables, and the starts, ends and instants of the solutions."""

    terms: Terms
    columns: dict[str, np.ndarray]
    times: tuple[np.ndarray, np.ndarray, np.ndarray]

    def __len__(self) -> int:
        return len(self.times[0])

    def only(self, e: alg.Expr, rows: np.ndarray) -> Given:
        """Some of the solutions, for a part of the expression."""
        columns = {name: self.columns[name][rows] for name in alg.variables(e) if name in self.columns}
        start, end, at = (part[rows] for part in self.times)
        return Given(self.terms, columns, (start, end, at))

    def identified(self) -> Given:
        """The same where equal terms may have different ids (``identity``)."""
        return replace(self, columns={name: self.terms.distinguished(ids) for name, ids in self.columns.items()})


def truths(e: alg.Expr, given: Given) -> np.ndarray:
    """FALSE, TRUE or ERROR for each solution."""
    match e:
        case alg.Apply("&&", args):
            return _combined(args, given, AND, FALSE)
        case alg.Apply("||", args):
            return _combined(args, given, OR, TRUE)
        case alg.Apply("!", (inner,)):
            return NOT[truths(inner, given)]
    result = truth(e, given.columns, len(given), given.terms)
    asked = np.flatnonzero(result == ASK)
    if len(asked):
        some = given if len(asked) == len(given) else given.only(e, asked)
        result[asked] = _evaluated(e, some.identified() if compares_numbers(e) else some, each_truth, _number_column)
    return result


def _combined(args: Sequence[alg.Expr], given: Given, table: np.ndarray, decided: int) -> np.ndarray:
    """A conjunction or disjunction; an argument is evaluated where those before it have not decided."""
    result = truths(args[0], given)
    for arg in args[1:]:
        rows = np.flatnonzero(result != decided)
        if len(rows):
            result[rows] = table[result[rows], truths(arg, given.only(arg, rows))]
    return result


def results(e: alg.Expr, given: Given) -> np.ndarray:
    """The ids of the terms that the expression gives; an error gives the unbound term."""
    return _evaluated(e, given, each_term, given.terms.intern)


def key_numbers(e: alg.Expr, given: Given) -> np.ndarray:
    """The numbers of the keys of the expression's values (``equality_keys``); an error gives ``NO_KEY``."""
    return _evaluated(e, given, each_key, _number_column)


def _number_column(answers: list[int]) -> np.ndarray:
    return np.array(answers, np.int32)


class Answers:
    """The answers of an expression for combinations of terms."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.forget()

    def forget(self) -> None:
        """Forget all answers, and give back their memory."""
        self.keys = Keys(self.width)
        self.answers = GrowableArray(16, np.int32)
        self.count = 0

    def of(self, rows: np.ndarray, ask: Callable[[np.ndarray], np.ndarray], most: int) -> np.ndarray:
        """The answer for each row of terms; ``ask`` evaluates new rows, and ``most`` answers may be kept."""
        numbers = self.keys.numbers(rows, create=True)
        new = self.keys.count
        if new > self.count:
            if new > len(self.answers.array):
                self.answers.grow(2 * new)
            self.answers.array[self.count : new] = ask(self.keys.rows()[self.count :])
            self.count = new
        answers = self.answers.array[numbers]
        if self.count > most:
            self.forget()
        return answers


def _evaluated(
    e: alg.Expr,
    given: Given,
    function: Callable[[alg.Expr], Each],
    column: Callable[[list[Any]], np.ndarray],
) -> np.ndarray:
    """The answers of ``function`` to each solution, as numbers."""
    each, terms, names = function(e), given.terms, sorted(alg.variables(e))
    nothing = np.zeros(len(given), np.int32)
    columns = [given.columns.get(name, nothing) for name in names]
    if is_timed(e):
        texts = (terms.spellings(part) for part in columns)
        return column(each(*(part.tolist() for part in given.times), *texts))

    def ask(rows: np.ndarray) -> np.ndarray:
        untimed = [0] * len(rows)
        return column(each(untimed, untimed, untimed, *(terms.spellings(part) for part in rows.T)))

    if not names:
        return np.repeat(ask(np.zeros((1, 0), np.int32)), len(given))
    known = terms.remembered.get((function, e))
    if known is None:
        known = terms.remembered[function, e] = Answers(len(names))
    return known.of(np.column_stack(columns), ask, min(MOST_ANSWERS, MOST_IN_TOTAL // len(terms.remembered)))
