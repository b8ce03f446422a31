"""The IRIs that describe stream containers, and the prefixes for printing them."""

from __future__ import annotations

LDP = "http://www.w3.org/ns/ldp#"
LDPSC = "https://solid.ti.rw.fau.de/public/ns/stream-containers#"
PROV = "http://www.w3.org/ns/prov#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
# Terms missing from [SC]: retention, the mapping of rows, the link relations of the whole-window request and the feed.
EC = "urn:etalis:containers#"

CONTAINS = f"<{LDP}contains>"
MEMBERSHIP_RESOURCE = f"<{LDP}membershipResource>"
HAS_MEMBER_RELATION = f"<{LDP}hasMemberRelation>"
IS_MEMBER_OF_RELATION = f"<{LDP}isMemberOfRelation>"
INSERTED_CONTENT_RELATION = f"<{LDP}insertedContentRelation>"
MEMBER_SUBJECT = f"<{LDP}MemberSubject>"

RESOURCE = f"<{LDP}Resource>"
RDF_SOURCE = f"<{LDP}RDFSource>"
NON_RDF_SOURCE = f"<{LDP}NonRDFSource>"
CONTAINER = f"<{LDP}Container>"
BASIC_CONTAINER = f"<{LDP}BasicContainer>"
DIRECT_CONTAINER = f"<{LDP}DirectContainer>"
INDIRECT_CONTAINER = f"<{LDP}IndirectContainer>"

PREFER_CONTAINMENT = f"{LDP}PreferContainment"
PREFER_MEMBERSHIP = f"{LDP}PreferMembership"
PREFER_MINIMAL = f"{LDP}PreferMinimalContainer"
PREFER_EMPTY = f"{LDP}PreferEmptyContainer"

STREAM_CONTAINER = f"<{LDPSC}StreamContainer>"
WINDOW = f"<{LDPSC}window>"
CONTENT_TIMESTAMP_RELATION = f"<{LDPSC}contentTimestampRelation>"
LOGICAL = f"<{LDPSC}logical>"
PHYSICAL = f"<{LDPSC}physical>"

GENERATED_AT = f"<{PROV}generatedAtTime>"
STARTED_AT = f"<{PROV}startedAtTime>"

RETAIN_FOR = f"<{EC}retainFor>"
RETAIN_COUNT = f"<{EC}retainCount>"
MAPPING = f"<{EC}mapping>"

REL_WINDOW = f"{EC}window"
REL_FEED = f"{EC}feed"
REL_OUTPUT = f"{EC}output"

PREFIXES = {
    "": "http://example.org/",
    "ldp": LDP,
    "ldpsc": LDPSC,
    "prov": PROV,
    "ec": EC,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "dcterms": "http://purl.org/dc/terms/",
}
