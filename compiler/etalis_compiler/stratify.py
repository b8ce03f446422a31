"""Temporal stratification: the order in which the nodes are evaluated within an instant.

A node depends on the nodes it is made from, and a leaf on every CONSTRUCT whose template may match it.  An input that
ends strictly before the solutions it affects, such as the left of a SEQ or what must be absent in a gap, is *delayed*:
it belongs to an earlier instant and imposes no order.  An edge is *negative* if the whole input must be known, such as
the optional side of OPTIONAL, the right side of MINUS and EXISTS, the absent side of a deadline, the input of an
aggregate, a LIMIT or a consuming policy.  ``etalis_rules.operators`` says both of every input.  A cycle
of edges that are not delayed is a recursion within the instant; it is allowed if none of its edges is negative, and
refused otherwise, naming the cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Generic, NamedTuple, TypeVar

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.lateness import late_nodes, latenesses
from etalis_rules.leaf_tests import allows, terms_of
from etalis_rules.operators import decides_for_good, inputs, reads_stream
from etalis_rules.records import leaves_of, leaves_read
from etalis_rules.roles import Role

from .unsupported import Fault

T = TypeVar("T")
U = TypeVar("U")


class Edge(NamedTuple):
    source: str
    target: str
    negative: bool
    why: str = ""


def output_id(query: str) -> str:
    return f"out:{query}"


def edges(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> Iterator[Edge]:
    """The dependencies within an instant."""
    nodes = dict(nodes)
    late = late_nodes(nodes)
    readers = StreamReaders(nodes)
    for identifier, node in nodes.items():
        for part in inputs(node):
            if identifier in late or not part.earlier:
                yield Edge(part.ref.node, identifier, bool(part.negative), part.negative)
    for output in outputs:
        if output.source is None:
            continue
        limited = output.limit is not None or output.offset > 0
        yield Edge(output.source.node, output_id(output.query), limited, "LIMIT")
        yield from (Edge(output_id(output.query), reader, False) for reader in readers.fed_by(output))


def timely_sides(nodes: Mapping[str, ir.Node]) -> None:
    """Refuse operators that decide for good what is next or absent, over solutions known later than they end."""
    late = late_nodes(nodes)
    for node in nodes.values():
        past = (nodes[part.ref.node] for part in inputs(node) if part.role is Role.PAST)
        if any(reads_stream(leaf) and leaf.in_time for leaf in past):
            raise Fault(
                "late-side",
                f"an EXISTS beside {alg.ONLY_FORWARD} would look back at what rules derive after its end, but by then "
                "it had been decided what is next or absent",
                "ask for it outside, in a FILTER of the whole group",
            )
        if decides_for_good(node) and any(ref.node in late for ref in ir.refs(node)):
            raise Fault(
                "late-side",
                "the rows of an aggregating sub-SELECT may be reported later than they end: what is next or absent "
                "would be decided too early",
                "make a rule of the sub-SELECT: CONSTRUCT { ?k :count ?n } WHERE { SELECT … }, and read its triples",
            )


def past_events(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> dict[tuple[ir.Template, str], int]:
    """The triples, by stream, that rules may derive after their end for patterns to read, and how long after it."""
    longest = latenesses(nodes)
    readers = StreamReaders(nodes)
    found: dict[tuple[ir.Template, str], int] = {}
    for rule in outputs:
        if rule.form != "construct" or rule.source is None or not longest[rule.source.node]:
            continue
        for template in rule.template:
            if readers.seeing(template, rule.stream):
                place = template, rule.stream
                found[place] = max(found.get(place, 0), longest[rule.source.node])
    return found


def expects_late_events(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> bool:
    """Whether every pattern for which rules derive events after their end was made for that."""
    past = past_events(nodes, outputs)
    readers = {name: node for name, node in nodes.items() if reads_stream(node) and not (node.late or node.in_time)}
    unprepared = StreamReaders(readers)
    return not any(unprepared.seeing(template, stream) for template, stream in past)


def made_for(outputs: Iterable[ir.Output], nodes: Mapping[str, ir.Node]) -> list[str]:
    """The ids of all nodes that these outputs are made from."""
    made: dict[str, None] = {}
    stack = [output.source.node for output in outputs if output.source is not None]
    while stack:
        here = stack.pop()
        if here not in made:
            made[here] = None
            stack.extend(ir.made_from(nodes[here]))
    return list(made)


def feeds(template: ir.Template, stream: str, leaf: ir.Leaf | ir.Record) -> bool:
    """Whether the leaf, or a pattern over the events of rules, may see an instance of the template."""
    if isinstance(leaf, ir.Record):
        return leaf.graph is None and any(feeds(template, stream, part) for part in leaves_of(leaf))
    if leaf.stream and leaf.stream != stream:
        return False
    if leaf.entailed:
        return True
    return (
        _may_match(template.predicate, leaf.predicate)  # tested first, as most rules differ in it
        and _may_match(template.subject, leaf.subject)
        and _may_match(template.object, leaf.object)
    )


class ReaderIndex(Generic[T]):
    """Readers by the stream, the predicate and the object of the triples that they ask for; "" stands for any.

    A program is a net of rules and readers: a look at all readers for each rule would take the square of its size.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[str, list[T]]]] = {}

    def add(self, stream: str, predicate: str, object_: str, reader: T) -> None:
        by_object = self._groups.setdefault(stream, {}).setdefault(predicate, {})
        by_object.setdefault(object_, []).append(reader)

    def near(self, stream: str, predicate: str, object_: str) -> Iterator[T]:
        """All that may read such a triple of this stream, and some that may not, as their subjects differ."""
        for name in dict.fromkeys(("", stream)):
            for by_object in _of_term(self._groups.get(name, {}), predicate):
                for readers in _of_term(by_object, object_):
                    yield from readers


