"""The changes of a store, each a function for ``Store.submit``; a refused one raises a ``Problem``.

Conditions (If-Match) are checked here, inside the transaction, so that nothing happens between check and change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from urllib.parse import unquote

from etalis_rules.terms import RDF_TYPE, literal

from etalis_py.events import Triple
from etalis_py.events.clock import render_datetime

from . import vocabulary as v
from .catalogue import CatalogueEntry, ProgramRow
from .graphs import BLANK, DATE_TIME_STAMP, ReceivedGraph, ntriples, order_time, triples_of
from .problems import Problem
from .retention import count, counts, forget, remember_gone
from .spec import Spec, read_spec
from .transaction import StoredMember, Transaction

# Checks a state tag ("…") of the resource; None: there is no such resource yet.
Condition = Callable[[str | None], None]
ProgramCondition = Callable[[ProgramRow], None]

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,128}", re.ASCII)
_OUTSIDE = re.compile(r"[^A-Za-z0-9._~-]+")


def container_tag(container: CatalogueEntry) -> str:
    """The state of a container as a tag: its description, then its content."""
    return f"c{container.id}.{container.version}.{container.changes}"


def member_tag(number: int, version: int) -> str:
    return f"m{number}.{version}"


def is_name(name: str) -> bool:
    """Whether this may be the last part of an address; ``-`` is the server's own folder."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..", "-")


def check_name(name: str) -> None:
    """Refuse what cannot be the last part of an address."""
    if not is_name(name):
        rule = "use letters from a to z and A to Z, digits and . _ ~ -, at most 128 of them"
        raise Problem("conflict", f"{name!r} cannot be chosen as a name; {rule}")


def as_name(slug: str) -> str | None:
    """A Slug, percent-encoded (RFC 5023 §9.7.1), as a name; None if only digits are left, which the server gives."""
    name = _OUTSIDE.sub("-", unquote(slug)).strip("-.")[:96]
    return name if name and not name.isdigit() and is_name(name) else None


def find(transaction: Transaction, path: str) -> CatalogueEntry:
    container = transaction.catalogue.by_path.get(path)
    if container is None:
        raise Problem("gone" if _is_gone(transaction, path) else "not-found", f"there is no container {path}")
    return container


def _is_gone(transaction: Transaction, path: str) -> bool:
    return transaction.db.execute("SELECT 1 FROM gone WHERE path = ?", (path,)).fetchone() is not None


def _is_taken(transaction: Transaction, parent: CatalogueEntry, name: str) -> bool:
    path = parent.path + name
    db = transaction.db
    return (
        f"{path}/" in transaction.catalogue.by_path
        or (parent.id, name) in transaction.catalogue.programs
        or db.execute("SELECT 1 FROM members WHERE container = ? AND name = ?", (parent.id, name)).fetchone()
        is not None
        or db.execute("SELECT 1 FROM gone WHERE path IN (?, ?)", (path, f"{path}/")).fetchone() is not None
    )


def _free_name(transaction: Transaction, parent: CatalogueEntry, slug: str | None, fallback: str) -> str:
    name = as_name(slug) if slug else None
    name = name or fallback
    tried, number = name, 1
    while _is_taken(transaction, parent, tried):
        number += 1
        if number > 1000:
            raise Problem("conflict", f"a thousand resources here have names like {name!r}; suggest another Slug")
        tried = f"{name}-{number}"
    return tried


# -- members ----------------------------------------------------------------------------------------------------


def _timed(graph: ReceivedGraph, spec: Spec, otherwise: Callable[[], int]) -> tuple[ReceivedGraph, int]:
    """The graph with its time stated about the resource itself, where the rule of [SC] Figure 5 finds it."""
    time = order_time(graph, spec.order)
    stamp = graph.stamps.get(spec.order)
    if time is not None and stamp is not None and stamp.own:
        return graph, time
    time = otherwise() if time is None else time
    triple = (graph.me, spec.order, literal(render_datetime(time), DATE_TIME_STAMP))
    return replace(graph, triples=(*graph.triples, triple)), time


