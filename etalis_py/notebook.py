"""How programs and matches show themselves in a notebook: rules as a graph, matches as a table.

>>> from etalis_py import compile
>>> graph = rule_graph(compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }").rules())
>>> [(node["kind"], node["label"]) for node in graph["nodes"]][:2]
[('leaf', 'triple(X0, :p, X1)'), ('leaf', 'triple(X0, :q, X1)')]
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from html import escape
from itertools import islice
from typing import Any

from etalis_rules import program as ir
from etalis_rules.definitions import Definitions
from etalis_rules.printing import node_names, sorted_nodes
from etalis_rules.spelling import PREFIXES, Spelling

SHOWN = 100
_LINE, _CHARACTER, _COLUMN, _GAP = 15, 6.7, 34, 46
_FILL = {"leaf": "#e8f1f8", "goal": "#fdf3dc", "query": "#e2f3ec"}


def rule_graph(rules: ir.Rules, prefixes: Mapping[str, str] = PREFIXES) -> dict[str, Any]:
    """The rules as a graph: leaves, goals and queries, and what is made from what."""
    names = node_names(rules)
    written = Definitions(Spelling(prefixes), names)
    nodes: list[dict[str, str]] = []
    edges: list[dict[str, str]] = []
    for identifier, node in sorted_nodes(rules):
        name = names[identifier]
        kind = "leaf" if isinstance(node, ir.Leaf) else "goal"
        definition = written.node(node)
        label = "triple" + definition.removeprefix("leaf") if kind == "leaf" else f"{name} := {definition}"
        nodes.append({"id": name, "label": label, "kind": kind})
        edges += [{"from": source, "to": name} for source in dict.fromkeys(names[ref.node] for ref in ir.refs(node))]
    for output in rules.outputs:
        nodes.append({"id": f"query {output.query}", "label": f"query {output.query}", "kind": "query"})
        if output.source is not None:
            edges.append({"from": names[output.source.node], "to": f"query {output.query}"})
    return {"nodes": nodes, "edges": edges}


def program_html(rules: ir.Rules, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """The rules as a picture (SVG): the stream comes in from the left, what is found goes out on the right."""
    graph = rule_graph(rules, prefixes)
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
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{max(below.values(), default=20):.0f}" '
        'role="img" font-family="monospace" font-size="11">'
    ]
    for edge in graph["edges"]:
        (x1, y1), (x2, y2) = places[edge["from"]], places[edge["to"]]
        parts.append(
            f'<path d="M{x1 + width:.0f} {y1 + 12:.0f} C{x1 + width + _GAP / 2:.0f} {y1 + 12:.0f} '
            f'{x2 - _GAP / 2:.0f} {y2 + 12:.0f} {x2:.0f} {y2 + 12:.0f}" fill="none" stroke="#888"/>'
        )
    for node in graph["nodes"]:
        x, y = places[node["id"]]
        said = lines[node["id"]]
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{len(said) * _LINE + 10}" rx="4" '
            f'fill="{_FILL[node["kind"]]}" stroke="#555"/>'
        )
        parts += [
            f'<text x="{x + 7:.0f}" y="{y + 16 + i * _LINE:.0f}">{escape(line)}</text>' for i, line in enumerate(said)
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


def matches_html(matches: Iterable[Any], count: int) -> str:
    """Matches as a table, the first ``SHOWN`` of them."""
    shown = list(islice(matches, SHOWN))
    names = sorted({name for match in shown for name in match.bindings})
    constructed = any(match.triples is not None for match in shown)
    head = ["query", *(["found"] if constructed else [f"?{name}" for name in names]), "start", "end"]
    rows = []
    for match in shown:
        if constructed:
            triples = match.triples
            said = [" . ".join(map(" ".join, triples)) if triples is not None else _row(match)]
        else:
            said = [match.bindings.get(name, "") for name in names]
        times = ["" if time is None else str(time) for time in (match.start, match.end)]
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (match.query, *said, *times))
        rows.append(f"<tr>{cells}</tr>")
    of = f"<caption>the first {len(shown)} of {count:,} matches</caption>" if count > len(shown) else ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return f"<table>{of}<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(match: Any) -> str:
    return ", ".join(f"?{name}={term}" for name, term in match.bindings.items())
