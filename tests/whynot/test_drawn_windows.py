"""Over windows as well: what the definitions find once exactly one condition is taken away, why-not names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from etalis_compiler.parser import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import compile
from etalis_py.whynot import Report
from tests.draws import examples
from tests.windows.literal import rspql
from tests.windows.literal.rspql import Item
from tests.windows.small import EX
from tests.windows.test_literal import events, streams

EXAMPLES = examples(1 / 6)
A = f"<{EX}a>"
Answers = set[tuple[int, tuple[str, ...]]]


@dataclass(frozen=True)
class Pattern:
    """What windows hold, the variables, and the same without one of its conditions, by the kind of that."""

    text: str
    variables: tuple[str, ...]
    relaxed: tuple[tuple[str, str], ...]


PATTERNS = [
    Pattern("WINDOW :w { ?x :p ?y . ?y :q ?z }", ("x", "y", "z"), (("key", "WINDOW :w { ?x :p ?y . ?fresh :q ?z }"),)),
    Pattern(
        "WINDOW :w { ?x :p ?y } WINDOW :v { ?y :q ?z }",
        ("x", "y", "z"),
        (("key", "WINDOW :w { ?x :p ?y } WINDOW :v { ?fresh :q ?z }"),),
    ),
    Pattern(
        "WINDOW :w { ?x :p ?y . ?x :q :a }",
        ("x", "y"),
        (("term", "WINDOW :w { ?x :p ?y . ?x :q ?fresh }"), ("key", "WINDOW :w { ?x :p ?y . ?fresh :q :a }")),
    ),
]
FILTERS: list[tuple[str, Callable[[dict[str, str]], bool]]] = [
    ("?x != ?y", lambda mu: mu["x"] != mu["y"]),
    ("?y = :a", lambda mu: mu["y"] == A),
    ("?x = ?y", lambda mu: mu["x"] == mu["y"]),
]


@dataclass(frozen=True)
class Case:
    """A query over windows of ``width`` that slide by ``slide``, and a stream."""

    pattern: Pattern
    filter: tuple[str, Callable[[dict[str, str]], bool]]
    width: int
    slide: int
    stream: list[Item]

    def text(self, pattern: str, filter: str = "", width: int = 0) -> str:
        size = f"[RANGE PT{width or self.width}S SLIDE PT{self.slide}S T0 0]"
        names = " ".join(f"?{v}" for v in self.pattern.variables)
        second = f"FROM NAMED WINDOW :v ON :u {size}" if ":v" in pattern else ""
        where = f"{{ {pattern} {filter and f'FILTER ({filter})'} }}"
        return f"SELECT {names} FROM NAMED WINDOW :w ON :s {size} {second} REPORT ON WINDOW CLOSE WHERE {where}"

    def answers(self, pattern: str, *, filtered: bool = True, width: int = 0) -> Answers:
        """By the definitions; ``filtered``: those that pass the filter."""
        found = rspql.run(rspql.read(parse(self.text(pattern, width=width)).queries[0]), self.stream)
        return {
            (time, row)
            for time, _, rows in found
            for row in rows
            if not filtered or self.filter[1](dict(zip(self.pattern.variables, row, strict=True)))
        }

    def refused(self) -> Iterator[tuple[str, int | None, tuple[str, ...]]]:
        """What there would be without a condition: its kind, the time and the row."""
        there = self.answers(self.pattern.text)
        for time, row in sorted(self.answers(self.pattern.text, filtered=False) - there)[:1]:
            yield "filter", time, row
        for kind, text in self.pattern.relaxed:
            for time, row in sorted(self.answers(text) - there)[:1]:
                yield kind, time, row
        more = self.slide * max(1, self.width // self.slide)
        if ":v" in self.pattern.text:
            return  # both windows would be longer
        longer = {row for _, row in self.answers(self.pattern.text, width=self.width + more)}
        for row in sorted(longer - {row for _, row in there})[:1]:
            yield "window", None, row


cases = st.builds(
    Case, st.sampled_from(PATTERNS), st.sampled_from(FILTERS), st.integers(1, 6), st.integers(1, 6), streams
)


def is_named(kind: str, report: Report) -> bool:
    return any(blame.kinds == (kind,) for blame in report.blames)


@settings(max_examples=EXAMPLES)
@given(cases)
def test_what_alone_refuses_an_answer_is_named(case: Case) -> None:
    program = compile(case.text(case.pattern.text, case.filter[0]))
    for kind, time, row in case.refused():
        where = dict(zip(case.pattern.variables, row, strict=True))
        report = program.why_not(events(case.stream), where=where, at=time)
        assert is_named(kind, report), f"{kind} {where} at {time}\n{report}"