def add_member(
    path: str, graph: ReceivedGraph, arrival: int, slug: str | None = None, name: str | None = None
) -> Callable[[Transaction], StoredMember]:
    """POST: put a graph into a container; its name is the next number, or made from ``slug``, or ``name`` itself."""

    def change(transaction: Transaction) -> StoredMember:
        container = find(transaction, path)
        timed, time = _timed(graph, container.spec, lambda: transaction.arrivals.at(arrival))
        if name is not None:
            check_name(name)
            if name.isdigit():
                raise Problem("conflict", f"{name!r} cannot be chosen as a name; plain numbers are given by the server")
            if _is_gone(transaction, path + name):
                raise Problem("gone", f"{path}{name} was deleted, and its address is not used again")
        final = name or (_free_name(transaction, container, slug, "") if slug and as_name(slug) else "")
        number = count(transaction, container, 1, len(timed.triples), used=0 if final else 1)
        final = final or str(number)
        db = transaction.db
        body = _settled(transaction, container, final, timed)
        triples = len(timed.triples)
        cursor = db.execute(
            "INSERT INTO members (container, name, time, triples, version, body) VALUES (?, ?, ?, ?, 1, ?)",
            (container.id, final, time, triples, body),
        )
        stored = StoredMember(int(cursor.lastrowid or 0), container.id, path, final, time, triples, 1, body)
        _stamp(transaction, container, stored, timed)
        transaction.stored.append(stored)
        return stored

    return change


def add_members(path: str, graphs: list[ReceivedGraph], arrival: int) -> Callable[[Transaction], list[StoredMember]]:
    """POST of rows: put all of their graphs into a container, or none."""

    def change(transaction: Transaction) -> list[StoredMember]:
        return [add_member(path, graph, arrival)(transaction) for graph in graphs]

    return change


def _settled(transaction: Transaction, container: CatalogueEntry, name: str, graph: ReceivedGraph) -> bytes:
    """The graph as it is stored; its blank nodes are labelled by container and name, so no two members share any."""
    label = name if name.isdigit() else "n" + blake2b(name.encode(), digest_size=8).hexdigest()
    return graph.settled(f"<{transaction.base}{container.path[1:]}{name}>", f"m{container.id}x{label}x")


def _stamp(transaction: Transaction, container: CatalogueEntry, stored: StoredMember, graph: ReceivedGraph) -> None:
    rows = [
        (container.id, relation, stamp.time, stored.id, stamp.own, stored.triples)
        for relation, stamp in graph.stamps.items()
        if relation != container.spec.order
    ]
    if rows:
        transaction.db.executemany("INSERT INTO stamps VALUES (?, ?, ?, ?, ?, ?)", rows)


def put_member(
    path: str, name: str, graph: ReceivedGraph, arrival: int, condition: Condition
) -> Callable[[Transaction], tuple[StoredMember, bool]]:
    """PUT: replace a member (keeping its time if the new graph has none) or create it; returns whether it is new."""

    def change(transaction: Transaction) -> tuple[StoredMember, bool]:
        container = find(transaction, path)
        row = _row(transaction, container, name)
        condition(None if row is None else member_tag(row[0], row[3]))
        if row is None:
            if (
                f"{path}{name}/" in transaction.catalogue.by_path
                or (container.id, name) in transaction.catalogue.programs
            ):
                raise Problem("conflict", f"{path}{name} is taken by another kind of resource")
            return add_member(path, graph, arrival, name=name)(transaction), True
        number, before, triples, version = row
        timed, time = _timed(graph, container.spec, lambda: before)
        body = _settled(transaction, container, name, timed)
        stored = StoredMember(number, container.id, path, name, time, len(timed.triples), version + 1, body)
        db = transaction.db
        db.execute("DELETE FROM stamps WHERE member = ?", (number,))
        db.execute(
            "UPDATE members SET time = ?, triples = ?, version = ?, body = ? WHERE id = ?",
            (time, stored.triples, stored.version, body, number),
        )
        count(transaction, container, 0, stored.triples - triples)
        _stamp(transaction, container, stored, timed)
        return stored, False

    return change


def delete_member(path: str, name: str, condition: Condition) -> Callable[[Transaction], None]:
    def change(transaction: Transaction) -> None:
        container = find(transaction, path)
        row = _row(transaction, container, name)
        if row is None:
            raise Problem("not-found", f"there is no {path}{name}")
        condition(member_tag(row[0], row[3]))
        forget(transaction, container, [(row[0], name, row[2])])

    return change


