"""Joins of values that are never the same term: 7 with "7", 7 with 7.0, :Ann with "Ann".

A variable that is the object of two patterns joins them by spelling and type, so an order whose sku is a number in CSV
finds no product whose code is a text in JSON.  Looked at are constant predicates in patterns that an answer, or one of
a branch, needs.  Nothing is said where values of one predicate are of several types, or where rules derive events.

>>> from etalis_py import compile
>>> kinds = JoinedKinds.of(compile("SELECT ?p { { ?o :sku ?k } SEQ { ?p :code ?k } }"))
>>> kinds.note("<http://example.org/sku>", ["<urn:7>"])
>>> kinds.note("<http://example.org/code>", ['"7"'])
>>> list(kinds.warnings(""))[0].partition(": ")[0]
'?k joins :code with :sku, but the values of :code are texts, as "7", and those of :sku things, as <urn:7>'
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from etalis_rules.spelling import Spelling
from etalis_rules.terms import is_literal, parts

from etalis_py.engine.needed_values import joined_branches
from etalis_py.engine.unseen_values import derives_events, objects_in_background

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.knowledge import Knowledge

Kinds = dict[str, str]
"""An example of each kind of value."""
_THINGS, _TEXTS, _IN_A_LANGUAGE = "things", "texts", "texts in a language"


class JoinedKinds:
    """State: for each predicate an example of each kind of its values."""

    def __init__(self, pairs: dict[tuple[str, str], str], spelling: Spelling) -> None:
        self._pairs, self._term = pairs, spelling.term
        self._kinds: dict[str, Kinds] = {predicate: {} for pair in pairs for predicate in pair}

    @classmethod
    def of(cls, program: Program) -> JoinedKinds | None:
        """What looks at the values by which a program joins; None if there are none."""
        if program.plans or derives_events(program):
            return None
        pairs: dict[tuple[str, str], str] = {}
        for query in program.compilation.queries:
            for predicates in joined_branches(query.algebra.pattern):
                for name, some in predicates.items():
                    pairs.update(dict.fromkeys(combinations(sorted(some), 2), name))
        return cls(pairs, Spelling(program.prefixes)) if pairs else None

    @property
    def predicates(self) -> Collection[str]:
        """The predicates whose objects are looked at."""
        return self._kinds.keys()

    def note(self, predicate: str, objects: Iterable[str]) -> None:
        """Take note of objects of a predicate that is looked at."""
        for term in objects:
            self._kinds[predicate].setdefault(_kind(term), term)

    def warnings(self, among: str, knowledge: Knowledge | None = None) -> Iterator[str]:
        """The joins that find nothing; ``among`` says of how many events this is known, "" if of all."""
        events = f" in the events{among}" if among else ""
        for (one, other), name in sorted(self._pairs.items()):
            first, second = self._only(one, knowledge), self._only(other, knowledge)
            if first is None or second is None or first[0] == second[0]:
                continue
            p, q, shown = self._term(one), self._term(other), name if name.startswith("_:") else f"?{name}"
            yield (
                f"{shown} joins {p} with {q}, but the values of {p}{events} are {self._shown(*first)}, and those of "
                f"{q} {self._shown(*second)}: what differs in its type is not the same, so they join nothing"
            )

    def _only(self, predicate: str, knowledge: Knowledge | None) -> tuple[str, str] | None:
        """The one kind of the values of a predicate, with an example; None if there are several, or none."""
        kinds = dict(self._kinds[predicate])
        if knowledge is not None:
            stored = objects_in_background(predicate, knowledge)
            if stored is None:
                return None
            for term in sorted(stored):
                kinds.setdefault(_kind(term), term)
        return next(iter(kinds.items())) if len(kinds) == 1 else None

    def _shown(self, kind: str, example: str) -> str:
        return f"{kind if kind in (_THINGS, _TEXTS, _IN_A_LANGUAGE) else self._term(kind)}, as {self._term(example)}"


def _kind(term: str) -> str:
    """What a term is: a word for it, or the datatype of a literal."""
    if not is_literal(term):
        return _THINGS
    _, datatype, language = parts(term)
    return _IN_A_LANGUAGE if language else f"<{datatype}>" if datatype else _TEXTS


__all__ = ["JoinedKinds"]
