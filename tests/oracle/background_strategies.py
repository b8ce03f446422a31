"""What the background answers by itself, and looks for in vain in the stream."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from .strategies import NEGATION, Case, backgrounds, document, selects, streams

MISSED = replace(NEGATION, graphs=True, pairs=("UNION", "UNION", "AND", "SEQ"), optionals=("OPTIONAL",))


def known_and_missed() -> st.SearchStrategy[Case]:
    """OPTIONAL, MINUS and EXISTS over stored graphs and the stream."""
    query = st.one_of(selects(MISSED, depth=0), selects(MISSED, depth=1))
    return st.builds(Case, query.map(document), streams(most=8), backgrounds())
