"""The containers of a store, in memory: what each is, and its counts as of the last commit.

Only the writer replaces entries, and each entry is immutable, so readers need no lock.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from .graphs import triples_of
from .limits import Limits
from .spec import Spec, read_spec


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One container.  ``version`` counts changes of its description, ``changes`` those and all of its content."""

    id: int
    path: str
    parent: int
    config: bytes
    spec: Spec
    version: int
    changes: int
    next: int
    members: int
    triples: int

    @property
    def depth(self) -> int:
        return self.path.count("/") - 1


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """A registered program: its query, the container it reads, the one it writes, and the member it starts after.

    ``paused``: by a client's wish.  ``stopped``: why it no longer runs; empty while it does.  ``many``: it has no query
    of its own, but many that come and go (``QueryRow``).
    """

    id: int
    container: int
    name: str
    query: str
    output: str
    after: int
    paused: bool = False
    stopped: str = ""
    many: bool = False


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One of the queries of a program: its text, the client that registered it, and the member it starts after.

    ``quiet``: the instant of that member was over.  ``stopped``: why it no longer runs; empty while it does.
    """

    id: int
    program: int
    name: str
    text: str
    client: str
    after: int
    quiet: bool
    stopped: str = ""


class Catalogue:
    """Containers by path and by id, and the programs by container and name."""

    def __init__(self) -> None:
        self.by_path: dict[str, CatalogueEntry] = {}
        self.by_id: dict[int, CatalogueEntry] = {}
        self.children: dict[int, dict[str, None]] = {}
        self.programs: dict[tuple[int, str], ProgramRow] = {}

    @classmethod
    def load(cls, db: sqlite3.Connection, base: str) -> Catalogue:
        """Read the containers of a store; they were accepted once, so the current limits do not apply."""
        catalogue, limits = cls(), Limits(windows_per_container=2**31, physical_triples=2**62)
        columns = "id, path, parent, config, version, changes, next, members, triples, sort"
        for row in db.execute(f"SELECT {columns} FROM containers ORDER BY id").fetchall():
            number, path, parent, config, *counts, order = row
            spec = read_spec(f"<{base}{path[1:]}>", triples_of(config), limits)
            catalogue.put(CatalogueEntry(number, path, parent, config, replace(spec, order=order), *counts))
        for row in db.execute(
            "SELECT id, container, name, query, output, after, paused, stopped, many FROM programs"
        ).fetchall():
            catalogue.put_program(ProgramRow(*row[:6], bool(row[6]), row[7], bool(row[8])))  # type: ignore[call-arg]
        return catalogue

    def put(self, container: CatalogueEntry) -> None:
        self.by_path[container.path] = container
        self.by_id[container.id] = container
        self.children.setdefault(container.parent, {})[container.path] = None

    def drop(self, container: CatalogueEntry) -> None:
        del self.by_path[container.path], self.by_id[container.id]
        del self.children[container.parent][container.path]

    def put_program(self, program: ProgramRow) -> None:
        self.programs[program.container, program.name] = program

    def drop_program(self, program: ProgramRow) -> None:
        del self.programs[program.container, program.name]

    def programs_of(self, container: int) -> list[ProgramRow]:
        return [p for p in self.programs.values() if p.container == container]
