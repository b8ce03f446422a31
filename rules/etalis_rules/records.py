"""What an EVENT node reads: which triples of an event may take part in its solutions.

>>> from .algebra import BGP, Const, Triple, Var
>>> node = Record(("x",), BGP((Triple(Var("s"), Const("<p>"), Var("x")),)), "<s>")
>>> [leaf.predicate for leaf in leaves_of(node)]
[Const(term='<p>')]
>>> columns_of(node)
('s', (('<p>', Var(name='x')),))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .algebra import (
    BGP,
    Apply,
    Const,
    Exists,
    Expr,
    Filter,
    Minus,
    NotAny,
    Outer,
    Path,
    PathPattern,
    Pattern,
    Repeated,
    Step,
    SubSelect,
    Triple,
    Var,
    conjuncts,
    equality,
    needed_parts,
    read_of_event,
    variables,
)
from .algebra import Record as RecordPattern
from .algebra import scope as scope_of
from .program import Any, Leaf, Map, Node, OneOf, Record, Ref, Rules, refs
from .relations import OuterOp
from .steps import Step as NodeStep
from .steps import conditions_of
from .traversal import rename, walk


def leaves_of(node: Record) -> tuple[Leaf, ...]:
    """The triples of the event that the triple patterns read, as leaves without columns.

    A path may take any triple of its predicates; if it may be empty or is negated, any triple at all.
    """
    return tuple(_leaves(node))


def narrowed(rules: Rules, name: str) -> Record:
    """The EVENT of a node with those equalities that whatever reads the node tests of its solutions.

    Inside, ``FILTER (?z = ?y)`` may find ?z by its value, where the node alone would list all that it may be.
    """
    node = rules.node(name)
    assert isinstance(node, Record)
    readers = [(ref, n) for _, n in rules.nodes for ref in refs(n) if ref.node == name]
    tested = [_equalities(n.steps, ref, node) if isinstance(n, Map) else {} for ref, n in readers]
    if any(out.source is not None and out.source.node == name for out in rules.outputs) or not tested:
        return node
    common = tuple(e for e in tested[0] if all(e in others for others in tested))
    return replace(node, pattern=Filter(node.pattern, common)) if common else node


def _equalities(steps: Iterable[NodeStep], ref: Ref, node: Record) -> dict[Expr, None]:
    """The conditions ``a = b`` of a Map on the pattern's variables, under their names in the pattern."""
    names = dict(zip(ref.columns, node.head, strict=True))
    own = {name for name, inside in names.items() if inside in scope_of(node.pattern)}
    found: dict[Expr, None] = {}
    for e in (part for condition in conditions_of(steps) for part in conjuncts(condition)):
        if equality(e) is not None and variables(e) <= own:
            found[rename(e, names)] = None
    return found


def cuts_solutions(node: Node) -> bool:
    """Whether a sub-SELECT inside EVENT may take some of its solutions, or put them in order."""
    return isinstance(node, Record) and any(isinstance(part, SubSelect) for part in walk(node.pattern))


def certain_leaves(node: Record) -> tuple[Leaf, ...]:
    """The triple patterns that a triple of the event matches in every solution, as leaves without columns.

    A pattern that a triple of the background may match instead is not among them.
    """
    leaves = (Leaf((), t.subject, t.predicate, t.object, node.stream) for t in _certain(node.pattern))
    return tuple(leaves) if node.alone and not node.entailed else ()


def needed_leaves(node: Record) -> list[tuple[Leaf, ...]]:
    """For each triple pattern that every solution needs, the triples of the event of which it needs one.

    Those patterns are left out that a triple of the background may match, or of which it cannot be told.
    """
    if not node.alone:
        return []
    leaves = (_read_for(node, t) for t in _certain(node.pattern))
    return [some for some in leaves if not some[0].entailed]


def _read_for(node: Record, t: Triple) -> tuple[Leaf, ...]:
    """The triples of the event that a triple pattern reads."""
    own = Leaf((), t.subject, t.predicate, t.object, node.stream, node.entailed)
    return next((leaves for triple, leaves in node.sources if triple == t), (own,))


def needs_schema(node: Record) -> bool:
    """Whether a solution may need a triple that the schema derives from those of the event."""
    return node.entailed and not (node.sources and all(map(_as_written, node.sources)))


def _as_written(source: tuple[Triple, tuple[Leaf, ...]]) -> bool:
    """Whether the only triples that match a pattern are those that it states."""
    t, (leaf, *others) = source
    same = (leaf.subject, leaf.predicate, leaf.object) == (t.subject, t.predicate, t.object)
    return same and not others and not leaf.entailed


def _certain(pattern: Pattern) -> Iterator[Triple]:
    for part in needed_parts(pattern, selects=False):
        if isinstance(part, BGP) and part.graph is None:
            yield from part.triples


