"""Single terms in a user's spelling → canonical N-Triples spelling; anything but a term is an error."""

from __future__ import annotations

from etalis_py.events.errors import StreamError

_IRI = r"^<(?:https?://[a-z0-9][a-z0-9.\-]*(?:[/#]|[/#][A-Za-z0-9\-._~/]*(?:#[A-Za-z0-9\-._~/]*)?)?|urn:[A-Za-z0-9\-._~:/]+)>$"
LITERAL = r'^"[ !#-\[\]-~]*"(?:\^\^<http://www\.w3\.org/2001/XMLSchema#(?:integer|decimal|double|dateTime|boolean|date|float)>)?$'
PATTERNS = {
    "s": _IRI,
    "p": _IRI,
    "o": f"{_IRI}|{LITERAL}",
    "stream": f"{_IRI}|^$",
    "graph": f"{_IRI}|^$",
}
"""Terms that are certainly canonical, by their places."""
_STATEMENTS = {
    "s": "{} <urn:p> <urn:o> .",
    "p": "<urn:s> {} <urn:o> .",
    "o": "<urn:s> <urn:p> {} .",
    "stream": "<urn:s> <urn:p> <urn:o> {} .",
    "graph": "<urn:s> <urn:p> <urn:o> {} .",
}
_POSITIONS = {"s": 0, "p": 1, "o": 2, "stream": 3, "graph": 3}
NOUNS = {"s": "subject", "p": "predicate", "o": "object", "stream": "stream", "graph": "graph"}


def spell_term(text: str, name: str) -> str:
    """One term in canonical spelling.

    >>> spell_term('"a"^^<http://www.w3.org/2001/XMLSchema#string>', "o")
    '"a"'
    """
    from etalis_py.events.statement_lines import parse_line, reason_of, split_lines  # takes a while to import

    statement = _STATEMENTS[name].format(text)
    rows = split_lines(statement)
    try:
        if text and "\n" not in text:
            quad = rows[0][:4] if rows[0][0] else parse_line(statement)
            if sum(map(bool, quad)) == (4 if _POSITIONS[name] == 3 else 3):
                return quad[_POSITIONS[name]]
        reason = "it is empty" if not text else "it is more than one term"
    except (SyntaxError, ValueError) as error:
        reason = reason_of(error)
    raise StreamError(
        f"{text!r} is no {NOUNS[name]} in N-Triples spelling: {reason}",
        hint='write <http://example.org/acme>, "text" or "12"^^<http://www.w3.org/2001/XMLSchema#integer>; '
        "native values need a mapping",
    )
