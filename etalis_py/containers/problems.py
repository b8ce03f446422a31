"""Refusals: RFC 9457 problem documents, raised anywhere below a request and rendered in one place.

Every kind is listed in ``KINDS`` with what to do about it; ``/-/constraints`` prints that table, and it is the target
of the ``ldp:constrainedBy`` links (LDP 1.0 §4.2.1.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS: dict[str, tuple[int, str, str]] = {
    "bad-request": (400, "The request cannot be read", "Correct the part of the request that the detail names."),
    "bad-query": (400, "The query does not compile", "Correct the query where the detail points."),
    "unauthorized": (
        401,
        "A token is needed",
        "Send 'Authorization: Bearer TOKEN' with a token that the operator of the server has given you.",
    ),
    "no-right": (403, "The token does not allow this", "Ask the operator of the server for a token with that right."),
    "forbidden": (403, "This is not allowed", "Use the page of this server, or allow the origin when starting it."),
    "not-found": (404, "There is no such resource", "Look the address up in the container that should hold it."),
    "no-match": (404, "There is no such match", "Name one that the program lists: it keeps the last of them only."),
    "no-method": (405, "The resource does not take this method", "Use one of the methods in the Allow header."),
    "not-acceptable": (406, "No representation is acceptable", "Accept one of the media types that the detail lists."),
    "timeout": (408, "The request took too long to arrive", "Send the whole body at once."),
    "conflict": (
        409,
        "The request conflicts with what the server manages",
        "Change what the detail names, then send it again.",
    ),
    "gone": (410, "The resource was deleted", "Its address is not used again; create a new one."),
    "stale": (412, "The resource is not in the state you expect", "Read it again, and repeat with its new ETag."),
    "too-large": (413, "The request is larger than the server takes", "Send less at once, or raise the limit."),
    "wrong-type": (415, "The server does not take this media type here", "Send one of the types in Accept-Post."),
    "wrong-host": (
        421,
        "The server does not answer for this host name",
        "Use its own address, or start it with a base URL.",
    ),
    "constraint": (422, "The graph breaks a constraint of the server", "Change what the detail names."),
    "too-costly": (
        422,
        "The query needs more than the server allows",
        "Write a query that needs less of what the detail names, or raise the limit.",
    ),
    "need-match": (428, "A change needs If-Match", "Read the resource, and send its ETag in If-Match."),
    "limit": (429, "A limit of the server is reached", "Delete something, wait, or raise the limit."),
    "no-engine": (501, "The server runs without an engine", "Start the server with one to register programs."),
    "busy": (503, "The server cannot take more at the moment", "Try again after the time in Retry-After."),
    "failed": (500, "The server failed", "The server's log holds the reason; report it with that."),
}


@dataclass(slots=True)
class Problem(Exception):
    """A refusal: its kind (a key of ``KINDS``), what exactly was found, and further members of the document."""

    kind: str
    detail: str
    extra: dict[str, object] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.status} {self.kind}: {self.detail}"

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def document(self, instance: str) -> dict[str, object]:
        """The members of the problem document."""
        status, title, hint = KINDS[self.kind]
        head = {"type": f"/-/constraints#{self.kind}", "title": title, "status": status, "detail": self.detail}
        return head | {"instance": instance, "hint": hint} | self.extra


def constraints_page(limits: dict[str, object]) -> str:
    """The constraints of this server as plain text, for people and for ldp:constrainedBy."""
    rows = [f"{kind} ({status})\n    {title}.\n    {hint}" for kind, (status, title, hint) in KINDS.items()]
    shown = [f"{name.replace('_', ' ')}: {value}" for name, value in limits.items()]
    return "\n".join(
        [
            "What this server refuses, and what to do about it",
            "",
            *rows,
            "",
            "Its limits",
            "",
            *shown,
            "",
            "It manages ldp:contains and the membership triples itself; a PUT that changes them is refused (409).",
            "A window has one ldp:membershipResource, one ldp:hasMemberRelation, one ldpsc:contentTimestampRelation",
            "and either one ldpsc:logical (an xsd:duration) or one ldpsc:physical (a number of triples).",
            "",
        ]
    )