def _row(transaction: Transaction, container: CatalogueEntry, name: str) -> tuple[int, int, int, int] | None:
    sql = "SELECT id, time, triples, version FROM members WHERE container = ? AND name = ?"
    return transaction.db.execute(sql, (container.id, name)).fetchone()  # type: ignore[no-any-return]


# -- containers (submit with alone=True) ------------------------------------------------------------------------


def add_container(
    path: str, graph: ReceivedGraph, model: str, slug: str | None = None, name: str | None = None
) -> Callable[[Transaction], CatalogueEntry]:
    """POST: nest a new container in another; ``model`` is the interaction model that was asked for."""

    def change(transaction: Transaction) -> CatalogueEntry:
        parent = find(transaction, path)
        limits = transaction.limits
        if len(transaction.catalogue.by_id) >= limits.containers:
            raise Problem("limit", f"the server holds {limits.containers} containers (containers)")
        if parent.depth >= limits.nesting_depth:
            raise Problem("limit", f"containers nest {limits.nesting_depth} deep at most (nesting_depth)")
        final = name or _free_name(transaction, parent, slug, f"container-{len(transaction.catalogue.by_id)}")
        if name is not None and _is_taken(transaction, parent, name):
            raise Problem("conflict", f"{path}{name}/ cannot be created: the name is taken, or was used before")
        new = f"{path}{final}/"
        config, spec = _described(transaction, new, graph, model)
        row = transaction.db.execute(
            "INSERT INTO containers (path, parent, config, sort) VALUES (?, ?, ?, ?) RETURNING id",
            (new, parent.id, config, spec.order),
        ).fetchone()
        created = CatalogueEntry(row[0], new, parent.id, config, spec, 1, 1, 0, 0, 0)
        count(transaction, parent, 0, 0)
        transaction.after.append(lambda: transaction.catalogue.put(created))
        return created

    return change


def _described(transaction: Transaction, path: str, graph: ReceivedGraph, model: str) -> tuple[bytes, Spec]:
    """The stored description of a container: the graph as given, with its type made explicit."""
    me = f"<{transaction.base}{path[1:]}>"
    triples = triples_of(graph.settled(me, "c"))
    types = {o for s, p, o in triples if s == me and p == RDF_TYPE}
    if model == v.STREAM_CONTAINER or model == v.DIRECT_CONTAINER:
        triples = triples if model in types else (*triples, (me, RDF_TYPE, model))
    elif not types & {v.BASIC_CONTAINER, v.DIRECT_CONTAINER, v.STREAM_CONTAINER}:
        triples = (*triples, (me, RDF_TYPE, v.BASIC_CONTAINER))
    if model == v.BASIC_CONTAINER and v.DIRECT_CONTAINER in types:
        raise Problem(
            "constraint", "the Link header asks for a basic container, the graph for a direct one; ask for one"
        )
    managed = [t for t in triples if t[1] == v.CONTAINS]
    if managed:
        raise Problem("conflict", f"ldp:contains is kept by the server; leave out {' '.join(managed[0])}")
    return ntriples(triples), read_spec(me, triples, transaction.limits)


def replace_container(
    path: str,
    graph: ReceivedGraph | None,
    condition: Condition,
    edit: Callable[[tuple[Triple, ...]], tuple[Triple, ...]] | None = None,
) -> Callable[[Transaction], CatalogueEntry]:
    """PUT (``graph``) or PATCH (``edit``, from the old triples to the new): a new description of a container."""

    def change(transaction: Transaction) -> CatalogueEntry:
        container = find(transaction, path)
        condition(container_tag(container))
        me = f"<{transaction.base}{path[1:]}>"
        given = edit(triples_of(container.config)) if edit else graph.triples if graph else ()
        triples = tuple(t for t in given if not _is_managed(transaction, container, t))
        blank = graph.blank if graph else BLANK
        body = ntriples(triples).replace(blank.encode(), f"_:c{container.version}x".encode())
        triples = triples_of(body)
        spec = read_spec(me, triples, transaction.limits)
        if (spec.stream, spec.interaction_model) != (container.spec.stream, container.spec.interaction_model):
            raise Problem("conflict", "the type of a container does not change; keep its rdf:type, or create another")
        if not any(s == me and p == RDF_TYPE for s, p, _ in triples):
            raise Problem("conflict", f"the description lacks the type of the container; add {me} a ldp:BasicContainer")
        if spec.order != container.spec.order and container.next + container.members:
            declared = any(s == me and p == v.CONTENT_TIMESTAMP_RELATION for s, p, _ in triples)
            if declared:
                raise Problem(
                    "conflict",
                    f"it is ordered by {container.spec.order}; to order by {spec.order} create another container",
                )
            spec = replace(spec, order=container.spec.order)
        transaction.db.execute(
            "UPDATE containers SET config = ?, sort = ?, version = version + 1 WHERE id = ?",
            (body, spec.order, container.id),
        )
        count(transaction, container, 0, 0)
        new = replace(
            container,
            config=body,
            spec=spec,
            version=container.version + 1,
            changes=counts(transaction, container)[0],
        )
        transaction.after.append(lambda: transaction.catalogue.put(new))
        return new

    return change


