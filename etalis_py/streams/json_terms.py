"""Terms as in the SPARQL 1.2 Query Results JSON Format."""

from __future__ import annotations

from typing import Any

from etalis_rules.terms import iri_value, is_blank, is_iri, is_triple, parts, triple_parts


def json_term(term: str) -> dict[str, Any]:
    """A term as in the SPARQL 1.2 Query Results JSON Format."""
    if is_iri(term):
        return {"type": "uri", "value": iri_value(term)}
    if is_blank(term):
        return {"type": "bnode", "value": term[2:]}
    if is_triple(term):
        subject, predicate, object = map(json_term, triple_parts(term))
        return {"type": "triple", "value": {"subject": subject, "predicate": predicate, "object": object}}
    lexical, datatype, language = parts(term)
    language, _, direction = language.partition("--")
    result = {"type": "literal", "value": lexical}
    if datatype:
        result["datatype"] = datatype
    if language:
        result["xml:lang"] = language
    if direction:
        result["its:dir"] = direction
    return result
