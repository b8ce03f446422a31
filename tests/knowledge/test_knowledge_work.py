"""How often the programs of entailment derive what they conclude: in proportion to their answers.

The work of a program is the number of its ground rules.  Facts would vanish from them, so the given triples may be
false here.
"""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence

import clingo
import pytest
from etalis_rules.terms import OWL, RDF_TYPE

from etalis_py.events import Triple
from etalis_py.knowledge import KnowledgeError, load, owl, schema_closure, solving
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.schema_closure import SUB_CLASS_OF, SUB_PROPERTY_OF, Numbering, close_rdfs
from etalis_py.knowledge.solving import SharedProcess, program_text
from etalis_py.values.limits import Limits
from tests.knowledge.rdfs_by_definition import DOMAIN

CONSTANTS: dict[str, Mapping[str, str]] = {"rdfs": schema_closure.CONSTANTS, "owlrl": owl._CONSTANTS}
PART, HAS, TRANSITIVE = "<urn:part>", "<urn:has>", ("<urn:part>", RDF_TYPE, owl.TRANSITIVE)


class RuleCounter(clingo.Observer):
    def __init__(self) -> None:
        self.count = 0

    def rule(self, choice: bool, head: Sequence[int], body: Sequence[int]) -> None:
        self.count += 1


def ground_rules(program: str, triples: list[Triple]) -> int:
    numbering = Numbering(CONSTANTS[program].values())
    facts = owl.facts(Graph(triples), numbering) if program == "owlrl" else numbering.facts(triples)
    given = re.sub(r"(given\([\d,]+\))", r"{\1}", facts)
    constants = [f"-c{name}={number}" for number, name in enumerate(CONSTANTS[program])]
    control = clingo.Control([*constants, f"-clast={len(numbering.numbers)}", "--warn=none"])
    counter = RuleCounter()
    control.register_observer(counter)
    control.add("base", [], f"{program_text(program)}\n{given}")
    control.ground([("base", [])])
    return counter.count


def term(n: int) -> str:
    return f"<urn:{n}>"


def chain(n: int, predicate: str) -> list[Triple]:
    return [(term(i), predicate, term(i + 1)) for i in range(n)]


def ring(n: int, predicate: str) -> list[Triple]:
    return [*chain(n - 1, predicate), (term(n - 1), predicate, term(0))]


def members(n: int, predicate: str) -> list[Triple]:
    cells = [f"_:c{i}" for i in range(n)] + [owl.NIL]
    rest = [(cells[i], owl.REST, cells[i + 1]) for i in range(n)]
    return [*rest, *((cells[i], owl.FIRST, term(i)) for i in range(n)), ("<urn:C>", predicate, cells[0])]


# what a schema may hold n of, by the number of consequences: n * n of them, or n
SQUARE: dict[str, Callable[[int], list[Triple]]] = {
    "sub-classes": lambda n: chain(n, SUB_CLASS_OF),
    "sub-properties": lambda n: [*chain(n, SUB_PROPERTY_OF), ("<urn:x>", term(0), "<urn:y>")],
    "domains of sub-classes": lambda n: [
        *chain(n, SUB_CLASS_OF),
        *((f"<urn:p{i}>", DOMAIN, term(i)) for i in range(n)),
    ],
    "equivalent classes": lambda n: ring(n, f"<{OWL}equivalentClass>"),
    "equivalent properties": lambda n: ring(n, f"<{OWL}equivalentProperty>"),
    "the same": lambda n: [*chain(n, owl.SAME_AS), (term(0), "<urn:p>", "<urn:v>")],
    "one functional property": lambda n: [
        ("<urn:p>", RDF_TYPE, owl.FUNCTIONAL),
        *(("<urn:x>", "<urn:p>", term(i)) for i in range(n)),
    ],
    "below a functional property": lambda n: [
        ("<urn:q>", RDF_TYPE, owl.FUNCTIONAL),
        *chain(2, SUB_PROPERTY_OF),
        (term(2), SUB_PROPERTY_OF, "<urn:q>"),
        *(("<urn:x>", term(0), f"<urn:v{i}>") for i in range(n)),
    ],
    "owners of two inverse functional values": lambda n: [
        ("<urn:p>", RDF_TYPE, owl.INVERSE_FUNCTIONAL),
        *((term(i), "<urn:p>", v) for i in range(n) for v in ('"v"', '"w"')),
    ],
    "the same, of the same": lambda n: [
        ("<urn:p>", RDF_TYPE, owl.FUNCTIONAL),
        *((f"<urn:x{i}>", owl.SAME_AS, f"<urn:x{i + 1}>") for i in range(n)),
        *((f"<urn:x{i}>", "<urn:p>", term(i)) for i in range(n)),
    ],
    "transitive": lambda n: [*chain(n, PART), TRANSITIVE],
    "transitive, with an inverse": lambda n: [*chain(n, PART), TRANSITIVE, (PART, owl.INVERSE_OF, HAS)],
    "inverses, both transitive": lambda n: [
        *chain(n, PART),
        TRANSITIVE,
        (HAS, RDF_TYPE, owl.TRANSITIVE),
        (PART, owl.INVERSE_OF, HAS),
    ],
    "transitive and symmetric": lambda n: [*chain(n, PART), TRANSITIVE, (PART, RDF_TYPE, owl.SYMMETRIC)],
}
LINEAR: dict[str, Callable[[int], list[Triple]]] = {
    "a union of many": lambda n: members(n, f"<{OWL}unionOf>"),
    "an intersection of many": lambda n: members(n, owl.INTERSECTION),
    "one of many": lambda n: members(n, f"<{OWL}oneOf>"),
}
RDFS_SHAPES = ("sub-classes", "sub-properties", "domains of sub-classes")


