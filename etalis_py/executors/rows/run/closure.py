"""``path+`` over timed edges: the least relation of ⟨x, y, hull⟩.

R holds every edge, and with ⟨x, y, I⟩ and ⟨y, z, J⟩ also ⟨x, z, hull(I, J)⟩.  A pair that is new in an instant contains
a new edge, so it ends now.  Edges of the background are timeless and change no hull: every edge is first extended at
both ends by the nodes that the background reaches.

Cost per new pair: the pairs it meets at its two ends.  State: all pairs, or those within the bound.

A trace of ``?x :p+ ?y``: a→b@1 gives (a,b)[1,1]; b→c@2 gives (b,c)[2,2] and (a,c)[1,2].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Solution = tuple[Any, ...]
Reach = Callable[[str], Iterable[str]]


class PathClosure:
    """The state of one ``Closure`` node and its rules."""

    def __init__(
        self,
        within: Callable[[int, int], bool] | None = None,
        longest: int | None = None,
        forward: Reach | None = None,
        backward: Reach | None = None,
    ) -> None:
        self.within = within
        self.longest = longest
        self.forward = forward
        self.backward = backward
        self.from_: dict[str, set[tuple[str, int, int]]] = {}
        self.to: dict[str, set[tuple[str, int, int]]] = {}
        self.size = 0

    def advance(self, t: int, edges: list[Solution]) -> list[Solution]:
        """The new pairs as ``(end, start, x, y[, provenance])``, for edges of the same form."""
        solutions: list[Solution] = []
        waiting: list[Solution] = []
        for edge in edges:
            sources = (edge[2],) if self.backward is None else self.backward(edge[2])
            targets = (edge[3],) if self.forward is None else self.forward(edge[3])
            targets = tuple(targets)
            waiting.extend((edge[0], edge[1], x, y, *edge[4:]) for x in sources for y in targets)
        while waiting:
            pair = waiting.pop()
            end, start, x, y = pair[:4]
            if self.within is not None and not self.within(start, end):
                continue
            ways = self.from_.setdefault(x, set())
            if (y, start, end) in ways:
                continue
            ways.add((y, start, end))
            self.to.setdefault(y, set()).add((x, start, end))
            self.size += 1
            solutions.append(pair)
            rest = pair[4:]
            waiting.extend((max(end, e), min(start, s), x, z, *rest) for z, s, e in tuple(self.from_.get(y, ())))
            waiting.extend((max(end, e), min(start, s), w, y, *rest) for w, s, e in tuple(self.to.get(x, ())))
        return solutions

    def live(self) -> int:
        return self.size

    def sweep(self, now: int) -> int:
        """Drop the pairs that are too old to be part of anything new."""
        if self.longest is None:
            return 0
        oldest = now - self.longest
        before = self.size
        for index in (self.from_, self.to):
            for node in list(index):
                kept = {pair for pair in index[node] if pair[2] >= oldest}
                if kept:
                    index[node] = kept
                else:
                    del index[node]
        self.size = sum(map(len, self.from_.values()))
        return before - self.size

    def clear(self) -> None:
        self.from_.clear()
        self.to.clear()
        self.size = 0

    def snapshot(self) -> list[Any]:
        return [[x, y, s, e] for x, ways in self.from_.items() for y, s, e in ways]

    def restore(self, data: list[Any]) -> None:
        self.clear()
        for x, y, s, e in data:
            self.from_.setdefault(x, set()).add((y, s, e))
            self.to.setdefault(y, set()).add((x, s, e))
            self.size += 1
