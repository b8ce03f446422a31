"""Graph patterns, windows and event patterns as lines of text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..ast import (
    TIGHT,
    Bind,
    Combined,
    Current,
    Duration,
    Element,
    EventDeclaration,
    EventGroup,
    EventName,
    EventPattern,
    EventSequence,
    EventUnary,
    Filter,
    GraphGroup,
    Group,
    Match,
    Minus,
    Optional,
    Pattern,
    Query,
    Repeat,
    SeqNot,
    SeqOptional,
    Service,
    Skip,
    Start,
    StreamGroup,
    Triples,
    Values,
    WindowGroup,
    WindowSpec,
    Within,
)
from .terms import TermPrinter

_WIDTH = 100
_LAST_VARIABLE = re.compile(r" \?\w+$")


def indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


def led(lead: str, lines: list[str]) -> list[str]:
    """The lines with ``lead`` in front of the first."""
    return [f"{lead} {lines[0]}", *lines[1:]]


class PatternPrinter(TermPrinter):
    def __init__(self, prefixes: Mapping[str, str]):
        super().__init__(prefixes)

    def group(self, group: Group) -> list[str]:
        inner: list[str] = []
        for element in group.elements:
            if isinstance(element, Triples) and inner and _LAST_VARIABLE.search(inner[-1]):
                inner[-1] += " ."  # else the first subject would be one more variable after BY
            inner += self.element(element)
        if not inner:
            return ["{}"]
        if len(inner) == 1 and len(inner[0]) < _WIDTH and not inner[0].lstrip().startswith("SELECT"):
            return [f"{{ {inner[0]} }}"]
        return ["{", *indented(inner), "}"]

    def element(self, element: Element) -> list[str]:
        match element:
            case Triples(patterns=patterns):
                return [self.triple(p) + " ." for p in patterns]
            case Filter(condition=condition):
                return [f"FILTER ({self.expression(condition)})"]
            case Bind(expression=expression, variable=variable):
                return [f"BIND ({self.expression(expression)} AS ?{variable.name})"]
            case Values():
                return self.values(element)
            case Optional(group=group):
                return led("OPTIONAL", self.group(group))
            case Minus(group=group):
                return led("MINUS", self.group(group))
            case Service(endpoint=endpoint, group=group, silent=silent):
                return led(f"SERVICE {'SILENT ' if silent else ''}{self.node(endpoint)}", self.group(group))
            case EventDeclaration(window=window, group=group, name=name):
                *lines, last = self.group(group)
                return led(f"EVENT ON {self.node(window)}", [*lines, f"{last} AS {name}"])
            case Match(pattern=pattern):
                if isinstance(pattern, Group):
                    return led("MATCH", self.group(pattern))
                return [f"MATCH {{ {self.events(pattern)} }}"]
            case Query():
                return self.query(element)
            case _:
                return self.pattern(element)

    def pattern(self, pattern: Pattern) -> list[str]:
        match pattern:
            case Group():
                return self.group(pattern)
            case Start():
                return ["{ START }"]
            case GraphGroup(graph=name, group=group):
                return led(f"GRAPH {self.node(name)}", self.group(group))
            case StreamGroup(stream=name, group=group, window=window):
                head = f"STREAM {self.node(name)}"
                return led(head if window is None else f"{head} {self.window(window)}", self.group(group))
            case EventGroup(group=group, graph=graph):
                return led("EVENT" if graph is None else f"EVENT {self.node(graph)}", self.group(group))
            case Current(group=group):
                return led("CURRENT", self.group(group))
            case WindowGroup(window=name, group=group):
                return led(f"WINDOW {self.node(name)}", self.group(group))
            case Within(pattern=inner, bound=bound):
                *lines, last = self.operand(inner, tight=True)
                return [*lines, f"{last} WITHIN {self.duration(bound)}"]
            case Combined(operator=operator, left=left, right=right):
                tight = operator in TIGHT
                return [*self._left(left, tight=tight), operator.value, *self.operand(right, tight=tight)]
            case SeqNot():
                return self.seq_not(pattern)
            case SeqOptional():
                return self.seq_optional(pattern)
            case Repeat():
                return self.repeat(pattern)
            case Skip():
                return self.skip(pattern)

    def seq_not(self, pattern: SeqNot) -> list[str]:
        *lines, last = self._plain(pattern.absent)
        head = [*self._left(pattern.left, tight=False), "SEQ NOT"]
        if pattern.right is not None:
            return [*head, *lines, last, "SEQ", *self.operand(pattern.right, tight=False)]
        return [*head, *lines, last if pattern.bound is None else f"{last} WITHIN {self.duration(pattern.bound)}"]

    def seq_optional(self, pattern: SeqOptional) -> list[str]:
        lines = self._left(pattern.left, tight=False)
        for part in pattern.optionals:
            lines += ["SEQ OPTIONAL", *self._plain(part)]
        if pattern.right is not None:
            return [*lines, "SEQ", *self.operand(pattern.right, tight=False)]
        return lines if pattern.bound is None else [*lines[:-1], f"{lines[-1]} WITHIN {self.duration(pattern.bound)}"]

    def _left(self, left: Pattern, *, tight: bool) -> list[str]:
        same = isinstance(left, Combined) and (not tight or left.operator in TIGHT)
        same = same or (isinstance(left, SeqNot | SeqOptional) and not tight)
        return self.pattern(left) if same else self.operand(left, tight=tight)

    def operand(self, pattern: Pattern, *, tight: bool) -> list[str]:
        """An operand: only operators that bind tighter may stand without braces to the right of a weaker one."""
        if isinstance(pattern, Combined) and not tight and pattern.operator in TIGHT:
            return self.pattern(pattern)
        if isinstance(pattern, Combined | SeqNot | SeqOptional):
            return self.group(Group((pattern,)))
        return self.pattern(pattern)

    def _plain(self, pattern: Pattern) -> list[str]:
        """An operand of NOT or OPTIONAL: a group, not something with a WITHIN or REPEAT of its own."""
        braced = isinstance(pattern, Combined | SeqNot | SeqOptional | Within | Repeat | Skip)
        return self.group(Group((pattern,))) if braced else self.pattern(pattern)

    def repeat(self, repeat: Repeat) -> list[str]:
        *lines, last = self.operand(repeat.pattern, tight=True)
        most = {None: " OR MORE", repeat.least: ""}.get(repeat.most, f" TO {repeat.most}")
        words = [f"{last} REPEAT {repeat.least}{most}"]
        if repeat.by:
            words.append("BY " + " ".join(f"?{v.name}" for v in repeat.by))
        if repeat.condition is not None:
            words.append(f"WHERE ({self.expression(repeat.condition)})")
        if repeat.absent is not None:
            *inner, closing = led(f"{' '.join(words)} NOT", self._plain(repeat.absent))
            lines, words = [*lines, *inner], [closing]
        if repeat.gap is not None:
            words.append(f"GAP {self.duration(repeat.gap)}")
        if repeat.longest:
            words.append("LONGEST")
        if repeat.maximal:
            words.append("MAXIMAL")
        if repeat.until is not None:
            *inner, closing = led(f"{' '.join(words)} UNTIL", self._plain(repeat.until))
            lines, words = [*lines, *inner], [closing]
        if repeat.columns:
            columns = (f"{self.expression(c.expression)} AS ?{c.variable.name}" for c in repeat.columns if c.expression)
            words.append(f"AS ({', '.join(columns)})")
        return [*lines, " ".join(words)]

    def skip(self, skip: Skip) -> list[str]:
        *lines, last = self.operand(skip.pattern, tight=True)
        words = [f"{last} SKIP {skip.kind}" if skip.after is not None else f"{last} {skip.kind}"]
        if skip.after is not None:
            words.append(f"({self.expression(skip.after)})")
        if skip.length is not None:
            words.append(self.duration(skip.length))
        if skip.by:
            words.append("BY " + " ".join(f"?{v.name}" for v in skip.by))
        return [*lines, " ".join(words)]

    def query(self, query: Query) -> list[str]:
        raise AssertionError("QueryPrinter gives it")

    def values(self, values: Values) -> list[str]:
        names = " ".join(f"?{v.name}" for v in values.variables)
        rows = ["(" + " ".join("UNDEF" if t is None else self.node(t) for t in row) + ")" for row in values.rows]
        return [f"VALUES ({names}) {{", *indented(rows), "}"]

    # --- windows ---

    @staticmethod
    def duration(duration: Duration) -> str:
        return duration.lexical if duration.kind == "duration" else f"{duration.count} {duration.kind}"

    def window(self, window: WindowSpec) -> str:
        pieces: list[str] = []
        match window.kind:
            case "sliding" | "tumbling":
                pieces.append(f"RANGE {self._of(window.range)}")
                if window.slide is not None:
                    pieces.append(f"SLIDE {self.duration(window.slide)}")
                if window.kind == "tumbling":
                    pieces.append("TUMBLING")
            case "landmark":
                pieces.append(f"LANDMARK {self._at(window.start)}")
            case "interval":
                pieces.append(f"INTERVAL {self._at(window.start)} {self._at(window.end)}")
            case kind:
                pieces.append(kind.upper())
        if window.offset is not None:
            pieces.append(f"OFFSET {self.duration(window.offset)}")
        if window.t0 is not None:
            pieces.append(f"T0 {self.expression(window.t0)}")
        return f"[{' '.join(pieces)}]"

    def _of(self, duration: Duration | None) -> str:
        return self.duration(duration) if duration is not None else ""

    def _at(self, instant: Any) -> str:
        return self.expression(instant) if instant is not None else ""

    # --- event patterns ---

    def events(self, pattern: EventPattern, *, right: bool = False) -> str:
        match pattern:
            case EventName(name=name):
                return name
            case EventUnary(operator=operator, operand=operand):
                return f"{operator} {self.events(operand, right=True)}"
            case EventSequence(left=left, right=second, policy=policy):
                word = f"SEQ {policy.upper()}" if policy else "SEQ"
                text = f"{self.events(left)} {word} {self.events(second, right=True)}"
                return f"({text})" if right else text
