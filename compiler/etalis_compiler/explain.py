"""Explains a compiled program as text, as plain data (JSON) and as a graph (DOT).

The text has the plan of each query as a tree, the rules in the notation of [EP] §5, and facts that follow from the
rules: shared goals, windows, look-ups in the background, state that is kept for ever, and sharding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clauses import Clauses
from etalis_rules.clock import as_written
from etalis_rules.operator_words import title_of, window_in_words
from etalis_rules.operators import is_leaf, looked_up, reads_stream, windows
from etalis_rules.printing import Blocks, node_names, print_rules, sorted_nodes
from etalis_rules.spelling import PREFIXES, Spelling, limit

from .pipeline import Compilation
from .shards import QueryShards, ShardPlan, Stage, shard_plan
from .stratify import StreamReaders
from .unbounded import UnboundedState, unbounded


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A node of a plan, under the names that its query uses: what it does, and which nodes it reads."""

    node: str
    title: str
    parts: tuple[PlanStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A program explained; ``str()`` is the text."""

    rules: ir.Rules
    nodes: Mapping[str, ir.Node]
    names: Mapping[str, str]
    used: Mapping[str, tuple[str, ...]]
    shards: ShardPlan
    kept: tuple[UnboundedState, ...]
    prefixes: Mapping[str, str]

    def __str__(self) -> str:
        return "\n".join(_text(self))

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return _data(self)

    def plan(self, output: ir.Output) -> PlanStep | None:
        """The plan of a query; None if the background alone answers it."""
        return None if output.source is None else _plan(self, output.source)

    def to_dot(self) -> str:
        """The goals as a graph for Graphviz."""
        return "\n".join(_dot(self))


def explain(rules: ir.Rules, prefixes: Mapping[str, str] = PREFIXES) -> Explanation:
    """Explain a compiled program; terms are shortened by the prefixes."""
    names = node_names(rules)
    order = {name: i for i, (name, _) in enumerate(sorted_nodes(rules))}
    kept = sorted(unbounded(rules, names), key=lambda k: order.get(k.node, len(order)))
    return Explanation(rules, dict(rules.nodes), names, users(rules), shard_plan(rules), tuple(kept), prefixes)


def prefixes_of(compilation: Compilation) -> dict[str, str]:
    """The prefixes that the queries declare (those of the last one count), by which their terms are shown."""
    prefixes = dict(PREFIXES)
    for query in compilation.queries:
        prefixes |= dict(query.prefixes)
    return prefixes


# --- facts about the rules ----------------------------------------------------------------------------------------


def users(rules: ir.Rules) -> dict[str, tuple[str, ...]]:
    """For each node, the queries that are made from it."""
    nodes = dict(rules.nodes)
    users: dict[str, list[str]] = {name: [] for name in nodes}
    for output in rules.outputs:
        stack = [output.source.node] if output.source is not None else []
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                users[name].append(output.query)
                stack.extend(ir.made_from(nodes[name]))
    return {name: tuple(queries) for name, queries in users.items()}


def names_in_query(rules: ir.Rules, output: ir.Output) -> dict[str, dict[str, str]]:
    """For each node below a query, the names that the query has for its columns; others are left out."""
    nodes = dict(rules.nodes)
    found: dict[str, dict[str, str]] = {}
    pending = [] if output.source is None else [(output.source, {name: name for name in output.source.columns})]
    while pending:
        ref, above = pending.pop()
        if ref.node not in found:
            node = nodes[ref.node]
            found[ref.node] = {own: above[n] for own, n in zip(node.head, ref.columns, strict=True) if n in above}
            pending += [(inner, found[ref.node]) for inner in ir.refs(node)]
    return found


def _window(bound: alg.Bound) -> str:
    relation, length = limit(bound)
    return f"{relation} {length}"


def _stratum(x: Explanation, names: tuple[str, ...]) -> list[str]:
    return [x.names.get(n) or f"query {n.removeprefix('out:')}" for n in names]


# --- text ------------------------------------------------------------------------------------------------------


def _text(x: Explanation) -> Iterator[str]:
    for output in x.rules.outputs:
        yield from _tree(x, output)
        yield ""
    yield "rules"
    body, _, _ = print_rules(x.rules, x.prefixes, ids=False).rpartition("\nstrata := ")
    yield from (f"  {line}" if line else "" for line in body.rstrip().split("\n"))
    sections = (
        ("shared goals", _shared(x)),
        ("windows", _windows(x)),
        ("asked of the background", _background(x)),
        ("recursion within an instant", _recursion(x)),
        ("kept for ever", _forever(x)),
        ("shards", _shards(x)),
    )
    for title, lines in sections:
        text = list(lines)
        if text:
            yield from ("", title, *(f"  {line}" for line in text))


class _Names(dict[str, str]):
    """The variables of a node under the names they have above it; local ones get new names, ``Y1``, ``Y2`` …"""

    def __init__(self, given: Mapping[str, str], fresh: list[str]):
        super().__init__(given)
        self.fresh = fresh

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            if name[:1] != "~":
                return name
            self.fresh.append(name)
            self[name] = f"Y{len(self.fresh)}"
        return self[name]


def _tree(x: Explanation, output: ir.Output) -> Iterator[str]:
    """The plan of a query, from its matches down to the triples of the stream."""
    clauses = Clauses(x.nodes, x.names, Spelling(x.prefixes))
    columns = ", ".join(map(clauses.spelling.variable, output.variables))
    policy = next((p for n in _below(x, output) if (p := getattr(x.nodes[n], "policy", ""))), "")
    consuming = f", policy {policy}" if policy else ""
    yield f"query {clauses.spelling.text(output.query)}({columns}): {output.form}{consuming}"
    plan = x.plan(output)
    if plan is None:
        yield "└─ answered from the background alone"
        return

    def lines(step: PlanStep) -> Iterator[str]:
        yield f"{step.node} {step.title}".rstrip()
        for i, part in enumerate(step.parts):
            last = i == len(step.parts) - 1
            for j, line in enumerate(lines(part)):
                yield (("└─ " if last else "├─ ") if j == 0 else ("   " if last else "│  ")) + line

    for j, line in enumerate(lines(plan)):
        yield ("└─ " if j == 0 else "   ") + line


def _plan(x: Explanation, source: ir.Ref) -> PlanStep:
    """The plan below a node, down to the triples of the stream."""
    clauses = Clauses(x.nodes, x.names, Spelling(x.prefixes))
    fresh: list[str] = []

    def step(ref: ir.Ref) -> PlanStep:
        node = x.nodes[ref.node]
        names = _Names(dict(zip(node.head, ref.columns, strict=True)), fresh)
        renamed: Any = alg.rename(node, names)
        title = _own_names(title_of(clauses, renamed))
        return PlanStep(x.names[ref.node], title, tuple(map(step, ir.refs(renamed))))

    return step(source)


def _own_names(line: str) -> str:
    return line.replace("?Y", "Y") if "?Y" in line else line


def _below(x: Explanation, output: ir.Output) -> Iterator[str]:
    return (name for name in x.nodes if output.query in x.used[name])


def _shared(x: Explanation) -> Iterator[str]:
    for name, queries in x.used.items():
        if len(queries) > 1 and not is_leaf(x.nodes[name]):
            yield f"{x.names[name]} is part of {', '.join(queries)}"


def _windows(x: Explanation) -> Iterator[str]:
    for name, node in sorted_nodes(x.rules):
        for bound in windows(as_written(node, x.nodes)):
            length = _window(bound)
            said = window_in_words(node)
            yield f"{x.names[name]} {said.format(length, length.removeprefix('≤ '))}"


def _background(x: Explanation) -> Iterator[str]:
    clauses = Clauses(x.nodes, x.names, Spelling(x.prefixes))
    for name, node in sorted_nodes(x.rules):
        for pattern in looked_up(node):
            yield f"{x.names[name]} asks {clauses.pattern(pattern)}"
    for output in x.rules.outputs:
        if output.timeless is not None:
            when = "at the end of the stream" if output.source is not None else "at the start"
            yield f"query {output.query} asks {clauses.pattern(output.timeless)} {when}"


def _recursion(x: Explanation) -> Iterator[str]:
    for stratum in x.rules.strata:
        if len(stratum) > 1:
            yield ", ".join(_stratum(x, stratum))


def _forever(x: Explanation) -> Iterator[str]:
    for kept in x.kept:
        yield f"{x.names.get(kept.node) or f'query {kept.query}'} keeps {kept.what}: {kept.hint}"


def _shards(x: Explanation) -> Iterator[str]:
    for shards in x.shards.queries:
        yield _sharding(shards)
    for stage in x.shards.stages:
        yield _stage_line(x, stage)


def _sharding(shards: QueryShards) -> str:
    if not shards.key:
        return f"{shards.query}: one shard, because {shards.reason}"
    last = "" if shards.reported == shards.stage else f", and reported by one shard, because {shards.reason}"
    return f"{shards.query}: by {shards.key}{last}"


def _stage_line(x: Explanation, stage: Stage) -> str:
    parts = [f"stage {stage.number}: {'many shards' if stage.sharded else 'one shard'}"]
    if stage.routes:
        parts.append(", ".join(f"{x.names[leaf]} by its {position}" for leaf, position in stage.routes))
    if stage.after:
        parts.append(f"after {', '.join(map(str, stage.after))}")
    parts.append(f"reports {', '.join(stage.reports) or 'nothing'}")
    return "; ".join(parts)


# --- data ------------------------------------------------------------------------------------------------------


def _data(x: Explanation) -> dict[str, Any]:
    spelling = Spelling(x.prefixes)
    blocks = Blocks(x.nodes, x.names, spelling)
    written, clauses = blocks.written, blocks.clauses
    by_node = {kept.node: kept.what for kept in x.kept if kept.node}
    nodes = [
        {
            "name": x.names[name],
            "id": name,
            "kind": type(node).__name__.lower(),
            "head": [spelling.variable(v) for v in node.head],
            "from": [x.names[n] for n in ir.made_from(node)],
            "definition": written.node(node),
            "rules": [line.strip() for line in blocks.node(name)[1:]],
            "queries": list(x.used[name]),
            "windows": [_window(b) for b in windows(node)],
            "background": [clauses.pattern(p) for p in looked_up(node)],
            "keeps": by_node.get(name, ""),
        }
        for name, node in sorted_nodes(x.rules)
    ]
    queries = [
        {
            "query": output.query,
            "form": output.form,
            "variables": list(output.variables),
            "from": x.names[output.source.node] if output.source is not None else None,
            "plan": list(_tree(x, output)),
            "rules": [line.strip() for line in blocks.output(output)[1:]],
            "shards": _shards_data(x.shards.of(output.query)),
        }
        for output in x.rules.outputs
    ]
    return {
        "policy": x.rules.policy,
        "queries": queries,
        "nodes": nodes,
        "strata": [_stratum(x, stratum) for stratum in x.rules.strata],
        "stages": [_stage_data(x, stage) for stage in x.shards.stages],
        "forever": [
            {"node": x.names.get(k.node), "query": k.query or None, "keeps": k.what, "hint": k.hint} for k in x.kept
        ],
    }


def _shards_data(shards: QueryShards) -> dict[str, Any]:
    return {
        "key": shards.key or None,
        "stage": shards.stage,
        "reported": shards.reported,
        "reason": shards.reason,
        "once": shards.once,
    }


def _stage_data(x: Explanation, stage: Stage) -> dict[str, Any]:
    return {
        "number": stage.number,
        "sharded": stage.sharded,
        "queries": list(stage.queries),
        "reports": list(stage.reports),
        "nodes": [x.names[n] for n in stage.nodes],
        "routes": {x.names[leaf]: position for leaf, position in stage.routes},
        "after": list(stage.after),
        "tagged": stage.tagged,
        "reason": stage.reason,
    }


# --- graph -----------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _dot(x: Explanation) -> Iterator[str]:
    """Solid arrows carry solutions, dashed ones derived triples; a double border is a query."""
    clauses = Clauses(x.nodes, x.names, Spelling(x.prefixes))
    readers = StreamReaders(dict(x.rules.nodes))
    yield "digraph rules {"
    yield "  rankdir=BT; node [fontname=Helvetica, fontsize=10, shape=box];"
    for name, node in sorted_nodes(x.rules):
        shape = "ellipse" if reads_stream(node) else "box"
        label = f"{x.names[name]} {title_of(clauses, node)}".rstrip()
        yield f"  {x.names[name]} [shape={shape}, label={_quoted(label)}];"
        for below in ir.made_from(node):
            yield f"  {x.names[below]} -> {x.names[name]};"
    for number, output in enumerate(x.rules.outputs, 1):
        yield f"  q{number} [peripheries=2, label={_quoted(f'{output.query}: {output.form}')}];"
        if output.source is not None:
            yield f"  {x.names[output.source.node]} -> q{number};"
        for name in readers.fed_by(output):
            yield f"  q{number} -> {x.names[name]} [style=dashed];"
    yield "}"
