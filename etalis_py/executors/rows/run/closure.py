"""``path+`` over timed edges: the least relation of ⟨x, y, hull⟩.

R holds every edge, and with ⟨x, y, I⟩ and ⟨y, z, J⟩ also ⟨x, z, hull(I, J)⟩.  A pair that is new in an instant contains
a new edge, so it ends now.  Edges of the background are timeless and change no hull: every edge is first extended at
both ends by the nodes that the background reaches.  A new pair grows by one edge at a time, at either end: every part
of a path that has a new edge is itself new, or known with all that continues it.

Cost per new pair: the edges it meets at its two ends.  State: all pairs, or those within the bound.

A trace of ``?x :p+ ?y``: a→b@1 gives (a,b)[1,1]; b→c@2 gives (b,c)[2,2] and (a,c)[1,2].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Solution = tuple[Any, ...]
_FEW = 64
"""So many new pairs of an instant are never too many, or are compared with the limits later."""
Reach = Callable[[str], Iterable[str]]
Pairs = dict[str, set[tuple[str, int, int]]]
"""For each node at one end of a pair the other end, the start and the end in time."""


class PathClosure:
    """The state of one ``Closure`` node and its rules."""

    def __init__(
        self,
        within: Callable[[int, int], bool] | None = None,
        longest: int | None = None,
        forward: Reach | None = None,
        backward: Reach | None = None,
        weigh: Callable[[list[Solution]], int] | None = None,
    ) -> None:
        """``weigh`` fails if these new pairs are beyond a limit, or says with how many to ask again."""
        self.weigh = weigh
        self.within = within
        self.longest = longest
        self.forward = forward
        self.backward = backward
        self.from_: Pairs = {}
        self.to: Pairs = {}
        self._edges_from: Pairs = {}
        self._edges_to: Pairs = {}
        self.size = 0

    def advance(self, t: int, edges: list[Solution]) -> list[Solution]:
        """The new pairs as ``(end, start, x, y[, provenance])``, for edges of the same form."""
        solutions: list[Solution] = []
        for edge in edges:
            sources = (edge[2],) if self.backward is None else self.backward(edge[2])
            targets = tuple((edge[3],) if self.forward is None else self.forward(edge[3]))
            for x in sources:
                for y in targets:
                    if self._add((edge[0], edge[1], x, y, *edge[4:]), solutions):
                        _put(self._edges_from, self._edges_to, x, y, edge[1], edge[0])
        most, done = _FEW, 0
        while done < len(solutions):
            end, start, x, y, *rest = solutions[done]
            done += 1
            for z, s, e in self._edges_from.get(y, ()):
                self._add((max(end, e), min(start, s), x, z, *rest), solutions)
            for w, s, e in self._edges_to.get(x, ()):
                self._add((max(end, e), min(start, s), w, y, *rest), solutions)
            if len(solutions) > most and self.weigh is not None:
                most = self.weigh(solutions)
        return solutions

    def _add(self, pair: Solution, solutions: list[Solution]) -> bool:
        """Add a pair to the relation and to the new ones; False for one that is known or beyond the bound."""
        end, start, x, y = pair[:4]
        if self.within is not None and not self.within(start, end):
            return False
        if (y, start, end) in self.from_.get(x, ()):
            return False
        _put(self.from_, self.to, x, y, start, end)
        self.size += 1
        solutions.append(pair)
        return True

    def live(self) -> int:
        return self.size

    def sweep(self, now: int) -> int:
        """Drop the pairs that are too old to be part of anything new."""
        if self.longest is None:
            return 0
        oldest = now - self.longest
        before = self.size
        of_edges = oldest - self.longest  # a pair that is kept may grow out of edges that ended this long ago
        for index, least in zip(self._indexes, (oldest, oldest, of_edges, of_edges), strict=True):
            for node in list(index):
                kept = {pair for pair in index[node] if pair[2] >= least}
                if kept:
                    index[node] = kept
                else:
                    del index[node]
        self.size = sum(map(len, self.from_.values()))
        return before - self.size

    @property
    def _indexes(self) -> tuple[Pairs, ...]:
        return self.from_, self.to, self._edges_from, self._edges_to

    def clear(self) -> None:
        for index in self._indexes:
            index.clear()
        self.size = 0

    def snapshot(self) -> list[Any]:
        return [[x, y, s, e] for x, ways in self.from_.items() for y, s, e in ways]

    def restore(self, data: list[Any]) -> None:
        self.clear()
        for x, y, s, e in data:  # which of them are edges is not stored; as edges the others add nothing
            _put(self.from_, self.to, x, y, s, e)
            _put(self._edges_from, self._edges_to, x, y, s, e)
            self.size += 1


def _put(from_: Pairs, to: Pairs, x: str, y: str, start: int, end: int) -> None:
    from_.setdefault(x, set()).add((y, start, end))
    to.setdefault(y, set()).add((x, start, end))
