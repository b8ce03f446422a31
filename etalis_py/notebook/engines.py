"""An engine in a notebook: where it stands, then its programs."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from etalis_py.notebook.rules import ShownProgram, program_html
from etalis_py.notebook.tables import text_html

_FEW = 3  # programs that are shown


def engine_html(summary: str, programs: Collection[ShownProgram]) -> str:
    """One line, then the text and the plan of the first programs."""
    more = len(programs) - _FEW
    shown = "".join(map(program_html, islice(programs, _FEW)))
    return text_html(summary) + shown + (text_html(f"and {more:,} more programs") if more > 0 else "")
