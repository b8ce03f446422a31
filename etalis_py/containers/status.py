"""The server state that the page shows: containers with their windows and rates, programs, limits."""

from __future__ import annotations

from dataclasses import asdict

from etalis_rules.terms import iri_value, is_literal, parts

from etalis_py.events.clock import render_datetime

from . import spans
from .catalogue import CatalogueEntry
from .graphs import triples_of
from .programs import Programs
from .push import Hub
from .store import Store

_SHOWN = 500
_COUNTED = 10_000
_TITLES = ("<http://purl.org/dc/terms/title>", "<http://www.w3.org/2000/01/rdf-schema#label>")


def status(store: Store, hub: Hub, programs: Programs) -> dict[str, object]:
    """The state of a server as JSON."""
    containers = list(store.catalogue.by_path.values())
    now = store.clock()
    return {
        "now": render_datetime(now),
        "containers": [_container(store, hub, c, now) for c in sorted(containers, key=lambda c: c.path)[:_SHOWN]],
        "more": max(0, len(containers) - _SHOWN),
        "programs": [programs.describe(row) for row in list(store.catalogue.programs.values())],
        "readers": hub.readers,
        "limits": asdict(store.limits),
    }


def _container(store: Store, hub: Hub, c: CatalogueEntry, now: int) -> dict[str, object]:
    spec = c.spec
    with store.reading() as db:
        ends = spans.ends(db, spans.whole(c.id))
        windows = [
            {
                "name": w.name,
                "resource": iri_value(w.resource),
                "kind": "logical" if w.logical else "physical",
                "size": str(w.logical) if w.logical else f"{w.physical} triples",
                "relation": iri_value(w.relation),
                "members": spans.size(db, spans.content(db, c.id, spec.order, w, now), _COUNTED + 1),
            }
            for w in spec.windows
        ]
    return {
        "path": c.path,
        "title": _title(c),
        "stream": spec.stream,
        "direct": spec.direct is not None,
        "members": c.members,
        "triples": c.triples,
        "rate": hub.rate(c.id).per_second(),
        "history": hub.rate(c.id).history(),
        "oldest": render_datetime(ends[0][0]) if ends else None,
        "newest": render_datetime(ends[1][0]) if ends else None,
        "order": iri_value(spec.order),
        "retainFor": str(spec.retain_for) if spec.retain_for else None,
        "retainCount": spec.retain_count,
        "windows": windows,
        "mapped": bool(spec.mapping),
    }


def _title(c: CatalogueEntry) -> str:
    for predicate in _TITLES:
        for _, p, o in triples_of(c.config):
            if p == predicate and is_literal(o):
                return parts(o)[0]
    return ""
