"""The definition of a window between its brackets, as a shape in microseconds."""

from __future__ import annotations

import re

from etalis_rules.calendar import SECOND
from etalis_rules.datetimes import instant
from etalis_rules.durations import is_too_fine
from etalis_rules.terms import XSD, parts

from .. import ast
from ..unsupported import Fault
from .plan import Count, Identity, Interval, Landmark, Now, Shape, Sliding

_NUMBER = re.compile(r"([+-]?)(\d+)(?:\.(\d+))?", re.ASCII)
CONTINUOUS = 1  # the slide of a window that moves with time itself: one microsecond
MAX_OVERLAP = 1_000_000  # the most closings that one item may cause (range / slide)
MANY_OVERLAPS = 100_000  # more closings than a day has seconds: they are told


def length_of(duration: ast.Duration) -> int:
    """A length of time in microseconds."""
    parsed = duration.length
    if parsed is None or parsed[1] <= 0 or parsed[0]:
        raise Fault(
            "duration",
            f"a window cannot last {duration.lexical}",
            "months and years have no fixed length: write the window in days or smaller units (P30D, PT5M)",
            duration.span,
        )
    return parsed[1]


def instant_of(expression: ast.Expression) -> int:
    """A fixed time in the text: a number of seconds, or an xsd:dateTime."""
    spelling = ast.spelling_of(expression)
    text, datatype, _ = parts(spelling) if spelling else ("", "", "")
    if is_too_fine(text):
        raise Fault(
            "time", "times finer than a microsecond cannot be kept", "round it to microseconds", expression.span
        )
    number = _NUMBER.fullmatch(text)
    if number is not None and datatype in (XSD + "integer", XSD + "decimal"):
        micros = int(number[2]) * SECOND + int((number[3] or "").ljust(6, "0")[:6])
        return -micros if number[1] == "-" else micros
    moment = instant(text)
    if moment is not None:
        return moment
    raise Fault(
        "time",
        "this is no fixed time",
        'write a number of seconds, or "2016-03-01T13:00:00Z"^^xsd:dateTime',
        expression.span,
    )


def shape_of(spec: ast.WindowSpec, *, continuous: bool = False) -> Shape:
    """The shape of a window.  Without SLIDE it tumbles ([REQ]); ``continuous``: it moves with time itself (CQELS)."""
    offset = 0 if spec.offset is None else length_of(spec.offset)
    match spec.kind:
        case "landmark":
            assert spec.start is not None
            return Landmark(instant_of(spec.start))
        case "interval":
            assert spec.start is not None
            assert spec.end is not None
            start, end = instant_of(spec.start), instant_of(spec.end)
            if start > end:
                raise Fault("window", "the interval ends before it begins", "swap its two times", spec.span)
            return Interval(start, end)
        case "identity":
            return Identity()
        case "now":
            return Now()
    assert spec.range is not None
    if spec.range.kind != "duration":
        return _count(spec)
    width = length_of(spec.range)
    t0 = 0 if spec.t0 is None else instant_of(spec.t0)
    if spec.kind == "tumbling" or (spec.slide is None and not continuous):
        slide = width
    elif spec.slide is None:
        slide = CONTINUOUS
    elif spec.slide.kind != "duration":
        raise Fault(
            "window", "the window lasts a time but moves by a count", "give both as times, or both as counts", spec.span
        )
    else:
        slide = length_of(spec.slide)
    return Sliding(width, slide, t0, offset)


def _count(spec: ast.WindowSpec) -> Count:
    assert spec.range is not None
    if spec.offset is not None or spec.t0 is not None:
        raise Fault("window", "a window that counts has no OFFSET and no T0", "leave them out", spec.span)
    slide = spec.range.count if spec.kind == "tumbling" else 1
    if spec.slide is not None:
        if spec.slide.kind != spec.range.kind:
            raise Fault(
                "window",
                f"the window counts {spec.range.kind} but moves by {spec.slide.kind}",
                "count both in the same unit",
                spec.span,
            )
        slide = spec.slide.count
    return Count(spec.range.kind, spec.range.count, slide)
