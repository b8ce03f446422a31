"""Blank-node labels: which nodes are the same.

There are two scopes.  In a *document* (.nq, .nt, .trig, .ttl) a label means the same node throughout; its new label is
a prefix made of stream and document, and the old label.  In a *message* (a line of JSON, a row, a message of a log, a
Jelly frame) labels mean nothing outside; the new label is a hash of the message's canonical content, its stream and its
time, so that it never depends on the place of the message in the input.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise

import pyoxigraph as ox
from etalis_rules.terms import blanks_of, with_blanks

from etalis_py.events.errors import StreamError
from etalis_py.values.oxigraph_terms import spell

Row = tuple[str, str, str, str]
# The random labels that pyoxigraph gives to [] and ( … ): 128 bits, without leading zeros.
_ANONYMOUS = re.compile(r"_:[a-f][0-9a-f]{23,31}")
ANONYMOUS_KEPT = 200_000
TIED_NODES = 10
LEAST_ROUNDS, MOST_COLOURS = 16, 20_000
"""So often all nodes get new colours, and beyond that until so many were given: from then on only where it matters."""


def digest(*texts: str, size: int = 10) -> str:
    """A short hash of a list of texts (each with its length, so that different lists never look the same)."""
    return blake2b(
        "".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass"), digest_size=size
    ).hexdigest()


class DocumentScope:
    """The blank nodes of one document.

    Nodes without a label are numbered in order of appearance.  They live within one statement, so only the most
    recently used are remembered (``ANONYMOUS_KEPT``), which bounds the memory for a document of any length.
    """

    __slots__ = ("_numbered", "_numbers", "_prefix")

    def __init__(self, stream: str, document: str) -> None:
        self._prefix = "_:d" + digest(stream, document, size=5)
        self._numbered: dict[str, str] = {}
        self._numbers = 0

    def rename(self, term: str) -> str:
        """The new label of a blank node (``_:…``).

        >>> scope = DocumentScope("<urn:s>", "a.nq")
        >>> scope.rename("_:x") == scope.rename("_:x") != DocumentScope("<urn:s>", "b.nq").rename("_:x")
        True
        """
        return f"{self._prefix}x{term[2:]}"

    def rename_parsed(self, term: str) -> str:
        """The same for terms from pyoxigraph, in which an unlabelled node has a random label."""
        if not _ANONYMOUS.fullmatch(term):
            return self.rename(term)
        label = self._numbered.pop(term, None)
        if label is None:
            self._numbers += 1
            label = f"{self._prefix}n{self._numbers}"
            if len(self._numbered) >= ANONYMOUS_KEPT:
                for old in list(self._numbered)[: ANONYMOUS_KEPT // 2]:
                    del self._numbered[old]
        self._numbered[term] = label
        return label


def relabel(rows: Sequence[Row], stream: str, time: str) -> Sequence[Row]:
    """A message's rows, with blank nodes named by the message's content, stream and time.

    >>> one = [("_:a", "<urn:p>", '"1"', ""), ("_:a", "<urn:q>", "_:b", "")]
    >>> other = [("_:y", "<urn:q>", "_:x", ""), ("_:y", "<urn:p>", '"1"', "")]
    >>> sorted(relabel(one, "", "7")) == sorted(relabel(other, "", "7")) != sorted(relabel(one, "", "8"))
    True
    """
    if not any(map(blanks_in, rows)):
        return rows
    ground, components = _components(rows)
    # Equal components are interchangeable, so sorting them by their content gives every node its number.
    numbered: list[Row] = []
    offset = 0
    for component in sorted(sorted(_numbered(component)) for component in components):
        numbered += [_map(row, partial(_shifted, offset)) for row in component]
        offset += len(_nodes(component))
    prefix = "_:m" + digest(stream, time, *sorted({"\n".join(row) for row in (*ground, *numbered)}))
    return [*ground, *(_map(row, lambda term: f"{prefix}x{term[2:]}") for row in numbered)]


def _shifted(offset: int, node: str) -> str:
    return f"_:{int(node[2:]) + offset}"


def _map(row: Row, rename: Callable[[str], str]) -> Row:
    s, p, o, g = row
    return (
        rename(s) if s[:2] == "_:" else s,
        p,
        with_blanks(o, rename),
        rename(g) if g[:2] == "_:" else g,
    )


def blanks_in(row: Row) -> list[str]:
    """The blank nodes of a statement, including those inside a triple term."""
    return [node for term in row for node in blanks_of(term)]


def _nodes(rows: Iterable[Row]) -> list[str]:
    return sorted({node for row in rows for node in blanks_in(row)})


def _components(rows: Sequence[Row]) -> tuple[list[Row], list[list[Row]]]:
    """The rows without blank nodes, and the others grouped into components that share blank nodes."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    inside = [blanks_in(row) for row in rows]
    for nodes in inside:
        for node in nodes[1:]:
            parent[root(node)] = root(nodes[0])
    ground, components = [], dict[str, list[Row]]()
    for row, nodes in zip(rows, inside, strict=True):
        if nodes:
            components.setdefault(root(nodes[0]), []).append(row)
        else:
            ground.append(row)
    return ground, list(components.values())


