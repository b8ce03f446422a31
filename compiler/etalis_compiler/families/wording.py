"""The wording of a text: the text without its constants, and the constants, of which one may be the query's name.

No text is parsed here.  The pieces come from the lexer, so nothing inside a comment or a string counts as a constant.

>>> from etalis_compiler.diagnostics import Source
>>> wording = wording_of(Source("SELECT ?x { :c12 :price ?x FILTER (?x > 100) }"))
>>> wording.pieces[:2], wording.constants
(('SELECT ?x { ', 'PNAME_LN'), (':c12', ':price', '100'))
>>> wording_of(Source("{ :c12 :price ?x } WITHIN PT5M")).pieces[-3:]
(' ?x } WITHIN PT', 'INTEGER', 'M')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..diagnostics import Source
from ..lexing import PIECE

_LENGTH = re.compile(r"(PT?)(0|[1-9][0-9]{0,17})([A-Z])")
"""A length of time that is one number and its unit."""
NAMES = {"WORD": "QUERY NAME", "IRIREF": "QUERY IRIREF", "PNAME_LN": "QUERY PNAME_LN"}
"""The kinds of what stands behind REGISTER QUERY."""
CONSTANTS = frozenset(("IRIREF", "PNAME_LN", "NUMBER", "INTEGER", "STRING", *NAMES.values()))


@dataclass(frozen=True, slots=True)
class Wording:
    """``pieces`` are texts between constants and kinds of constants, in turn; ``starts`` is where constants begin."""

    pieces: tuple[str, ...]
    constants: tuple[str, ...]
    starts: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the constants."""
        return self.pieces[1::2]

    def written(self, constants: tuple[str, ...]) -> str:
        """The text with these constants."""
        between = self.pieces[::2]
        inner = (text + constant for text, constant in zip(between, constants, strict=False))
        return "".join(inner) + between[-1]


def wording_of(source: Source) -> Wording | None:
    """The wording of a text; None if it has escapes or invalid tokens, so that it has to be parsed by itself."""
    text = source.text
    if "\\" in text or text[:1] == "\ufeff":
        return None
    pieces: list[str] = []
    constants: list[str] = []
    starts: list[int] = []
    done = place = 0
    before = last = ""
    for token in PIECE.finditer(text):
        start, end = token.span()
        if start != place:
            return None
        place = end
        kind = token.lastgroup or ""
        if kind == "SKIP":
            continue
        if kind == "DURATION" and (length := _LENGTH.fullmatch(token[0])):
            kind, (start, end) = "INTEGER", (start + length.start(2), start + length.end(2))
        if last == "QUERY" and before == "REGISTER":
            kind = NAMES.get(kind, kind)
        if kind in CONSTANTS:
            pieces += (text[done:start], kind)
            constants.append(text[start:end])
            starts.append(start)
            done = end
        before, last = last, token[0].upper() if kind == "WORD" else ""
    if place != len(text):
        return None
    return Wording((*pieces, text[done:]), tuple(constants), tuple(starts))
