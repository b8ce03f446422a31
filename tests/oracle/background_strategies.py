"""What the background answers by itself: counted, compared, or looked for in vain in the stream."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from .strategies import CORE, NEGATION, Case, aggregate_queries, backgrounds, document, selects, streams

KNOWN = replace(CORE, graphs=True, subselect=False)
MISSED = replace(NEGATION, graphs=True, pairs=("UNION", "UNION", "AND", "SEQ"), optionals=("OPTIONAL",))


def known_aggregates() -> st.SearchStrategy[Case]:
    """Aggregates over patterns that the background may answer by itself."""
    query = st.one_of(aggregate_queries(KNOWN), aggregate_queries(KNOWN), aggregate_queries(MISSED))
    return st.builds(Case, query.map(document), streams(most=8), backgrounds())


def known_and_missed() -> st.SearchStrategy[Case]:
    """OPTIONAL, MINUS and EXISTS over stored graphs and the stream."""
    query = st.one_of(selects(MISSED, depth=0), selects(MISSED, depth=1))
    return st.builds(Case, query.map(document), streams(most=8), backgrounds())