def _numbered(rows: Sequence[Row]) -> list[Row]:
    """A component with its blank nodes renamed ``_:0``, ``_:1``, … in an order that depends only on its content.

    Colours are refined until they are stable: a node's colour is the hash of the statements it is in, with the other
    nodes given by their colours.  Nodes that stay tied are interchangeable if swapping them changes nothing; the few
    others are left to the RDF dataset canonicalization algorithm, which is exponential in their number.
    """
    nodes = _nodes(rows)
    colour: dict[str, str] = dict.fromkeys(nodes, "")
    of_node: dict[str, list[Row]] = {node: [] for node in nodes}
    for row in set(rows):
        for node in set(blanks_in(row)):
            of_node[node].append(row)
    classes, rounds = 1, 0
    while len(nodes) > 1:
        colour = {node: _colour(node, of_node[node], colour) for node in nodes}
        before, classes = classes, len(set(colour.values()))
        rounds += 1
        if classes in (before, len(nodes)):
            break
        if rounds >= LEAST_ROUNDS and rounds * len(nodes) >= MOST_COLOURS:
            _refine(colour, of_node)
            classes = len(set(colour.values()))
            break
    order: Sequence[str] = sorted(nodes, key=lambda node: colour[node])
    if classes < len(nodes) and not _all_twins(order, colour, of_node):
        rows, order = _by_dataset_canonicalization(rows, len(nodes) - classes + 1)
    index = {node: str(number) for number, node in enumerate(order)}
    return [_map(row, lambda term: "_:" + index[term]) for row in rows]


def _refine(colour: dict[str, str], of_node: Mapping[str, list[Row]]) -> None:
    """Refine colours until they are stable, and look at a node again only if one beside it has got another colour.

    In a long list of equal values each round tells but the outermost two from the rest.
    """
    sizes = Counter(colour.values())
    touched = set(colour)
    while touched:
        again: dict[str, dict[str, str]] = {}
        for node in touched:
            if sizes[colour[node]] > 1:
                again.setdefault(colour[node], {})[node] = _colour(node, of_node[node], colour)
        kept = {old: _largest(new.values()) for old, new in again.items() if len(new) == sizes[old]}
        changed = [(node, other) for old, new in again.items() for node, other in new.items() if other != kept.get(old)]
        for node, other in changed:
            sizes[colour[node]] -= 1
            sizes[other] += 1
            colour[node] = other
        touched = {beside for node, _ in changed for row in of_node[node] for beside in blanks_in(row)}


def _largest(colours: Iterable[str]) -> str:
    """The colour that most nodes have: they may as well keep the one they had."""
    return max((count, colour) for colour, count in Counter(colours).items())[1]


def _colour(node: str, rows: Iterable[Row], colour: dict[str, str]) -> str:
    spelled = sorted(
        "\n".join(with_blanks(term, lambda label: "*" if label == node else f"_{colour[label]}") for term in row)
        for row in rows
    )
    return digest(colour[node], *spelled, size=16)


def _all_twins(ordered: Sequence[str], colour: dict[str, str], of_node: dict[str, list[Row]]) -> bool:
    """Whether swapping any two neighbours of one colour leaves the message as it is."""
    for one, other in pairwise(ordered):
        if colour[one] == colour[other]:
            swap = {one: other, other: one}
            around = set(of_node[one]) | set(of_node[other])
            if {_map(row, lambda label: swap.get(label, label)) for row in around} != around:  # noqa: B023
                return False
    return True


def _by_dataset_canonicalization(rows: Sequence[Row], tied: int) -> tuple[Sequence[Row], Sequence[str]]:
    if tied > TIED_NODES:
        raise StreamError(
            f"{tied} blank nodes of one message cannot be told apart",
            hint="give them IRIs, or a property each that differs",
        )
    text = "".join(" ".join(term for term in row if term) + " .\n" for row in rows)
    dataset = ox.Dataset(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    renamed = [spell(quad) for quad in dataset]
    return renamed, sorted(_nodes(renamed), key=lambda node: (len(node), node))
