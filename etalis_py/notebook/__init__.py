"""How programs, matches and explanations show themselves in a notebook: HTML and SVG, without scripts.

Programs are their text, their warnings and their plan as a picture; matches a table that fits the page, or a timeline;
why a match holds is its events in time.
"""

from etalis_py.notebook.rules import program_html, rule_graph
from etalis_py.notebook.tables import matches_html
from etalis_py.notebook.timeline import Timeline, timeline_of, why_html

__all__ = ["Timeline", "matches_html", "program_html", "rule_graph", "timeline_of", "why_html"]
