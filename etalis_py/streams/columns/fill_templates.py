"""Fills templates from columns: the terms that ``RowTemplate.fill`` gives row by row, but each distinct cell once.

Arrow makes the terms of cells that are certainly plain (a word in an IRI, a number, a printable text); every other cell
goes through ``RowTemplate.fill`` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import XSD, iri

from etalis_py.numba_cache import ready
from etalis_py.streams.columns.flat_form import constant
from etalis_py.streams.columns.native_literals import Column, patched
from etalis_py.streams.columns.times import MANY
from etalis_py.streams.templates import ABSOLUTE, NUMBERS, RowTemplate, guess, quoted

_WORD = r"^[A-Za-z0-9\-._~:@!$'()*+,;=]+$"
PLAIN_IRI = rf"^{ABSOLUTE}[A-Za-z0-9\-._~:@!$'()*+,;=/]*$"
_TEXT = r"^[!#-\[\]-~](?:[ !#-\[\]-~]*[!#-\[\]-~])?$"


def fill(template: RowTemplate, columns: Mapping[str, Column], size: int) -> pa.Array:
    """The terms of a template in the rows of a batch; null where a cell is missing."""
    holes = template.holes
    if not holes:
        return constant(template.fill({}), size)
    if len(holes) == 1:
        column = columns[holes[0]]
        return pa.DictionaryArray.from_arrays(column.index, _terms(template, column))
    parts: list[Any] = []
    for place, part in enumerate(template.parts):
        if not place % 2:
            if part:
                parts.append(part)
            continue
        column = columns[part]
        texts = present(column.texts, template.missing)
        if template.kind == "iri":
            texts = _quoted(texts)
        parts.append(texts.take(column.index))
    joined = pc.binary_join_element_wise(*parts, "").dictionary_encode()
    if template.kind == "iri":
        template = RowTemplate("text", template.parts)  # it only remains to write it as an IRI
        spelled = pa.array([iri(text) for text in joined.dictionary.to_pylist()], pa.string())
    else:
        spelled = _spelled(template, joined.dictionary)
    return pa.DictionaryArray.from_arrays(joined.indices, spelled)


def _terms(template: RowTemplate, column: Column) -> pa.StringArray:
    """The term of each distinct cell, where the template has one hole."""
    texts = column.texts
    before, hole, after = template.parts
    if template.kind in ("bare", "comma") and column.terms is not None and not before and not after:
        return pc.if_else(pc.is_valid(present(texts, template.missing)), column.terms, pa.scalar(None, pa.string()))
    if template.kind == "text":
        return texts if not before and not after else pc.binary_join_element_wise(before, texts, after, "")

    def slow(text: str) -> str | None:
        return template.fill({hole: text}) or None

    if template.kind == "bare" and not before and not after:
        bulk, sure = _guessed(texts)
        return patched(_without(bulk, texts, template.missing), sure, texts, slow)
    sure = pc.match_substring_regex(texts, _sure(template))
    if template.kind == "iri" and iri(before + after) == f"<{before}{after}>":
        bulk = pc.binary_join_element_wise(f"<{before}", texts, f"{after}>", "")
    elif template.kind == "literal" and not before and not after:
        tail = template.fill({hole: "x"})[2:]
        bulk = pc.binary_join_element_wise('"', texts, tail, "")
    else:
        return pa.array([slow(text) for text in texts.to_pylist()], pa.string())
    return patched(_without(bulk, texts, template.missing), sure, texts, slow)


def _without(terms: pa.StringArray, texts: pa.StringArray, missing: frozenset[str]) -> pa.StringArray:
    """The terms, null where the text stands for a missing value."""
    absent = pc.is_in(texts, value_set=pa.array(sorted(missing), pa.string()))
    return pc.if_else(absent, pa.scalar(None, pa.string()), terms)


def _sure(template: RowTemplate) -> str:
    """The pattern of cells that are certainly plain."""
    if template.kind != "iri":
        return _TEXT
    return PLAIN_IRI if template.is_hole else _WORD


def _guessed(texts: pa.StringArray) -> tuple[pa.StringArray, pa.BooleanArray]:
    """Texts as ``templates.guess`` would read them, and for which of them that is sure."""
    if len(texts) >= MANY and not texts.null_count and ready():
        from etalis_py.streams.columns.gather_terms import guesses  # takes a while to import

        return guesses(texts)
    terms = pc.binary_join_element_wise('"', texts, '"', "")
    for pattern, name in NUMBERS:
        looks = pc.match_substring_regex(texts, f"^(?:{pattern})$")
        if pc.any(looks).as_py():
            terms = pc.if_else(looks, pc.binary_join_element_wise('"', texts, f'"^^<{XSD}{name}>', ""), terms)
    return terms, pc.match_substring_regex(texts, _TEXT)


def guessed(texts: pa.StringArray) -> pa.StringArray:
    """Untyped texts as the literals that they look like."""
    terms, sure = _guessed(texts)
    return patched(terms, sure, texts, guess)


def _spelled(template: RowTemplate, texts: pa.StringArray) -> pa.StringArray:
    """The terms that filled templates spell."""
    return pa.array([template.term(text) for text in texts.to_pylist()], pa.string())


def present(texts: pa.StringArray, missing: frozenset[str]) -> pa.StringArray:
    """The texts, null where one stands for a missing value."""
    if pc.all(pc.match_substring_regex(texts, _TEXT)).as_py() is False:
        absent = pa.array([text.strip() in missing for text in texts.to_pylist()], pa.bool_())
    else:
        absent = pc.is_in(texts, value_set=pa.array(sorted(missing), pa.string()))
    return pc.if_else(absent, pa.scalar(None, pa.string()), texts)


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    """The texts as parts of IRIs."""
    return patched(
        texts, pc.match_substring_regex(texts, _WORD), texts, lambda text: None if text is None else quoted(text)
    )
