"""SEQ NOT and REPEAT."""

from __future__ import annotations

from typing import Any

from ..ast import Call, Projection, Repeat, SeqNot, Span
from .windows import WindowBuilder


class SequenceBuilder(WindowBuilder):
    def seq_not_seq(self, args: list[Any], start: int, end: int) -> SeqNot:
        left, absent, right = args
        return SeqNot(left, absent, right, span=Span(start, end))

    def seq_not_within(self, args: list[Any], start: int, end: int) -> SeqNot:
        left, absent, bound = args
        return SeqNot(left, absent, None, bound, span=Span(start, end))

    # --- REPEAT ---

    def times(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        count = self.natural(args[0])
        return self._times(count, count, start, end)

    def times_to(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        return self._times(self.natural(args[0]), self.natural(args[1]), start, end)

    def times_or_more(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        return self._times(self.natural(args[0]), None, start, end)

    def _times(self, least: int, most: int | None, start: int, end: int) -> tuple[int, int | None]:
        if least < 1:
            self.fail("REPEAT 0 would match nothing at all", start, end, code="repeat", hint="write REPEAT 1 OR MORE")
        if most is not None and most < least:
            hint = f"write REPEAT {most} TO {least}"
            self.fail(f"REPEAT {least} TO {most} is not a number of times", start, end, code="repeat", hint=hint)
        return least, most

    def repeat_by(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "BY", tuple(args)

    def repeat_where(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "WHERE", args[0]

    def repeat_not(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "NOT", args[0]

    def repeat_longest(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "LONGEST", True

    def repeat_maximal(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "MAXIMAL", True

    def repeat_until(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "UNTIL", args[0]

    def repeat_gap(self, args: list[Any], start: int, end: int) -> tuple[str, Any]:
        return "GAP", self.within(args, start, end, "GAP")

    def repeat_as(self, args: list[Projection], start: int, end: int) -> tuple[str, Any]:
        return "AS", tuple(args)

    def repeat(self, args: list[Any], start: int, end: int) -> Repeat:
        pattern, (least, most), *written = args
        clauses: dict[str, Any] = {}
        for name, value in written:
            if name in clauses:
                self.fail(f"REPEAT has {name} twice", start, end, code="repeat", hint="put both into one clause")
            clauses[name] = value
        return Repeat(
            pattern,
            least,
            most,
            clauses.get("BY", ()),
            clauses.get("WHERE"),
            clauses.get("NOT"),
            clauses.get("LONGEST", False),
            clauses.get("AS", ()),
            clauses.get("GAP"),
            clauses.get("MAXIMAL", False),
            clauses.get("UNTIL"),
            span=Span(start, end),
        )

    def step(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.upper())

    def step_value(self, args: list[Any], start: int, end: int) -> Call:
        name, variable = args
        return Call(name, (variable,), span=Span(start, end))
