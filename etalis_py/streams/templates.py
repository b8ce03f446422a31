"""Templates of terms: ``<http://example.org/{Name}>``, ``"{Text}"@en``, ``{Price}``, filled from the cells of a row.

A cell is a text.  If a source has its own types (JSON, Parquet, a frame) it is a ``Typed`` text, which knows the
literal for its value: a bare ``{column}`` stands for that literal.  A cell of CSV has no type: a bare ``{column}`` is a
number if it looks like one, and a text otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from etalis_rules.terms import RDF, XSD, iri, literal

HOLE = re.compile(r"\{([^{}]*)\}")
INTEGER, DECIMAL = r"[+-]?[0-9]+", r"[+-]?[0-9]*\.[0-9]+"
DOUBLE = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"
NUMBERS = ((INTEGER, "integer"), (DECIMAL, "decimal"), (DOUBLE, "double"))
_NUMBERS = [(re.compile(pattern), XSD + name) for pattern, name in NUMBERS]
WITH_COMMA = re.compile(r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)(?:,[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[^,]*,(?![0-9]{3}(?:\D|$))[0-9]*|[^,]*\.[^,]*,[0-9]*")
"""One comma, after which no thousands come, or which comes after points."""
_NUMBER = r"[+-]?[0-9][0-9.,]*"
_AMOUNT = re.compile(_NUMBER)
WITH_SIGN = re.compile(rf"[$€£¥]\s?{_NUMBER}|{_NUMBER}\s?[$€£¥%]")
_SIGNS = "$€£¥% \u00a0"
_LITERAL = re.compile(r'"(.*)"(?:\^\^(\S+)|@([A-Za-z]+(?:-[A-Za-z0-9]+)*))?', re.DOTALL)
_NO_LABEL = re.compile(r"[^A-Za-z0-9_]")
SAFE = "-._~:@!$'()*+,;="
ABSOLUTE = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_ABSOLUTE = re.compile(ABSOLUTE)
_NO_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")

Cells = Mapping[str, str]


class Typed(str):
    """A cell that knows its literal."""

    __slots__ = ("term",)
    term: str

    def __new__(cls, text: str, term: str) -> Typed:
        cell = super().__new__(cls, text)
        cell.term = term
        return cell


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """One template.  ``parts`` alternates texts and columns; the first and the last are texts (possibly empty).

    ``kind``: an IRI, a blank node, a literal in quotes (with ``datatype`` or ``language``), a bare value
    (``comma``: with a comma for the decimal point), or a plain text that is not a term (a time). A cell in
    ``missing`` is not a value: the filled template is then "". ``base``: where the template is ``<{column}>``, what
    a cell that is no absolute IRI is appended to.
    """

    kind: Literal["iri", "blank", "literal", "bare", "comma", "text"]
    parts: tuple[str, ...]
    missing: frozenset[str] = frozenset()
    datatype: str = ""
    language: str = ""
    base: str = ""

    @property
    def holes(self) -> tuple[str, ...]:
        return self.parts[1::2]

    @property
    def is_hole(self) -> bool:
        """Whether it is a column and nothing else."""
        return len(self.parts) == 3 and not self.parts[0] and not self.parts[2]

    def fill(self, cells: Cells) -> str:
        """The term of a row, or "" where a cell is missing."""
        parts, kind = self.parts, self.kind
        if kind != "text" and any(cells[hole].strip() in self.missing for hole in parts[1::2]):
            return ""
        if kind != "iri" and self.is_hole:
            text = cells[parts[1]]  # unchanged: it may be Typed
        elif kind == "iri" and self.is_hole:
            text = whole_iri(cells[parts[1]], self.base)
        elif kind == "iri":
            text = "".join(quoted(cells[part]) if i % 2 else part for i, part in enumerate(parts))
        else:
            text = "".join(cells[part] if i % 2 else part for i, part in enumerate(parts))
        return self.term(text)

    def term(self, text: str) -> str:
        """The term that the filled template spells."""
        match self.kind:
            case "iri":
                return iri(text)
            case "blank":
                return "_:" + _NO_LABEL.sub(lambda m: f"_{ord(m[0]):x}_", text)
            case "literal":
                return literal(text, self.datatype, self.language)
            case "bare":
                return text.term if isinstance(text, Typed) else guess(text)
            case "comma":
                return text.term if isinstance(text, Typed) else guess(with_point(text))
            case _:
                return text


def quoted(cell: str) -> str:
    """A cell as part of an IRI."""
    return quote(cell.strip(), safe=SAFE)


def whole_iri(cell: str, base: str) -> str:
    """A cell that is an IRI: characters that no IRI has are percent-encoded; a relative one is appended to the base.

    >>> whole_iri("http://example.org/a?b=c d", "")
    'http://example.org/a?b=c%20d'
    """
    cell = cell.strip()
    if not _ABSOLUTE.match(cell):
        return base + quoted(cell)
    return _NO_IRI.sub(lambda found: quote(found[0]), cell)


def with_point(text: str) -> str:
    """A number with a comma, and perhaps points between thousands, as other numbers are written.

    >>> with_point("10,50"), with_point("-1.234.567,8"), with_point("1.234"), with_point("a,b")
    ('10.50', '-1234567.8', '1234', 'a,b')
    """
    return text.replace(".", "").replace(",", ".") if WITH_COMMA.fullmatch(text.strip()) else text


def from_amount(text: str, variable: str) -> str:
    """The expression that makes a number of a text with a decimal comma or a sign; "" if it is no such amount.

    >>> from_amount("$1,200.50", "?x")
    'xsd:decimal(REPLACE(?x, "[^0-9.-]", ""))'
    >>> from_amount("1.200,50 €", "?x"), from_amount("nine", "?x")
    ('xsd:decimal(REPLACE(REPLACE(?x, "[^0-9,-]", ""), ",", "."))', '')
    """
    plain = text.strip()
    if not WITH_SIGN.fullmatch(plain) and not (("," in plain) and _AMOUNT.fullmatch(plain)):
        return ""
    if _DECIMAL_COMMA.fullmatch(plain.strip(_SIGNS)):
        return f'xsd:decimal(REPLACE(REPLACE({variable}, "[^0-9,-]", ""), ",", "."))'
    return f'xsd:decimal(REPLACE({variable}, "[^0-9.-]", ""))'


def guess(text: str) -> str:
    """The literal that an untyped text looks like."""
    stripped = text.strip()
    for pattern, datatype in _NUMBERS:
        if pattern.fullmatch(stripped):
            return literal(stripped, datatype)
    return literal(text)


def text_template(text: str) -> RowTemplate:
    """A template that is not a term, such as that of a time."""
    return RowTemplate("text", tuple(HOLE.split(text)))


def brace_alone(text: str) -> str:
    """What is wrong with a template if a brace in it has no partner, or ""."""
    return f"a brace of {text!r} has no partner" if set("{}") & set("".join(HOLE.split(text)[::2])) else ""


def read_template(
    text: str, prefixes: Mapping[str, str], missing: frozenset[str], position: str, comma: bool = False
) -> RowTemplate:
    """The template of a subject, predicate, object, graph or stream; ValueError if it is not one."""
    is_object = position == "object"
    quotes = _LITERAL.fullmatch(text)
    if not quotes and (odd := brace_alone(text)):
        raise ValueError(f"{odd}; a column is written {{price}}")
    if text.startswith("<") and text.endswith(">"):
        parts = tuple(HOLE.split(text[1:-1]))
        if (parts[0] or len(parts) == 1) and not _ABSOLUTE.match(parts[0]):
            raise ValueError(f"{text} has no scheme, such as http:; write :{text[1:-1]} for a name as in a query")
        return RowTemplate("iri", parts, missing, base=prefixes.get("", ""))
    if text.startswith("_:"):
        if position in ("predicate", "stream"):
            raise ValueError(f"a blank node cannot be a {position}")
        return RowTemplate("blank", tuple(HOLE.split(text[2:])), missing)
    if quotes:
        if not is_object:
            raise ValueError(f"a literal cannot be a {position}")
        datatype = _expand(quotes[2], prefixes) if quotes[2] else ""
        return RowTemplate("literal", tuple(HOLE.split(quotes[1])), missing, datatype, quotes[3] or "")
    if text == "a" and position == "predicate":
        return RowTemplate("iri", (RDF + "type",))
    prefix, colon, local = text.partition(":")
    if colon and prefix in prefixes:
        return RowTemplate("iri", tuple(HOLE.split(prefixes[prefix] + local)), missing)
    if colon and re.fullmatch(r"[A-Za-z][\w.-]*", prefix) and not local.startswith(("//", " ")) and not is_object:
        raise ValueError(f"unknown prefix {prefix!r}; add it under [prefixes], or write <…> around an IRI")
    if not is_object:
        how = f"write :{text} for a name as in a query"
        if colon or text.startswith("{"):
            how = "write <…> around it" + f", or :{text} for a name as in a query" * (not colon)
        raise ValueError(f"{text!r} is not an IRI; {how}")
    return RowTemplate("comma" if comma else "bare", tuple(HOLE.split(text)), missing)


def _expand(name: str, prefixes: Mapping[str, str]) -> str:
    if name.startswith("<") and name.endswith(">"):
        return name[1:-1]
    prefix, colon, local = name.partition(":")
    if not colon or prefix not in prefixes:
        raise ValueError(f"unknown datatype {name!r}; write it as xsd:decimal, or as <iri>")
    return prefixes[prefix] + local
