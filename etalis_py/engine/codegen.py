"""Rules to Python source: one function per kind of instant, no interpretation of the rules per event.

``single[p](s, o, start, t, stream, p)`` handles an instant that consists of one triple with predicate ``p``;
``instant(t, occurrences)`` any other.  Both fill the lists of the leaves and then run the blocks of all nodes that can
be reached from there, stratum by stratum; a stratum of mutually recursive nodes runs until nothing new comes.  At the
end the goals that await a later instant are inserted.  What is reported goes to ``reports`` as
``(output, t, solutions)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from etalis_compiler.stratify import feeds, is_delayed, output_id
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine import blocks, joins
from etalis_py.engine.blocks import Code
from etalis_py.engine.frames import Frame
from etalis_py.engine.outer import outer
from etalis_py.engine.runtime import Making, Runtime
from etalis_py.engine.values import decode
from etalis_py.engine.writer import Writer

Occurrence = tuple[str, str, str, int, str]


@dataclass(slots=True)
class Generated:
    """The functions of a program, their source and their global names."""

    source: str
    single: Mapping[str, Any]
    other: Any
    instant: Any
    scope: dict[str, Any]


def generate(rules: ir.Rules, code: Code, runtime: Runtime) -> Generated:
    """Write, compile and load the functions for these rules."""
    return _Generator(rules, code, runtime).generate()


class _Generator:
    def __init__(self, rules: ir.Rules, code: Code, runtime: Runtime) -> None:
        self.rules = rules
        self.code = code
        self.runtime = runtime
        self.nodes = code.nodes
        self.outputs = {output_id(o.query): (i, o) for i, o in enumerate(rules.outputs)}
        self.leaves = {n: node for n, node in self.nodes.items() if isinstance(node, ir.Leaf)}
        self.fed = {
            oid: [n for n, leaf in self.leaves.items() if any(feeds(t, o.stream, leaf) for t in o.template)]
            for oid, (_, o) in self.outputs.items()
            if o.form == "construct" and o.source is not None
        }
        self.remembers = self.runtime.remembers
        self.derives = any(self.fed.values())
        self.filled: frozenset[str] = frozenset()

    # --- reachability ---

    def reach(self, leaves: Iterable[str]) -> frozenset[str]:
        """The nodes and outputs that may have something new when these leaves have."""
        found: set[str] = set()
        visited: set[str] = set()
        parents: dict[str, list[str]] = {}
        keepers: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            for ref in ir.refs(node):
                if isinstance(node, ir.Outer) and ref is node.right:
                    # What is optional is kept; it makes nothing new by itself.
                    if node.op != "optionalseq" or self.code.state.is_late(name):
                        keepers.setdefault(ref.node, []).append(name)
                elif not (is_delayed(node, ref) and not self.code.state.is_late(name)):
                    parents.setdefault(ref.node, []).append(name)
        for oid, (_, o) in self.outputs.items():
            if o.source is not None:
                parents.setdefault(o.source.node, []).append(oid)
        stack = list(leaves)
        while stack:
            here = stack.pop()
            if here in found:
                continue
            found.add(here)
            visited.update(keepers.get(here, ()))
            stack.extend(parents.get(here, ()))
            stack.extend(self.fed.get(here, ()))
        return frozenset(found | visited)

    # --- functions ---

    def generate(self) -> Generated:
        w = Writer()
        predicates = sorted(
            {
                term
                for leaf in self.leaves.values()
                for term in _predicates(leaf)
                if not any(x.entailed for x in self.leaves.values())
            }
        )
        names: dict[str, str] = {}
        for i, predicate in enumerate(predicates):
            names[predicate] = f"single{i}"
            self._single(w, f"single{i}", predicate)
        self._single(w, "other", None)
        self._instant(w)
        source = w.text() + "\n"
        scope: dict[str, Any] = dict(self.code.names.objects)
        exec(compile(source, "<rules>", "exec"), scope)
        return Generated(source, {p: scope[n] for p, n in names.items()}, scope["other"], scope["instant"], scope)

    def _single(self, w: Writer, name: str, predicate: str | None) -> None:
        """One triple whose predicate is known (or is none that a rule names)."""
        code = self.code
        chosen = [n for n, leaf in self.leaves.items() if _may_see(leaf, predicate)]
        reached = self.reach(chosen)
        with w.block(f"def {name}(s, o, start, t, stream, p):"):
            derived = {leaf for oid, fed in self.fed.items() if oid in reached for leaf in fed}
            for leaf, node in self.leaves.items():
                sure = leaf in chosen and leaf not in derived and not node.entailed
                if sure and not _leaf_tests(node, predicate, code):
                    code.single.add(code.new(leaf))
                elif leaf in reached:
                    w(f"{code.new(leaf)} = []")
            if self.remembers:
                w(f"{code.names.use('remember', self.runtime.remember)}(s, p, o, start, t, stream)")
            derives = any(oid in reached for oid, fed in self.fed.items() if fed)
            self.filled = frozenset({"seen", "made"} if derives else ())
            if derives:
                w(f"{code.names.use('seen', self.runtime.seen)}.add((s, p, o, start))")
            self._feed(w, chosen, self._event(), predicate)
            self._run(w, reached)
        code.single.clear()

    def _instant(self, w: Writer) -> None:
        """Several triples that end at the same time: each is taken once."""
        code = self.code
        reached = self.reach(self.leaves)
        self.filled = frozenset({"seen", "seen in stream", "made"})
        w(f"PREDICATES = {self._predicate_numbers()!r}")
        with w.block("def instant(t, occurrences):"):
            for leaf in self.leaves:
                w(f"{code.new(leaf)} = []")
            seen = code.names.use("seen", self.runtime.seen)
            in_stream = code.names.use("in_stream", self.runtime.seen_in_stream)
            streams = [n for n, leaf in self.leaves.items() if leaf.stream]
            with w.block("for s, p, o, start, stream in occurrences:"):
                if self.remembers:
                    w(f"{code.names.use('remember', self.runtime.remember)}(s, p, o, start, t, stream)")
                because = self._event()
                if streams:
                    with w.block(f"if (s, p, o, start, stream) in {in_stream}:"):
                        w("continue")
                    w(f"{in_stream}.add((s, p, o, start, stream))")
                    self._feed(w, streams, because, None, anything=True)
                with w.block(f"if (s, p, o, start) in {seen}:"):
                    w("continue")
                w(f"{seen}.add((s, p, o, start))")
                w("g = PREDICATES.get(p, -1)")
                groups: dict[int, list[str]] = {}
                open_ = [n for n, leaf in self.leaves.items() if not leaf.stream and not _predicates(leaf)]
                for predicate, number in self._predicate_numbers().items():
                    groups[number] = [
                        n for n, leaf in self.leaves.items() if not leaf.stream and predicate in _predicates(leaf)
                    ]
                for number, members in groups.items():
                    with w.block(f"{'if' if number == 0 else 'elif'} g == {number}:"):
                        predicate = next(p for p, n in self._predicate_numbers().items() if n == number)
                        self._feed(w, members, because, predicate)
                self._feed(w, open_, because, None, anything=True)
            self._run(w, reached)

    def _predicate_numbers(self) -> dict[str, int]:
        terms = sorted({t for leaf in self.leaves.values() if not leaf.stream for t in _predicates(leaf)})
        return {t: i for i, t in enumerate(terms)}

    # --- leaves ---

    def _event(self) -> str:
        """Source of the provenance of the occurrence at hand."""
        return f"{self.code.names.use('Because', self.code.state.because)}('event', (s, p, o, start, t, stream))"

    def _feed(self, w: Writer, leaves: list[str], because: str, predicate: str | None, anything: bool = False) -> None:
        """Give the occurrence in ``s p o start stream`` to these leaves."""
        decoded: dict[str, str] = {}
        for name in leaves:
            leaf = self.leaves[name]
            if leaf.entailed:
                self._feed_entailed(w, name, leaf, because)
                continue
            tests = _leaf_tests(leaf, predicate, self.code)
            if tests:
                with w.block(f"if {' and '.join(tests)}:"):
                    w(f"{self.code.new(name)}.append({self._leaf_solution(leaf, name, because, {}, w)})")
            else:
                made = self._leaf_solution(leaf, name, because, decoded, w)
                new = self.code.new(name)
                w(f"{new} = ({made},)" if new in self.code.single else f"{new}.append({made})")

    def _leaf_solution(self, leaf: ir.Leaf, name: str, because: str, decoded: dict[str, str], w: Writer) -> str:
        where = {
            position.name: letter
            for letter, position in (("o", leaf.object), ("p", leaf.predicate), ("s", leaf.subject))
            if isinstance(position, alg.Var)
        }
        frame = Frame(self.code.names, dict(where), start="start")
        for column in self.code.layouts[name].values:
            letter = where[column]
            if letter not in decoded:
                w(f"d{letter} = {self.code.names.use('decode', decode)}({letter})")
                decoded[letter] = f"d{letter}"
            frame.values[column] = decoded[letter]
        frame.provenance = because if self.code.explain else ""
        return frame.solution(self.code.layouts[name])

    def _feed_entailed(self, w: Writer, name: str, leaf: ir.Leaf, because: str) -> None:
        """A leaf that sees what the schema derives: each consequence once per instant and interval."""
        entailed = self.code.names.use("entailed", self.runtime.entailed)
        known = self.code.helper("known", name, self.code.state.instant_set(name))
        w("said = (s, p, o)")
        with w.block(f"for s, p, o in {entailed}(said):"):
            tests = [f"(s, p, o, start) not in {known}", *_leaf_tests(leaf, None, self.code)]
            with w.block(f"if {' and '.join(tests)}:"):
                w(f"{known}.add((s, p, o, start))")
                w(f"{self.code.new(name)}.append({self._leaf_solution(leaf, name, because, {}, w)})")
        w("s, p, o = said")

    # --- the blocks of an instant ---

    def _run(self, w: Writer, reached: frozenset[str]) -> None:
        """All strata in turn.  Reports come in their order too, and a recursion's come round by round: ``settle``."""
        reports = self.code.names.use("reports", self.runtime.reports)
        reported = [oid for oid in self.outputs if oid in reached]
        recursive = any(len(stratum) > 1 for stratum in self.rules.strata if not reached.isdisjoint(stratum))
        unsettled = len(reported) > 1 or (recursive and reported)
        if unsettled:
            w(f"first = len({reports})")
        for stratum in self.rules.strata:
            members = [n for n in stratum if n in reached]
            if not members:
                continue
            if len(stratum) > 1 and len(members) == len(stratum):
                self._recursion(w, stratum, reached)
            else:
                for name in members:
                    self._node(w, name, reached, {})
        if unsettled:
            settle = self.code.names.use("settle", self.runtime.settle)
            w(f"if len({reports}) > first{'' if recursive else ' + 1'}: {settle}(first)")
        self._insert_goals(w, reached)
        self._end_instant(w, reached)

    def _end_instant(self, w: Writer, reached: frozenset[str]) -> None:
        """Empty what lasts for an instant only, where this function may have filled it."""
        state, names = self.code.state, {id(value): name for name, value in self.code.names.objects.items()}
        for kept in (state.instant_sets, state.instant_dicts):
            for node, value in kept.items():
                if id(value) in names and (node.removesuffix("'") in reached or node in self.filled):
                    w(f"{names[id(value)]}.clear()")

    def _node(self, w: Writer, name: str, reached: frozenset[str], lists: Mapping[str, str]) -> None:
        """One block, guarded by whether there is anything new for it."""
        if name in self.outputs:
            self._output(w, name, lists, None)
            return
        node, code = self.nodes[name], self.code
        if isinstance(node, ir.Leaf):
            return
        new = {ref.node: lists.get(ref.node, code.new(ref.node)) for ref in ir.refs(node) if ref.node in reached}
        inputs = [new[n] for n in dict.fromkeys(self._inputs(name)) if n in new]
        if name not in lists:
            w(f"{code.new(name)} = []")
        if not inputs:
            return
        if code.single.intersection(inputs):
            self._block(w, name, node, new, recursive=bool(lists))
        else:
            with w.block(f"if {' or '.join(inputs)}:"):
                self._block(w, name, node, new, recursive=bool(lists))
        if _multiplies(node):
            limit = code.names.use("too_many", self.runtime.too_many)
            w(f"if len({code.new(name)}) > {self.runtime.limits.derivations}: {limit}({name!r})")

    def _inputs(self, name: str) -> list[str]:
        """The nodes whose news this block reads (not those that only insert goals for later)."""
        node = self.nodes[name]
        if self.code.state.is_late(name):
            return [ref.node for ref in ir.refs(node)]
        match node:
            case ir.Join(op="seq"):
                return [node.right.node]
            case ir.Outer(op="optionalseq"):
                return [node.left.node]
        return [ref.node for ref in ir.refs(node)]

    def _block(self, w: Writer, name: str, node: ir.Node, new: Mapping[str, str], recursive: bool) -> None:
        code = self.code
        match node:
            case ir.Map():
                blocks.single_pass(w, code, name, node, new[node.child.node])
            case ir.Union():
                sources = [(ref, new[ref.node]) for ref in node.branches if ref.node in new]
                blocks.union(w, code, name, node, sources)
            case ir.Join() if code.state.is_late(name):
                joins.both(w, code, name, node, new.get(node.left.node, ""), new.get(node.right.node, ""))
            case ir.Join(op="seq"):
                joins.seq_check(w, code, name, node, new[node.right.node])
            case ir.Join(op="equals"):
                write = joins.equals_again if recursive else joins.equals
                write(w, code, name, node, new.get(node.left.node, "()"), new.get(node.right.node, "()"))
            case ir.Join():
                joins.both(w, code, name, node, new.get(node.left.node, ""), new.get(node.right.node, ""))
            case ir.Outer():
                right = "" if node.right is None else new.get(node.right.node, "")
                outer(w, code, name, node, new.get(node.left.node, ""), right)
            case ir.Group() | ir.Closure() | ir.Slice() | ir.Recall():
                child = ir.refs(node)[0].node
                if code.journal and not isinstance(node, ir.Recall):
                    w(f"{code.names.use('journal', code.state.journal)}.append(({name!r}, t, {new[child]}))")
                run = code.helper("run", name, self.runtime.operator(name, node))
                w(f"{code.new(name)} {'+=' if recursive else '='} {run}(t, {new[child]})")

    def _recursion(self, w: Writer, stratum: tuple[str, ...], reached: frozenset[str]) -> None:
        """Mutually recursive nodes: rounds over what the last round brought, until it brings nothing."""
        code = self.code
        inner = [n for n in stratum if n in self.nodes]
        leaves = [n for n in inner if n in self.leaves]
        others = [n for n in inner if n not in self.leaves]
        for name in others:
            w(f"{code.new(name)} = []", f"all_{code.new(name)} = []")
        for leaf in leaves:
            w(f"all_{code.new(leaf)} = []")
        outside = sorted({n for name in others for n in self._inputs(name) if n not in inner and n in reached})
        for name in outside:
            w(f"first_{code.new(name)} = {code.new(name)}")
        w("rounds = 0")
        news = [code.new(n) for n in leaves] + [code.new(n) for n in outside]
        with w.block(f"while {' or '.join(news)}:"):
            w("rounds += 1")
            limit = code.names.use("too_deep", self.runtime.too_deep)
            w(f"if rounds > {self.runtime.limits.rounds}: {limit}({', '.join(map(repr, stratum[:1]))})")
            many = code.names.use("too_many", self.runtime.too_many)
            for leaf in leaves:
                w(f"all_{code.new(leaf)} += {code.new(leaf)}", f"next_{code.new(leaf)} = []")
                w(f"if len(all_{code.new(leaf)}) > {self.runtime.limits.derivations}: {many}({leaf!r})")
            for name in stratum:
                if name in self.nodes and name not in self.leaves:
                    self._node(w, name, reached, {name: code.new(name)})
            for name in stratum:
                if name in self.outputs:
                    self._output(w, name, {}, {n: f"next_{code.new(n)}" for n in leaves})
            for name in others:
                w(f"all_{code.new(name)} += {code.new(name)}", f"{code.new(name)} = []")
                limit = code.names.use("too_many", self.runtime.too_many)
                w(f"if len(all_{code.new(name)}) > {self.runtime.limits.derivations}: {limit}({name!r})")
            for leaf in leaves:
                w(f"{code.new(leaf)} = next_{code.new(leaf)}")
            for name in outside:
                w(f"{code.new(name)} = []")
        for name in others + leaves:
            w(f"{code.new(name)} = all_{code.new(name)}")
        # What came from outside is read by other strata too.
        for name in outside:
            w(f"{code.new(name)} = first_{code.new(name)}")

    def _insert_goals(self, w: Writer, reached: frozenset[str]) -> None:
        """Goals that await something later are inserted when the instant is over."""
        code = self.code
        for name, node in self.nodes.items():
            if code.state.is_late(name):
                continue  # what is known late is inserted at once
            if isinstance(node, ir.Join) and node.op == "seq":
                ref = node.left
            elif isinstance(node, ir.Outer) and node.op == "optionalseq" and node.right is not None:
                ref = node.right
            else:
                continue
            if ref.node in reached:
                new = code.new(ref.node)
                if new in code.single:
                    joins.insert(w, code, name, "G", ref, node.certain, new)
                    continue
                with w.block(f"if {new}:"):
                    if node.policy:
                        w(f"if len({new}) > 1: {new} = sorted({new})")
                    joins.insert(w, code, name, "G", ref, node.certain, new)

    # --- outputs ---

    def _output(self, w: Writer, name: str, lists: Mapping[str, str], later: Mapping[str, str] | None) -> None:
        number, output = self.outputs[name]
        assert output.source is not None
        code = self.code
        source = lists.get(output.source.node, code.new(output.source.node))
        reports = code.names.use("reports", self.runtime.reports)
        making = self.runtime.making(output) if self.fed.get(name) else None
        if making is not None:
            code.names.use("made", self.runtime.made)
            w(f"m{number} = {code.names.use(f'applied{number}', making.applied)}({source})")
            source = f"m{number}"
        with w.block(f"if {source}:"):
            arrange = self.runtime.arrangement(number)
            rows = source
            if arrange is not None:
                rows = f"r{number}"
                w(f"{rows} = {code.names.use(f'arrange{number}', arrange)}(t, {source})")
            elif later is None:
                key = self.runtime.sort_key(number)
                sorting = "" if key is None else f"key={code.names.use(f'order{number}', key)}"
                rows = f"r{number}"
                w(f"{rows} = {source} if len({source}) == 1 else sorted({source}{', ' + sorting if sorting else ''})")
            with nullcontext() if arrange is None else w.block(f"if {rows}:"):
                w(f"{reports}.append(({number}, t, {rows}))")
                if output.form == "construct" and self.fed.get(name):
                    self._derive(w, name, output, rows, later, making)

    def _derive(
        self,
        w: Writer,
        name: str,
        output: ir.Output,
        rows: str,
        later: Mapping[str, str] | None,
        making: Making | None,
    ) -> None:
        """Each derived triple enters the stream, once per instant and interval."""
        code = self.code
        assert output.source is not None
        frame = Frame(code.names)
        frame.read(output.source, code.layouts[output.source.node], "x")
        seen = code.names.use("seen", self.runtime.seen)
        with w.block(f"for x in {rows}:"):
            if making is not None:
                w(f"fresh = {code.names.use(f'fresh{self.outputs[name][0]}', making.fresh)}(x)")
                for i, label in enumerate(making.labels):
                    frame.terms[label] = f"fresh[{i}]"
            w("start = x[1]", f"stream = {output.stream!r}")
            late = code.state.is_late(output.source.node)
            if late:
                with w.block("if x[0] != t:"):
                    w("continue")
            for template in output.template:
                parts = [_written(n, frame) for n in (template.subject, template.predicate, template.object)]
                w(f"s, p, o = {', '.join(parts)}")
                tests = [f"(s, p, o, start) not in {seen}"]
                variables = (
                    (x, n) for x, n in zip("spo", (template.subject, template.predicate, template.object), strict=True)
                )
                tests += [letter for letter, n in variables if isinstance(n, alg.Var)]
                if isinstance(template.subject, alg.Var):
                    tests.append("""s[:1] != '"'""")
                if isinstance(template.predicate, alg.Var):
                    tests.append("p[:1] == '<'")
                with w.block(f"if {' and '.join(tests)}:"):
                    w(f"{seen}.add((s, p, o, start))")
                    if self.remembers:
                        w(f"{code.names.use('remember', self.runtime.remember)}(s, p, o, start, t, stream)")
                    constant = template.predicate.term if isinstance(template.predicate, alg.Const) else None
                    targets = [n for n in self.fed[name] if feeds(template, output.stream, self.leaves[n])]
                    because = f"{code.names.use('Because', code.state.because)}({name!r}, (x[-1],))"
                    self._feed_derived(w, targets, because, constant, later)

    def _feed_derived(
        self, w: Writer, targets: list[str], because: str, predicate: str | None, later: Mapping[str, str] | None
    ) -> None:
        before = len(w.lines)
        self._feed(w, targets, because, predicate)
        if later:
            # Inside a recursion what is derived is for the next round.
            for i in range(before, len(w.lines)):
                for leaf, waiting in later.items():
                    w.lines[i] = w.lines[i].replace(f"{self.code.new(leaf)}.append(", f"{waiting}.append(")


