"""Basic graph patterns, compiled to nested loops.

Definition ([EP] §4.2): ⟨μ, start, end⟩ is a solution if every triple pattern, with μ applied, is an occurrence or a
background triple; start and end are the hull of the occurrences.  The solutions are a *set* over all variables of the
pattern, blank-node ones included, and the interval.

The order of the triple patterns is chosen greedily, by the number of bound positions and the counts of the source, and
reconsidered after 1, 2, 4, 8, … evaluations if the source has changed.  Every order in use has one generated function;
``{?x :p ?y . ?y :q ?z}`` with ``?x`` bound becomes

    def bgp(mu, run):
        match = run.match
        v0 = mu['x']
        for s0, p0, o0, a0, e0 in match(v0, C0, None, '', None):
            v1 = o0
            for s1, p1, o1, a1, e1 in match(v1, C1, None, '', None):
                …
                yield {**mu, 'x': v0, 'y': v1, 'z': v2}, a1, e1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from etalis_rules.algebra import BGP, Const, Triple, Var, node_variables

from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env
from etalis_py.sparql.sources import Source
from etalis_py.values.generated import CompiledText
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

_DEPTH = 12  # loops in one function; Python nests at most 20 blocks
_SHRINK = 0.05  # assumed share of the matches that a bound variable leaves


def compile_bgp(bgp: BGP, env: Env) -> Runner:
    """The pattern as an operator."""
    triples = bgp.triples
    if len(triples) <= 1:
        return _loops(bgp, triples, env)
    by_order: dict[tuple[Triple, ...], Runner] = {}
    current: Runner | None = None
    calls, version = 0, None

    def run_bgp(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        nonlocal current, calls, version
        calls += 1
        if current is None or (calls & (calls - 1) == 0 and run.source.version != version):
            version = run.source.version
            order = join_order(bgp, env.certain, run.source)
            loops = by_order.get(order)
            if loops is None:
                loops = by_order[order] = _loops(bgp, order, env)
            current = loops
        return current(mu, run)

    return run_bgp


def join_order(bgp: BGP, bound: frozenset[str], source: Source) -> tuple[Triple, ...]:
    """The triple patterns, at each step the one with the fewest estimated matches; connected ones first; stable."""
    counts = {t: _count(source, t, _graph_of(bgp)) for t in bgp.triples}
    remaining, order = list(bgp.triples), []  # a pattern that is written twice is matched twice
    names = set(bound)
    while remaining:
        best = min(remaining, key=lambda t: (_is_apart(t, names), _estimate(t, counts[t], names)))
        remaining.remove(best)
        order.append(best)
        names |= node_variables(best.subject, best.predicate, best.object)
    return tuple(order)


def smallest_first(parts: Sequence[BGP], join: Callable[[tuple[BGP, ...]], Runner]) -> Runner:
    """Unconnected parts of a pattern, joined in the order of the counts of their rarest triples at each evaluation."""
    by_order: dict[tuple[BGP, ...], Runner] = {}

    def run_parts(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        sizes = {part: min(_count(run.source, t, _graph_of(part)) for t in part.triples) for part in parts}
        order = tuple(sorted(parts, key=sizes.__getitem__))
        joined = by_order.get(order)
        if joined is None:
            joined = by_order[order] = join(order)
        return joined(mu, run)

    return run_parts


def _graph_of(bgp: BGP) -> str | None:
    return bgp.graph.term if isinstance(bgp.graph, Const) else None


def _count(source: Source, t: Triple, graph: str | None) -> int:
    s, p, o = (n.term if isinstance(n, Const) else None for n in (t.subject, t.predicate, t.object))
    return source.count(s, p, o, graph)


def _is_apart(t: Triple, bound: set[str]) -> bool:
    own = node_variables(t.subject, t.predicate, t.object)
    return bool(bound) and bool(own) and not own & bound


def _estimate(t: Triple, count: int, bound: set[str]) -> float:
    known = sum(isinstance(n, Var) and n.name in bound for n in (t.subject, t.object))
    return count * _SHRINK**known


# --- generation ------------------------------------------------------------------------------------------------


def _loops(bgp: BGP, order: tuple[Triple, ...], env: Env) -> Runner:
    """The triple patterns in this order as one function, or as a chain of them when there are many."""
    chunks = [order[i : i + _DEPTH] for i in range(0, len(order), _DEPTH)] or [()]
    if len(chunks) == 1:
        return _function(bgp, order, env, dedupe=len(order) > 1 and bgp.graph is None)
    runners = []
    for chunk in chunks:
        part = BGP(chunk, bgp.stream, bgp.graph)
        runners.append(_function(part, chunk, env, dedupe=False))
        env = env.after(part)
    names = sorted(node_variables(*(n for t in order for n in (t.subject, t.predicate, t.object))))

    def run_chunks(mu: Bindings, run: EvaluationRun, depth: int = 0) -> Iterator[Solution]:
        if depth == len(runners) - 1:
            yield from runners[depth](mu, run)
            return
        for m1, s1, e1 in runners[depth](mu, run):
            for m2, s2, e2 in run_chunks(m1, run, depth + 1):
                yield m2, min(s1, s2), max(e1, e2)

    def run_set(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        seen = set()
        for solution in run_chunks(mu, run):
            mu2, s, e = solution
            key = (*[mu2[n] for n in names], s, e)
            if key not in seen:
                seen.add(key)
                yield solution

    return run_set


class _Writer:
    """The lines of the function, the names of its variables, and which of them are known so far."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.lines: list[str] = []
        self.depth = 1
        self.constants: dict[str, str] = {}
        self.locals: dict[str, str] = {}
        self.known: set[str] = set()  # certainly bound at this point
        self.maybe: set[str] = set()  # None or a term, from what is passed in

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def local(self, name: str) -> str:
        return self.locals.setdefault(name, f"v{len(self.locals)}")

    def constant(self, term: str) -> str:
        return self.constants.setdefault(term, f"C{len(self.constants)}")

    def fetch(self, names: list[str]) -> None:
        for name in names:
            if name in self.env.certain:
                self.line(f"{self.local(name)} = mu[{name!r}]")
                self.known.add(name)
            elif name in self.env.seen:
                self.line(f"{self.local(name)} = mu.get({name!r})")
                self.maybe.add(name)

    def argument(self, node: Var | Const) -> str:
        if isinstance(node, Const):
            return self.constant(node.term)
        return self.local(node.name) if node.name in self.known or node.name in self.maybe else "None"


