"""Programs as notebooks and the page of the server show them: what is made from what, under the names of the queries.

>>> from etalis_py import compile
>>> graph = rule_graph(compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }").rules())
>>> [(node["kind"], node["label"]) for node in graph["nodes"]][:2]
[('leaf', 'triple(?c, :p, _)'), ('leaf', 'triple(?c, :q, _)')]
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Protocol

from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, Source
from etalis_compiler.explain import PlanStep, explain
from etalis_compiler.rsp import WindowPlan
from etalis_compiler.rsp.explain import WindowExplainer
from etalis_rules import program as ir
from etalis_rules.spelling import PREFIXES

_LINE, _CHARACTER, _COLUMN, _GAP = 15, 6.7, 34, 46
_FILL = {"leaf": "#e8f1f8", "goal": "#fdf3dc", "query": "#e2f3ec"}


class ShownProgram(Protocol):
    """What a notebook asks of a program."""

    @property
    def documents(self) -> Sequence[tuple[ast.Document, Source]]: ...
    @property
    def prefixes(self) -> Mapping[str, str]: ...
    @property
    def plans(self) -> tuple[WindowPlan, ...]: ...
    def check(self) -> Sequence[Diagnostic]: ...
    def rules(self) -> ir.Rules: ...


def rule_graph(
    rules: ir.Rules, prefixes: Mapping[str, str] = PREFIXES, plans: Sequence[WindowPlan] = ()
) -> dict[str, Any]:
    """Leaves, goals, windows and queries, and what is made from what."""
    nodes: dict[str, dict[str, str]] = {}
    edges: dict[tuple[str, str], None] = {}

    def add(step: PlanStep, query: str) -> str:
        leaf = step.node[:1] == "e"
        label = step.title if leaf else f"{step.node} := {step.title}".rstrip(" :=")
        name = step.node
        if nodes.get(name, {"label": label})["label"] != label:  # another query gives it other names
            name = f"{step.node} in {query}"
        below = [add(part, query) for part in step.parts]
        nodes.setdefault(name, {"id": name, "label": label, "kind": "leaf" if leaf else "goal"})
        edges.update({(part, name): None for part in below})
        return name

    explained = explain(rules, prefixes)
    for output in rules.outputs:
        plan = explained.plan(output)
        sources = [] if plan is None else [add(plan, output.query)]
        _query(output.query, sources, nodes, edges)
    about = WindowExplainer(prefixes, {})
    for window_plan in plans:
        sources = []
        for window in window_plan.windows:
            on = f" on {about.name(window.inner or window.stream)}" if window.inner or window.stream else ""
            name = "" if window.name[:1] == "." else f" {about.name(window.name)}"
            label = f"window{name}{on}: {about.shape(window.shape)}"
            nodes.setdefault(label, {"id": label, "label": label, "kind": "leaf"})
            sources.append(label)
        _query(window_plan.name, sources, nodes, edges)
    return {"nodes": list(nodes.values()), "edges": [{"from": source, "to": name} for source, name in edges]}


def _query(
    query: str, sources: Iterable[str], nodes: dict[str, dict[str, str]], edges: dict[tuple[str, str], None]
) -> None:
    name = f"query {query}"
    nodes[name] = {"id": name, "label": name, "kind": "query"}
    edges.update({(source, name): None for source in sources})


def program_html(program: ShownProgram) -> str:
    """The text, what is doubtful in it, and the plan as a picture."""
    texts = [source.text.strip() for source in dict.fromkeys(source for _, source in program.documents)]
    warnings = "".join(f'<pre style="color:#a04000">{escape(str(warning))}</pre>' for warning in program.check())
    graph = rule_graph(program.rules(), program.prefixes, program.plans)
    text = f'<pre style="background:#f6f8fa;color:#111111;padding:8px">{escape(chr(10).join(texts))}</pre>'
    return f'<div style="overflow-x:auto;max-width:100%">{text * bool(texts)}{warnings}{graph_svg(graph)}</div>'


def graph_svg(graph: dict[str, Any]) -> str:
    """The picture: the stream comes in from the left, matches go out on the right."""
    ranks = _ranks(graph)
    lines = {node["id"]: textwrap.wrap(node["label"], _COLUMN) for node in graph["nodes"]}
    width = _COLUMN * _CHARACTER + 14
    places: dict[str, tuple[float, float]] = {}
    below: dict[int, float] = {}
    for node in graph["nodes"]:
        rank = ranks[node["id"]]
        y = below.get(rank, 8.0)
        places[node["id"]] = (8 + rank * (width + _GAP), y)
        below[rank] = y + len(lines[node["id"]]) * _LINE + 24
    total = 16 + (max(ranks.values(), default=0) + 1) * (width + _GAP) - _GAP
    height = max(below.values(), default=20)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" width="{total:.0f}" '
        f'style="max-width:100%;height:auto;background:#ffffff" role="img" font-family="monospace" font-size="11">'
    ]
    for edge in graph["edges"]:
        (x1, y1), (x2, y2) = places[edge["from"]], places[edge["to"]]
        parts.append(
            f'<path d="M{x1 + width:.0f} {y1 + 12:.0f} C{x1 + width + _GAP / 2:.0f} {y1 + 12:.0f} '
            f'{x2 - _GAP / 2:.0f} {y2 + 12:.0f} {x2:.0f} {y2 + 12:.0f}" fill="none" stroke="#888"/>'
        )
    for node in graph["nodes"]:
        x, y = places[node["id"]]
        text = lines[node["id"]]
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{len(text) * _LINE + 10}" rx="4" '
            f'fill="{_FILL[node["kind"]]}" stroke="#555"/>'
        )
        parts += [
            f'<text x="{x + 7:.0f}" y="{y + 16 + i * _LINE:.0f}">{escape(line)}</text>' for i, line in enumerate(text)
        ]
    return "".join((*parts, "</svg>"))


def _ranks(graph: dict[str, Any]) -> dict[str, int]:
    """How many steps each node is from the stream; an edge that goes round in a recursion does not count."""
    position = {node["id"]: i for i, node in enumerate(graph["nodes"])}
    ranks = dict.fromkeys(position, 0)
    for name in position:
        before = [ranks[e["from"]] for e in graph["edges"] if e["to"] == name and position[e["from"]] < position[name]]
        ranks[name] = max(before, default=-1) + 1
    return ranks
