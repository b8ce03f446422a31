"""Why something did not match: the other question that everyone who writes a pattern asks.

It works on a finite stream.  The program is run once over it; then the plan of the query (the temporal algebra, as
written) is evaluated part by part with the backward evaluator, and once without each of its conditions.  A solution
that the plan has without a condition, but not with it, was refused by that condition: the report names it, and says by
how much it failed.  Counts are exact, or marked as lower bounds if the work was limited.

    question ──▶ conditions of the plan ──▶ the plan without each ──▶ what it refused ──▶ measures ──▶ Report

It knows the algebra, the evaluator of ``sparql`` and the public engine; nothing of rules or executors.
"""

from etalis_py.whynot.asking import why_not
from etalis_py.whynot.report import Blame, Count, Miss, Node, Report
from etalis_py.whynot.search import Work

__all__ = ["Blame", "Count", "Miss", "Node", "Report", "Work", "why_not"]
