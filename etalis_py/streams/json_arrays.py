"""A file that is one JSON array of objects, ``[{…}, {…}]``: its elements are read as the lines of JSON lines are.

Elements are cut off one by one, so a long array takes no more memory than its longest element.  Nothing can be told
apart after an element that is not JSON, so the rest of the array is left out with it.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator

from etalis_py.events.errors import StreamError
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.jsonl import JsonOptions, line_events
from etalis_py.streams.sources import Block, Burst, now
from etalis_py.streams.timing import Idle

_BETWEEN = re.compile(r"[\s,]*")
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode


def is_array(head: bytes) -> bool:
    """Whether a file with this beginning is an array of objects."""
    return re.match(rb"\s*\[\s*(?:\{|\]|$)", head.removeprefix(BOM_UTF8)) is not None


def array_events(blocks: Iterable[Block], context: StreamContext, reading: JsonOptions) -> Iterator[Item]:
    """The events of each element; a bad element is reported and left out whole."""
    try:
        for element in _elements(blocks):
            if isinstance(element, (Idle, Burst)):
                yield element
            else:
                text, line = element
                yield from line_events(text, line, context, reading)
    except StreamError as error:
        context.report(error)


def texts_of(text: str, *, cut_off: bool) -> Iterator[str]:
    """The texts of the elements of an array; one that may be ``cut_off`` anywhere has only those that are whole."""
    for element in _elements([(text, 1)], cut_off=cut_off):
        if not isinstance(element, (Idle, Burst)):
            yield element[0]


def _elements(blocks: Iterable[Block], *, cut_off: bool = False) -> Iterator[tuple[str, int] | Idle | Burst]:
    """The text of each element, with its line; and marks.  ``cut_off``: the text may end anywhere."""
    text, place, line, begun = "", 0, 0, False
    for block in blocks:
        if block is None or isinstance(block, Burst):
            yield block or Idle(now())
            continue
        line = line or block[1]
        text, place = text[place:] + block[0], 0
        while True:
            if not begun and text.lstrip().startswith("["):
                begun, place = True, text.index("[") + 1
                line += text.count("\n", 0, place)
            gap = _BETWEEN.match(text, place)
            end = place if gap is None else gap.end()
            line += text.count("\n", place, end)
            place = end
            if not begun or not text.startswith("{", place):
                break
            try:
                _, end = _decode(text, place)
            except (json.JSONDecodeError, RecursionError):
                break  # it may go on in the next block
            yield text[place:end], line
            line += text.count("\n", place, end)
            place = end
    rest = text[place:]
    if cut_off or (begun and rest.startswith("]") and not rest[1:].strip()):
        return
    raise _failure(rest, line)


def _failure(rest: str, line: int) -> StreamError:
    """Why an array ends before its end."""
    hint = "an array of objects is written [{…}, {…}], and nothing follows it"
    if rest.startswith("{"):
        try:
            _decode(rest)
        except json.JSONDecodeError as error:
            return StreamError(f"this element is not JSON: {error.msg}", line=line + error.lineno - 1, hint=hint)
        except RecursionError:
            return StreamError("this element is nested too deeply", line=line, hint="flatten it first")
    if not rest:
        return StreamError("the array has no end", line=line, hint="it ends with ]; fetch the file again")
    return StreamError("expected a JSON object, or the end of the array", line=line, text=rest[:80], hint=hint)