def _is_managed(transaction: Transaction, container: CatalogueEntry, triple: tuple[str, str, str]) -> bool:
    """Whether this is a containment or membership triple that the server states itself; a wrong one is refused."""
    s, p, o = triple
    me = f"<{transaction.base}{container.path[1:]}>"
    direct = container.spec.direct
    if (
        (s == me and p == v.CONTAINS)
        or any(s == w.resource and p == w.member_relation for w in container.spec.windows)
        or (direct and not direct.inverse and (s, p) == (direct.resource, direct.relation))
    ):
        member = o
    elif direct and direct.inverse and (o, p) == (direct.resource, direct.relation):
        member = s
    elif p == v.CONTAINS:
        raise Problem("conflict", f"ldp:contains is kept by the server; leave out {s} {p} {o}")
    else:
        return False
    path = "/" + member[1 + len(transaction.base) : -1] if member.startswith(f"<{transaction.base}") else ""
    name = path.removeprefix(container.path)
    known = path.startswith(container.path) and (
        path in transaction.catalogue.children.get(container.id, {})
        or (container.id, name) in transaction.catalogue.programs
        or _row(transaction, container, name) is not None
    )
    if not known:
        raise Problem("conflict", f"containment and membership are kept by the server; leave out {s} {p} {o}")
    return True


def delete_container(path: str, condition: Condition) -> Callable[[Transaction], None]:
    """DELETE: a container with all its members; refused if it holds containers or programs."""

    def change(transaction: Transaction) -> None:
        container = find(transaction, path)
        condition(container_tag(container))
        if not container.parent:
            raise Problem("conflict", "the root container cannot be deleted")
        if transaction.catalogue.children.get(container.id) or transaction.catalogue.programs_of(container.id):
            raise Problem("conflict", f"{path} holds containers or programs; delete those first")
        readers = [p for p in transaction.catalogue.programs.values() if p.output == path]
        if readers:
            raise Problem("conflict", f"the program {readers[0].name} writes to {path}; delete that first")
        parent = transaction.catalogue.by_id[container.parent]
        transaction.db.execute("DELETE FROM containers WHERE id = ?", (container.id,))
        transaction.db.execute("INSERT OR IGNORE INTO purges VALUES (?)", (container.id,))
        remember_gone(transaction, [path])
        count(transaction, parent, 0, 0)
        transaction.after.append(lambda: transaction.catalogue.drop(container))

    return change


def ensure_root(transaction: Transaction) -> None:
    """The root container exists from the first start on."""
    if "/" in transaction.catalogue.by_path:
        return
    me = f"<{transaction.base}>"
    config = ntriples([(me, RDF_TYPE, v.BASIC_CONTAINER)])
    spec = read_spec(me, triples_of(config), transaction.limits)
    row = transaction.db.execute(
        "INSERT INTO containers (path, parent, config, sort) VALUES ('/', 0, ?, ?) RETURNING id", (config, spec.order)
    ).fetchone()
    root = CatalogueEntry(row[0], "/", 0, config, spec, 1, 1, 0, 0, 0)
    transaction.after.append(lambda: transaction.catalogue.put(root))


# -- programs (submit with alone=True) --------------------------------------------------------------------------


class NameTaken(Exception):
    """Another resource has got this name meanwhile."""