def _function(bgp: BGP, order: tuple[Triple, ...], env: Env, dedupe: bool) -> Runner:
    nodes = [n for t in order for n in (t.subject, t.predicate, t.object)]
    names = list(dict.fromkeys(n.name for n in (bgp.graph, *nodes) if isinstance(n, Var)))
    w = _Writer(env)
    w.line("match = run.match")
    w.fetch(names)
    if dedupe:
        w.line("seen = set()")
    graph = _open_graph(w, bgp)
    start, end = "TIMELESS_START", "TIMELESS_END"
    for i, triple in enumerate(order):
        _open_triple(w, i, triple, bgp.stream, graph)
        if i == 0:
            start, end = "a0", "e0"
            continue
        w.line(f"if {start} < a{i}: a{i} = {start}")
        w.line(f"if {end} > e{i}: e{i} = {end}")
        start, end = f"a{i}", f"e{i}"
    if dedupe:  # deriving a solution twice takes two occurrences of a triple
        w.line(f"if {end} != TIMELESS_END:")
        w.line(f"    key = ({''.join(w.local(n) + ', ' for n in names)}{start}, {end})")
        w.line("    if key in seen: continue")
        w.line("    seen.add(key)")
    fresh = [n for n in names if n not in env.certain]
    solution = "{**mu, " + ", ".join(f"{n!r}: {w.local(n)}" for n in fresh) + "}" if fresh else "mu"
    w.line(f"yield {solution}, {start}, {end}")
    source = "def bgp(mu, run):\n" + "\n".join(w.lines)
    namespace: dict[str, Any] = {"TIMELESS_START": TIMELESS_START, "TIMELESS_END": TIMELESS_END}
    namespace |= {local: term for term, local in w.constants.items()}
    CompiledText(source, "basic graph pattern").run(namespace)
    return namespace["bgp"]  # type: ignore[no-any-return]


def _open_graph(w: _Writer, bgp: BGP) -> str:
    """The loop over graphs, if the pattern has a graph; returns the expression to pass as the graph."""
    if bgp.graph is None:
        return "None"
    if isinstance(bgp.graph, Const):
        return w.constant(bgp.graph.term)
    name = bgp.graph.name
    local = w.local(name)
    if name not in w.known:
        w.line("for g in run.source.graph_names():")
        w.depth += 1
        if name in w.maybe:
            w.line(f"if {local} is not None and {local} != g: continue")
        w.known.add(name)
        # the loop variable gets a name of its own, so that the next iteration still sees the value passed in
        w.locals[name] = "g"
        return "g"
    return local


def _open_triple(w: _Writer, i: int, triple: Triple, stream: str, graph: str) -> None:
    """The loop over the matches of one triple pattern, with the tests for variables that occur in it twice."""
    nodes = (triple.subject, triple.predicate, triple.object)
    arguments = [w.argument(n) for n in nodes]
    w.line(f"for s{i}, p{i}, o{i}, a{i}, e{i} in match({', '.join(arguments)}, {stream!r}, {graph}):")
    w.depth += 1
    here: dict[str, str] = {}
    for node, term in zip(nodes, (f"s{i}", f"p{i}", f"o{i}"), strict=True):
        if not isinstance(node, Var) or node.name in w.known:
            continue
        if node.name in here:
            w.line(f"if {term} != {here[node.name]}: continue")
        else:
            here[node.name] = term
    for name, term in here.items():
        if name not in w.maybe:
            w.line(f"{w.local(name)} = {term}")
            continue
        # The variable may be passed in or not.  After the test the loop variable has the bound term in both cases, and
        # the local variable that was passed in keeps its value for the next iteration.
        w.locals[name] = f"{w.local(name)}_"
        w.maybe.discard(name)
        w.line(f"{w.local(name)} = {term}")
    w.known |= here.keys()