def leaves_read(nodes: Iterable[Node]) -> list[Leaf]:
    """The triple patterns among some nodes, those inside EVENT included."""
    return [leaf for node in nodes for leaf in ((node,) if isinstance(node, Leaf) else _of_event(node))]


def _of_event(node: Node) -> tuple[Leaf, ...]:
    return leaves_of(node) if isinstance(node, Record) else ()


def _leaves(node: Record) -> Iterator[Leaf]:
    for part in read_of_event(RecordPattern(node.pattern, node.stream, node.graph)):
        match part:
            case BGP(triples):
                for t in triples:
                    yield from _read_for(node, t)
            case PathPattern(_, path):
                predicates = _predicates(path)
                position = Any() if predicates is None else OneOf(tuple(sorted(predicates)))
                yield Leaf((), Any(), position, Any(), node.stream, node.entailed)


def _predicates(path: Path) -> frozenset[str] | None:
    """The predicates of the edges of a path; None: any, or the nodes of any triple."""
    parts = list(walk(path))
    if any(isinstance(p, NotAny) or (isinstance(p, Repeated) and not p.minimum) for p in parts):
        return None
    return frozenset(p.iri for p in parts if isinstance(p, Step))


Column = tuple[str, Var | Const]
"""A predicate, and what stands for its objects."""


def columns_of(node: Record) -> tuple[str, tuple[Column, ...]] | None:
    """The subject and the columns of a pattern that is read like a row of a table; None for any other pattern.

    Such a pattern has one variable for the subject and constant predicates, and no triple of the background matches it,
    nor one that the schema derives.
    """
    pattern = node.pattern
    if not isinstance(pattern, BGP) or pattern.graph is not None or not node.alone or needs_schema(node):
        return None
    subjects = {t.subject for t in pattern.triples}
    subject = next(iter(subjects), None)
    if len(subjects) != 1 or not isinstance(subject, Var):
        return None
    columns = [(t.predicate.term, t.object) for t in pattern.triples if isinstance(t.predicate, Const)]
    return (subject.name, tuple(columns)) if len(columns) == len(pattern.triples) else None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A pattern that is read like the rows of a table: the variable of its subject, and its columns.

    A solution has all columns of a group in ``optional``, or none.  A test says whether the event must have triples
    for some more columns (EXISTS), or must not (NOT EXISTS, MINUS).
    """

    subject: str
    columns: tuple[Column, ...]
    optional: tuple[tuple[Column, ...], ...]
    tests: tuple[tuple[bool, tuple[Column, ...]], ...]


def table_columns_of(node: Record) -> TableColumns | None:
    """The columns of a pattern as in ``columns_of``, with optional ones and tests; None for any other pattern.

    None also if an optional variable occurs elsewhere in it, as its columns would be joined.
    """
    pattern, asked = _untested(node.pattern)
    groups = []
    while isinstance(pattern, Outer) and pattern.op is OuterOp.OPTIONAL and not pattern.condition:
        groups.append(pattern.optional)
        pattern = pattern.mandatory
    always = columns_of(replace(node, pattern=pattern))
    if always is None:
        return None
    subject, columns = always
    certain = {subject, *_variables(columns)}
    names = {node.graph.name for _ in (0,) if isinstance(node.graph, Var)} - {subject}
    bound = certain | names
    optional = []
    for group in reversed(groups):
        more = columns_of(replace(node, pattern=group))
        if more is None or more[0] != subject:
            return None
        new = _variables(more[1])
        if len(set(new)) < len(new) or not bound.isdisjoint(new):
            return None
        bound.update(new)
        optional.append(more[1])
    tests = []
    for wanted, tested, scope in asked:
        more = columns_of(replace(node, pattern=tested))
        if more is None or more[0] != subject:
            return None
        shared = bound.intersection((subject, *_variables(more[1])))
        if not shared <= (certain - names if scope is None else (certain - names).intersection(scope)):
            return None
        tests.append((wanted, more[1]))
    return TableColumns(subject, columns, tuple(optional), tuple(tests))


def _variables(columns: Iterable[Column]) -> list[str]:
    return [term.name for _, term in columns if isinstance(term, Var)]


def _untested(pattern: Pattern) -> tuple[Pattern, list[tuple[bool, Pattern, tuple[str, ...] | None]]]:
    """A pattern without EXISTS, NOT EXISTS and MINUS around it, and these, with the scope of each MINUS."""
    tests: list[tuple[bool, Pattern, tuple[str, ...] | None]] = []
    while True:
        match pattern:
            case Minus(left, right, scope):
                tests.append((False, right, scope))
                pattern = left
            case Filter(child, conditions) if all(map(_tested, conditions)):
                tests += [(*found, None) for found in map(_tested, conditions) if found is not None]
                pattern = child
            case _:
                return pattern, tests


def _tested(condition: Expr) -> tuple[bool, Pattern] | None:
    match condition:
        case Exists(pattern):
            return True, pattern
        case Apply("!", (Exists(pattern),)):
            return False, pattern
    return None
