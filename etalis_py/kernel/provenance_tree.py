"""Explains why a match holds, by the tree of rules, goals, events and background triples behind it.

drops [1, 3]
└─ SEQ: left ends before right starts
   ├─ event :c :price 10 ; :volume 500 [1, 1]
   └─ event :c :price 6 [3, 3]

Terms are shown by the prefixes of the query, and what one event says (EVENT) stands on one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from etalis_rules import program as ir
from etalis_rules.operator_words import ONE_EVENT, why_in_words
from etalis_rules.spelling import Spelling

from etalis_py.values.time import TIMELESS_END

_STEPS = 8


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """One step: ``rule`` was applied to ``parts``.  A leaf is an event or background knowledge."""

    rule: str
    parts: tuple[Explanation, ...] = ()
    triple: tuple[str, str, str] | None = None
    interval: tuple[int | str, int | str] | None = None
    stream: str = ""
    spelling: Spelling = field(default=Spelling(), compare=False)

    def under(self, prefixes: Mapping[str, str]) -> Explanation:
        """The explanation, which shows terms by these prefixes."""
        return replace(self, spelling=Spelling(prefixes))

    def to_dict(self) -> dict[str, Any]:
        """The explanation as an object for JSON."""
        result: dict[str, Any] = {"rule": self.rule}
        if self.triple is not None:
            result["triple"] = list(self.triple)
        if self.interval is not None:
            result["start"], result["end"] = self.interval
        if self.stream:
            result["stream"] = self.stream
        if self.parts:
            result["because"] = [p.to_dict() for p in self.parts]
        return result

    def events(self) -> Iterator[Explanation]:
        """The events at the leaves."""
        if self.rule == "event":
            yield self
        for part in self.parts:
            yield from part.events()

    def __str__(self) -> str:
        return "\n".join(self._lines(self.spelling))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from etalis_py.notebook.timeline import why_html  # notebooks only

        return why_html(self)

    def _lines(self, spelling: Spelling) -> Iterator[str]:
        if self._is_one_event():
            yield self.parts[0]._title(_triples_text([t for p in self.parts if (t := p.triple)], spelling), spelling)
            return
        yield self._title("" if self.triple is None else _triples_text([self.triple], spelling), spelling)
        for i, part in enumerate(self.parts):
            last = i == len(self.parts) - 1
            for j, line in enumerate(part._lines(spelling)):
                lead = ("└─ " if last else "├─ ") if j == 0 else ("   " if last else "│  ")
                yield lead + line

    def _is_one_event(self) -> bool:
        """Whether it says no more than that there was an event with these triples."""
        return self.rule == ONE_EVENT and bool(self.parts) and all(part.rule == "event" for part in self.parts)

    def _title(self, said: str, spelling: Spelling) -> str:
        words = [self.rule, said] if said else [self.rule]
        if self.interval is not None:
            words.append(f"[{self.interval[0]}, {self.interval[1]}]")
        if self.stream:
            words.append(f"in {spelling.term(self.stream)}")
        return " ".join(words)


def events_behind(provenance: Any, most: int) -> Iterator[tuple[tuple[str, str, str], int, int]]:
    """The events at the leaves of a solution's provenance, at most so many: each a triple, its start and its end.

    A solution may rest on very many (COUNT), so the search ends after a few steps for each of them.
    """
    waiting, found = [provenance], 0
    for _ in range(_STEPS * most):
        if not waiting or found == most:
            return
        node = waiting.pop()
        if node.rule == "event":
            s, p, o, start, end, _ = node.parts
            found += 1
            yield (s, p, o), start, end
        elif node.rule != "background":
            waiting.extend(node.parts[: _STEPS * most][::-1])


def _triples_text(triples: Iterable[tuple[str, str, str]], spelling: Spelling) -> str:
    """Triples in Turtle; those of one subject name it once.

    >>> _triples_text([("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:q>", "<urn:c>")], Spelling())
    '<urn:a> <urn:p> <urn:b> ; <urn:q> <urn:c>'
    """
    subjects = groupby(triples, key=lambda triple: triple[0])
    return " . ".join(
        f"{spelling.term(s)} " + " ; ".join(f"{spelling.term(p)} {spelling.term(o)}" for _, p, o in said)
        for s, said in subjects
    )


def explainer(
    rules: ir.Rules, output: ir.Output, render: Callable[[int], int | str]
) -> Callable[[tuple[Any, ...]], Explanation]:
    """A function from a row with provenance to its explanation."""
    nodes = dict(rules.nodes)

    def explain(row: tuple[Any, ...]) -> Explanation:
        parts = (_build(row[-1]),) if not isinstance(row[-1], (str, int)) else ()
        interval = None if row[0] == TIMELESS_END else (render(row[1]), render(row[0]))
        return Explanation(output.query, parts, interval=interval)

    def _build(provenance: Any) -> Explanation:
        if provenance.rule == "event":
            s, p, o, start, end, stream = provenance.parts
            return Explanation("event", (), (s, p, o), (render(start), render(end)), stream)
        if provenance.rule == "background":
            triples = [Explanation("background", (), part) for part in provenance.parts if len(part) == 3]
            if triples:
                return triples[0] if len(triples) == 1 else Explanation("background knowledge", tuple(triples))
            bound = ", ".join(f"{name.lstrip('~.')} = {term}" for name, term in provenance.parts)
            return Explanation(f"background knowledge: {bound}")
        parts = tuple(_build(part) for part in provenance.parts)
        return Explanation(_rule_text(provenance.rule), parts)

    def _rule_text(rule: str) -> str:
        if rule.startswith("out:"):
            return f"derived by {rule[4:]}"
        node = nodes.get(rule)
        return "derived" if node is None else why_in_words(node)

    return explain
