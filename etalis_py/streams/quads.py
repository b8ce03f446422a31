"""N-Quads and N-Triples → quads of canonical term spellings, with the directives and comments of message logs.

A quad is ``(subject, predicate, object, graph, line, time)``: ``graph`` is empty in the default graph, lines count from
1, ``time`` is the literal that the next line gives as the time of its graph (if the reader asked for that), or empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from etalis_rules.terms import with_blanks

from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import parse_line, reason_of, split_lines
from etalis_py.streams.sources import Block, Burst

Quad = tuple[str, str, str, str, int, str]
# In a message log: the message ends here; the message has a line that could not be read.
END_OF_MESSAGE: Quad = ("", "", "", "", -1, "")
BROKEN: Quad = ("", "", "", "", -2, "")
# In a live source: everything up to the second mark was available at once.
BURST: Quad = ("", "", "", "", -3, "")
BURST_OVER: Quad = ("", "", "", "", -4, "")

_DIRECTIVE = re.compile(r'[ \t]*(?:(VERSION)[ \t]+["\']([^"\']*)["\']|(MESSAGE))[ \t]*(?:#.*)?')
MESSAGE_COMMENT = re.compile(r"[ \t]*#[ \t]*@message\b")


def read_quads(
    blocks: Iterable[Block],
    *,
    graphs: bool,
    messages: bool | None,
    on_error: Callable[[StreamError], None],
    rename: Callable[[str], str] | None = None,
    time_predicate: str = "",
) -> Iterator[Quad | None]:
    """The quads of blocks of whole lines (each with the number of its first line); silences (``None``) and bursts pass.

    ``rename`` gives blank nodes (of a document) their labels.  With ``messages``, both spellings of a message's end
    (the directive and the comment) give END_OF_MESSAGE; with None a delimiter is an error; with False the directive is
    an error and the comment is a comment.

    With ``time_predicate`` the most common shape gives one quad with a ``time``: a graph's (last) quad, and on the next
    line its time by this predicate, in the usual spelling.
    """
    for block in blocks:
        if block is None:
            yield None
            continue
        if isinstance(block, Burst):
            yield BURST if block.open else BURST_OVER
            continue
        text, number = block
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        blanks = rename if "_:" in text else None
        for s, p, o, g, time, other in split_lines(text, time_predicate):
            if s and (graphs or not g):
                yield (s, p, o, g, number, time) if blanks is None else _renamed((s, p, o, g), blanks, number, time)
                if time:
                    number += 1
            elif s or other:
                line = other or f"{s} {p} {o} {g} ."
                try:
                    quad = read_line(line, graphs=graphs, messages=messages)
                except StreamError as error:
                    on_error(error.at("", number, line))
                    if messages:
                        yield BROKEN
                    quad = None
                if quad is not None and quad[0]:
                    yield (*quad, number, "") if blanks is None else _renamed(quad, blanks, number)
                elif quad is not None:
                    yield END_OF_MESSAGE
            number += 1


def _renamed(quad: tuple[str, str, str, str], rename: Callable[[str], str], number: int, time: str = "") -> Quad:
    s, p, o, g = quad
    return (
        rename(s) if s[0] == "_" else s,
        p,
        o if o[0] == '"' else with_blanks(o, rename),
        rename(g) if g[:1] == "_" else g,
        number,
        time,
    )


NO_LOG = "found a message delimiter in what was taken for one document"
MESSAGES_HINT = 'a message log starts with VERSION "1.2-messages", or is read with messages=True (--messages)'


def read_line(line: str, *, graphs: bool = True, messages: bool | None = None) -> tuple[str, str, str, str] | None:
    """The terms of a line that the fast path refused; all are empty at the end of a message, None if nothing is there.

    StreamError says what is wrong with it.
    """
    first = line.lstrip()[:1]
    if not first:
        return None
    if first == "#":
        if messages is False or not MESSAGE_COMMENT.match(line):
            return None
        if messages:
            return "", "", "", ""
        raise StreamError(NO_LOG, hint=MESSAGES_HINT)
    if first in "VM" and (match := _DIRECTIVE.fullmatch(line)):
        if not match[1]:
            if messages:
                return "", "", "", ""
            raise StreamError(NO_LOG, hint=MESSAGES_HINT)
        if match[2].endswith("-messages") and not messages:
            reason = "found the version of a message log in what was taken for one document"
            raise StreamError(reason, hint=MESSAGES_HINT)
        return None
    try:
        return parse_line(line, graphs=graphs)
    except (SyntaxError, ValueError) as error:
        raise StreamError(reason_of(error)) from None