@pytest.mark.parametrize(
    ("program", "shape"), [*(("rdfs", shape) for shape in RDFS_SHAPES), *(("owlrl", shape) for shape in SQUARE)]
)
def test_a_chain_twice_as_long_takes_four_times_the_work(program: str, shape: str) -> None:
    triples = SQUARE[shape]
    assert ground_rules(program, triples(40)) < 4.2 * ground_rules(program, triples(20))


@pytest.mark.parametrize("shape", LINEAR)
def test_a_list_twice_as_long_takes_twice_the_work(shape: str) -> None:
    triples = LINEAR[shape]
    assert ground_rules("owlrl", triples(80)) < 2.1 * ground_rules("owlrl", triples(40))


@pytest.mark.parametrize("predicate", [SUB_CLASS_OF, SUB_PROPERTY_OF])
def test_a_hierarchy_that_holds_its_closure_is_given_by_its_edges(predicate: str) -> None:
    n = 60
    closed = [(term(i), predicate, term(j)) for i in range(n) for j in range(i + 1, n)]
    assert len(list(schema_closure._schema_triples(Graph(closed), frozenset({predicate}), frozenset()))) < 10 * n
    assert set(close_rdfs(Graph(closed)).schema[predicate]) == {(s, o) for s, _, o in closed}


def test_the_edges_of_rings_are_all_kept_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms that are all above each other, and below a chain."""
    n = 12
    every = [(term(i), SUB_CLASS_OF, term(j)) for i in range(n) for j in range(2 * n) if i != j]
    below = [(term(i), SUB_CLASS_OF, term(i + 1)) for i in range(n, 2 * n - 1)]
    closed = set(close_rdfs(Graph([*every, *below])).schema[SUB_CLASS_OF])
    monkeypatch.setattr(schema_closure, "_FEW", 1000)
    assert closed == set(close_rdfs(Graph([*every, *below])).schema[SUB_CLASS_OF])


def test_what_is_the_same_as_a_blank_node_between_properties() -> None:
    """A blank node is no predicate, but stands between two that are."""
    triples = [
        ("<urn:p>", SUB_PROPERTY_OF, "_:b"),
        ("_:b", SUB_PROPERTY_OF, "_:c"),
        ("_:c", SUB_PROPERTY_OF, "<urn:q>"),
        ("<urn:x>", "<urn:p>", "<urn:y>"),
    ]
    for closure in (close_rdfs(Graph(triples)), owl.close_owl(Graph(triples))):
        assert closure.specimens["<urn:p>"].predicates == ("<urn:q>",)
    assert ("<urn:x>", "<urn:q>", "<urn:y>") in owl.close_owl(Graph(triples)).derived


def graphs_with_schemas(count: int) -> dict[str, list[Triple]]:
    return {
        f"urn:g{i}": [(term(i), SUB_CLASS_OF, "<urn:Top>"), (f"<urn:x{i}>", RDF_TYPE, term(i))] for i in range(count)
    }


@pytest.mark.parametrize("entailment", ["rdfs", "owlrl", "rdfs-full"])
def test_the_schemas_of_many_graphs_are_closed_in_one_process(monkeypatch: pytest.MonkeyPatch, entailment: str) -> None:
    started = []
    start = subprocess.Popen

    def counting(*arguments: object, **options: object) -> object:
        started.append(arguments)
        return start(*arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", counting)
    knowledge = load(named=graphs_with_schemas(5), entailment=entailment, cache=False)
    assert len(started) == 1
    for i in range(5):
        assert knowledge.graph(f"<urn:g{i}>").contains(f"<urn:x{i}>", RDF_TYPE, "<urn:Top>")
        assert not knowledge.graph(f"<urn:g{i}>").contains(f"<urn:x{i + 1}>", RDF_TYPE, "<urn:Top>")


def test_a_program_that_the_shared_process_does_not_solve_gets_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with SharedProcess() as process:
        assert process.answer_set("a(n).", {"n": 3}, name="one") == b"a(3)"
        with pytest.raises(KnowledgeError, match=r"^two: the program has no answer set"):
            process.answer_set("a. :- a.", {}, name="two")
        assert sorted(process.answer_set("b. c.", {}, name="three").split()) == [b"b", b"c"]
        monkeypatch.setattr(solving, "_PATIENCE", 0.0)
        assert process.answer_set(" ".join(f"d({i})." for i in range(3)), {}, name="four").split() == [
            b"d(0)",
            b"d(1)",
            b"d(2)",
        ]


def test_the_limits_of_grounding_hold_for_entailment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are given: the message names them."""
    stated, none = chain(2, SUB_CLASS_OF), Limits(grounding_seconds=1e-9)
    expected = r"owlrl.lp: the program was not grounded(.|\n)*such as rdfs(.|\n)*raise Limits\(grounding_seconds=…\)"
    knowledge = load(stated, entailment="owlrl", cache=False, limits=none)  # small: by the process that all share
    with pytest.raises(KnowledgeError, match=expected):
        knowledge.update(add=chain(3, SUB_CLASS_OF))
    assert set(knowledge.stated()) == set(stated)
    monkeypatch.setattr(solving, "_SMALL", 0)
    with pytest.raises(KnowledgeError, match=expected):
        load(stated, entailment="owlrl", cache=False, limits=none)