def _of_term(groups: Mapping[str, U], term: str) -> Iterable[U]:
    return (groups[wanted] for wanted in (term, "") if wanted in groups) if term else groups.values()


class StreamReaders:
    """Finds the leaves and EVENTs among some nodes that may see an instance of a template."""

    def __init__(self, nodes: Mapping[str, ir.Node]) -> None:
        self._names = list(nodes)
        self._index: ReaderIndex[tuple[int, ir.Leaf]] = ReaderIndex()
        """The leaves, and those of EVENTs, each with the place of its node."""
        for place, node in enumerate(nodes.values()):
            if isinstance(node, ir.Leaf) or (isinstance(node, ir.Record) and node.graph is None):
                for leaf in leaves_read((node,)):
                    self._add(place, leaf)

    def _add(self, place: int, leaf: ir.Leaf) -> None:
        predicates: tuple[str, ...] = ("",)
        objects: tuple[str, ...] = ("",)
        if not leaf.entailed:
            predicates, objects = (terms_of(position) or ("",) for position in (leaf.predicate, leaf.object))
        for predicate, term in product(predicates, objects):
            self._index.add(leaf.stream, predicate, term, (place, leaf))

    def seeing(self, template: ir.Template, stream: str) -> list[str]:
        """The readers that a template of this stream feeds, in the order of the nodes."""
        return self._names_of(self._places(template, stream))

    def fed_by(self, output: ir.Output) -> list[str]:
        """The readers that a CONSTRUCT rule feeds, in the order of the nodes; none for other queries."""
        templates = output.template if output.form == "construct" else ()
        return self._names_of(place for template in templates for place in self._places(template, output.stream))

    def _places(self, template: ir.Template, stream: str) -> Iterator[int]:
        constants = map(alg.constant_of, (template.predicate, template.object))
        near = self._index.near(stream, *constants)
        return (place for place, leaf in near if feeds(template, stream, leaf))

    def _names_of(self, places: Iterable[int]) -> list[str]:
        return [self._names[place] for place in sorted(set(places))]


def _may_match(given: alg.Var | alg.Const, wanted: ir.Position) -> bool:
    constant = alg.constant_of(given)
    return not constant or allows(wanted, constant)


def stratify(nodes: Mapping[str, ir.Node], outputs: Iterable[ir.Output]) -> tuple[tuple[str, ...], ...]:
    """The strongly connected components of the same-instant dependencies, in evaluation order."""
    outputs = tuple(outputs)
    all_edges = list(edges(nodes, outputs))
    names = [*nodes, *(output_id(o.query) for o in outputs)]
    successors: dict[str, list[str]] = {name: [] for name in names}
    for edge in all_edges:
        successors[edge.source].append(edge.target)
    components = strong_components(names, successors)
    where = {name: i for i, component in enumerate(components) for name in component}
    for edge in all_edges:
        if edge.negative and where[edge.source] == where[edge.target]:
            component = components[where[edge.source]]
            cycle = sorted(n.removeprefix("out:") for n in component if n.startswith("out:"))
            raise Fault(
                "unstratified",
                f"the rules {', '.join(cycle)} depend on themselves within one instant through {edge.why}",
                "put a SEQ into the cycle, so that a rule looks at what ended before, or break the cycle",
            )
    return tuple(tuple(sorted(c, key=names.index)) if len(c) > 1 else tuple(c) for c in components)


def strong_components(names: list[str], successors: Mapping[str, list[str]]) -> list[list[str]]:
    """Tarjan's algorithm without recursion; components come out in topological order."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    components: list[list[str]] = []
    for root in names:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for following in rest:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    on_stack.add(following)
                    work.append((following, iter(successors[following])))
                    break
                if following in on_stack:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(component)
    return components[::-1]
