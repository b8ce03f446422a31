"""Generated code for what CONSTRUCT derives: one triple of a template from a solution."""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.writer import Writer


def make_triple(w: Writer, template: ir.Template, frame: Frame) -> list[str]:
    """Write ``s, p, o = …``; returns the tests of whether this is a triple: bound, with terms that may stand there."""
    nodes = (template.subject, template.predicate, template.object)
    w(f"s, p, o = {', '.join(_written(node, frame) for node in nodes)}")
    tests = [letter for letter, node in zip("spo", nodes, strict=True) if isinstance(node, alg.Var)]
    if isinstance(template.subject, alg.Var):
        tests.append("""s[:1] != '"'""")
    if isinstance(template.predicate, alg.Var):
        tests.append("p[:1] == '<'")
    return tests


def _written(node: alg.Var | alg.Const, frame: Frame) -> str:
    return repr(node.term) if isinstance(node, alg.Const) else frame.terms.get(node.name, "''")
