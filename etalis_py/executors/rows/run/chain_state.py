"""Whether stored goals are those of chains, or those of the joins that chains stand for.

Snapshots of earlier versions have the solutions of some parts as goals of joins (side G); those of chains have other
sides.  Rules whose stored goals are those of joins go on as joins.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.chain_nodes import Chained, with_chains

Joins = Mapping[str, tuple[str, ...]]
"""The joins that each chain stands for."""


@lru_cache(maxsize=64)
def chained(rules: ir.Rules, built: frozenset[str]) -> Chained:
    """The rules with chains, except for those ``built`` of joins; engines with the same rules share them."""
    return with_chains(rules, built)


def built_of_joins(rules: ir.Rules, goals: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The chains that have to run as joins, since these stored goals (node, side, goals, …) are those of joins."""
    waiting = {(entry[0], entry[1]): _count(entry[2]) for entry in goals}
    return frozenset(
        name
        for name, joins in chained(rules, frozenset()).joins.items()
        if (name, "G") in waiting and any(waiting.get((join, "G")) for join in joins)
    )


def _count(goals: Any) -> int:
    """The number of goals in a table, or in columns."""
    if isinstance(goals, list | tuple):
        return len(goals[0]) if goals else 0
    return len(goals)


def written_as_joins(
    joins: Joins, stores: Container[tuple[str, str]], changes: Iterable[Sequence[Any]]
) -> frozenset[str]:
    """The chains that have to run as joins, since this journal has changes of the joins' goals."""
    chain_of = {join: name for name, several in joins.items() for join in several}
    places = {(entry[1], entry[2]) for entry in changes if entry[0] not in ("o", "h")}
    return frozenset(chain_of[node] for node, side in places if node in chain_of and (node, side) not in stores)
