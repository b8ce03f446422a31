"""Generated code that compares the number and size of an instant's solutions with the limits."""

from __future__ import annotations

from etalis_rules.operators import combines, multiplies

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.writer import Writer

FEW, MANY = 64, 4_096  # results are not checked up to FEW; those of an instant that is still running, up to MANY


def begin(w: Writer, code: Code, name: str) -> None:
    """Set up the variables of ``again``."""
    node = code.nodes[name]
    if combines(node) and multiplies(node):
        w(f"{code.most(name)} = {min(MANY, code.limits.derivations)}")


def again(w: Writer, code: Code, name: str) -> None:
    """Compare the solutions so far with the limits each time they have doubled: one search may bring very many."""
    out, most = code.new(name), code.most(name)
    w(f"if len({out}) > {most}: {most} = {code.of_runtime('weigh')}({name!r}, {out})")


def compare(w: Writer, code: Code, name: str, solutions: str, few: int) -> None:
    """Compare the solutions of a node in this instant with the limits, unless they are few."""
    weigh = code.of_runtime("weigh")
    w(f"if len({solutions}) > {min(few, code.limits.derivations)}: {weigh}({name!r}, {solutions})")
