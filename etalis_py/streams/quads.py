"""N-Quads and N-Triples lines → quads of canonical term spellings, fast.

A block of lines is cut by one regular expression, in C.  It takes the lines that are certainly valid and already
canonical (a subset of the grammar); every other line, except comments and directives, goes to pyoxigraph on its own,
which also finds the errors.  So the result is pyoxigraph's, line by line.

A quad is ``(subject, predicate, object, graph, line, time)``: ``graph`` is empty in the default graph, lines count from
1, ``time`` is the literal that the next line gives as the time of its graph (if the reader asked for that), or empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import pyoxigraph as ox
from etalis_rules.terms import with_blanks

from etalis_py.streams.errors import StreamError
from etalis_py.streams.sources import Block, Burst
from etalis_py.values.oxigraph_terms import parsed, spell

Quad = tuple[str, str, str, str, int, str]
# In a message log: the message ends here; the message has a line that could not be read.
END_OF_MESSAGE: Quad = ("", "", "", "", -1, "")
BROKEN: Quad = ("", "", "", "", -2, "")
# In a live source: everything up to the second mark was available at once.
BURST: Quad = ("", "", "", "", -3, "")
BURST_OVER: Quad = ("", "", "", "", -4, "")


# Only what every IRI parser accepts: no empty scheme, no odd port, no stray percent sign; the rest takes the slow path.
# Possessive repeats (*+, ++) never backtrack, so no state is kept for that, and no line is read twice.  Each is
# followed by a character that it cannot match itself.
_SAFE = r"[A-Za-z0-9\-._~:/?@!$&'()*+,;=\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF]*+"
_SAFE_PERCENT = rf"{_SAFE}(?:%[0-9A-Fa-f]{{2}}{_SAFE})*+"
_AUTHORITY = r"(?://[A-Za-z0-9._~\-]++(?::[0-9]{1,4})?+(?=[/?#>])|(?!//))"
_IRI = rf"<[A-Za-z][A-Za-z0-9+.\-]*+:{_AUTHORITY}{_SAFE_PERCENT}(?:#{_SAFE_PERCENT})?+>"
_BLANK = r"_:[A-Za-z0-9_]++"
_PLAIN = r'[^"\\\x00-\x1f\x7f]*+'
_STRING = rf'"{_PLAIN}(?:\\[tbnrf"\\]{_PLAIN})*+"'
# xsd:string is written without a datatype; rdf:langString and dirLangString may not be written as datatypes.
_TYPE = (
    r"\^\^(?!<http://www\.w3\.org/2001/XMLSchema#string>"
    rf"|<http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(?:l|dirL)angString>){_IRI}"
)
_LITERAL = rf"{_STRING}(?:{_TYPE}|@[a-z]{{2,3}}(?:-[a-z]{{2}})?(?=[ \t]))?"
_GAP = r"[ \t]++"
_END = r"[ \t]*+\.[ \t]*+"
# The usual spelling of a time: ``timing.TimeReader`` reads it by the positions of its digits.
USUAL_TIME = (
    r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"'
    r"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime>"
)


@lru_cache
def _lines(time_predicate: str) -> re.Pattern[str]:
    """Cuts a text into lines: s, p, o, g, and the time that the predicate gives g on the next line."""
    timed = rf"(?:\n\4{_GAP}{re.escape(time_predicate)}{_GAP}({USUAL_TIME}){_END}$)?" if time_predicate else "()"
    return re.compile(
        rf"^(?:({_IRI}|{_BLANK}){_GAP}({_IRI}){_GAP}({_IRI}|{_LITERAL}|{_BLANK})"
        rf"(?:{_GAP}({_IRI}|{_BLANK}))?{_END}{timed}|(.*))$",
        re.MULTILINE,
    )


_DIRECTIVE = re.compile(r'[ \t]*(?:(VERSION)[ \t]+["\']([^"\']*)["\']|(MESSAGE))[ \t]*(?:#.*)?')
MESSAGE_COMMENT = re.compile(r"[ \t]*#[ \t]*@message\b")


def split_lines(text: str, time_predicate: str = "") -> list[tuple[str, str, str, str, str, str]]:
    """All lines of a text: ``(s, p, o, g, "", "")`` for a canonical one, ``("", "", "", "", "", line)`` for another.

    With a time predicate, a quad whose next line times its graph stands for both: ``(s, p, o, g, time, "")``.
    """
    rows = _lines(time_predicate).findall(text)
    # findall finds one more empty line after the last newline.
    if rows and text.endswith("\n"):
        rows.pop()
    return rows


def parse_line(line: str, *, graphs: bool = True) -> tuple[str, str, str, str]:
    """Parse one line with pyoxigraph; SyntaxError or ValueError says what is wrong with it."""
    # Parse all of it: an error may come after the quad.
    (quad,) = list(parsed(line, ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES))
    return spell(quad)


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


def reason_of(error: Exception) -> str:
    """pyoxigraph's message, without the line number, which is always 1."""
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    return re.sub(r"^Parser error at line \d+ (?:column (\d+)|between columns (\d+) and \d+): ", _column, reason)


def _column(match: re.Match[str]) -> str:
    return f"at column {match[1] or match[2]}: "
