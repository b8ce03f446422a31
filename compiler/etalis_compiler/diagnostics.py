"""The compiler's messages: errors and warnings that point into the query text.

A ``Diagnostic`` carries its data (what, where, what was expected, what to do) and prints itself with the line and a
caret under the offending characters.  ``QueryError`` is the one exception for a fault in a query, whichever pass
found it; it holds one or more diagnostics.

>>> source = Source("SELECT ?x WHERE { ?x :p ?y", "drops.rq")
>>> print(source.diagnostic("error", "syntax", "the text ends inside a group", 26, 26, hint="add '}'"))
drops.rq:1:27: error: the text ends inside a group
  1 | SELECT ?x WHERE { ?x :p ?y
    |                           ^
  hint: add '}'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from etalis_rules.messages import closest, in_characters, printable

_SHOWN = 160  # characters of a line that are printed around the fault
MAX_FINDINGS = 50
FIRST = "q1"
"""The first query of a program, if neither its text nor its file says how it is called."""
_DESCRIPTOR = re.compile(r"/dev/(fd/\d+|stdin)|/proc/[^/]+/fd/\d+")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.  ``line`` and ``column`` count from 1, ``end`` is the column after the last offending character.

    ``code`` is a short stable name for tools (``syntax``, ``unknown-prefix``, ``scope``, …); ``token`` is the text
    found, ``expected`` says in words what would fit there.
    """

    severity: str  # "error" or "warning"
    code: str
    message: str
    hint: str = ""
    source: str = "<query>"
    line: int = 1
    column: int = 1
    end: int = 1
    token: str = ""
    expected: tuple[str, ...] = ()
    excerpt: str = field(default="", compare=False, repr=False)  # the line, or the part of a long one around the fault
    marked: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)  # the offending columns of the excerpt

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "source": self.source,
            "line": self.line,
            "column": self.column,
            "end": self.end,
            "token": self.token,
            "expected": list(self.expected),
        }

    def __str__(self) -> str:
        lines = [f"{self.source}:{self.line}:{self.column}: {self.severity}: {self.message}"]
        if self.excerpt:
            number, (first, stop) = str(self.line), self.marked
            before, at = printable(self.excerpt[:first]), printable(self.excerpt[first:stop])
            lead = "".join("\t" if c == "\t" else " " for c in before)
            lines.append(f"  {number} | {self.excerpt}")
            lines.append(f"  {' ' * len(number)} | {lead}{'^' * max(1, len(at))}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return printable("\n".join(lines))


def _clip(line: str, first: int, stop: int) -> tuple[str, tuple[int, int]]:
    """The part of a line around the columns ``first`` to ``stop`` (from 0), and where they are in it."""
    if len(line) <= _SHOWN:
        return line, (first, min(stop, len(line)))
    start = max(0, first - _SHOWN // 2)
    left, right = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    moved = start - len(left)
    return left + line[start : start + _SHOWN] + right, (first - moved, min(stop - moved, _SHOWN + len(left)))


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a query and the name it is known by.

    ``named``: the name was given to its query, as that of a standing query is; otherwise it is only that of a file.
    """

    text: str
    name: str = "<query>"
    named: bool = field(default=False, compare=False)

    @property
    def stem(self) -> str:
        """The name of its file, without folders and ending; empty for a text that is of no file.

        A descriptor, such as that of ``<(cat q.rq)`` in a shell, has none: its number is another one in every run.
        """
        stem = self.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        return "" if stem.startswith("<") or _DESCRIPTOR.fullmatch(self.name) else in_characters(stem)

    @property
    def identity(self) -> str:
        """What ids of matches count its only query by: the name that the query was given, else a hash of the text.

        The name of a file does not count, so that the ids are the same if the text is given as it is.
        """
        return self.stem or FIRST if self.named else hash_of_text(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (from 1) of a character offset."""
        offset = max(0, min(offset, len(self.text)))
        line_start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, offset) + 1, offset - line_start + 1

    def line_at(self, offset: int) -> str:
        """The whole line that holds the offset."""
        offset = max(0, min(offset, len(self.text)))
        start = self.text.rfind("\n", 0, offset) + 1
        stop = self.text.find("\n", offset)
        return self.text[start : stop if stop >= 0 else len(self.text)].rstrip("\r")

    def excerpt(self, start: int, end: int) -> str:
        """The text between two offsets, cut to forty characters."""
        return shorten(self.text[start:end], 40)

    def diagnostic(
        self,
        severity: str,
        code: str,
        message: str,
        start: int,
        end: int,
        *,
        hint: str = "",
        expected: Iterable[str] = (),
    ) -> Diagnostic:
        """A finding about the characters ``start`` to ``end`` (a ``Span``'s offsets)."""
        line, column = self.position(start)
        whole = self.line_at(start)
        stop = min(column + max(0, end - start), len(whole) + 1)
        excerpt, marked = _clip(whole, column - 1, max(stop - 1, column))
        return Diagnostic(
            severity=severity,
            code=code,
            message=message,
            hint=hint,
            source=self.name,
            line=line,
            column=column,
            end=max(stop, column + 1),
            token=shorten(self.text[start:end]),
            expected=tuple(expected),
            excerpt=excerpt,
            marked=marked,
        )

    def error(
        self, code: str, message: str, start: int, end: int, *, hint: str = "", expected: Iterable[str] = ()
    ) -> QueryError:
        """The exception for one finding, ready to be raised."""
        return QueryError([self.diagnostic("error", code, message, start, end, hint=hint, expected=expected)])


class Findings:
    """The errors and warnings found in a text so far; of each at most ``MAX_FINDINGS`` are listed."""

    def __init__(self, source: Source):
        self.source = source
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def error(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self._add(self.errors, "error", code, message, node.span, hint)

    def warning(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self._add(self.warnings, "warning", code, message, node.span, hint)

    def _add(self, diagnostics: list[Diagnostic], severity: str, code: str, message: str, span: Any, hint: str) -> None:
        if len(diagnostics) < MAX_FINDINGS:
            diagnostics.append(self.source.diagnostic(severity, code, message, span.start, span.end, hint=hint))
        elif len(diagnostics) == MAX_FINDINGS:
            more = f"there are more than {MAX_FINDINGS} such findings; from here on they are not listed"
            diagnostics.append(self.source.diagnostic(severity, "limit", more, span.start, span.end))


class QueryError(ValueError):
    """A query that cannot be used, with all errors found in it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def to_dict(self) -> dict[str, Any]:
        return {"diagnostics": [d.to_dict() for d in self.diagnostics]}


def hash_of_text(text: str) -> str:
    """A hash of a text without its white space at the ends, and with one space for other white space."""
    return blake2b(" ".join(text.split()).encode(), digest_size=16).hexdigest()


def shorten(text: str, width: int = 60) -> str:
    """The text on one line, cut to a length that fits a message."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"


def variable_meant(name: str, bound: Iterable[str]) -> str:
    """The hint for a variable whose name is probably a misspelling of a bound one, or the empty string."""
    near = closest(name, bound)
    return f"did you mean ?{near}?" if near else ""
