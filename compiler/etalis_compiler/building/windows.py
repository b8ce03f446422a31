"""Durations, windows, dataset clauses and report policies."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn, cast

from etalis_rules.algebra import Bound
from etalis_rules.calendar import SECOND
from etalis_rules.durations import LONGEST, RATIOS, UNITS, duration_text, is_too_fine, parse_duration
from etalis_rules.messages import closest
from etalis_rules.terms import XSD, parts

from ..ast import DatasetClause, Duration, ReportClause, ReportItem, Skip, Span, Term, Var, WindowSpec
from ..lexing import Token
from .expressions import ExpressionBuilder

_COUNTED = {"EVENT": "EVENTS", "EVENTS": "EVENTS", "TRIPLE": "TRIPLES", "TRIPLES": "TRIPLES", "BGP": "BGP"}
_LONGEST = 18  # digits of a number that fits into 64 bits
_PARTS = {"ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}  # of a second
_LETTERS = {"s": "S", "min": "M", "h": "H", "d": "D", "mo": "M", "y": "Y"}  # in an xsd:duration
_WEEKS = re.compile(r"P([0-9]+)W")
DURATIONS = 'write it as 10 SECONDS, 5m, P30D, PT5M or "PT5M"^^xsd:duration'


@dataclass(slots=True)
class WindowItem:
    """One item between the brackets of a window."""

    kind: str
    start: int
    end: int
    values: tuple[Any, ...] = ()


class WindowBuilder(ExpressionBuilder):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dialects: set[str] = set()  # dialects recognised in the query being read

    # --- durations ---

    def within(self, args: list[Any], start: int, end: int, word: str = "WITHIN") -> Duration:
        length: Duration = args[0]
        written = self.source.text[length.span.start : length.span.end]
        if length.kind == "duration" and written[-1:].isdigit():
            hint = f"say which: {word} {written} SECONDS, {written} MINUTES or {written} HOURS"
            if word == "WITHIN":
                hint += f"; an aggregate may also take the last {written} EVENTS, behind the WHERE clause"
            self.fail("a length of time needs a unit", length.span.start, end, code="duration", hint=hint)
        return length

    def skip_by(self, args: list[Any], start: int, end: int) -> tuple[Var, ...]:
        return tuple(args)

    def skip_from(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.upper())

    def skip(self, args: list[Any], start: int, end: int) -> Skip:
        pattern, kind, after, by = args
        return Skip(pattern, kind, after, None, by or (), span=Span(start, end))

    def disjoint(self, args: list[Any], start: int, end: int) -> Skip:
        pattern, by = args
        return Skip(pattern, "DISJOINT", None, None, by or (), span=Span(start, end))

    def throttle(self, args: list[Any], start: int, end: int) -> Skip:
        pattern, length, by = args
        return Skip(
            pattern, "THROTTLE", None, self.within([length], start, end, "THROTTLE"), by or (), span=Span(start, end)
        )

    def every(self, args: list[Any], start: int, end: int) -> Duration:
        return args[0]  # type: ignore[no-any-return]

    def amount_number(self, args: list[Any], start: int, end: int) -> Duration:
        number, unit = args
        if len(number.text) > _LONGEST or "e" in number.text.lower():
            self.fail(
                "this is no usable number of time units", number.start, number.end, code="duration", hint=DURATIONS
            )
        code = "s" if unit is None else self._unit(unit)
        value, code = self._in_xsd(Decimal(number.text), code, start, end)
        text = format(value.normalize(), "f") + _LETTERS[code]
        return self._length(f"P{text}" if code in ("d", "y", "mo") else f"PT{text}", start, end)

    def _length(self, lexical: str, start: int, end: int) -> Duration:
        parsed = parse_duration(lexical)
        if parsed is not None and Bound(months=parsed[0], micros=parsed[1]).longest > LONGEST:
            hint = "at most 143,000 years fit into 64 bits; where nothing is to be bounded, leave it out"
            self.fail("this length of time is too long", start, end, code="limit", hint=hint)
        return Duration("duration", lexical, span=Span(start, end))

    def _unit(self, unit: Token) -> str:
        known = UNITS.get(unit.text.lower())
        if known is None:
            near = closest(unit.text, UNITS)
            hint = f"did you mean {near}?" if near else DURATIONS
            self.fail(f"'{unit.text}' is not a unit of time", unit.start, unit.end, code="duration", hint=hint)
        return known

    def _in_xsd(self, value: Decimal, unit: str, start: int, end: int) -> tuple[Decimal, str]:
        """The same length in a unit of xsd:duration, where only a number of seconds may have decimals."""
        if unit in _PARTS:
            value, unit = value / _PARTS[unit], "s"
        elif unit == "w":
            value, unit = value * 7, "d"
        whole = value == value.to_integral_value()
        if unit in ("mo", "y") and not whole:
            self.fail("a number of months or years must be whole", start, end, code="duration", hint=DURATIONS)
        if unit in ("h", "min", "d") and not whole:
            value, unit = value * RATIOS[unit][0] / SECOND, "s"
        if unit == "s" and value * SECOND % 1:
            self._too_fine(start, end)
        return value, unit

    def amount_word(self, args: list[Any], start: int, end: int) -> Duration:
        return self._length(self.duration(args[0].text, start, end), start, end)

    def amount_literal(self, args: list[Any], start: int, end: int) -> Duration:
        text, datatype, _ = parts(args[0].spelling)
        if datatype not in (XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration"):
            self.fail("this literal is not an xsd:duration", start, end, code="duration", hint=DURATIONS)
        return self._length(self.duration(text.strip(), start, end), start, end)

    def duration(self, text: str, start: int, end: int) -> str:
        """The lexical form of a positive xsd:duration, weeks turned into days."""
        if len(text) > 4 * _LONGEST:
            self.fail("this length of time has too many digits", start, end, code="limit", hint=DURATIONS)
        weeks = _WEEKS.fullmatch(text)
        if weeks:
            return f"P{int(weeks[1]) * 7}D"
        if parse_duration(text) is None or text.startswith("-"):
            self.fail(f"'{text}' is not a length of time", start, end, code="duration", hint=DURATIONS)
        if is_too_fine(text):
            self._too_fine(start, end)
        return text

    def _too_fine(self, start: int, end: int) -> NoReturn:
        self.fail(
            "times finer than a microsecond cannot be kept",
            start,
            end,
            code="duration",
            hint="round it to microseconds (0.000001 SECONDS, 1 us)",
        )

    def count_unit(self, args: list[Any], start: int, end: int) -> str:
        return _COUNTED[args[0].text.upper()]

    def amount_count(self, args: list[Any], start: int, end: int) -> Duration:
        unit, number = args
        return self._count(unit, number, start, end)

    def amount_count_after(self, args: list[Any], start: int, end: int) -> Duration:
        number, unit = args
        return self._count(unit, number, start, end)

    def _count(self, unit: str, number: Token, start: int, end: int) -> Duration:
        count = self.natural(number)
        if count == 0:
            self.fail("a window must hold at least one", start, end, code="duration")
        return Duration(unit, "", count, span=Span(start, end))

    def natural(self, number: Token) -> int:
        if len(number.text) > _LONGEST:
            self.fail("this number is too large", number.start, number.end, code="limit")
        return int(number.text)

    # --- windows ---

    def range(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("range", start, end, (self._positive(args[0]),))

    def _positive(self, length: Duration) -> Duration:
        if length.kind == "duration" and not re.search("[1-9]", length.lexical):
            span = length.span
            self.fail("a window cannot be or move by nothing", span.start, span.end, code="duration", hint=DURATIONS)
        return length

    span_only = history = range

    def history_until(self, args: list[Any], start: int, end: int) -> WindowItem:
        """``NOW - a TO NOW - b``: a window of length a − b, seen b later."""
        long, late = args
        if "duration" in (long.kind, late.kind) and not re.search("[1-9]", late.lexical):
            return self.range([long], start, end)
        ago = [d.length for d in args]
        if not all(a is not None and a[0] == 0 for a in ago):
            self.fail("both ends of the window must be lengths of time without months", start, end, hint=DURATIONS)
        (_, begins), (_, ends) = cast("list[tuple[int, int]]", ago)
        if begins <= ends:
            self.fail(
                "the window ends before it begins",
                start,
                end,
                code="duration",
                hint="the first time lies further back: [NOW - 10m TO NOW - 5m SLIDE 1m]",
            )
        length = Duration("duration", duration_text(0, begins - ends), span=Span(start, end))
        return WindowItem("range", start, end, (length, late))

    def amount_signed(self, args: list[Any], start: int, end: int) -> Duration:
        """``NOW -10 MINUTES``, with the sign next to the number."""
        number, unit = args
        if number.text[0] != "-":
            self.fail("a window looks back", start, end, hint="write [NOW - 10m TO NOW]")
        unsigned = number._replace(type="NUMBER", text=number.text[1:], start=number.start + 1)
        return self.amount_number([unsigned, unit], start, end)

    def slide(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("slide", start, end, (self._positive(args[0]),))

    def unknown_range(self, args: list[Any], start: int, end: int) -> WindowItem:
        self.fail(
            "'?' is no size of a window",
            start,
            end,
            hint="say how long the window is and how far it moves, as in [RANGE 10m STEP 1m]; for the last few events "
            "write [RANGE TRIPLES 3] or [RANGE BGP 3]",
        )

    def tumbling(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("tumbling", start, end)

    def landmark(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("landmark", start, end, (args[0],))

    def interval(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("interval", start, end, (args[0], args[1]))

    def identity(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("identity", start, end)

    def now(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("now", start, end)

    def offset_part(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("offset", start, end, (args[0],))

    def origin(self, args: list[Any], start: int, end: int) -> WindowItem:
        return WindowItem("t0", start, end, (args[0],))

    def instant(self, args: list[Any], start: int, end: int) -> Term:
        return args[0]  # type: ignore[no-any-return]

    def window(self, args: list[Any], start: int, end: int) -> WindowSpec:
        items: dict[str, WindowItem] = {}
        for part in args:
            if part.kind in items:
                self.fail(f"the window says {part.kind} twice", part.start, part.end, hint="leave one of them out")
            items[part.kind] = part
        kind = self._kind(items, start, end)
        return WindowSpec(
            kind={"range": "tumbling" if "tumbling" in items else "sliding"}.get(kind, kind),
            range=self._value(items, "range"),
            slide=self._value(items, "slide"),
            start=self._value(items, kind) if kind in ("landmark", "interval") else None,
            end=items["interval"].values[1] if kind == "interval" else None,
            offset=self._offset(items),
            t0=self._value(items, "t0"),
            span=Span(start, end),
        )

    def _kind(self, items: dict[str, WindowItem], start: int, end: int) -> str:
        """Which of the items says what the window holds; there must be one, and only a range may slide."""
        kinds = [k for k in ("range", "landmark", "interval", "identity", "now") if k in items]
        if len(kinds) > 1:
            second = items[kinds[1]]
            self.fail(
                f"a window cannot be both {kinds[0]} and {kinds[1]}",
                second.start,
                second.end,
                hint="declare two windows on the stream: FROM NAMED WINDOW :w1 … FROM NAMED WINDOW :w2 …",
            )
        kind = kinds[0] if kinds else ""
        if kind == "" or (kind != "range" and ("slide" in items or "tumbling" in items)):
            self.fail("the window has no length", start, end, hint="write [RANGE PT10M SLIDE PT1M] or [RANGE PT10M]")
        if "slide" in items and "tumbling" in items:
            part = items["tumbling"]
            self.fail(
                "a tumbling window slides by its own length", part.start, part.end, hint="leave SLIDE or STEP out"
            )
        return kind

    def _offset(self, items: dict[str, WindowItem]) -> Any:
        until = items["range"].values[1:] if "range" in items else ()
        if until and "offset" in items:
            part = items["offset"]
            self.fail("the window says twice how late it is seen", part.start, part.end, hint="leave OFFSET out")
        return until[0] if until else self._value(items, "offset")

    @staticmethod
    def _value(items: dict[str, WindowItem], kind: str) -> Any:
        return items[kind].values[0] if kind in items else None

    # --- dataset ---

    def named(self, args: list[Any], start: int, end: int) -> bool:
        return True

    def from_graph(self, args: list[Any], start: int, end: int) -> DatasetClause:
        named, graph, rescan = args
        return DatasetClause("graph", graph, bool(named), rescan=rescan, span=Span(start, end))

    def from_stream(self, args: list[Any], start: int, end: int) -> DatasetClause:
        named, stream, window = args
        self.dialects.add("sparqlstream" if named else "c-sparql")
        return DatasetClause("stream", stream, bool(named), None, window, span=Span(start, end))

    def from_window(self, args: list[Any], start: int, end: int) -> DatasetClause:
        named, name, source, window = args
        self.dialects.add("rsp-ql")
        return DatasetClause("window", name, bool(named), source, window, span=Span(start, end))

    def from_window_before(self, args: list[Any], start: int, end: int) -> DatasetClause:
        """``FROM NAMED WINDOW :w [RANGE PT1H STEP PT1H] ON STREAM :s``, an older spelling of RSP-QL."""
        named, name, window, source = args
        return self.from_window([named, name, source, window], start, end)

    def from_nested_window(self, args: list[Any], start: int, end: int) -> DatasetClause:
        named, name, inner, window = args
        self.dialects.add("rsp-ql")
        return DatasetClause("window", name, bool(named), None, window, inner.spelling, span=Span(start, end))

    def from_win(self, args: list[Any], start: int, end: int) -> DatasetClause:
        """[RSEP] Example 4.  There ``[RANGE 5]`` slides by one time unit."""
        named, source, window, name = args
        self.dialects.add("rsp-ql")
        if window.kind == "sliding" and window.slide is None and window.range.kind == "duration":
            window = replace(window, slide=Duration("duration", "PT1S", span=window.span))
        return DatasetClause("window", name, bool(named), source, window, span=Span(start, end))

    # --- reports ---

    def report_window_close(self, args: list[Any], start: int, end: int) -> ReportItem:
        return ReportItem("WC", args[0], span=Span(start, end))

    def report_content_change(self, args: list[Any], start: int, end: int) -> ReportItem:
        return ReportItem("CC", args[0], span=Span(start, end))

    def report_non_empty(self, args: list[Any], start: int, end: int) -> ReportItem:
        return ReportItem("NC", args[0], span=Span(start, end))

    def report_periodic(self, args: list[Any], start: int, end: int) -> ReportItem:
        return ReportItem("P", period=args[0], span=Span(start, end))

    def report_at(self, args: list[Any], start: int, end: int) -> ReportItem:
        return ReportItem("AT", times=tuple(args), span=Span(start, end))

    def report(self, args: list[Any], start: int, end: int) -> ReportClause:
        seen = set()
        for item in args:
            key = item.kind, item.window and item.window.spelling
            if key in seen:
                self.fail(
                    "a report policy is named twice", item.span.start, item.span.end, hint="leave one of them out"
                )
            seen.add(key)
        return ReportClause(tuple(args), span=Span(start, end))
