"""The numbers of terms in a live program: permanent for the background, for other terms a slot while it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from etalis_py.knowledge.asp_interface import AspProgram
from etalis_py.knowledge.errors import KnowledgeError


class Slots:
    """The slots of one set of true atoms.  The lowest free one is taken, so that few are ever used."""

    __slots__ = ("_free", "_known", "_program", "_taken", "_uses", "terms")

    def __init__(self, program: AspProgram, known: Mapping[str, int]) -> None:
        self._program = program
        self._known = known
        self._free = list(range(len(known), len(known) + program.slots))
        heapify(self._free)
        self._taken: dict[str, int] = {}
        self._uses: dict[int, int] = {}
        self.terms: dict[int, str] = {}  # the terms that have a slot now

    def number(self, term: str) -> int | None:
        """The current number of a term."""
        return self._known.get(term, self._taken.get(term))

    def borrow(self, term: str, borrowed: list[str]) -> int | None:
        """The number of a term; a term without one gets a slot and is added to ``borrowed``."""
        number = self.number(term)
        if number is not None or not self._program.slots:
            return number
        if not self._free:
            raise KnowledgeError(
                f"all {self._program.slots} slots are taken, and {term} needs one",
                source=self._program.source,
                hint="declare more with %! slots, or let the events that hold them end (within, until)",
            )
        number = self._taken[term] = heappop(self._free)
        self._uses[number] = 0
        self.terms[number] = term
        borrowed.append(term)
        return number

    def hold(self, terms: Iterable[str]) -> None:
        """Keep the slots of these terms: an atom about them is true."""
        for term in terms:
            if term in self._taken:
                self._uses[self._taken[term]] += 1

    def let_go(self, terms: Iterable[str]) -> None:
        """Undo one ``hold``: the atom is no longer true."""
        for term in terms:
            if term in self._taken:
                self._uses[self._taken[term]] -= 1
                if not self._uses[self._taken[term]]:
                    self.release(term)

    def release(self, term: str) -> None:
        """Free the slot of a term."""
        number = self._taken.pop(term)
        del self._uses[number], self.terms[number]
        heappush(self._free, number)