def _multiplies(node: ir.Node) -> bool:
    """May the block make more solutions than it is given?"""
    if isinstance(node, ir.Map):
        return any(isinstance(step, ir.Background) for step in node.steps)
    alone = isinstance(node, (ir.Union, ir.Group, ir.Slice, ir.Recall))  # a group has a row for each of its keys
    return not alone and not (isinstance(node, ir.Join) and node.policy)


def _written(node: alg.Var | alg.Const, frame: Frame) -> str:
    return repr(node.term) if isinstance(node, alg.Const) else frame.terms.get(node.name, "''")


def _predicates(leaf: ir.Leaf) -> tuple[str, ...]:
    """The predicates a leaf is for, or none when it may be any."""
    if leaf.entailed:
        return ()
    match leaf.predicate:
        case alg.Const(term):
            return (term,)
        case ir.OneOf(terms):
            return terms
    return ()


def _may_see(leaf: ir.Leaf, predicate: str | None) -> bool:
    terms = _predicates(leaf)
    if not terms:
        return not (isinstance(leaf.predicate, ir.NoneOf) and predicate in leaf.predicate.terms)
    return predicate in terms


def _leaf_tests(leaf: ir.Leaf, predicate: str | None, code: Code) -> list[str]:
    """Source of the constant tests of a leaf; the predicate is known unless it is None."""
    tests = []
    first: dict[str, str] = {}
    for letter, position in (("p", leaf.predicate), ("s", leaf.subject), ("o", leaf.object)):
        match position:
            case alg.Const(term):
                if letter != "p" or predicate is None:
                    tests.append(f"{letter} == {term!r}")
            case ir.OneOf(terms):
                if letter != "p" or predicate is None:
                    tests.append(f"{letter} in {code.names.constant(terms, frozenset(terms))}")
            case ir.NoneOf(terms):
                tests.append(f"{letter} not in {code.names.constant(('not', terms), frozenset(terms))}")
            case alg.Var(name):
                if name in first:
                    tests.append(f"{letter} == {first[name]}")
                first[name] = letter
    if leaf.stream:
        tests.append(f"stream == {leaf.stream!r}")
    return tests


def operand_functions(node: ir.Group, code: Code) -> list[Any]:
    """For each aggregate a function from a solution to the value and term of its operand; None for COUNT(*)."""
    functions: list[Any] = []
    layout = code.layouts[node.child.node]
    for i, call in enumerate(node.aggregates):
        if call.operand is None:
            functions.append(None)
            continue
        frame = Frame(code.names, end="x[0]")
        frame.read(node.child, layout, "x")
        emitter = frame.emitter()
        emitter.bindings = replace(emitter.bindings, now="x[0]")
        needs_term = call.distinct or call.name in ("MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "COUNT")
        value = emitter.value(call.operand)
        given = emitter.term(call.operand) if needs_term else "''"
        text = f"def operand{i}(x):\n    return {value}, {given}\n"
        scope = dict(code.names.objects)
        exec(compile(text, "<aggregate>", "exec"), scope)
        functions.append(scope[f"operand{i}"])
    return functions
