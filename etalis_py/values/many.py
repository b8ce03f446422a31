"""Functions of an expression over many solutions: one loop, with the same source as everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from etalis_rules import algebra as alg

from etalis_py.values.equality_keys import NO_KEY, key_number
from etalis_py.values.expressions import Bindings, Emitter, GlobalNames, define

FALSE, TRUE, ERROR = 0, 1, 2
"""What a condition can be."""

Each = Callable[..., list[Any]]


@lru_cache(maxsize=4096)
def each_truth(e: alg.Expr) -> Each:
    """The expression as a condition on many solutions: ``f(starts, ends, instants, *columns)``.

    It takes a list of terms for each variable, in alphabetical order, and gives FALSE, TRUE or ERROR for each solution.

    >>> x = alg.Var("x")
    >>> each_truth(alg.Apply("STRSTARTS", (x, alg.Const('"a"'))))([0] * 3, [0] * 3, [0] * 3, ['"ab"', '"b"', "<a>"])
    [True, False, 2]
    """
    return _each(e, Emitter.truth, ERROR)


@lru_cache(maxsize=4096)
def each_term(e: alg.Expr) -> Each:
    """The same for the term that the expression gives; an error gives the empty string."""
    return _each(e, Emitter.term, "")


@lru_cache(maxsize=4096)
def each_key(e: alg.Expr) -> Each:
    """The same for the number of the value's key (``equality_keys``); an error gives ``NO_KEY``."""
    return _each(e, _key, NO_KEY)


def _key(emitter: Emitter, e: alg.Expr) -> str:
    return f"{emitter.names.use('key_number', key_number)}({emitter.value(e)})"


def _each(e: alg.Expr, write: Callable[[Emitter, alg.Expr], str], error: Any) -> Each:
    names, variables = GlobalNames(), sorted(alg.variables(e))
    items = [f"x{i}" for i in range(len(variables))]
    source = write(Emitter(names, Bindings(dict(zip(variables, items, strict=True)), now="now")), e)
    columns = "".join(f", c{i}" for i in range(len(items)))
    text = (
        f"def each(starts, ends, instants{columns}):\n"
        "    answers = []\n"
        "    answer = answers.append\n"
        f"    for {', '.join(('start', 'end', 'now', *items))} in zip(starts, ends, instants{columns}):\n"
        f"        try:\n            answer({source})\n"
        f"        except SparqlError:\n            answer({error!r})\n"
        "    return answers\n"
    )
    return define(text, "each", names)  # type: ignore[no-any-return]
