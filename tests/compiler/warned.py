"""The warnings about a text."""

from __future__ import annotations

from etalis_compiler.diagnostics import Diagnostic, Source
from etalis_compiler.pipeline import compile_sources
from etalis_compiler.rule_warnings import check


def found(text: str, code: str = "") -> list[Diagnostic]:
    return [d for d in check(compile_sources([Source(text)])) if not code or d.code == code]


def tokens(text: str, code: str) -> list[str]:
    return [d.token for d in found(text, code)]
