"""SEQ NOT, SEQ OPTIONAL and REPEAT."""

from __future__ import annotations

from typing import Any

from ..ast import Call, Pattern, Projection, Repeat, SeqNot, SeqOptional, Span, walk
from .windows import WindowBuilder

MOST_BACK = 1_000
"""How many elements back PREVIOUS looks at most: a run keeps that many of its elements."""
MOST_OPTIONALS = 6
"""How many optional parts a sequence may have: its rules have a branch for each choice of those that come."""


class SequenceBuilder(WindowBuilder):
    def seq_not_seq(self, args: list[Any], start: int, end: int) -> SeqNot:
        left, absent, right = args
        return SeqNot(left, absent, right, span=Span(start, end))

    def seq_not_within(self, args: list[Any], start: int, end: int) -> SeqNot:
        left, absent, bound = args
        return SeqNot(left, absent, None, bound, span=Span(start, end))

    # --- SEQ OPTIONAL ---

    def optional_part(self, args: list[Any], start: int, end: int) -> Pattern:
        return args[0]  # type: ignore[no-any-return]

    def seq_optional_seq(self, args: list[Any], start: int, end: int) -> SeqOptional:
        left, *optionals, right = args
        return self._limited(SeqOptional(left, tuple(optionals), right, span=Span(start, end)))

    def seq_optional_within(self, args: list[Any], start: int, end: int) -> SeqOptional:
        left, *optionals, bound = args
        if len(optionals) > 1:
            self.fail(
                "WITHIN stands after several optional parts in a row, so it is open from which of them its time runs",
                bound.span.start,
                bound.span.end,
                code="seq-optional",
                hint="write the two alternatives with UNION, such as {A} SEQ {B} SEQ OPTIONAL {C} WITHIN 10 s and "
                "{A} SEQ NOT {B} WITHIN 10 s, or give each part a time of its own: "
                "{A} SEQ OPTIONAL {B} WITHIN 10 s SEQ OPTIONAL {C} WITHIN 10 s",
            )
        return self._limited(SeqOptional(left, tuple(optionals), None, bound, span=Span(start, end)))

    def _limited(self, sequence: SeqOptional) -> SeqOptional:
        parts = [part for node in walk(sequence) if isinstance(node, SeqOptional) for part in node.optionals]
        if len(parts) > MOST_OPTIONALS:
            last = sequence.optionals[-1].span
            self.fail(
                f"the sequence has {len(parts)} optional parts; {MOST_OPTIONALS} are possible",
                last.start,
                last.end,
                code="seq-optional",
                hint="divide it with a rule, CONSTRUCT { … } WHERE { {A} SEQ OPTIONAL {B} SEQ {C} }, and go on from "
                "what that derives",
            )
        return sequence

    # --- REPEAT ---

    def step(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.upper())

    def step_value(self, args: list[Any], start: int, end: int) -> Call:
        """``PREVIOUS(?p, 2)``, which is two elements back; ``PREVIOUS(?p, 1)`` is ``PREVIOUS(?p)``."""
        name, variable, back = args
        if back is None:
            return Call(name, (variable,), span=Span(start, end))
        if name != "PREVIOUS":
            hint = f"the value n elements back is PREVIOUS(?{variable.name}, n), in the WHERE of REPEAT"
            self.fail(f"{name} takes a variable alone", back.start, back.end, code="arguments", hint=hint)
        if not 1 <= len(back.text) <= len(str(MOST_BACK)) or not 1 <= int(back.text) <= MOST_BACK:
            hint = f"the value in this element is ?{variable.name}"
            message = f"PREVIOUS looks 1 to {MOST_BACK:,} elements back, not {back.text}"
            self.fail(message, back.start, back.end, code="arguments", hint=hint)
        number = self.number_of(str(int(back.text)), back.start, back.end)
        arguments = (variable,) if int(back.text) == 1 else (variable, number)
        return Call(name, arguments, span=Span(start, end))

    def times(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        count = self.natural(args[0])
        return self._times(count, count, start, end)

    def times_to(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        return self._times(self.natural(args[0]), self.natural(args[1]), start, end)

    def times_or_more(self, args: list[Any], start: int, end: int) -> tuple[int, int | None]:
        return self._times(self.natural(args[0]), None, start, end)

    def _times(self, least: int, most: int | None, start: int, end: int) -> tuple[int, int | None]:
        if least < 1:
            many = "REPEAT 1 OR MORE" if most is None or most < 1 else f"REPEAT 1 TO {most}"
            hint = f"write {many}; what may be missing is {{ A }} SEQ OPTIONAL {{ {{ B }} {many} }} SEQ {{ C }}"
            self.fail("REPEAT 0 would match nothing at all", start, end, code="repeat", hint=hint)
        if most is not None and most < least:
            hint = f"write REPEAT {most} TO {least}" if most else f"write REPEAT {least}"
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
