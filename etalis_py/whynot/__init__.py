"""Why something did not match: the other question that everyone asks who writes a pattern.

It works on a finite stream.  The program is run once over it; then the plan of the query (the temporal algebra, as it
was written) is evaluated part by part, with the backward evaluator, and once without each of its conditions.  What
the plan without a condition has, and the plan with it has not, was refused by that condition: that names it, and says
by how much.  Counts are exact, or said to be lower bounds where the work was limited.

    question ──▶ conditions of the plan ──▶ the plan without each ──▶ what it refused ──▶ measures ──▶ Report

It knows the algebra, the evaluator of ``sparql`` and the public engine; nothing of rules or executors.
"""

from etalis_py.whynot.asking import why_not
from etalis_py.whynot.report import Blame, Count, Miss, Node, Report
from etalis_py.whynot.search import Work

__all__ = ["Blame", "Count", "Miss", "Node", "Report", "Work", "why_not"]