def program_name(path: str, slug: str | None, *, many: bool) -> Callable[[Transaction], str]:
    """A free name for a program over a container, which its query is then compiled with."""

    def change(transaction: Transaction) -> str:
        return _free_name(transaction, find(transaction, path), slug, "queries-1" if many else "program-1")

    return change


def add_program(
    path: str, name: str, query: str, output: str | None, *, writes: bool, from_start: bool
) -> Callable[[Transaction], ProgramRow]:
    """Register a program over a container; ``NameTaken`` if it cannot have this name.

    ``writes``: its matches are graphs; without ``output`` a stream container for them is created beside it.  A program
    without a query has many queries, which are added later.
    """

    def change(transaction: Transaction) -> ProgramRow:
        container = find(transaction, path)
        if len(transaction.catalogue.programs) >= transaction.limits.programs:
            raise Problem("limit", f"{transaction.limits.programs} programs run already (programs); delete one")
        if _is_taken(transaction, container, name):
            raise NameTaken(name)
        target = ""
        if output is not None:
            target = find(transaction, output).path
            if target == path:
                raise Problem("conflict", "a program cannot write into the container it reads")
        elif writes:
            target = _container_of_matches(transaction, path, name)
        after = 0 if from_start else transaction.db.execute("SELECT coalesce(max(id), 0) FROM members").fetchone()[0]
        row = transaction.db.execute(
            "INSERT INTO programs (container, name, query, output, after, many) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (container.id, name, query, target, after, not query),
        ).fetchone()
        program = ProgramRow(row[0], container.id, name, query, target, after, many=not query)
        count(transaction, container, 0, 0)
        transaction.after.append(lambda: transaction.catalogue.put_program(program))
        return program

    return change


def _container_of_matches(transaction: Transaction, path: str, name: str) -> str:
    """The path of a new stream container for the matches of a program."""
    graph = ReceivedGraph((), {}, "<>")
    return add_container(path, graph, v.STREAM_CONTAINER, slug=f"{name}-matches")(transaction).path


def delete_program(path: str, name: str, check: ProgramCondition) -> Callable[[Transaction], ProgramRow]:
    def change(transaction: Transaction) -> ProgramRow:
        container = find(transaction, path)
        program = transaction.catalogue.programs.get((container.id, name))
        if program is None:
            raise Problem("not-found", f"there is no {path}{name}")
        check(program)
        transaction.db.execute("DELETE FROM programs WHERE id = ?", (program.id,))
        transaction.db.execute("DELETE FROM queries WHERE program = ?", (program.id,))
        remember_gone(transaction, [path + name])
        count(transaction, container, 0, 0)
        transaction.after.append(lambda: transaction.catalogue.drop_program(program))
        return program

    return change


def _program(transaction: Transaction, number: int) -> ProgramRow:
    for program in transaction.catalogue.programs.values():
        if program.id == number:
            return program
    raise Problem("gone", "the program was deleted")


def set_program_state(number: int, *, paused: bool, stopped: str) -> Callable[[Transaction], ProgramRow]:
    """Set whether a program should run, and why it does not."""

    def change(transaction: Transaction) -> ProgramRow:
        program = replace(_program(transaction, number), paused=paused, stopped=stopped)
        transaction.db.execute(
            "UPDATE programs SET paused = ?, stopped = ? WHERE id = ?", (paused, stopped, program.id)
        )
        transaction.after.append(lambda: transaction.catalogue.put_program(program))
        return program

    return change


def replace_program(
    number: int, query: str, check: ProgramCondition, *, writes: bool, from_start: bool
) -> Callable[[Transaction], ProgramRow]:
    """Replace the query of a program, which reads new members from now on, or everything stored."""

    def change(transaction: Transaction) -> ProgramRow:
        before = _program(transaction, number)
        check(before)
        after = 0 if from_start else transaction.db.execute("SELECT coalesce(max(id), 0) FROM members").fetchone()[0]
        program = replace(before, query=query, after=after, paused=False, stopped="")
        if writes and not program.output:
            path = transaction.catalogue.by_id[program.container].path
            program = replace(program, output=_container_of_matches(transaction, path, program.name))
        transaction.db.execute(
            "UPDATE programs SET query = ?, output = ?, after = ?, paused = 0, stopped = '' WHERE id = ?",
            (query, program.output, after, program.id),
        )
        transaction.after.append(lambda: transaction.catalogue.put_program(program))
        return program

    return change
