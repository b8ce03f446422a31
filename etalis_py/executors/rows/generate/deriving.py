"""Generated code that passes derived triples on: singly to the leaves, and as whole events to EVENT."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

from etalis_compiler.stratify import feeds
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.feeding import feed
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.records import feed_event
from etalis_py.executors.rows.generate.runtime_objects import OfOutput
from etalis_py.executors.rows.generate.writer import Writer


@dataclass(frozen=True, slots=True)
class Derivation:
    """A CONSTRUCT rule with the leaves and the EVENTs (``records``) that read its triples.

    ``labels`` are the blank nodes that it makes anew; ``remembers``: some rule looks back at single occurrences.
    ``of_schema``: the rule is of the background's schema; what follows from one event is no event of its own.
    """

    name: str
    number: int
    output: ir.Output
    leaves: Mapping[str, ir.Leaf]
    records: Mapping[str, ir.Record]
    labels: tuple[str, ...]
    remembers: bool
    of_schema: bool


def derive(w: Writer, code: Code, rule: Derivation, rows: str, later: Mapping[str, str] | None) -> None:
    """Write the code that gives each derived triple to the leaves that read it.

    A triple counts once per instant and interval; for leaves of one STREAM, once in that stream.
    """
    name, output = rule.name, rule.output
    assert output.source is not None
    frame = Frame(code.names)
    frame.read(output.source, code.layouts[output.source.node], "x")
    seen = code.filled("seen")
    with w.block(f"for x in {rows}:"):
        if rule.labels:
            w(f"fresh = {code.need(f'fresh{rule.number}', OfOutput(rule.number, 'fresh'))}(x)")
            for i, label in enumerate(rule.labels):
                frame.terms[label] = f"fresh[{i}]"
        w("start = x[1]", f"stream = {output.stream!r}")
        if rule.records:
            w("triples = {}")
        # A solution that ended before this instant would be an event in the past; it derives nothing.
        if code.is_late(output.source.node):
            with w.block("if x[0] != t:"):
                w("continue")
        for template in output.template:
            places = (template.subject, template.predicate, template.object)
            w(f"s, p, o = {', '.join(_written(n, frame) for n in places)}")
            tests = [letter for letter, n in zip("spo", places, strict=True) if alg.variable_of(n)]
            if alg.variable_of(template.subject):
                tests.append("""s[:1] != '"' and s[:2] != '<<'""")
            if alg.variable_of(template.predicate):
                tests.append("p[:1] == '<'")
            if rule.records:
                with w.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
                    w("triples[s, p, o] = None")
            constant = alg.constant_of(template.predicate) or None
            targets = {n: leaf for n, leaf in rule.leaves.items() if feeds(template, output.stream, leaf)}
            because = f"{code.names.use('Because', Provenance)}({name!r}, (x[-1],))"
            anywhere = {n: leaf for n, leaf in targets.items() if not leaf.stream}
            ways = {f"(s, p, o, start) not in {seen}": (seen, "", anywhere)}
            if in_stream := {n: leaf for n, leaf in targets.items() if leaf.stream}:
                known = code.filled("seen in stream")
                ways[f"(s, p, o, start, stream) not in {known}"] = (known, ", stream", in_stream)
            for new, (known, stream, leaves) in ways.items():
                with w.block(f"if {' and '.join([new, *tests])}:"):
                    w(f"{known}.add((s, p, o, start{stream}))")
                    if rule.remembers:
                        w(f"{code.of_runtime('remember')}(s, p, o, start, t, stream)")
                    feed(w, code, leaves, because, constant, later or {})
        if rule.records:
            _derive_event(w, code, rule, later)


def _derive_event(w: Writer, code: Code, rule: Derivation, later: Mapping[str, str] | None) -> None:
    """Write the code that makes one event of all triples of a solution, unless the instant already has an equal one."""
    known = code.filled("whole")
    w("graph = ''", "event = (start, frozenset(triples), stream, graph)")
    tests = [f"triples and event not in {known}"]
    if rule.of_schema:
        tests.append(f"not {code.of_runtime('follows_from_one')}(start, triples, {known})")
    with w.block(f"if {' and '.join(tests)}:"):
        w(f"{known}.add(event)", "triples = (*triples,)")
        feed_event(w, code, rule.records, later or {}, code.provenance(rule.name, "x[-1]"))


def _written(node: alg.Var | alg.Const, frame: Frame) -> str:
    return alg.spelled(node, lambda name: frame.terms.get(name, "''"), repr)
