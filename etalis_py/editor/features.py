"""What an editor asks of a text: faults, meanings, continuations, and the text tidied.

Lines and columns count from 0, as in the Language Server Protocol; columns are characters.

>>> [fault.message for fault in diagnose("SELECT ?x { ?x :p }")][0].startswith("unexpected '}'")
True
>>> hover("SELECT * { {?x :p ?y} SEQ {?x :q ?z} }", 0, 23)
'`{A} SEQ {B}`\\n\\nA ends before B starts: a′ < b.'
"""

from __future__ import annotations

import re
from collections import Counter

from etalis_compiler.diagnostics import Diagnostic, QueryError
from etalis_compiler.parser import parse
from etalis_compiler.printer import to_text
from etalis_rules.spelling import PREFIXES

from etalis_py.editor.operators import OPERATORS, WORDS
from etalis_py.engine.program import compile

_WORD = re.compile(r"[\w?:-]+")
_PIECE = re.compile(
    r'(?P<text>"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
    r"|(?P<iri><[^<>\s]*>)|(?P<comment>#[^\n]*)|(?P<open>[{(\[])|(?P<close>[})\]])"
)
_NAME = re.compile(r"(?<![\w<])([\w-]*):([A-Za-z_][\w-]*)")
_VARIABLE = re.compile(r"\?\w+")
_DECLARED = re.compile(r"\bprefix\s+([\w-]*):\s*<([^<>\s]*)>", re.IGNORECASE)


def diagnose(text: str) -> list[Diagnostic]:
    """What ``etalis check`` says."""
    if not text.strip():
        return []
    try:
        return list(compile(text + "\n").check())
    except QueryError as error:
        return list(error.diagnostics)


def word_at(text: str, line: int, column: int) -> str:
    """The word, variable or name that stands there."""
    lines = text.splitlines()
    if line >= len(lines):
        return ""
    return next((m[0] for m in _WORD.finditer(lines[line]) if m.start() <= column <= m.end()), "")


def hover(text: str, line: int, column: int) -> str | None:
    """What the word there means, in Markdown: an operator's definition, or the IRI of a name."""
    word = word_at(text, line, column)
    operator = OPERATORS.get(word.upper())
    if operator is not None:
        return f"`{operator.form}`\n\n{operator.meaning}"
    name = _NAME.fullmatch(word)
    namespace = {**PREFIXES, **dict(_DECLARED.findall(text))}.get(name[1]) if name else None
    return f"`<{namespace}{name[2]}>`" if name and namespace is not None else None


def complete(text: str, line: int, column: int) -> list[tuple[str, str]]:
    """What may be written there, with a word on each: variables behind ``?``, names behind a prefix, else operators."""
    lines = text.splitlines() or [""]
    before = lines[line][:column] if line < len(lines) else ""
    if (begun := re.search(r"\?\w*$", before)) is not None:
        return [(name, "variable") for name in _others(_VARIABLE, text, begun[0])]
    if (begun := re.search(r"(?<![\w<])[\w-]*:[\w-]*$", before)) is not None:
        return [(name, "name") for name in _others(_NAME, text, begun[0])]
    prefixes = dict.fromkeys((*dict(_DECLARED.findall(text)), *PREFIXES))
    return [
        *((name, operator.form) for name, operator in OPERATORS.items()),
        *((word, "keyword") for word in WORDS if word not in OPERATORS),
        *((f"{prefix}:", "prefix") for prefix in prefixes),
    ]


def _others(pattern: re.Pattern[str], text: str, begun: str) -> list[str]:
    """What else in the text begins so."""
    times = Counter(match[0] for match in pattern.finditer(text))
    return sorted(name for name, count in times.items() if name.startswith(begun) and (name != begun or count > 1))


def tidy(text: str) -> str | None:
    """The text in the form that the compiler prints, or, where it has comments, indented; None where it has faults.

    The program stays the same.
    """
    try:
        document = parse(text)
    except QueryError:
        return None
    if any(piece.lastgroup == "comment" for piece in _PIECE.finditer(text)):
        return _indented(text)
    declared = dict(_DECLARED.findall(text))
    known = {prefix: namespace for prefix, namespace in PREFIXES.items() if prefix not in declared}
    return to_text(document, prefixes=known).rstrip() + "\n"


def _indented(text: str) -> str:
    """Each line by its brackets; what stands inside a long text stays."""
    lines, depth, inside = [], 0, set[int]()
    closing: dict[int, int] = {}
    opened: dict[int, int] = {}
    number = 0
    starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
    for piece in _PIECE.finditer(text):
        while number + 1 < len(starts) and starts[number + 1] <= piece.start():
            number += 1
        if piece.lastgroup == "text":
            inside.update(n for n in range(number + 1, number + 1 + piece[0].count("\n")))
        elif piece.lastgroup == "open":
            opened[number] = opened.get(number, 0) + 1
        elif piece.lastgroup == "close":
            opened[number] = opened.get(number, 0) - 1
            if not text[starts[number] : piece.start()].strip(" \t})]"):
                closing[number] = closing.get(number, 0) + 1
    for number, line in enumerate(text.splitlines()):
        bare = line.strip()
        at = max(0, depth - closing.get(number, 0))
        lines.append(line if number in inside else "  " * at + bare if bare else "")
        depth = max(0, depth + opened.get(number, 0))
    return "\n".join(lines).rstrip() + "\n"
