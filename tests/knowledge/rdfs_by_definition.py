"""RDFS entailment written down literally: apply every rule to everything until nothing new comes."""

from etalis_rules.terms import RDF, RDFS
from etalis_rules.terms import RDF_TYPE as TYPE

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
MEMBER, LITERAL = f"<{RDFS}member>", f"<{RDFS}Literal>"
PROPERTY, RESOURCE, CLASS = f"<{RDF}Property>", f"<{RDFS}Resource>", f"<{RDFS}Class>"
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


def full_closure(facts: set, axioms: set) -> set:
    """The same with the axiomatic triples, under rdfs4a, 4b, 6, 8, 10 and rdfD2 as well."""
    known = closure(facts | axioms)
    while True:
        new = set()
        for s, p, o in known:
            new.add((p, TYPE, PROPERTY))  # rdfD2
            new.add((s, TYPE, RESOURCE))  # rdfs4a
            if o[0] != '"':
                new.add((o, TYPE, RESOURCE))  # rdfs4b
            if (p, o) == (TYPE, PROPERTY):
                new.add((s, SUB_PROPERTY, s))  # rdfs6
            if (p, o) == (TYPE, CLASS):
                new |= {(s, SUB_CLASS, RESOURCE), (s, SUB_CLASS, s)}  # rdfs8, rdfs10
        if new <= known:
            return known
        known = closure(known | new)
