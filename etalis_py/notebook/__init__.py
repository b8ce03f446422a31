"""How programs, matches and explanations show themselves in a notebook: HTML and SVG, without scripts.

Programs are their text, their warnings and their plan as a picture; an engine also says where it stands.  Matches are a
table that fits the page, and a timeline below it; why a match holds is its events in time.
"""

from etalis_py.notebook.engines import engine_html
from etalis_py.notebook.rules import program_html, rule_graph
from etalis_py.notebook.tables import first_matches_html, matches_html, text_html
from etalis_py.notebook.timeline import Timeline, timeline_of, why_html

__all__ = [
    "Timeline",
    "engine_html",
    "first_matches_html",
    "matches_html",
    "program_html",
    "rule_graph",
    "text_html",
    "timeline_of",
    "why_html",
]
