"""RDFS entailment written down literally: apply every rule to everything until nothing new comes."""

from etalis_rules.terms import RDF_TYPE as TYPE
from etalis_rules.terms import RDFS

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
MEMBER, LITERAL = f"<{RDFS}member>", f"<{RDFS}Literal>"
MEMBERSHIP, DATATYPE = f"<{RDFS}ContainerMembershipProperty>", f"<{RDFS}Datatype>"


def closure(facts: set) -> set:
    """The least set with the facts that is closed under rdfs2, 3, 5, 7, 9, 11, 12 and 13."""
    known = set(facts)
    while True:
        new = set()
        for s, p, o in known:
            for x, q, y in known:
                if q == DOMAIN and x == p:  # rdfs2
                    new.add((s, TYPE, y))
                if q == RANGE and x == p and not o.startswith('"'):  # rdfs3
                    new.add((o, TYPE, y))
                if p == q == SUB_PROPERTY and o == x:  # rdfs5
                    new.add((s, SUB_PROPERTY, y))
                if q == SUB_PROPERTY and x == p and y.startswith("<"):  # rdfs7
                    new.add((s, y, o))
                if p == TYPE and q == SUB_CLASS and o == x:  # rdfs9
                    new.add((s, TYPE, y))
                if p == q == SUB_CLASS and o == x:  # rdfs11
                    new.add((s, SUB_CLASS, y))
            if (p, o) == (TYPE, MEMBERSHIP):  # rdfs12
                new.add((s, SUB_PROPERTY, MEMBER))
            if (p, o) == (TYPE, DATATYPE):  # rdfs13
                new.add((s, SUB_CLASS, LITERAL))
        if new <= known:
            return known
        known |= new
