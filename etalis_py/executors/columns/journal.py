"""The journal of rules in columns: how the waiting goals changed since the last snapshot or journal.

An entry is ``[kind, node, side, goals]`` with a table of ``kernel.goals``.  ``-=`` lists goals that were there and are
gone, ``+=`` goals that came and are still there; a goal that comes and goes between two journals is not written at all.
``=`` lists all goals of a side; it is used if they changed in other ways than by a join that inserts and consumes.
Goals that expired are not written, as in the journal of rows.

Cost: proportional to the goals that came and went, however many others wait; for ``=``, to all goals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from etalis_rules import program as ir
from etalis_rules.operators import combines

from etalis_py.executors.columns.joins import Waiting
from etalis_py.executors.columns.store import Changes
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import InColumns

Stores = Iterable[tuple[str, str, Waiting]]


def note(stores: Stores, columns: InColumns, nodes: Mapping[str, ir.Node]) -> None:
    """Record what changes from this batch on; all goals that are there already ended before it."""
    since = int(np.asarray(columns.end)[0])
    for node, _, waiting in stores:
        waiting.store.changes = Changes(since, whole=not combines(nodes[node]))


def forget(stores: Stores) -> None:
    """Stop recording."""
    for _, _, waiting in stores:
        waiting.store.changes = None


def entries(stores: Stores, terms: Terms) -> list[list[Any]]:
    """The entries for all changes since ``note``."""
    changed: list[list[Any]] = []
    for node, side, waiting in stores:
        changes = waiting.store.changes
        if changes is None or changes.whole:
            changed.append(["=", node, side, waiting.table(waiting.store.goals(), terms)])
            continue
        changed += [["-=", node, side, gone] for gone in changes.gone]
        came = waiting.store.put_in()
        if len(came[0]):
            changed.append(["+=", node, side, waiting.table(came, terms)])
    return changed


def repeat(stores: Stores, terms: Terms, changed: Iterable[Sequence[Any]]) -> None:
    """Change the goals as these entries say."""
    by_place = {(node, side): waiting for node, side, waiting in stores}
    for kind, node, side, goals in changed:
        waiting = by_place[node, side]
        if kind == "-=":
            waiting.take_out(goals, terms)
            continue
        if kind == "=":
            waiting.store.clear()
        waiting.take_in(goals, terms)
