"""Rules to Python source: one function per kind of instant, no interpretation of the rules per event.

``single[p](s, o, start, t, stream, p)`` handles an instant that consists of one triple with predicate ``p``;
``instant(t, occurrences)`` any other.  Both fill the lists of the leaves and then run the blocks of all nodes that can
be reached from there, stratum by stratum; a stratum of mutually recursive nodes runs until nothing new comes.  At the
end the goals that await a later instant are inserted.  Reports go to ``reports`` as ``(output, t, solutions)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import assert_never

from etalis_compiler.stratify import StreamReaders, output_id
from etalis_rules import program as ir
from etalis_rules.clock import is_timed
from etalis_rules.leaf_tests import predicates_of
from etalis_rules.operators import computes, decides_for_good, inputs, looks_back, multiplies
from etalis_rules.relations import LEFT_LAST, NEAREST, RIGHT_LAST, TOGETHER
from etalis_rules.roles import Role

from etalis_py.executors.rows.generate import absence, blocks, chains, ending, inserting, joins, limit_checks, runs
from etalis_py.executors.rows.generate.affected_nodes import readers_of
from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.deriving import Derivation, derive
from etalis_py.executors.rows.generate.feeding import feed, leaf_tests, may_see
from etalis_py.executors.rows.generate.outer import outer
from etalis_py.executors.rows.generate.plan import RowPlan
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.records import feed_event
from etalis_py.executors.rows.generate.runtime_objects import OfOperator, OfOutput
from etalis_py.executors.rows.generate.summed_chains import summed_chains
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.operands import OperatorCode, aggregate_one, group_code
from etalis_py.executors.rows.run.slicing import canonical_key, is_arranged
from etalis_py.kernel.owl_streams import is_of_schema
from etalis_py.kernel.templates import fresh_nodes_of

_OPERATORS = (ir.Group, ir.Closure, ir.Slice, ir.Skip, ir.Recall, ir.Run)  # objects with state of their own
MOST_BLOCKS = 1_000
"""The most blocks in all functions for a single triple; further predicates use the function for any instant.  Without a
limit, the functions for n predicates whose rules build on one another would take space n²."""
MOST_GOALS = 2_000
"""The most nodes that all functions for a single triple store goals for, which grow like the blocks: with n² where n
rules derive what n SEQs begin with."""


class Generator:
    """Writes the functions of some rules."""

    def __init__(self, rules: ir.Rules, code: Code) -> None:
        self.rules = rules
        self.code = code
        self.nodes = dict(rules.nodes)
        self.outputs = {output_id(o.query): (i, o) for i, o in enumerate(rules.outputs)}
        self.leaves = {n: node for n, node in self.nodes.items() if isinstance(node, ir.Leaf)}
        self.records = {n: node for n, node in self.nodes.items() if isinstance(node, ir.Record)}
        self.places = {name: place for place, name in enumerate(self.leaves)}
        self.by_predicate: dict[str, list[str]] = {}
        self.anywhere: list[str] = []
        """The leaves that see triples of any predicate, except for the predicates that they exclude."""
        for name, leaf in self.leaves.items():
            terms = predicates_of(leaf) or ()
            for term in terms:
                self.by_predicate.setdefault(term, []).append(name)
            if not terms:
                self.anywhere.append(name)
        sources = StreamReaders(self._sources)
        self.fed = {
            oid: sources.fed_by(o)
            for oid, (_, o) in self.outputs.items()
            if o.form == "construct" and o.source is not None
        }
        self.readers = readers_of(rules, self.fed, code.is_late)
        self.timed = [n for n, x in self.nodes.items() if is_timed(x)]
        self.remembers = looks_back(rules)
        self.operators: dict[str, OperatorCode] = {}
        self.summed = summed_chains(self.nodes, rules.outputs)
        self.derives = any(self.fed.values())
        self.filled: frozenset[str] = frozenset()

    @property
    def _sources(self) -> dict[str, ir.Leaf | ir.Record]:
        """The nodes that read the input: leaves read triples, EVENTs read whole events."""
        return {**self.leaves, **self.records}

    # --- functions ---

    def write(self) -> RowPlan:
        w = Writer()
        names: dict[str, str] = {}
        written = stored = 0
        # With EVENT every instant is handed over as a whole, so there are no functions for single triples.
        for i, predicate in enumerate(sorted(self.by_predicate) if not self.records else ()):
            reached = self.readers.reach(self._seeing(predicate))
            written += len(reached)
            stored += len(self.readers.storing(reached))
            if written > MOST_BLOCKS or stored > MOST_GOALS:
                names[predicate] = "general"
            else:
                names[predicate] = f"single{i}"
                self._single(w, f"single{i}", predicate)
        if not self.records:
            self._single(w, "other", None)
        self._instant(w)
        self._due(w)
        self._finish(w)
        with w.block(f"def {'other' if self.records else 'general'}(s, o, start, t, stream, p):"):
            w("instant(t, ((s, p, o, start, stream),))")
        for name, node in self.nodes.items():
            if isinstance(node, (ir.Group, ir.Run)):
                self._operator_code(name, node)
        code = self.code
        return RowPlan(
            w.text() + "\n", names, code.names.objects, code.needs, tuple(code.stores.values()), self.operators
        )

    def _operator_code(self, name: str, node: ir.Group | ir.Run) -> None:
        if name not in self.operators:
            code = self.code
            self.operators[name] = runs.run_code(node, code) if isinstance(node, ir.Run) else group_code(node, code)

    def _single(self, w: Writer, name: str, predicate: str | None) -> None:
        """The function for one triple whose predicate is known (or is not named by any rule)."""
        code = self.code
        chosen = self._seeing(predicate)
        reached = self.readers.reach(chosen)
        passes = all(runs.reports_ended(self.nodes[timed]) and timed in reached for timed in self.timed)
        with w.block(f"def {name}(s, o, start, t, stream, p):"):
            if not passes:
                with w.block(f"if {code.of_runtime('alarm')}[0] <= t:"):
                    w("return instant(t, ((s, p, o, start, stream),))")
            derived = {leaf for oid, fed in self.fed.items() if oid in reached for leaf in fed}
            for leaf in sorted(reached & self.leaves.keys(), key=self.places.__getitem__):
                node = self.leaves[leaf]
                sure = leaf in chosen and leaf not in derived and not node.entailed and not node.late
                if sure:
                    tests = leaf_tests(node, predicate, code)
                    (code.at_most_one if tests else code.single).add(code.new(leaf))
                    if not derived and not code.explain:
                        code.items[code.new(leaf)] = ()  # filled in by ``feed``; what is derived takes over the names
                else:
                    w(f"{code.new(leaf)} = []")
            if self.remembers:
                w(f"{code.of_runtime('remember')}(s, p, o, start, t, stream)")
            self.filled = frozenset({"seen", "seen in stream", "made"} if derived else ())
            if derived:
                w(f"{code.filled('seen')}.add((s, p, o, start))")
                if any(leaf.stream for leaf in self.leaves.values()):
                    w(f"{code.filled('seen in stream')}.add((s, p, o, start, stream))")
            self._feed(w, chosen, self._event(), predicate)
            self._run(w, reached, time_passes=passes)
        code.single.clear()
        code.at_most_one.clear()
        code.items.clear()

    def _instant(self, w: Writer) -> None:
        """The function for several triples that end at the same time; repeated triples are taken once."""
        code = self.code
        reached = self.readers.reach([*self._sources, *self.timed])
        self.filled = frozenset({"seen", "seen in stream", "made", "whole"})
        w(f"PREDICATES = {self._predicate_numbers()!r}")
        with w.block("def instant(t, occurrences):"):
            for leaf in self._sources:
                w(f"{code.new(leaf)} = []")
            seen = code.filled("seen")
            in_stream = code.filled("seen in stream")
            streams = [n for n, leaf in self.leaves.items() if leaf.stream]
            with w.block("for s, p, o, start, stream in occurrences:"):
                if self.remembers:
                    w(f"{code.of_runtime('remember')}(s, p, o, start, t, stream)")
                because = self._event()
                if streams:
                    with w.block(f"if (s, p, o, start, stream) in {in_stream}:"):
                        w("continue")
                    w(f"{in_stream}.add((s, p, o, start, stream))")
                    self._feed(w, streams, because, None)
                with w.block(f"if (s, p, o, start) in {seen}:"):
                    w("continue")
                w(f"{seen}.add((s, p, o, start))")
                w("g = PREDICATES.get(p, -1)")
                open_ = [n for n in self.anywhere if not self.leaves[n].stream]
                for predicate, number in self._predicate_numbers().items():
                    members = [n for n in self.by_predicate[predicate] if not self.leaves[n].stream]
                    with w.block(f"{'if' if number == 0 else 'elif'} g == {number}:"):
                        self._feed(w, members, because, predicate)
                self._feed(w, open_, because, None)
            self._take_events(w)
            self._run(w, reached, time_passes=True)

    def _take_events(self, w: Writer) -> None:
        """Write the loop that gives each distinct event of the instant to the EVENTs."""
        if not self.records:
            return
        code = self.code
        arrived = code.of_runtime("arrived")
        with w.block(f"for start, triples, stream, graph in {arrived}:"):
            if self._derives_events:
                w(f"{code.filled('whole')}.add((start, frozenset(triples), stream, graph, t))")
            feed_event(w, code, self.records, {})
        w(f"{arrived}.clear()")
        for name in self.records:
            limit_checks.compare(w, code, name, code.new(name), limit_checks.FEW)

    @property
    def _derives_events(self) -> bool:
        """Whether an EVENT may read events that a rule derives."""
        return any(name in self.records for names in self.fed.values() for name in names)

    def _due(self, w: Writer) -> None:
        """The function for an instant without an event: it reports deadlines, and everything derived from them."""
        code = self.code
        if not self.timed:
            return
        reached = self.readers.reach(self.timed)
        self.filled = frozenset({"seen", "seen in stream", "made", "whole"})
        with w.block("def due(t):"):
            for leaf in self._sources:
                if leaf in reached:
                    w(f"{code.new(leaf)} = []")
            self._run(w, reached, time_passes=True)

    def _finish(self, w: Writer) -> None:
        """The function for the end of the stream, which derives no event."""
        fed, self.fed = self.fed, {}
        sources = {oid: o.source.node for oid, (_, o) in self.outputs.items() if o.source is not None}
        ending.finish(w, self.code, sources, self.block_of)
        self.fed = fed

    def _predicate_numbers(self) -> dict[str, int]:
        read = (t for t, names in self.by_predicate.items() if not all(self.leaves[n].stream for n in names))
        return {t: i for i, t in enumerate(sorted(read))}

    def _seeing(self, predicate: str | None) -> list[str]:
        """The leaves that may read a triple with this predicate, in order; None stands for one that no leaf names."""
        names = [] if predicate is None else self.by_predicate.get(predicate, [])
        names = [*names, *(n for n in self.anywhere if may_see(self.leaves[n], predicate))]
        return sorted(names, key=self.places.__getitem__)

    # --- leaves ---

    def _event(self) -> str:
        """Source of the provenance of the occurrence at hand."""
        return f"{self.code.names.use('Because', Provenance)}('event', (s, p, o, start, t, stream))"

    def _feed(
        self,
        w: Writer,
        leaves: list[str],
        because: str,
        predicate: str | None,
        later: Mapping[str, str] | None = None,
    ) -> None:
        chosen = {name: self.leaves[name] for name in leaves}
        feed(w, self.code, chosen, because, predicate, later or {})

    # --- the blocks of an instant ---

    def _run(self, w: Writer, reached: frozenset[str], *, time_passes: bool = False) -> None:
        """Write the blocks of all strata in turn.

        Reports are created in this order too, and in a recursion round by round, so ``settle`` sorts them in the end.
        ``time_passes``: whether a deadline may be due in this instant.
        """
        reports = self.code.of_runtime("reports")
        reported = [oid for oid in self.outputs if oid in reached]
        strata = [self.rules.strata[place] for place in self.readers.strata_of(reached)]
        recursive = any(len(stratum) > 1 for stratum in strata)
        unsettled = len(reported) > 1 or (recursive and reported)
        if unsettled:
            w(f"first = len({reports})")
        for stratum in strata:
            members = [n for n in stratum if n in reached]
            if len(stratum) > 1 and len(members) == len(stratum):
                self._recursion(w, stratum, reached)
                continue
            for name in members:
                node = self.nodes.get(name)
                if isinstance(node, ir.Start):
                    ending.begin(w, self.code, name, time_passes=time_passes)
                elif runs.reports_ended(node):
                    runs.end_runs(w, self.code, name, node, reached, time_passes=time_passes)
                elif name in self.timed:
                    self._deadline(w, name, reached, time_passes)
                else:
                    self.block_of(w, name, reached, {})
        if unsettled:
            settle = self.code.of_runtime("settle")
            w(f"if len({reports}) > first{'' if recursive else ' + 1'}: {settle}(first)")
        self.insert_goals(w, reached)
        self.end_instant(w, reached)

    def end_instant(self, w: Writer, reached: frozenset[str]) -> None:
        """Empty the collections that last for one instant only, if this function may have filled them."""
        for names in self.code.emptied.values():
            for key, name in names.items():
                if name in self.code.needs and (key.removesuffix("'") in reached or key in self.filled):
                    w(f"{name}.clear()")

    def block_of(self, w: Writer, name: str, reached: frozenset[str], lists: Mapping[str, str]) -> None:
        """Write the block of a node, guarded by a test for new input."""
        if name in self.outputs:
            self._output(w, name, lists, None)
            return
        node, code = self.nodes[name], self.code
        if isinstance(node, ir.Leaf | ir.Record):
            return
        new = {ref.node: lists.get(ref.node, code.new(ref.node)) for ref in ir.refs(node) if ref.node in reached}
        inputs = [new[n] for n in dict.fromkeys(self._inputs(name)) if n in new]
        if name not in lists:
            is_replaced = isinstance(node, _OPERATORS) or joins.finds_one(code, name, node)
            w(f"{code.new(name)} = {'()' if is_replaced else '[]'}")
        if not inputs:
            return
        with code.guard(w, *inputs):
            if name not in lists:
                limit_checks.begin(w, code, name)
            self._block(w, name, node, new, recursive=bool(lists))
            if (multiplies(node) or computes(node)) and not code.is_short(code.new(name)):
                limit_checks.compare(w, code, name, code.new(name), limit_checks.FEW)

    def _deadline(self, w: Writer, name: str, reached: frozenset[str], time_passes: bool) -> None:
        """Write the block of a deadline: new solutions of N cancel waiting goals first, then due goals are reported."""
        code, node = self.code, self.nodes[name]
        assert isinstance(node, ir.Absence)
        if node.absent.node in reached:
            absent = code.new(node.absent.node)
            with code.guard(w, absent):
                absence.cancel(w, code, name, node, absent)
        w(f"{code.new(name)} = {'[]' if time_passes else '()'}")
        if time_passes:
            absence.deadline(w, code, name, node)

    def _inputs(self, name: str) -> list[str]:
        """The nodes whose new solutions this block reads at once; solutions of others only become goals for later."""
        late = self.code.is_late(name)
        parts = inputs(self.nodes[name])
        return [part.ref.node for part in parts if part.role is not Role.PAST and (late or not part.earlier)]

    def _block(self, w: Writer, name: str, node: ir.Node, new: Mapping[str, str], recursive: bool) -> None:
        code = self.code
        match node:
            case ir.Map():
                blocks.single_pass(w, code, name, node, new[node.child.node])
            case ir.Union():
                sources = [(ref, new[ref.node]) for ref in node.branches if ref.node in new]
                blocks.union(w, code, name, node, sources)
            case ir.Join() if code.is_late(name) or node.op not in (*RIGHT_LAST, *TOGETHER):
                joins.both(w, code, name, node, new.get(node.left.node, ""), new.get(node.right.node, ""))
            case ir.Join() if node.op in NEAREST:
                from etalis_py.executors.rows.generate import nearest  # few programs need it

                nearest.check(w, code, name, node, new[node.right.node])
            case ir.Join() if node.op in RIGHT_LAST:
                joins.seq_check(w, code, name, node, new[node.right.node])
            case ir.Join():
                write = joins.equals_again if recursive else joins.equals
                write(w, code, name, node, new.get(node.left.node, "()"), new.get(node.right.node, "()"))
            case ir.Chain():
                chains.complete(w, code, name, node, new[node.parts[-1].node], self.summed.get(name))
            case ir.Absence(right=None):
                absence.inside(w, code, name, node, new[node.left.node])
            case ir.Absence(right=ir.Ref() as right):
                absence.gap(w, code, name, node, new[right.node])
            case ir.Outer():
                optional = "" if node.right is None else new.get(node.right.node, "")
                outer(w, code, name, node, new.get(node.left.node, ""), optional)
            case ir.Leaf() | ir.Record() | ir.Start() | ir.Absence():
                raise TypeError(f"{name} needs no block of its own")
            case ir.Group() if not recursive and aggregate_one(w, code, name, node, new[node.child.node]):
                pass
            case ir.Group() | ir.Run() | ir.Skip() | ir.Recall() | ir.Closure() | ir.Slice():
                child = ir.refs(node)[0].node
                if isinstance(node, (ir.Group, ir.Run)):
                    self._operator_code(name, node)
                if not isinstance(node, ir.Recall):
                    code.log(w, name, new[child])
                if isinstance(node, ir.Run) and not recursive and runs.is_inline(name, node, code):
                    runs.go_on_with_longest(w, code, name, node, new[child])
                    return
                run = code.helper("run", name, OfOperator(name))
                w(f"{code.new(name)} {'+=' if recursive else '='} {run}(t, {new[child]})")
            case _:
                assert_never(node)

    def _recursion(self, w: Writer, stratum: tuple[str, ...], reached: frozenset[str]) -> None:
        """Write the loop for mutually recursive nodes: rounds over the last round's results, until there are none."""
        code = self.code
        inner = [n for n in stratum if n in self.nodes]
        leaves = [n for n in inner if n in self._sources]
        others = [n for n in inner if n not in self._sources]
        for name in others:
            w(f"{code.new(name)} = []", f"all_{code.new(name)} = []")
            limit_checks.begin(w, code, name)
        for leaf in leaves:
            w(f"all_{code.new(leaf)} = []")
        outside = sorted({n for name in others for n in self._inputs(name) if n not in inner and n in reached})
        for name in outside:
            w(f"first_{code.new(name)} = {code.new(name)}")
        w("rounds = 0")
        news = [code.new(n) for n in leaves] + [code.new(n) for n in outside]
        with code.changing(map(code.new, outside)), w.block(f"while {' or '.join(news)}:"):
            w("rounds += 1")
            limit = code.of_runtime("too_deep")
            w(f"if rounds > {self.code.limits.rounds}: {limit}({', '.join(map(repr, stratum[:1]))})")
            for leaf in leaves:
                w(f"all_{code.new(leaf)} += {code.new(leaf)}", f"next_{code.new(leaf)} = []")
                limit_checks.compare(w, code, leaf, f"all_{code.new(leaf)}", limit_checks.MANY)
            for name in stratum:
                if name in self.nodes and name not in self._sources:
                    self.block_of(w, name, reached, {name: code.new(name)})
            for name in stratum:
                if name in self.outputs:
                    self._output(w, name, {}, {n: f"next_{code.new(n)}" for n in leaves})
            for name in others:
                w(f"all_{code.new(name)} += {code.new(name)}", f"{code.new(name)} = []")
                limit_checks.compare(w, code, name, f"all_{code.new(name)}", limit_checks.MANY)
            for leaf in leaves:
                w(f"{code.new(leaf)} = next_{code.new(leaf)}")
            for name in outside:
                w(f"{code.new(name)} = []")
        for name in others + leaves:
            w(f"{code.new(name)} = all_{code.new(name)}")
        # Later strata read all solutions from outside again, but the rounds have emptied these lists.
        for name in outside:
            w(f"{code.new(name)} = first_{code.new(name)}")

    def insert_goals(self, w: Writer, reached: frozenset[str]) -> None:
        """Write the insertion of goals that await something later; it comes last, so they miss their own instant."""
        code = self.code
        for name in self.readers.storing(reached):
            node = self.nodes[name]
            if code.is_late(name):
                continue  # the block of the node has inserted its goals already, as either side may come last
            if isinstance(node, ir.Absence):
                absence.await_later(w, code, name, node, reached)
                continue
            if isinstance(node, ir.Run):
                runs.interrupt(w, code, name, node, reached)
                continue
            if isinstance(node, ir.Chain):
                chains.await_later(w, code, name, node, reached)
                continue
            if isinstance(node, ir.Join) and node.op in RIGHT_LAST:
                ref = node.left
                if decides_for_good(node) and node.right.node in reached:
                    from etalis_py.executors.rows.generate import nearest  # few programs need it

                    nearest.drop_followed(w, code, name, node)
            elif isinstance(node, ir.Outer) and node.op in LEFT_LAST and node.right is not None:
                ref = node.right
            else:
                continue
            if ref.node in reached:
                new = code.new(ref.node)
                with code.guard(w, new):
                    if node.policy and new not in code.single:
                        w(f"if len({new}) > 1: {new} = sorted({new})")
                    inserting.insert(w, code, name, "G", ref, node.certain, new)

    # --- outputs ---

    def _output(self, w: Writer, name: str, lists: Mapping[str, str], later: Mapping[str, str] | None) -> None:
        number, output = self.outputs[name]
        assert output.source is not None
        code = self.code
        source = lists.get(output.source.node, code.new(output.source.node))
        reports = code.of_runtime("reports")
        fresh = fresh_nodes_of(output, output.source.columns) if self.fed.get(name) else None
        labels = () if fresh is None else fresh[0]
        if output.query in code.families:
            with blocks.parted(w, code, number, source):
                if self.fed.get(name):
                    derive(w, code, self._derivation(name), "rows", later)
            return
        if labels:
            code.filled("made")
            w(f"own{number} = {code.need(f'applied{number}', OfOutput(number, 'applied'))}({source})")
            source = f"own{number}"
        with code.guard(w, source):
            arranged = is_arranged(output)
            rows = f"r{number}" if arranged or later is None else source
            if arranged:
                w(f"{rows} = {code.need(f'arrange{number}', OfOutput(number, 'arrange'))}(t, {source})")
            elif later is None:
                key = canonical_key(output.source.columns, tuple(sorted(output.variables)))
                sorting = "" if key is None else f"key={code.names.use(f'order{number}', key)}"
                many = f" if len({source}) == 1 else sorted({source}{', ' + sorting if sorting else ''})"
                w(f"{rows} = {source}{'' if code.is_short(source) else many}")
            with w.block(f"if {rows}:") if arranged else nullcontext():
                w(f"{reports}.append(({code.position(number)}, t, {rows}))")
                if output.form == "construct" and self.fed.get(name):
                    derive(w, code, self._derivation(name, labels), rows, later)

    def _derivation(self, name: str, labels: tuple[str, ...] = ()) -> Derivation:
        number, output = self.outputs[name]
        leaves = {n: self.leaves[n] for n in self.fed[name] if n in self.leaves}
        records = {n: self.records[n] for n in self.fed[name] if n in self.records}
        return Derivation(name, number, output, leaves, records, labels, self.remembers, is_of_schema(output))
