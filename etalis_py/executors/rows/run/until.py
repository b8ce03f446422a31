"""REPEAT … UNTIL {B}: runs that are reported when a B ends them.

Definition.  Of the runs (see ``runs``) with the same last element those with the most elements, each with every B that
is compatible on the BY variables and is the next one after that element, if no element that follows it has ended by
then.  No B may lie between two elements, so a B ends a run even if nothing is reported of it.  The interval is their
hull.

State and cost are those of LONGEST; elements that a B has ended are kept until their next one comes, since one that
began before the B ended goes on with the run.

A trace of ``{?m :temp ?t} REPEAT 1 OR MORE BY ?m UNTIL {?m :batch ?b}``: temp 1, 2; batch 3 → [1, 3]; temp 4; batch 5 →
[4, 5].
"""

from __future__ import annotations

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.run.goals import rebuilt
from etalis_py.executors.rows.run.runs import (
    Element,
    Run,
    RunFunctions,
    Runs,
    RunsOfKey,
    Solution,
    Totals,
    places_of,
)


class EndedRuns(Runs):
    """The state of a ``Run`` node with ``until``: ``advance`` takes the elements of an instant, ``ends`` then the B.

    Of the B so far, ``_beside`` counts those that came with an element of their key and ended no run, ``_effective``
    those that ended one.
    """

    def __init__(self, node: ir.Run, functions: RunFunctions) -> None:
        super().__init__(node, functions)
        assert node.until is not None
        self._until_keys = places_of(node.keys, node.until.columns)
        self._beside = self._effective = 0

    def ends(self, t: int, rows: list[Solution]) -> list[Solution]:
        """The rows of the runs that these B end."""
        over: list[Solution] = []
        ended: list[Element] = []
        for b in rows:
            before, beside = len(ended), False
            for partition in self.compatible(b, self._until_keys):
                assert isinstance(partition, RunsOfKey)
                for e in _waiting(partition, t):
                    if e.x[0] < b[1] and not e.ended:
                        over += [self._ended(r, e.x, b) for r in _longest(e.runs) if r[0] >= self.node.least]
                        ended.append(e)
                beside = beside or bool(partition.fresh)
            self.note(len(ended) > before, beside and len(ended) == before)
        for e in ended:
            e.ended = True
            if e.blocked is None:
                e.blocked = t
        return over

    def note(self, effective: int, beside: int) -> None:
        """Count so many B that ended a run, and that came with an element and ended none."""
        self._effective += effective
        self._beside += beside

    # --- state ---

    def held(self) -> list[Solution] | None:
        """The last element of the only run of each key, its first, their number, when it was ended, its aggregates.

        None if a key has several runs.
        """
        width = 2 + len(self.columns)
        held: list[Solution] = []
        for partition in self.partitions.values():
            assert isinstance(partition, RunsOfKey)
            partition.settle(partition.now)
            if len(partition.open) != 1 or len(partition.open[0].runs) != 1:
                return None
            (e,) = partition.open
            ((count, first, totals, _, _),) = e.runs
            held.append((*e.x[:width], *first[:width], count, e.blocked, totals))
        return held

    def go_on(self, held: list[Solution], layout: Layout) -> None:
        """Continue from such runs; ``layout`` is that of the elements."""
        width = 2 + len(self.columns)
        for x in held:
            last, first = rebuilt(layout, x[:width]), rebuilt(layout, x[width : 2 * width])
            e = Element(last, [(x[-3], first, Totals(x[-1]), (), ())], x[-2], x[-2] is not None)
            self.partitions[self.key_of(last)] = RunsOfKey([e], now=last[0])

    @property
    def warning(self) -> str:
        if self._effective or not self._beside:
            return ""
        return (
            f"UNTIL has ended no run: each of the {self._beside:,} times that what it asks for came, an element of the "
            "run came with it, and the run went on; if what ends a run is no element, say so before REPEAT, as in "
            '{ … FILTER (?status != "done") } REPEAT'
        )

    def _ended(self, r: Run, x: Solution, b: Solution) -> Solution:
        row = self.row(r[0], r[1], x, r[2], b)
        return row if self.because is None else (*row, self.because((*r[3], b[-1])))


def _waiting(partition: RunsOfKey, t: int) -> list[Element]:
    """The elements of earlier instants that have no next one by now."""
    if partition.now != t:
        partition.settle(t)
    latest = max((e.x[1] for e in partition.fresh), default=None)
    return partition.open if latest is None else [e for e in partition.open if e.x[0] >= latest]


def _longest(runs: list[Run]) -> list[Run]:
    most = max([r[0] for r in runs])
    return [r for r in runs if r[0] == most]
