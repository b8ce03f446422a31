"""Lines of N-Quads → canonical term spellings, fast.

A block of lines is cut by one regular expression, in C.  It takes the lines that are certainly valid and already
canonical (a subset of the grammar); every other line goes to pyoxigraph on its own, which also finds the errors.  So
the result is pyoxigraph's, line by line.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyoxigraph as ox

from etalis_py.values.oxigraph_terms import parsed, spell

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


def reason_of(error: Exception) -> str:
    """pyoxigraph's message, without the line number, which is always 1."""
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    return re.sub(r"^Parser error at line \d+ (?:column (\d+)|between columns (\d+) and \d+): ", _column, reason)


def _column(match: re.Match[str]) -> str:
    return f"at column {match[1] or match[2]}: "
